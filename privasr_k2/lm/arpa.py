"""N-gram language models in ARPA format, held as one sorted trie of numpy arrays.

Node 0 is the empty history, node ``i + 1`` is the n-gram of row ``i``. Row ``i`` has the key
``parent * V + word``, where ``parent`` is the node of the n-gram without its last word. Rows go by
order, and by key within an order: the keys of the whole model ascend, and any set of look-ups is
one binary search.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from privasr_k2.errors import GraphError
from privasr_k2.fileio import atomic_path, open_text, read_lines

BOS, EOS, UNK = "<s>", "</s>", "<unk>"
LOG10_ZERO = -99.0  # how ARPA writes a probability of zero
_LOG10_MOST = 1e6  # of back-off weights: their sums stay finite
_COUNT = re.compile("[0-9]{1,18}")
_BARE_EXCESS = 1e-4  # a history without a back-off weight may miss 1 by: seven digits


@dataclass(frozen=True, eq=False)
class Arpa:
    """A back-off model over V words.

    Args:
        words: the V words; word ``w`` is the unigram of row ``w``.
        counts: number of n-grams of order 1, 2, ...
        keys: (n,) int64, ascending; see the module's docstring.
        log10_probs: (n,) log10 P(last word | the words before it).
        log10_backoffs: (n,) log10 of the back-off weight as a history; 0 where there is none.
    """

    words: tuple[str, ...]
    counts: tuple[int, ...]
    keys: np.ndarray
    log10_probs: np.ndarray
    log10_backoffs: np.ndarray

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return len(self.counts)

    @property
    def parents(self) -> np.ndarray:
        """(n,) the node of each n-gram's history."""
        return self.keys // len(self.words)

    @property
    def last_words(self) -> np.ndarray:
        """(n,) the last word of each n-gram."""
        return self.keys % len(self.words)

    @cached_property
    def word_ids(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def suffixes(self) -> np.ndarray:
        """(n + 1,) for each node, that of its longest proper suffix; 0 for the root."""
        suffixes = np.zeros(len(self.keys) + 1, dtype=np.int64)
        for rows in self.rows_of_orders()[1:]:
            suffixes[rows.start + 1 : rows.stop + 1] = self.longest_nodes(
                suffixes[self.parents[rows]], self.last_words[rows], suffixes
            )
        return suffixes

    @cached_property
    def lower_log10_probs(self) -> np.ndarray:
        """(n,) log10 P(last word | the history without its first word); 0 for unigrams."""
        lower = np.zeros(len(self.keys))
        first, parents = self.counts[0], self.parents
        # Mostly the shorter n-gram is there, and is then the longest suffix that has been found
        # already.
        shorter = self.suffixes[1:][first:]
        histories, words = self.suffixes[parents[first:]], self.last_words[first:]
        there = parents[shorter - 1] == histories
        lower[first:][there] = self.log10_probs[shorter[there] - 1]
        lower[first:][~there] = self.log10_conditional(histories[~there], words[~there])
        return lower

    def rows_of_orders(self) -> list[slice]:
        """The rows of order 1, 2, ..."""
        ends = np.cumsum(self.counts)
        return [slice(int(end - count), int(end)) for end, count in zip(ends, self.counts)]

    def children(self, nodes: np.ndarray, words: np.ndarray) -> np.ndarray:
        """The nodes of the n-grams ``nodes`` + ``words``, -1 where the model has none."""
        wanted = nodes * len(self.words) + words
        rows = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[rows] == wanted, rows + 1, -1)

    def longest_nodes(
        self, nodes: np.ndarray, words: np.ndarray, suffixes: np.ndarray
    ) -> np.ndarray:
        """The nodes of ``words`` after the longest suffixes of ``nodes`` that have one."""
        nodes, longest = nodes.copy(), np.zeros(len(nodes), dtype=np.int64)
        active = np.arange(len(nodes))
        while active.size:
            children = self.children(nodes[active], words[active])
            hit = children >= 0
            longest[active[hit]] = children[hit]
            active = active[~hit]
            nodes[active] = suffixes[nodes[active]]
        return longest

    def log10_conditional(self, histories: np.ndarray, words: np.ndarray) -> np.ndarray:
        """log10 P(word | history) with back-off, for nodes ``histories`` (B,) and ``words`` (B,).

        >>> unigrams = Arpa(("a", "b"), (2,), np.arange(2), np.log10([0.25, 0.75]), np.zeros(2))
        >>> (10 ** unigrams.log10_conditional(np.array([0, 0]), np.array([0, 1]))).round(2).tolist()
        [0.25, 0.75]
        """
        nodes, total = histories.copy(), np.zeros(len(words))
        active = np.arange(len(words))
        while active.size:
            children = self.children(nodes[active], words[active])
            hit = children >= 0
            total[active[hit]] += self.log10_probs[children[hit] - 1]
            active = active[~hit]
            total[active] += self.log10_backoffs[nodes[active] - 1]
            nodes[active] = self.suffixes[nodes[active]]
        return total

    def sentence_scores(
        self, sentences: Sequence[Sequence[str]], *, score_unknown: bool = True
    ) -> tuple[np.ndarray, int]:
        """log10 P(words and end | start) of each sentence (N,), and the number of unknown words.

        An unknown word has the probability of ``<unk>`` where ``score_unknown`` is true and the
        model has one, otherwise it is left out. What follows it has no history.
        """
        unknown = self.word_ids.get(UNK, -1)
        tokens, sentence_of = encode(sentences, self.word_ids, unknown)
        is_unknown = tokens == unknown
        num_unknown = int(np.count_nonzero(is_unknown))
        histories = self.histories(tokens, sentence_of)
        scored = (tokens >= 0) & (tokens != self.word_ids[BOS]) & (score_unknown | ~is_unknown)
        scores = self.log10_conditional(histories[scored], tokens[scored])
        return np.bincount(sentence_of[scored], scores, minlength=len(sentences)), num_unknown

    def histories(self, tokens: np.ndarray, sentence_of: np.ndarray) -> np.ndarray:
        """(M,) the node of the longest history of each of the tokens (M,) of :func:`encode`."""
        histories = np.zeros(len(tokens), dtype=np.int64)
        # Of the window of growing length that starts at a position.
        nodes = np.zeros(len(tokens), dtype=np.int64)
        for length in range(1, self.order):
            if len(tokens) <= length:
                break
            nodes = nodes[: len(tokens) - length + 1]
            words = tokens[length - 1 :]
            same = sentence_of[: len(nodes)] == sentence_of[length - 1 :]
            usable = (nodes >= 0) & (words >= 0) & same
            nodes = np.where(usable, self.children(np.maximum(nodes, 0), np.maximum(words, 0)), -1)
            ahead = nodes[: len(tokens) - length]
            inside = (ahead >= 0) & (sentence_of[length:] == sentence_of[: len(ahead)])
            histories[length:][inside] = ahead[inside]
        return histories


