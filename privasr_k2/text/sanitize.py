"""Sanitizing tagged text: names are replaced word by word within their class, tagged, or deleted.

Word-by-word replacement [adelani2020; turan2022, section 2.1]: each word i of each entity is kept
with probability p, else replaced by a uniform draw from the n words of a *public* list of its class
(possibly the same word),

    P(out = j | word i) = p [i = j] + (1 - p) / n,
    epsilon of a word = ln(1 + n p / (1 - p)), of a mention of m words m times that.

:mod:`privasr_k2.privacy.replacement` accounts for it. Three conditions go beyond the papers:

- A word that is not on the list is always replaced.
- Mentions per unit, words per mention and utterances per user are public bounds; what exceeds them
  is always replaced.
- A kept word is written as the list writes it. A possessive ("ann's") stays.

*Consistent* replacement draws once for each different word of a class in a document. Draws are
exact: rejection sampling from a secret stream, with p rounded down to a multiple of 2^-64. Texts
get new ids and a secret order and lose users and documents (:func:`anonymous`), so that words
cannot be counted per user. The result is *sanitized*, not private: missed names stay.

[adelani2020] D. I. Adelani, A. Davody, T. Kleinbauer, D. Klakow, Privacy guarantees for
de-identifying text transformations, Interspeech 2020.
[turan2022] M. A. T. Turan, D. Klakow, E. Vincent, D. Jouvet, Adapting language models when training
on privacy-transformed data, LREC 2022.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.randomness import NoiseStream
from privasr_k2.text.entities import TaggedText
from privasr_k2.text.name_lists import split_suffix

METHODS = ("replace", "tag", "delete")


@dataclass(frozen=True)
class Replacement:
    """Parameters of the replacement.

    Args:
        keep_prob: p, from 0 to 1.
        by_document: one draw for each different word of a class in a document.
        mentions: first mentions of an utterance that may keep words; with ``by_document`` the first
            ``mentions * words_per_mention`` different words of a document.
        words_per_mention: first words of a mention that may be kept.
        utterances_per_user: first utterances of a user with entities that may keep words; ``None``:
            all. Not with ``by_document``.
    """

    keep_prob: float
    by_document: bool
    mentions: int
    words_per_mention: int
    utterances_per_user: int | None


@dataclass(frozen=True)
class _Words:
    """The words of all entities in turn, each array (W,); words of one draw have one outcome."""

    classes: tuple[str, ...]
    texts: np.ndarray
    positions: np.ndarray
    labels: np.ndarray
    listed: np.ndarray
    may_keep: np.ndarray
    draws: np.ndarray
    suffixes: Sequence[str]


def replace_words(
    texts: Sequence[TaggedText],
    lists: Mapping[str, Sequence[str]],
    how: Replacement,
    noise: Callable[[str], NoiseStream],
) -> list[TaggedText]:
    """Replace the words of all entities; the result has no ``cased``.

    Args:
        texts: with entities.
        lists: class -> its different words (:func:`privasr_k2.text.name_lists.words_of`).
        noise: the secret stream of a name, each name once: ``Release.noise``.

    Raises:
        DataError: a class of the text without a list.

    >>> from privasr_k2.randomness import new_secret, noise_stream
    >>> from privasr_k2.text.entities import Entity
    >>> secret = new_secret()
    >>> how = Replacement(0.0, False, mentions=1, words_per_mention=2, utterances_per_user=None)
    >>> text = TaggedText("u", ("call", "ann's", "brother"), (Entity(1, 2, "PER"),))
    >>> lists, noise = {"PER": ["bob", "eve"]}, lambda name: noise_stream(secret, name)
    >>> [made] = replace_words([text], lists, how, noise)
    >>> made.words in {("call", "bob's", "brother"), ("call", "eve's", "brother")}
    True
    """
    needs_lists(texts, lists)
    words = _gather(texts, lists, how)
    vocabularies = [lists[label] for label in words.classes]
    outcomes = _outcomes(words, list(map(len, vocabularies)), how.keep_prob, noise)
    changed = [list(text.words) for text in texts]
    columns = (words.texts, words.positions, words.labels, outcomes)
    for *numbers, suffix in zip(*(column.tolist() for column in columns), words.suffixes):
        text, position, label, outcome = numbers
        changed[text][position] = vocabularies[label][outcome] + suffix
    return [replace(text, words=tuple(new), cased="") for text, new in zip(texts, changed)]


def needs_lists(texts: Sequence[TaggedText], lists: Mapping[str, Sequence[str]]) -> None:
    """Raise DataError for a class without a list, before a release begins; it names no word."""
    for text in texts:
        for first, _, label in text.entities or ():
            if label not in lists:
                place = f"{text.place and text.place + ': '}word {first + 1} of {text.id}"
                expected = f"a class that has a list: {' '.join(lists)}"
                way_out = f"give {label.lower()}.txt, or leave {label} out when the text is tagged"
                raise DataError(place, expected, label, way_out)


def needs_users(texts: Sequence[TaggedText]) -> None:
    """Raise DataError for a text without a user."""
    for text in texts:
        if not text.user:
            way_out = "add users, or set it to null"
            raise DataError(text.id, "a user: utterances_per_user", "none", way_out)


def _gather(
    texts: Sequence[TaggedText], lists: Mapping[str, Sequence[str]], how: Replacement
) -> _Words:
    classes = tuple(lists)
    numbers = {label: {word: n for n, word in enumerate(words)} for label, words in lists.items()}
    index = {label: n for n, label in enumerate(classes)}
    rows: list[tuple[int, int, int, int, bool, int]] = []
    suffixes: list[str] = []
    drawn: dict[tuple[str, str, str], int] = {}
    of_document: Counter[str] = Counter()
    of_user: Counter[str] = Counter()
    for number, text in enumerate(texts):
        document = text.document or text.user
        of_user[text.user] += bool(text.entities)
        within = how.utterances_per_user is None or of_user[text.user] <= how.utterances_per_user
        for mention, (first, end, label) in enumerate(text.entities or ()):
            for position in range(first, end):
                word, suffix = split_suffix(text.words[position])
                draw = len(rows)
                in_mention = position - first < how.words_per_mention
                may_keep = within and mention < how.mentions and in_mention
                if how.by_document:
                    draw = drawn.setdefault((document, label, word), draw)
                    of_document[document] += draw == len(rows)
                    is_counted = of_document[document] <= how.mentions * how.words_per_mention
                    may_keep = is_counted if draw == len(rows) else rows[draw][4]
                listed = numbers[label].get(word, -1)
                rows.append((number, position, index[label], listed, may_keep, draw))
                suffixes.append(suffix)
    columns = np.array(rows, dtype=np.int64).reshape(-1, 6).T
    of_text, positions, labels, on_list, kept, draws = columns
    return _Words(classes, of_text, positions, labels, on_list, kept.astype(bool), draws, suffixes)


def _outcomes(
    words: _Words, sizes: Sequence[int], keep_prob: float, noise: Callable[[str], NoiseStream]
) -> np.ndarray:
    """(W,) what each word becomes, as a number on its class's list."""
    count = len(words.labels)
    kept = _bernoulli(keep_prob, count, noise("keep")) & words.may_keep & (words.listed >= 0)
    outcomes = np.where(kept, words.listed, 0)
    for label, size in enumerate(sizes):
        # Drawn for kept words as well: how many words were kept shows in no stream's length.
        of_class = np.flatnonzero(words.labels == label)
        drawn = uniform_below(size, len(of_class), noise(f"words of {words.classes[label]}"))
        outcomes[of_class] = np.where(kept[of_class], outcomes[of_class], drawn)
    return outcomes[words.draws]


