"""The times of words on a CTC path, from the pronunciations of its words.

A run of one token between blanks and other tokens is one spoken token. The arcs of a lattice
cannot tell times: determinization moves words along the path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

# The run that comes next, and how many of its frames belong to tokens before.
_Position = tuple[int, int]


def word_spans(
    labels: Sequence[int],
    pronunciations: Sequence[Sequence[Sequence[int]] | None],
    *,
    repeats: bool,
) -> list[tuple[int, int]] | None:
    """From the first frame of a word's first token to the end of the last frame of its last token.

    Among several segmentations the first variant of the latest differing word wins; a word of any
    tokens is as short as possible.

    Args:
        labels: the token of each of T frames; 0 is the blank.
        pronunciations: the variants of each word as token numbers; ``None``: one or more of any.
        repeats: a run may be several equal tokens (modified CTC topology); all but the last of them
            then count as one frame.

    Returns:
        (first frame, last frame + 1) of each word; ``None`` where the words do not spell the path.

    >>> word_spans([0, 1, 1, 0, 2, 2, 0, 1], [[[1], [1, 2]], [[1]]], repeats=False)
    [(1, 6), (7, 8)]
    """
    runs = _runs(labels)
    read = tuple(token for token, _, _ in runs)
    spelled = partial(_spelled, runs) if repeats else partial(_read_at_once, runs, read)
    # For each word and each position behind it: the position before it, and its span.
    layers: list[dict[_Position, tuple[_Position, tuple[int, int]]]] = []
    before: list[_Position] = [(0, 0)]
    for variants in pronunciations:
        layer: dict[_Position, tuple[_Position, tuple[int, int]]] = {}
        for position in before if variants is None else ():
            for after, span in _anything(runs, position, repeats=repeats):
                layer.setdefault(after, (position, span))
        for tokens in variants or ():
            for position in before:
                for after, span in spelled(position, tokens):
                    layer.setdefault(after, (position, span))
        layers.append(layer)
        before = list(layer)
    end: _Position = (len(runs), 0)
    if end not in before:
        return None
    spans: list[tuple[int, int]] = []
    for layer in reversed(layers):
        end, span = layer[end]
        spans.append(span)
    return spans[::-1]


def _runs(labels: Sequence[int]) -> list[tuple[int, int, int]]:
    """Token, first frame and last frame + 1 of each run that is no blank."""
    tokens = np.asarray(labels)
    starts = np.flatnonzero(np.diff(tokens, prepend=-1))
    runs = zip(tokens[starts].tolist(), starts.tolist(), [*starts[1:].tolist(), len(tokens)])
    return [run for run in runs if run[0]]


def _read_at_once(
    runs: Sequence[tuple[int, int, int]],
    read: tuple[int, ...],
    position: _Position,
    tokens: Sequence[int],
) -> list[tuple[_Position, tuple[int, int]]]:
    """As :func:`_spelled` where no run splits; ``read``: the token of each run."""
    run, _ = position
    end = run + len(tokens)
    if not tokens or read[run:end] != tuple(tokens):
        return []
    return [((end, 0), (runs[run][1], runs[end - 1][2]))]


def _spelled(
    runs: Sequence[tuple[int, int, int]], position: _Position, tokens: Sequence[int]
) -> Iterator[tuple[_Position, tuple[int, int]]]:
    """The positions behind a word that begins at ``position``, each with the word's span.

    A run of several equal tokens splits anywhere.
    """
    if not tokens or position[0] >= len(runs):
        return
    first = runs[position[0]][1] + position[1]
    # Few at any time: a run only splits where equal tokens follow each other.
    ends: dict[_Position, int] = {position: first}
    for token in tokens:
        following: dict[_Position, int] = {}
        for run, used in ends:
            if run >= len(runs) or runs[run][0] != token:
                continue
            _, start, stop = runs[run]
            following.setdefault((run + 1, 0), stop)
            if start + used + 1 < stop:
                following.setdefault((run, used + 1), start + used + 1)
        ends = following
    yield from ((after, (first, last)) for after, last in ends.items())


def _anything(
    runs: Sequence[tuple[int, int, int]], position: _Position, *, repeats: bool
) -> Iterator[tuple[_Position, tuple[int, int]]]:
    """The same for a word of any tokens: the nearest position first."""
    run, used = position
    if run >= len(runs):
        return
    first = runs[run][1] + used
    for number, (_, start, stop) in enumerate(runs[run:], start=run):
        spent = used if number == run else 0
        if repeats:
            yield from (((number, n), (first, start + n)) for n in range(spent + 1, stop - start))
        yield (number + 1, 0), (first, stop)