def encode(
    sentences: Sequence[Sequence[str]], word_ids: dict[str, int], unknown: int
) -> tuple[np.ndarray, np.ndarray]:
    """All sentences as one array of word numbers with ``<s>`` and ``</s>``.

    Returns:
        tokens (M,) int64 and the sentence of each token (M,).
    """
    bos, eos = word_ids[BOS], word_ids[EOS]
    tokens: list[int] = []
    for sentence in sentences:
        tokens.append(bos)
        tokens.extend([word_ids.get(word, unknown) for word in sentence])
        tokens.append(eos)
    lengths = np.fromiter((len(s) + 2 for s in sentences), dtype=np.int64, count=len(sentences))
    return np.array(tokens, dtype=np.int64), np.repeat(np.arange(len(sentences)), lengths)


def write_arpa(model: Arpa, path: Path) -> None:
    """Write a model in ARPA format, gzipped where the name ends in ``.gz``, atomically."""
    has_children = np.bincount(model.parents, minlength=len(model.keys) + 1)[1:] > 0
    texts: list[str] = [""]
    with atomic_path(path) as temporary, open_text(temporary, "w") as file:
        file.write("\\data\\\n")
        file.writelines(
            f"ngram {order}={count}\n" for order, count in enumerate(model.counts, start=1)
        )
        for order, rows in enumerate(model.rows_of_orders(), start=1):
            words = [model.words[w] for w in model.last_words[rows].tolist()]
            if order > 1:
                words = [f"{texts[p]} {w}" for p, w in zip(model.parents[rows].tolist(), words)]
            texts.extend(words)
            probs, backoffs = model.log10_probs[rows].tolist(), model.log10_backoffs[rows].tolist()
            shown = (has_children[rows] | (model.log10_backoffs[rows] != 0)).tolist()
            file.write(f"\n\\{order}-grams:\n")
            file.writelines(
                f"{p:.7f}\t{w}\t{b:.7f}\n" if show else f"{p:.7f}\t{w}\n"
                for p, w, b, show in zip(probs, words, backoffs, shown)
            )
        file.write("\n\\end\\\n")


