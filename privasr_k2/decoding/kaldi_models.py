"""Which output of a Kaldi model a transition id stands for: the transition model of ``final.mdl``.

A transition id is an arc of the HMM state of a (phone, HMM state, pdf). The arcs of all such tuples
are numbered from 1, tuple by tuple. Chain models have a pdf of their own for self-loops.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from privasr_k2.errors import DataError

_BINARY = b"\0B"
_EXPECTED = "a Kaldi model that begins with a transition model"
_WAY_OUT = "give final.mdl of the graph's model"
_MOST = 1 << 24


def read_pdfs(path: Path) -> np.ndarray:
    """(I + 1,) int64: the pdf of each transition id of a ``final.mdl``, binary or text.

    Number 0 stands for no transition, and is -1.

    Raises:
        DataError: another kind of file, or one that is cut short.
    """
    data = path.read_bytes()
    binary = data.startswith(_BINARY)
    reader = _Binary(data[2:]) if binary else _Text(data)
    try:
        reader.expect("<TransitionModel>")
        entries, states_of = reader.topology()
        token = reader.token()
        if token not in ("<Triples>", "<Tuples>"):
            raise ValueError(f"{token} where tuples should be")
        pdfs = [-1]
        for _ in range(reader.size()):
            phone, state, forward = (reader.number() for _ in range(3))
            loop = reader.number() if token == "<Tuples>" else forward
            if min(phone, state) < 0:
                raise ValueError(f"phone {phone}, state {state}")
            targets = entries[states_of[phone]][state]
            pdfs += [loop if target == state else forward for target in targets]
        reader.expect(token.replace("<", "</"))
        if min(pdfs[1:], default=-1) < 0:
            raise ValueError("a negative pdf, or none")
    except (ValueError, LookupError, struct.error, UnicodeDecodeError) as error:
        found = str(error) or type(error).__name__
        raise DataError(path, _EXPECTED, found, _WAY_OUT) from error
    return np.array(pdfs, dtype=np.int64)


#: The targets of each state's arcs, for each topology.
_Entries = list[list[list[int]]]


@dataclass
class _Binary:
    """Reads Kaldi's binary numbers: a byte of their size before each."""

    data: bytes
    at: int = 0

    def token(self) -> str:
        end = self.data.index(b" ", self.at, self.at + 100)
        token = self.data[self.at : end].decode()
        self.at = end + 1
        return token

    def expect(self, token: str) -> None:
        if (found := self.token()) != token:
            raise ValueError(f"{found!r} in place of {token}")

    def number(self) -> int:
        return int(self._unpack("<bi", 4))

    def _unpack(self, form: str, size: int) -> float:
        stated, value = struct.unpack_from(form, self.data, self.at)
        if stated != size:
            raise ValueError(f"a number of {stated} bytes in place of {size}")
        self.at += 1 + size
        return value

    def size(self) -> int:
        number = self.number()
        if not 0 <= number <= _MOST:
            raise ValueError(f"a size of {number}")
        return number

    def numbers(self) -> list[int]:
        """A vector of integers: the size of one, then how many."""
        stated, count = struct.unpack_from("<bi", self.data, self.at)
        if stated != 4 or not 0 <= count <= _MOST:
            raise ValueError(f"a vector of {count} numbers of {stated} bytes")
        self.at += 5
        values = struct.unpack_from(f"<{count}i", self.data, self.at)
        self.at += 4 * count
        return list(values)

    def topology(self) -> tuple[_Entries, list[int]]:
        """The entries, and which one each phone has."""
        self.expect("<Topology>")
        self.numbers()  # the phones
        entry_of = self.numbers()
        number = self.number()
        own_loops = number == -1  # the mark of self-loops with a pdf class of their own
        entries = []
        for _ in range(self.size() if own_loops else number):
            states = []
            for _ in range(self.size()):
                self.number()
                if own_loops:
                    self.number()
                targets = []
                for _ in range(self.size()):
                    targets.append(self.number())
                    self._unpack("<bf", 4)
                states.append(targets)
            entries.append(states)
        self.expect("</Topology>")
        return entries, entry_of


@dataclass
class _Text:
    """Reads Kaldi's text form."""

    data: bytes
    _words: Iterator[str] = field(init=False)

    def __post_init__(self) -> None:
        # What stands behind the transition model, a network, is not looked at.
        self._words = iter(self.data.partition(b"<LogProbs>")[0].decode(errors="replace").split())

    def token(self) -> str:
        if (word := next(self._words, None)) is None:
            raise ValueError("the end of the file")
        return word

    def expect(self, token: str) -> None:
        if (found := self.token()) != token:
            raise ValueError(f"{found[:20]!r} in place of {token}")

    def number(self) -> int:
        return int(self.token())

    size = number

    def topology(self) -> tuple[_Entries, dict[int, int]]:
        """The entries, and which one each phone has."""
        self.expect("<Topology>")
        entries: _Entries = []
        entry_of: dict[int, int] = {}
        while (token := self.token()) != "</Topology>":
            if token != "<TopologyEntry>":
                raise ValueError(f"{token[:20]!r} in place of <TopologyEntry>")
            self.expect("<ForPhones>")
            while (phone := self.token()) != "</ForPhones>":
                entry_of[int(phone)] = len(entries)
            entries.append(self._states())
        return entries, entry_of

    def _states(self) -> list[list[int]]:
        states: list[list[int]] = []
        while (token := self.token()) != "</TopologyEntry>":
            if token == "<State>":
                self.number()
                states.append([])
            elif token == "<Transition>":
                states[-1].append(self.number())
                self.token()
        return states