def _bernoulli(p: float, count: int, stream: NoiseStream) -> np.ndarray:
    """(count,) true with probability p, rounded down to a multiple of 2^-64."""
    if p >= 1:
        return np.ones(count, dtype=bool)
    return _uint64(stream, count) < np.uint64(int(p * 2**64))


def uniform_below(size: int, count: int, stream: NoiseStream) -> np.ndarray:
    """(count,) whole numbers from 0 to ``size`` - 1, exactly uniform by rejection.

    >>> from privasr_k2.randomness import new_secret, noise_stream
    >>> drawn = uniform_below(3, 1000, noise_stream(new_secret(), "doctest"))
    >>> int(drawn.min()), int(drawn.max())
    (0, 2)
    """
    limit = np.uint64(2**64 - 2**64 % size - 1)
    drawn = _uint64(stream, count)
    while (wrong := np.flatnonzero(drawn > limit)).size:
        drawn[wrong] = _uint64(stream, wrong.size)
    return (drawn % np.uint64(size)).astype(np.int64)


def _uint64(stream: NoiseStream, count: int) -> np.ndarray:
    return np.frombuffer(stream.random_bytes(8 * count), dtype="<u8").astype(np.uint64)


def anonymous(texts: Sequence[TaggedText], stream: NoiseStream) -> list[TaggedText]:
    """The texts in a secret random order, with ids of that order and no user or document.

    >>> from privasr_k2.randomness import new_secret, noise_stream
    >>> text, secret = TaggedText("ann-7", ("yes",), ()), noise_stream(new_secret(), "x")
    >>> [text.id for text in anonymous([text], secret)]
    ['s000001']
    """
    order = np.argsort(_uint64(stream, len(texts)), kind="stable")
    return [
        TaggedText(f"s{number:06d}", texts[row].words, texts[row].entities)
        for number, row in enumerate(order.tolist(), start=1)
    ]
