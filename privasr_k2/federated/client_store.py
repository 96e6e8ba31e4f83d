"""The text of clients as numbers, on the disk: a cohort is read, the others are not in memory.

In memory are a name and three offsets for each client.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from privasr_k2.lm.neural.vocabulary import Text


@dataclass(frozen=True, eq=False)
class ClientData:
    """A client's text as a model reads it.

    Attributes:
        name: of the client.
        text: its sentences as numbers.
        weights: (M + S,) float32, c of all words and sentence ends, sentence by sentence.
        num_words: words of the sentences that are trained on: w of [liu2021, eq. 5].
    """

    name: str
    text: Text
    weights: np.ndarray
    num_words: int


class StoredClients(Sequence[ClientData]):
    """Clients in the order in which they were added, in files of the temporary folder.

    The files have no name: the system removes them with the process, however it ends.

    >>> stored = StoredClients()
    >>> for name in ("a", "b"):
    ...     text = Text(np.array([5, 6, 7], dtype=np.int32), np.array([0, 2, 3]))
    ...     stored.add(ClientData(name, text, np.ones(5, dtype=np.float32), 3))
    >>> stored[1].name, stored[1].text.words.tolist(), stored[-1].text.starts.tolist()
    ('b', [5, 6, 7], [0, 2, 3])
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._words, self._starts, self._weights = (
            _Column(dtype) for dtype in (np.int32, np.int32, np.float32)
        )

    def add(self, client: ClientData) -> None:
        """Write one more client."""
        self._names.append(client.name)
        self._words.append(client.text.words)
        self._starts.append(client.text.starts)
        self._weights.append(client.weights)

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> ClientData: ...

    @overload
    def __getitem__(self, index: slice) -> list[ClientData]: ...

    def __getitem__(self, index: int | slice) -> ClientData | list[ClientData]:
        """A client, or several, read from the files."""
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        name, number = self._names[index], range(len(self))[index]
        words, starts = self._words[number], self._starts[number].astype(np.int64)
        return ClientData(name, Text(words, starts), self._weights[number], len(words))

    def __iter__(self) -> Iterator[ClientData]:
        return (self[number] for number in range(len(self)))


class _Column:
    """One array of each client, all of them in a file."""

    def __init__(self, dtype: type[np.generic]) -> None:
        self._dtype = np.dtype(dtype)
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  closed by finalize
        weakref.finalize(self, self._file.close)
        self._ends = array("q", [0])

    def append(self, values: np.ndarray) -> None:
        self._file.write(np.ascontiguousarray(values, dtype=self._dtype).tobytes())
        self._ends.append(self._ends[-1] + len(values) * self._dtype.itemsize)

    def __getitem__(self, number: int) -> np.ndarray:
        begin, end = self._ends[number], self._ends[number + 1]
        read = bytearray(os.pread(self._file.fileno(), end - begin, begin))
        return np.frombuffer(read, self._dtype)