def read_arpa(path: Path) -> Arpa:
    """Read and check an ARPA file.

    A back-off weight may be missing where it is never used or is 1: of an n-gram that is no
    history, that every word follows, or whose longer n-grams are as probable as the shorter ones.

    Raises:
        GraphError: an unreadable line, a wrong count, an n-gram without its history, a history
            without the back-off weight it needs, a missing section.
        DataError: text that is not UTF-8, or a broken gzip file.
    """
    lines = read_lines(path)
    counts = _read_counts(path, lines)
    word_ids: dict[str, int] = {}
    keys, probs, backoffs = (np.zeros(0, dtype=t) for t in (np.int64, np.float64, np.float64))
    bare, bare_lines = [np.zeros(0, dtype=np.int64)] * 2  # nodes without a back-off weight
    for order, expected in enumerate(counts, start=1):
        section = _read_section(
            path, lines, order, expected, word_ids, highest=order == len(counts)
        )
        if order == 1 and not {BOS, EOS} <= word_ids.keys():
            raise GraphError(
                path, f"{BOS} and {EOS} among the unigrams", "not both", "estimate again"
            )
        section_keys = _section_keys(path, section, word_ids, keys)
        by_key = np.argsort(section_keys, kind="stable")
        section_keys = section_keys[by_key]
        twice = np.flatnonzero(section_keys[1:] == section_keys[:-1])
        if twice.size:
            row = int(by_key[twice[0] + 1])
            raise GraphError(
                f"{path}:{section.numbers[row]}", "each n-gram once", "one again", "remove"
            )
        rank = np.empty_like(by_key)
        rank[by_key] = np.arange(len(by_key))
        rows = np.array(section.bare, dtype=np.int64)
        bare = np.concatenate([bare, len(keys) + 1 + rank[rows]])
        bare_lines = np.concatenate([bare_lines, np.array(section.numbers, dtype=np.int64)[rows]])
        keys = np.concatenate([keys, section_keys])
        probs = np.concatenate([probs, section.probs[by_key]])
        backoffs = np.concatenate([backoffs, section.backoffs[by_key]])
    model = Arpa(tuple(word_ids), tuple(counts), keys, probs, backoffs)
    _refuse_bare_histories(path, model, bare, bare_lines)
    return model


@dataclass(frozen=True)
class _Section:
    """One order as read; ``bare``: rows without a back-off weight, none of the highest order."""

    numbers: array[int]
    bare: array[int]
    ids: np.ndarray
    probs: np.ndarray
    backoffs: np.ndarray


def _read_counts(path: Path, lines: Iterator[tuple[int, str]]) -> list[int]:
    number = 0
    while (numbered := next(lines, None)) is not None:
        number = numbered[0]
        if numbered[1].strip() == "\\data\\":
            break
    else:
        raise GraphError(f"{path}:{number}", r"a line '\data\'", "the end of the file", "give ARPA")
    counts: list[int] = []
    for number, line in lines:
        text = line.strip()
        if text == "\\1-grams:" and counts:
            return counts
        if not text:
            continue
        name, _, value = text.partition("=")
        if name.split() != ["ngram", str(len(counts) + 1)] or not _COUNT.fullmatch(value.strip()):
            expected = f"'ngram {len(counts) + 1}=COUNT'" + (r" or '\1-grams:'" if counts else "")
            raise GraphError(f"{path}:{number}", expected, repr(text), "estimate it again")
        counts.append(int(value))
    raise GraphError(
        f"{path}:{number}", r"a section '\1-grams:'", "the end of the file", "make it again"
    )


