"""Sanitizing tagged text: names are replaced word by word by words of the same class, tagged, or
deleted.

Word-by-word replacement [adelani2020; turan2022, section 2.1]: each word i of each entity, on its
own, is kept with probability p and else replaced by a uniform draw from the n different words of a
*public* list of its class (the draw may be the same word again),

    P(out = j | word i) = p [i = j] + (1 - p) / n.

What that is worth, and what it does not cover, tells :mod:`privasr_k2.privacy.replacement`:

    epsilon of a word = ln(1 + n p / (1 - p)), of a mention of m words m times that.

For this to hold, three things are done here that the papers do not say:

- a word that is not on the list of its class is always replaced: nothing else could have given it;
- the guarantee counts numbers of mentions for each unit, of words for each mention and maybe of
  utterances for each user that are public; what is beyond is always replaced, which costs nothing.
  The text's own numbers would be told;
- a kept word is written as the list writes it (all text is normalized), so that its spelling tells
  nothing.

A possessive ("ann's") is no part of the word and stays. *Consistent* replacement draws once for
each different word of a class in a document. Draws are exact: whole numbers from a secret stream,
rejected where they would make some words more likely; p is rounded down to a multiple of 2^-64.
What was replaced by what is written nowhere. Who said what is not told either: sanitized texts have
no users and documents, new ids, and an order from the secret stream (:func:`anonymous`); counting
the words of one user's texts would else find the names that the user says most.

The result is *sanitized*, not private: names that the tagger missed stay as they were said.

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
    """How words of entities are replaced.

    Args:
        keep_prob: p, from 0 to 1.
        by_document: one draw for each different word of a class in a document.
        mentions: of an utterance this many, the first ones, may keep words; with ``by_document`` so
            many names of a document, counted as ``mentions * words_per_mention`` different words.
        words_per_mention: of a mention this many words, the first ones, may be kept.
        utterances_per_user: of a user this many utterances with entities, the first ones, may keep
            words;
            ``None``: any number. Not with ``by_document``.
    """

    keep_prob: float
    by_document: bool
    mentions: int
    words_per_mention: int
    utterances_per_user: int | None


@dataclass(frozen=True)
class _Words:
    """The words of all entities, one after the other. Arrays are (W,).

    Attributes:
        texts, positions: text and place of each word.
        labels: its class, as an index of ``classes``.
        listed: its number on the list of its class, -1 where it is not there.
        may_keep: whether the guarantee counts it.
        draws: the number of its draw: words of one draw get one outcome.
        suffixes: what stays of it.
    """

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
    """Replace the words of all entities.

    Args:
        texts: with entities.
        lists: class -> its different words, as :func:`privasr_k2.text.name_lists.words_of` gives
            them.
        how: see there.
        noise: gives the secret stream for a name, each name once: ``Release.noise``.

    Returns:
        the texts, with the same entities and numbers of words and without ``cased``.

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
    outcomes = _outcomes(
        words, [len(lists[label]) for label in words.classes], how.keep_prob, noise
    )
    changed = [list(text.words) for text in texts]
    vocabularies = [lists[label] for label in words.classes]
    columns = zip(
        words.texts.tolist(),
        words.positions.tolist(),
        words.labels.tolist(),
        outcomes.tolist(),
        words.suffixes,
    )
    for text, position, label, outcome, suffix in columns:
        changed[text][position] = vocabularies[label][outcome] + suffix
    return [replace(text, words=tuple(new), cased="") for text, new in zip(texts, changed)]


def needs_lists(texts: Sequence[TaggedText], lists: Mapping[str, Sequence[str]]) -> None:
    """Refuse text with a class that has no list; to be asked before a release begins.

    Raises:
        DataError: naming the first text, and no word of it.
    """
    for text in texts:
        for first, _, label in text.entities or ():
            if label not in lists:
                raise DataError(
                    f"{text.place and text.place + ': '}word {first + 1} of {text.id}",
                    f"a class that has a list: {' '.join(lists)}",
                    label,
                    f"give {label.lower()}.txt, or leave {label} out when the text is tagged",
                )


def needs_users(texts: Sequence[TaggedText]) -> None:
    """Refuse text without a user: how many utterances a user has would not be known.

    Raises:
        DataError: naming the first.
    """
    for text in texts:
        if not text.user:
            raise DataError(
                text.id, "a user: utterances_per_user", "none", "add users, or set it to null"
            )


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
                counted = (
                    within and mention < how.mentions and position - first < how.words_per_mention
                )
                if how.by_document:
                    key = (document, label, word)
                    if key not in drawn:
                        drawn[key] = draw
                        of_document[document] += 1
                    draw = drawn[key]
                    first_seen = draw == len(rows)
                    counted = (
                        of_document[document] <= how.mentions * how.words_per_mention
                        if first_seen
                        else rows[draw][4]
                    )
                rows.append(
                    (number, position, index[label], numbers[label].get(word, -1), counted, draw)
                )
                suffixes.append(suffix)
    columns = np.array(rows, dtype=np.int64).reshape(-1, 6).T
    texts_, positions, labels, listed, counted_, draws = columns
    return _Words(
        classes, texts_, positions, labels, listed, counted_.astype(bool), draws, suffixes
    )


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
    """(count,) whole numbers from 0 to ``size`` - 1, each exactly as likely.

    Numbers of 64 bits at or above the largest multiple of ``size`` are drawn again.

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
    """The texts in an order that the secret stream draws, with ids of that order and no user or
    document.

    >>> from privasr_k2.randomness import new_secret, noise_stream
    >>> [text.id for text in anonymous([TaggedText("ann-7", ("yes",), ())], noise_stream(new_secret(), "x"))]
    ['s000001']
    """
    order = np.argsort(_uint64(stream, len(texts)), kind="stable")
    return [
        TaggedText(f"s{number:06d}", texts[row].words, texts[row].entities)
        for number, row in enumerate(order.tolist(), start=1)
    ]
