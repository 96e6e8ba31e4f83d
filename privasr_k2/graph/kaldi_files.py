"""Files of a Kaldi graph or language folder: OpenFst's binary files, symbol tables with gaps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2.errors import DataError, GraphError
from privasr_k2.fileio import read_lines

if TYPE_CHECKING:
    import kaldifst

_AGAIN = "copy the file again, or write it again with Kaldi's tools"
_MAGIC = b"\xd6\xfd\xb2\x7e"
_TABLE = "give words.txt or phones.txt of the folder"


def read_fst(path: Path) -> kaldifst.StdFst:
    """An OpenFst file of standard arcs, type ``vector`` or ``const``, as a kaldifst transducer.

    Raises:
        GraphError: no such file, another kind, or one that is cut short.
    """
    import kaldifst

    expected = "an OpenFst file, type vector or const, arcs standard"
    if not path.is_file():
        raise GraphError(path, expected, "nothing", _AGAIN)
    with path.open("rb") as file:
        head = file.read(64)
    if not head.startswith(_MAGIC):
        raise GraphError(path, expected, "another kind of file", _AGAIN)
    fst = kaldifst.StdConstFst.read(str(path))
    if fst is None or fst.start < 0:
        found = "one without states" if fst is not None else "another type, or one cut short"
        raise GraphError(path, expected, found, _AGAIN)
    return fst


def read_table(path: Path) -> tuple[str, ...]:
    """The symbols of ``words.txt`` or ``phones.txt`` by their numbers; ``""`` where one is missing.

    Tables with nonterminal symbols have such gaps.

    Raises:
        DataError: with its line: no symbol and number, a symbol or a number twice; no ``<eps>``.
    """
    numbers: dict[int, str] = {}
    seen: set[str] = set()
    for line_number, line in read_lines(path):
        fields = line.split()
        if not fields:
            continue
        place = f"{path}:{line_number}"
        if len(fields) != 2 or not fields[1].isdecimal():
            raise DataError(place, "'SYMBOL NUMBER'", repr(line)[:60], _TABLE)
        symbol, number = fields[0], int(fields[1])
        if symbol in seen or number in numbers:
            raise DataError(place, "each symbol and number once", repr(line), _TABLE)
        if number > 100_000_000:
            raise DataError(place, "a number of a symbol", fields[1], _TABLE)
        seen.add(symbol)
        numbers[number] = symbol
    if numbers.get(0) not in ("<eps>", "<epsilon>"):
        found = repr(numbers[0]) if 0 in numbers else "no such number"
        raise DataError(path, "<eps> as number 0", found, _TABLE)
    return tuple(numbers.get(number, "") for number in range(max(numbers) + 1))
