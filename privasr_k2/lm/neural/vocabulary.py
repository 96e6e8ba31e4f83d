"""The numbering of words that a neural language model reads and predicts.

Number 0 is the sentence boundary: ``<s>`` where it is read, ``</s>`` where it is predicted. Number
1 is ``<unk>``, then come words by falling count in the training text, as an adaptive softmax needs
them. The order reveals which words the text has often, so a private recipe counts a public text.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines

BOUNDARY, UNKNOWN = 0, 1
SYMBOLS = ("</s>", "<unk>")
#: Names that stand in vocabularies and are no words that can be spoken.
NO_WORDS = frozenset({"<s>", "</s>", "<unk>", "<UNK>", "<eps>", "#0"})


@dataclass(frozen=True, eq=False)
class Text:
    """Sentences as numbers, without boundaries.

    Attributes:
        words: (M,) int32, all sentences one after the other.
        starts: (S + 1,) int64, where each sentence starts; the last entry is M.
    """

    words: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> np.ndarray:
        """(S,) predicted symbols of each sentence: its words and its end."""
        return np.diff(self.starts) + 1

    def padded(self, sentences: np.ndarray) -> np.ndarray:
        """(N, max U + 1) int64 the given sentences between boundaries, padded with boundaries.

        >>> Text(np.array([5, 6, 7]), np.array([0, 2, 3])).padded(np.array([1, 0])).tolist()
        [[0, 7, 0, 0], [0, 5, 6, 0]]
        """
        lengths = np.diff(self.starts)[sentences]
        padded = np.full(
            (len(sentences), int(lengths.max(initial=0)) + 2), BOUNDARY, dtype=np.int64
        )
        columns = np.arange(padded.shape[1] - 2)
        inside = columns < lengths[:, None]
        padded[:, 1:-1][inside] = self.words[(self.starts[sentences][:, None] + columns)[inside]]
        return padded


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """V symbols: ``</s>``, ``<unk>`` and the words, in the order of their numbers.

    >>> known = Vocabulary(("</s>", "<unk>", "a", "b"))
    >>> known.encode([["b", "c"]]).words.tolist()
    [3, 1]
    """

    symbols: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def words(self) -> tuple[str, ...]:
        """The words that can be spoken."""
        return self.symbols[len(SYMBOLS) :]

    @cached_property
    def ids(self) -> dict[str, int]:
        """The number of each word and of ``<unk>``; a text cannot hold the boundary."""
        return {symbol: number for number, symbol in enumerate(self.symbols) if number != BOUNDARY}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the numbering."""
        return hashlib.sha256("\n".join(self.symbols).encode()).hexdigest()

    def numbers(self, words: Iterable[str]) -> np.ndarray:
        """(M,) int32 the words' numbers, that of ``<unk>`` for all others."""
        return np.array([self.ids.get(word, UNKNOWN) for word in words], dtype=np.int32)

    def encode(self, sentences: Sequence[Sequence[str]]) -> Text:
        """Sentences as numbers."""
        starts = np.zeros(len(sentences) + 1, dtype=np.int64)
        np.cumsum([len(sentence) for sentence in sentences], out=starts[1:])
        return Text(self.numbers(word for sentence in sentences for word in sentence), starts)


def order_by_count(words: Iterable[str], sentences: Iterable[Iterable[str]]) -> Vocabulary:
    """The vocabulary of ``words``, most frequent in ``sentences`` first, ties in their own order.

    >>> order_by_count(["a", "b", "c"], [["c", "c", "b"]]).symbols
    ('</s>', '<unk>', 'c', 'b', 'a')
    """
    counts = Counter(word for sentence in sentences for word in sentence)
    spoken = dict.fromkeys(word for word in words if word not in NO_WORDS)
    return Vocabulary((*SYMBOLS, *sorted(spoken, key=lambda word: -counts[word])))


def read_vocabulary(path: Path) -> Vocabulary:
    """The ``words.txt`` of a model's folder.

    Raises:
        DataError: a missing file, or a line not as :func:`vocabulary_text` writes it.
    """
    if not path.is_file():
        raise DataError(path, "a language model's words", "no such file", "train it with train_lm")
    symbols: list[str] = []
    for number, line in read_lines(path):
        fields = line.split()
        wanted = SYMBOLS[len(symbols)] if len(symbols) < len(SYMBOLS) else "a word"
        expected = fields[0] if wanted == "a word" and fields else wanted
        if fields != [expected, str(len(symbols))]:
            place, way_out = f"{path}:{number}", "train again"
            raise DataError(place, f"{wanted} and the number {len(symbols)}", repr(line), way_out)
        symbols.append(fields[0])
    if len(symbols) < len(SYMBOLS) or len(set(symbols)) < len(symbols):
        raise DataError(path, "every word once", "one twice, or none at all", "train it again")
    return Vocabulary(tuple(symbols))


def vocabulary_text(vocabulary: Vocabulary) -> str:
    """The text of ``words.txt``: ``SYMBOL NUMBER`` lines."""
    return "".join(f"{symbol} {number}\n" for number, symbol in enumerate(vocabulary.symbols))