def _read_section(
    path: Path,
    lines: Iterator[tuple[int, str]],
    order: int,
    expected: int,
    word_ids: dict[str, int],
    highest: bool,
) -> _Section:
    """The n-grams of one order; unigrams number the words."""
    end = "\\end\\" if highest else f"\\{order + 1}-grams:"
    way_out = "repair or estimate it again"
    # Plain numbers in arrays: millions of lists or strings would cost gigabytes.
    numbers, bare, ids, probs, backoffs = array("q"), array("q"), array("q"), array("d"), array("d")
    number = 0
    for number, line in lines:
        if line.startswith("\\"):
            if line.rstrip(" \t") == end:
                break
            raise GraphError(f"{path}:{number}", f"a line '{end}'", repr(line), way_out)
        fields = line.replace("\t", " ").split(" ")
        if "" in fields:
            fields = [field for field in fields if field]
            if not fields:
                continue
        if len(fields) != order + 1 and (highest or len(fields) != order + 2):
            wanted = f"log10 P and {order} word(s)" + (
                "" if highest else ", maybe a back-off weight"
            )
            raise GraphError(f"{path}:{number}", wanted, repr(" ".join(fields)), way_out)
        try:
            probs.append(float(fields[0]))
            backoffs.append(float(fields[order + 1]) if len(fields) > order + 1 else 0.0)
        except ValueError as error:
            found = str(error).partition(": ")[2]
            raise GraphError(f"{path}:{number}", "a number", found, way_out) from None
        words = fields[1 : order + 1]
        if order == 1 and word_ids.setdefault(words[0], len(word_ids)) != len(numbers):
            raise GraphError(
                f"{path}:{number}", "each word once", f"{words[0]!r} again", "remove one"
            )
        try:
            ids.extend([word_ids[word] for word in words])
        except KeyError as error:
            raise GraphError(
                f"{path}:{number}", "words that are unigrams too", str(error), way_out
            ) from None
        if not highest and len(fields) == order + 1:
            bare.append(len(numbers))
        numbers.append(number)
    else:
        raise GraphError(
            f"{path}:{number}", f"a line '{end}'", "the end of the file", "make it again"
        )
    if len(numbers) != expected:
        wanted = f"{expected} {order}-grams as the header says"
        raise GraphError(f"{path}:{number}", wanted, str(len(numbers)), "make it again")
    log10_probs, log10_backoffs = np.array(probs), np.array(backoffs)
    for values, good, wanted in (
        (log10_probs, log10_probs <= 1e-6, "log10 P at most 0"),
        (log10_backoffs, np.abs(log10_backoffs) < _LOG10_MOST, "a finite back-off weight"),
    ):
        if not good.all():
            row = int(np.argmin(good))
            raise GraphError(f"{path}:{numbers[row]}", wanted, f"{values[row]:g}", way_out)
    words_of_rows = np.array(ids, dtype=np.int64).reshape(-1, order)
    return _Section(
        numbers, bare, words_of_rows, np.maximum(log10_probs, LOG10_ZERO), log10_backoffs
    )


def _refuse_bare_histories(path: Path, model: Arpa, bare: np.ndarray, lines: np.ndarray) -> None:
    """Refuse histories without a back-off weight that do not sum to 1 with a weight of 1."""
    used = np.isin(bare, model.parents)
    bare, lines = bare[used], lines[used]
    if not bare.size:
        return
    mass, shorter = (
        np.bincount(model.parents, weights=10.0**log10_probs, minlength=len(model.keys) + 1)[bare]
        for log10_probs in (model.log10_probs, model.lower_log10_probs)
    )
    wrong = (np.abs(mass - shorter) > _BARE_EXCESS) & (shorter < 1 - _BARE_EXCESS)
    if wrong.any():
        expected = "a back-off weight, as longer n-grams begin with this one"
        way_out = "give it (0 for a weight of 1), or estimate the file again"
        raise GraphError(f"{path}:{lines[wrong].min()}", expected, "none", way_out)


def _section_keys(
    path: Path, section: _Section, word_ids: dict[str, int], keys: np.ndarray
) -> np.ndarray:
    """(rows,) the keys of a section's n-grams in the trie of the shorter ones."""
    ids = section.ids
    nodes = np.zeros(len(ids), dtype=np.int64)
    for column in range(ids.shape[1] - 1):
        wanted = nodes * len(word_ids) + ids[:, column]
        rows = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        missing = np.flatnonzero(keys[rows] != wanted)
        if missing.size:
            row, words = int(missing[0]), tuple(word_ids)
            history = " ".join(words[word] for word in ids[row, : column + 1].tolist())
            expected = f"its history {history!r} among the {column + 1}-grams"
            raise GraphError(
                f"{path}:{section.numbers[row]}", expected, "none", "estimate it again"
            )
        nodes = rows + 1
    return nodes * len(word_ids) + ids[:, -1]
