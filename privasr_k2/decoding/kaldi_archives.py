"""Kaldi's archives of lattices: ``lat.*.gz`` of ``CompactLattice`` or ``Lattice``, binary and text.

No Python package reads ``CompactLattice``: kaldi_native_io has no lattices, and kaldifst has
``Lattice`` in files of its own, no archives. An entry is the utterance, a space, and either
OpenFst's bytes (type ``vector``, arcs ``compactlattice44`` or ``lattice4``) or a line end and
OpenFst's text up to an empty line, words as numbers. Costs are pairs: graph, acoustic.
"""

from __future__ import annotations

import gzip
import io
import math
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from privasr_k2.decoding.lattices import END, Lattice
from privasr_k2.errors import DataError
from privasr_k2.fileio import atomic_path

_MAGIC = 2125659606
_COMPACT, _PLAIN = b"compactlattice44", b"lattice4"
_HAS_SYMBOLS, _EXPANDED = 3, 1
_INT, _INT64, _PAIR = struct.Struct("<i"), struct.Struct("<q"), struct.Struct("<ff")
_HEADER = struct.Struct("<iiQqqq")  # version, flags, properties, start, states, arcs
_COMPACT_ARC = struct.Struct("<iiffi")  # input and output label, graph, acoustic, transition ids
_PLAIN_ARC = np.dtype([("ilabel", "<i4"), ("olabel", "<i4"), ("costs", "<f4", 2), ("to", "<i4")])
_KIND = "a Kaldi archive of lattices"
_COPY = "copy the archive again, or write it with lattice-copy"
_LONGEST_KEY = 1000


@dataclass(frozen=True, eq=False)
class KaldiLattice:
    """A lattice as Kaldi wrote it; without a path it has no arcs.

    Attributes:
        id: of the utterance.
        place: of the entry, for errors.
        num_states: S. State 0 is the start, the last one was added as the only final state.
        sources, targets, words: (A,) int64; the word 0 is no word.
        costs: (A, 2) float64, graph and acoustic, unscaled.
        frames: (A,) int64, transition ids on each arc.
    """

    id: str
    place: str
    num_states: int
    sources: np.ndarray
    targets: np.ndarray
    words: np.ndarray
    costs: np.ndarray
    frames: np.ndarray


#: source, target (-1: the end), word, graph cost, acoustic cost, transition ids.
_Row = tuple[int, int, int, float, float, int]


