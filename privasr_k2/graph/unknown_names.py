"""Unlisted names: the word ``<unk>`` of a class as a loop of tokens.

A sub-model may give such names a mass (``unknown_mass``) by arcs ``<unk>``. In the graph ``<unk>``
is any sequence of tokens, with the probability of a bigram model [Witten & Bell 1991] of the
spellings of the class's names. All pairs of tokens have arcs, without back-off: every sequence is
one path, and the probabilities sum to 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privasr_k2.errors import GraphError
from privasr_k2.graph.class_delimiters import ClassDelimiters
from privasr_k2.graph.grammar import Grammar
from privasr_k2.graph.lang import Lang, Silence
from privasr_k2.lm.arpa import BOS, EOS, UNK
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.lm.sub_lm import SubLm

UNKNOWN_NAMES = ("none", "phone_loop")


def delimiters_of(lang: Lang, classes: Sequence[str], unknown_names: str) -> ClassDelimiters:
    """The delimiters of a graph, behind the words and, where it can be recognized, ``<unk>``.

    Raises:
        GraphError: a language folder that has a word ``<unk>`` of its own.
    """
    if unknown_names == "none":
        return ClassDelimiters(len(lang.words), tuple(classes))
    if UNK in lang.word_ids:
        expected = f"no word {UNK}, which stands for names that no list has"
        way_out = "take it out of the lexicon, or set unknown_names=none"
        raise GraphError(lang.folder / "words.txt", expected, "one", way_out)
    return ClassDelimiters(len(lang.words) + 1, tuple(classes))


def words_of(lang: Lang, delimiters: ClassDelimiters) -> tuple[str, ...]:
    """The words and delimiters of a graph by their numbers, for :func:`delimiters_of`."""
    return (*lang.words, *[UNK][: delimiters.first - len(lang.words)], *delimiters.symbols)


def class_word_ids(lang: Lang, delimiters: ClassDelimiters) -> dict[str, int]:
    """The number of each word that a name may have, for the delimiters of :func:`delimiters_of`."""
    unknown = {UNK: len(lang.words)} if delimiters.first > len(lang.words) else {}
    return {**lang.word_ids, **unknown}


def unknown_names_loop(lang: Lang, sub: SubLm, *, min_tokens: int) -> Grammar:
    """:func:`token_loop` of a class: from the spellings of the different words of its names."""
    words = set(sub.words)
    spellings = [tuple(lang.token_ids[token] for token in tokens)
                 for word, tokens in lang.pronunciations if word in words]  # fmt: skip
    used = {token for _, spelled in lang.pronunciations for token in spelled}
    tokens = sorted(lang.token_ids[token] for token in used)
    return token_loop(spellings, tokens, min_tokens=min_tokens)


def token_loop(
    spellings: Sequence[Sequence[int]], tokens: Sequence[int], *, min_tokens: int
) -> Grammar:
    """A bigram model of token sequences as an acceptor without back-off; state 0 is the start.

    In every state the probabilities of the arcs and of ending sum to 1, before ``min_tokens``
    those of the arcs alone.

    Args:
        spellings: token numbers of at least one word.
        tokens: all N tokens that a name may have.
        min_tokens: length of the shortest sequence, above 0.

    >>> loop = token_loop([[1, 2], [1]], [1, 2], min_tokens=1)
    >>> round(float(np.exp(-loop.costs[loop.sources == 0]).sum()), 6)
    1.0
    """
    # Numbers, since a token may be called <unk>.
    names = [str(token) for token in tokens]
    spelled = [[str(token) for token in spelling] for spelling in spellings]
    model = estimate(count_ngrams(spelled, names, order=2), "witten_bell")
    numbers = np.array([model.word_ids[name] for name in names])
    before, after = np.append(model.word_ids[BOS], numbers), np.append(numbers, model.word_ids[EOS])
    size = len(numbers)
    log10_probs = model.log10_conditional(np.repeat(before + 1, size + 1), np.tile(after, size + 1))
    probs = 10.0 ** log10_probs.reshape(size + 1, size + 1)
    probs /= probs.sum(axis=1, keepdims=True)  # <unk> had the rest
    ending, going = probs[:, size], probs[:, :size]
    forced = going / going.sum(axis=1, keepdims=True)
    # The state of a token, for the first, the second, ... of the sequence; the last of these states
    # go round.
    states = 1 + np.arange(min_tokens * size).reshape(min_tokens, size)
    steps = [(np.zeros(1, dtype=np.int64), states[0], forced[:1])]
    steps += [(states[n], states[n + 1], forced[1:]) for n in range(min_tokens - 1)]
    steps.append((states[-1], states[-1], going[1:]))
    return Grammar(
        np.concatenate([np.repeat(sources, size) for sources, _, _ in steps]),
        np.concatenate([np.tile(targets, len(sources)) for sources, targets, _ in steps]),
        np.concatenate([np.tile(tokens, len(sources)) for sources, _, _ in steps]),
        -np.log(np.concatenate([leaving.ravel() for _, _, leaving in steps])),
        np.concatenate([np.full(1 + (min_tokens - 1) * size, np.inf), -np.log(ending[1:])]),
        size,
    )


def loop_arcs(
    loop: Grammar,
    *,
    first: int,
    enter: tuple[int, int, float],
    leave: Sequence[tuple[int, float]],
    silence: Silence | None,
    silence_id: int,
) -> tuple[list[tuple[np.ndarray, ...]], int]:
    """The loop as arcs of a graph over tokens, and the number of its states.

    Args:
        first: number of its first state.
        enter: the state that it is entered from, the word, and the cost.
        leave: the states behind it, with costs.
        silence, silence_id: what may stand behind it, and its token.

    Returns:
        sources, targets, tokens (0: none), words and costs.
    """
    source, word, cost = enter
    ending = np.flatnonzero(np.isfinite(loop.finals))
    behind = first + len(loop.finals)
    count, last, rows = len(loop.finals) + 1, behind, [(source, first, 0, word, cost)]
    if silence is not None:
        pause, last, count = behind + 1, behind + 2, count + 2
        rows += [
            (behind, last, 0, 0, -math.log1p(-silence.prob)),
            (behind, pause, 0, 0, -math.log(silence.prob)),
            (pause, last, silence_id, 0, 0.0),
        ]
    rows += [(last, target, 0, 0, more) for target, more in leave]
    none, ends = np.zeros_like(loop.labels), np.zeros_like(ending)
    return [
        (loop.sources + first, loop.targets + first, loop.labels, none, loop.costs),
        (ending + first, ends + behind, ends, ends, loop.finals[ending]),
        tuple(np.array(column) for column in zip(*rows)),
    ], count
