"""Class delimiters: symbols ``#bPER`` and ``#xPER`` of a graph around the names of a class.

Their numbers follow those of the words. :class:`ClassDelimiters` removes them from paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2.errors import GraphError

Span = tuple[int, int, str]  # first word, last word + 1, class


@dataclass(frozen=True)
class ClassDelimiters:
    """The delimiters of a graph; without classes there are none.

    Args:
        first: number of the first delimiter, behind words, ``<eps>`` and ``#0``.
        classes: class c begins with the symbol ``first + 2 c`` and ends with the next one.
    """

    first: int
    classes: tuple[str, ...]

    @classmethod
    def of_graph(
        cls, words: Sequence[str], info: Mapping[str, Any], folder: Path
    ) -> ClassDelimiters:
        """The delimiters of a graph folder with the content ``info`` of ``graph.yaml``.

        Raises:
            GraphError: ``words.txt`` does not end with the delimiters of the classes of ``info``.
        """
        classes = tuple((info.get("classes") or {}).get("names", ()))
        delimiters = cls(len(words) - 2 * len(classes), classes)
        if tuple(words[max(delimiters.first, 0) :]) != delimiters.symbols:
            expected = f"{' '.join(delimiters.symbols)} as the last symbols"
            found = " ".join(words[max(delimiters.first, 0) :])
            raise GraphError(folder / "words.txt", expected, found, "compile the graph again")
        return delimiters

    @property
    def symbols(self) -> tuple[str, ...]:
        """Their names, in the order of their numbers."""
        return tuple(f"#{end}{name}" for name in self.classes for end in "bx")

    @property
    def numbers(self) -> range:
        """Their numbers."""
        return range(self.first, self.first + 2 * len(self.classes))

    def split(self, symbols: Sequence[int]) -> tuple[tuple[int, ...], tuple[Span, ...] | None]:
        """The words of a path, and the spans of its names; None where the graph has no classes.

        >>> ClassDelimiters(10, ("PER", "LOC")).split([3, 10, 4, 5, 11, 6])
        ((3, 4, 5, 6), ((1, 3, 'PER'),))
        """
        words: list[int] = []
        spans: list[Span] = []
        entered = 0
        for symbol in symbols:
            kind, leaving = divmod(symbol - self.first, 2)
            if kind < 0:
                words.append(symbol)
            elif leaving:
                spans.append((entered, len(words), self.classes[kind]))
            else:
                entered = len(words)
        return tuple(words), tuple(spans) if self.classes else None

    def words_only(self, values: np.ndarray, splits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lists ``values[splits[k]:splits[k + 1]]`` without delimiters: values and splits."""
        kept = values < self.first
        before = np.concatenate([[0], np.cumsum(kept)]).astype(splits.dtype)
        return values[kept], before[splits]