def read_kaldi_lattices(path: Path) -> Iterator[KaldiLattice]:
    """The entries of an archive, gzipped if named ``.gz``, one by one.

    Raises:
        DataError: another kind of archive, one that is cut short or damaged, a weight that is no
            pair of numbers, or arcs to states that are not there.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as raw:
            stream = io.BufferedReader(cast(io.RawIOBase, raw), 1 << 20)
            empty = True
            while key := _key(stream, path):
                empty = False
                yield _entry(stream, *key, f"{path} ({key[0]})")
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(path, _KIND, str(error) or "its end too early", _COPY) from error
    if empty:
        raise DataError(path, _KIND, "an empty file", _COPY)


def from_file(path: Path, name: str, place: str) -> KaldiLattice:
    """The lattice of an OpenFst file alone, as kaldifst writes it.

    Args:
        name: the utterance.
        place: of errors, as the file may be a temporary one.
    """
    with path.open("rb") as stream:
        return _entry(stream, name, False, place)


def write_kaldi_lattices(path: Path, lattices: Iterable[Lattice]) -> None:
    """Write an archive of compact lattices as Kaldi's tools read it, gzipped if named ``.gz``.

    Costs are negated, unscaled scores; there are no transition ids. Utterances without a path are
    left out, as Kaldi's decoders do.
    """
    with atomic_path(path) as temporary, temporary.open("wb") as raw:
        if path.suffix != ".gz":
            raw.writelines(map(_binary, lattices))
        else:
            # A fixed time and no name: the same lattices give the same bytes.
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
                for lattice in lattices:
                    file.write(_binary(lattice))


def _binary(lattice: Lattice) -> bytes:
    """An entry; END arcs become final costs."""
    if not lattice.num_states:
        return b""
    costs = 0.0 - np.stack((lattice.lm_scores, lattice.am_scores), axis=1)
    leaving: list[list[bytes]] = [[] for _ in range(lattice.num_states - 1)]
    finals = [(math.inf, math.inf)] * len(leaving)
    columns = (lattice.sources, lattice.targets, lattice.words, costs)
    for source, target, word, pair in zip(*(column.tolist() for column in columns)):
        if word == END:
            finals[source] = tuple(pair)
        else:
            arc = _COMPACT_ARC.pack(word, word, *pair, 0) + _INT.pack(target)
            leaving[source].append(arc)
    number = sum(map(len, leaving))
    parts = [lattice.id.encode(), b" ", _INT.pack(_MAGIC), _text(b"vector"), _text(_COMPACT)]
    parts.append(_HEADER.pack(2, 0, _EXPANDED, 0, len(leaving), number))
    for final, arcs in zip(finals, leaving):
        parts += [_PAIR.pack(*final), _INT.pack(0), _INT64.pack(len(arcs)), *arcs]
    return b"".join(parts)


def _text(value: bytes) -> bytes:
    return _INT.pack(len(value)) + value


def _key(stream: BinaryIO, path: Path) -> tuple[str, bool] | None:
    """The next utterance, and whether a line ends behind it; ``None`` at the end of the file."""
    key = bytearray()
    while (byte := stream.read(1)) and not byte.isspace():
        key += byte
        if len(key) > _LONGEST_KEY:
            break
    if not key and not byte:
        return None
    try:
        name = key.decode()
    except UnicodeDecodeError:
        name = ""
    if not name or not byte.isspace() or not name.isprintable():
        raise DataError(path, _KIND, f"no utterance before {bytes(key[:20])!r}", _COPY)
    return name, byte == b"\n"


def _entry(stream: io.BufferedReader, name: str, line_ends: bool, place: str) -> KaldiLattice:
    if line_ends:
        return _from_text(stream, name, place)
    if stream.peek(1)[:1] == b"\n":
        stream.read(1)
        return _from_text(stream, name, place)
    magic = _INT.pack(_MAGIC)
    begins = stream.read(4)
    if begins != magic:
        found = "another table" if begins[:2] == b"\0B" else f"{begins!r}"
        if magic.startswith(begins):
            raise DataError(place, "a whole lattice", "the end of the file", _COPY)
        raise DataError(place, _KIND, found, "give lat.*.gz of a decode folder")
    return _from_bytes(_Reader(stream, place), name)


@dataclass(frozen=True)
class _Reader:
    """Reads exactly what is asked for."""

    stream: BinaryIO
    place: str

    def take(self, size: int) -> bytes:
        data = self.stream.read(size)
        if len(data) < size:
            raise DataError(self.place, "a whole lattice", "the end of the file", _COPY)
        return data

    def unpack(self, form: struct.Struct) -> tuple:
        return form.unpack(self.take(form.size))

    def text(self) -> bytes:
        return self.take(self.count(_INT, 64))

    def count(self, form: struct.Struct, most: int) -> int:
        (number,) = self.unpack(form)
        if not 0 <= number <= most:
            raise DataError(self.place, f"a size from 0 to {most}", f"{number}", _COPY)
        return int(number)


def _from_bytes(reader: _Reader, name: str) -> KaldiLattice:
    kind, arcs = reader.text(), reader.text()
    if kind != b"vector" or arcs not in (_COMPACT, _PLAIN):
        found = f"an FST of type {kind.decode(errors='replace')}, arcs {arcs.decode('latin1')}"
        way_out = "give lat.*.gz of a decode folder"
        raise DataError(reader.place, "a Lattice or CompactLattice", found, way_out)
    version, flags, _, start, states, _ = reader.unpack(_HEADER)
    if version != 2 or flags & _HAS_SYMBOLS or states < 0:
        found = f"version {version}, flags {flags}, {states} states"
        raise DataError(reader.place, "version 2, no symbol tables", found, _COPY)
    rows: list[_Row] = []
    read = _compact_state if arcs == _COMPACT else _plain_state
    for state in range(states):
        rows += read(reader, state)
    return _made(name, reader.place, rows, states, start)


def _compact_state(reader: _Reader, state: int) -> Iterator[_Row]:
    graph, acoustic = reader.unpack(_PAIR)
    frames = reader.count(_INT, 1 << 28)
    reader.take(4 * frames)
    if graph != math.inf:
        yield state, -1, END, graph, acoustic, frames
    for _ in range(reader.count(_INT64, 1 << 40)):
        word, _, graph, acoustic, frames = reader.unpack(_COMPACT_ARC)
        if not 0 <= frames < 1 << 28:
            raise DataError(reader.place, "a number of transition ids", f"{frames}", _COPY)
        reader.take(4 * frames)
        yield state, _target(reader), word, graph, acoustic, frames


def _target(reader: _Reader) -> int:
    (target,) = reader.unpack(_INT)
    return _checked_target(int(target), reader.place)


def _checked_target(target: int, place: str) -> int:
    if target < 0:
        raise DataError(place, "arcs between its states", f"an arc to state {target}", _COPY)
    return target


def _plain_state(reader: _Reader, state: int) -> Iterator[_Row]:
    graph, acoustic = reader.unpack(_PAIR)
    if graph != math.inf:
        yield state, -1, END, graph, acoustic, 0
    size = reader.count(_INT64, 1 << 40)
    arcs = np.frombuffer(reader.take(size * _PLAIN_ARC.itemsize), _PLAIN_ARC)
    for tid, word, costs, target in arcs.tolist():
        yield state, _checked_target(target, reader.place), word, *costs, int(tid != 0)


def _from_text(stream: BinaryIO, name: str, place: str) -> KaldiLattice:
    """Lines ``from to word graph,acoustic,ids`` or ``from to id word graph,acoustic``, finals."""
    lines: list[list[str]] = []
    while True:
        raw = stream.readline()
        if not raw.endswith(b"\n"):
            expected = "an empty line behind the last arc"
            raise DataError(place, expected, "the end of the file", _COPY)
        try:
            fields = raw.decode().split()
        except UnicodeDecodeError as error:
            raise DataError(place, "text", f"the byte {raw[error.start]}", _COPY) from error
        if not fields:
            break
        lines.append(fields)
    plain = any(len(line) == 5 or (len(line) == 4 and "," not in line[3]) for line in lines)
    rows = [_row(line, plain, place) for line in lines]
    states = 1 + max((max(row[0], row[1]) for row in rows), default=-1)
    return _made(name, place, rows, states, rows[0][0] if rows else -1)


def _row(fields: list[str], plain: bool, place: str) -> _Row:
    """One line; weights of one are left out in it."""
    labels = 4 if plain else 3
    ends = len(fields) <= 2
    weight = fields[1 if ends else labels :]
    costs = weight[0].split(",") if weight else ["0", "0", ""]
    try:
        numbers = [int(field) for field in fields[: 1 if ends else labels]]
        graph, acoustic = float(costs[0]), float(costs[1])
        if min(numbers) < 0 or len(weight) > 1 or (not ends and len(numbers) < labels):
            raise ValueError
        frames = len([one for one in costs[2].split("_") if one]) if len(costs) > 2 else 0
    except (ValueError, IndexError) as error:
        expected = "arcs of numbers: from to word graph,acoustic,ids"
        way_out = "write it with lattice-copy; words must be numbers, not symbols"
        raise DataError(place, expected, repr(" ".join(fields))[:60], way_out) from error
    if ends:
        return numbers[0], -1, END, graph, acoustic, frames
    frames = int(numbers[2] != 0) if plain else frames
    return numbers[0], numbers[1], numbers[-1], graph, acoustic, frames


def _made(name: str, place: str, rows: list[_Row], states: int, start: int) -> KaldiLattice:
    """The lattice of all rows that have finite costs, its start as state 0."""
    table = np.array(rows, dtype=np.float64).reshape(-1, 6)
    if len(table) and (np.isnan(table).any() or (table[:, 3:5] == -np.inf).any()):
        raise DataError(place, "costs that are numbers", "others", _COPY)
    table = table[np.isfinite(table).all(axis=1)]
    sources, targets, words, frames = (table[:, n].astype(np.int64) for n in (0, 1, 2, 5))
    if (len(table) and not 0 <= start < states) or (targets >= states).any() or (words < 0).any():
        found = "a start, an arc or a word outside of its numbers"
        raise DataError(place, f"arcs between its {states} states", found, _COPY)
    if not len(table):
        states = 0
    swap = np.arange(states + 1)
    if states:
        swap[[0, start]] = swap[[start, 0]]
    targets = np.where(targets < 0, states, targets)
    arrays = swap[sources], swap[targets], words, table[:, 3:5], frames
    return KaldiLattice(name, place, states + 1, *arrays)
