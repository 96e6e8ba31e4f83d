"""Removal of epsilons from LG, for the best path of each sequence of labels and words.

A sequence of epsilon arcs is joined to the arc before it or the one behind it, whichever makes
fewer arcs [Mohri 2002, with the one behind]. Between two states the cheapest one for each sequence
of words stays, which keeps all homophones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privasr_k2.graph.openfst import Fst
from privasr_k2.ragged import Columns, rows_of, splits_of

_DEEPEST = 100  # epsilon arcs in a row; more are a circle


@dataclass(frozen=True, eq=False)
class WordArcs:
    """A arcs without epsilons, sorted by source and label; any number of words on each.

    State 0 is the start, the last state the end; arcs into it have the label -1.

    Args:
        sources, targets, labels: (A,) int32.
        scores: (A,) float32, ln P.
        words: int32, of arc a: ``words[splits[a]:splits[a + 1]]``.
        splits: (A + 1,) int32.
    """

    sources: np.ndarray
    targets: np.ndarray
    labels: np.ndarray
    scores: np.ndarray
    words: np.ndarray
    splits: np.ndarray

    @property
    def num_states(self) -> int:
        """States, the end included."""
        return int(self.targets.max(initial=-1)) + 1

    @property
    def num_arcs(self) -> int:
        """A."""
        return len(self.targets)


class _Strings:
    """Sequences of words as numbers; 0 is the empty one."""

    def __init__(self) -> None:
        self._before, self._last = np.zeros(1, np.int64), np.zeros(1, np.int64)

    def longer(self, strings: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Each string with a word behind it; word 0 is none."""
        speaking = np.flatnonzero(words)
        pairs = strings[speaking].astype(np.int64) << 32 | words[speaking]
        known = self._before << 32 | self._last  # of the empty string 0, which no pair is
        every, first = np.unique(np.concatenate([known, pairs]), return_index=True)
        # What is known keeps its number, what is new gets the next ones.
        new = first >= len(known)
        number = np.where(new, len(known) - 1 + np.cumsum(new), first)
        self._before = np.concatenate([self._before, every[new] >> 32])
        self._last = np.concatenate([self._last, every[new] & 0xFFFFFFFF])
        numbers = strings.astype(np.int32)
        numbers[speaking] = number[np.searchsorted(every, pairs)]
        return numbers

    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """The words of all strings and where each begins."""
        columns, at = [self._last], self._before
        while at.any():
            columns.append(self._last[at])
            at = self._before[at]
        grid = np.stack(columns[::-1], axis=1)
        return grid[grid > 0], np.concatenate([[0], np.cumsum(np.count_nonzero(grid, axis=1))])


@dataclass(frozen=True, eq=False)
class _Arcs(Columns):
    """Arcs with a string of words before their own word and one behind it."""

    sources: np.ndarray
    targets: np.ndarray
    labels: np.ndarray
    costs: np.ndarray
    before: np.ndarray
    word: np.ndarray
    behind: np.ndarray


@dataclass(frozen=True, eq=False)
class _Ways(Columns):
    """Pairs of states joined by epsilons: the least cost of each string of words."""

    sources: np.ndarray
    targets: np.ndarray
    costs: np.ndarray
    strings: np.ndarray


def remove_epsilons(fst: Fst, holes: np.ndarray | None = None) -> WordArcs:
    """Remove label 0; each sequence of labels keeps its costs and words.

    Args:
        fst: labels of 0 or more, no cycle of epsilons; dead states are left out.
        holes: states whose epsilons are joined to the arcs before them, whatever that makes.

    Raises:
        RuntimeError: a cycle of epsilons, which is a defect.
    """
    arcs, strings, end = _sounding(fst), _Strings(), fst.num_states
    into, out = (np.bincount(ends, minlength=end + 1) for ends in (arcs.targets, arcs.sources))
    into[fst.start] = len(arcs.sources) + 1  # what leaves the start has nothing before it
    ways = _ways(fst, strings, into > 0, out > 0)
    # A way from p to q extends the arcs into p to q, or those out of q, added ones too, back to p.
    early = into[ways.sources] <= out[ways.targets]
    if holes is not None:
        early |= np.isin(ways.targets, holes)
    chosen = ways[early]
    sizes, matches = _matches(arcs.targets, chosen.sources, end)
    way, longer = np.repeat(np.arange(len(sizes)), sizes), arcs[matches]
    costs, behind = longer.costs + chosen.costs[way], chosen.strings[way]
    added = replace(longer, targets=chosen.targets[way], costs=costs, behind=behind)
    arcs, chosen = _Arcs.joined([arcs, added]), ways[~early]
    sizes, matches = _matches(arcs.sources, chosen.targets, end)
    way, longer = np.repeat(np.arange(len(sizes)), sizes), arcs[matches]
    costs, before = longer.costs + chosen.costs[way], chosen.strings[way]
    added = replace(longer, sources=chosen.sources[way], costs=costs, before=before)
    return _with_words(_trimmed(_Arcs.joined([arcs, added]), fst.start, end), strings)


def _sounding(fst: Fst) -> _Arcs:
    """Arcs with a label, and one with the label -1 to a new state from each final state."""
    arcs, ending = np.flatnonzero(fst.ilabels), np.flatnonzero(np.isfinite(fst.finals))
    none = np.zeros(len(arcs) + len(ending), dtype=np.int32)
    return _Arcs(
        np.concatenate([fst.sources[arcs], ending]).astype(np.int32),
        np.append(fst.targets[arcs], np.full(len(ending), fst.num_states, np.int32)),
        np.append(fst.ilabels[arcs], np.full(len(ending), -1, np.int32)),
        np.concatenate([fst.costs[arcs], fst.finals[ending]]),
        none,
        np.append(fst.olabels[arcs], np.zeros(len(ending), np.int32)),
        none,
    )


def _ways(fst: Fst, strings: _Strings, begins: np.ndarray, ends: np.ndarray) -> _Ways:
    """All ways between the states of two masks."""
    silent = np.flatnonzero(fst.ilabels == 0)
    sources, targets, words = fst.sources[silent], fst.targets[silent], fst.olabels[silent]
    costs, splits = fst.costs[silent].astype(np.float64), splits_of(sources, fst.num_states)
    first = np.flatnonzero(begins[sources])
    spoken = strings.longer(np.zeros(len(first), np.int32), words[first])
    level = _Ways(sources[first].astype(np.int32), targets[first], costs[first], spoken)
    levels = []
    while len(level.sources):
        if len(levels) == _DEEPEST:
            raise RuntimeError("epsilons in a circle")
        levels.append(level[ends[level.targets]])
        sizes, arc = rows_of(splits, level.targets)
        way = np.repeat(np.arange(len(sizes)), sizes)
        spoken = strings.longer(level.strings[way], words[arc])
        level = _Ways(level.sources[way], targets[arc], level.costs[way] + costs[arc], spoken)
    ways = _Ways.joined([*levels, level])
    pairs = ways.sources.astype(np.int64) * fst.num_states + ways.targets
    order = np.argsort(pairs, kind="stable")
    same = np.diff(pairs[order]) == 0
    several = np.zeros(len(order), dtype=bool)
    several[1:] |= same
    several[:-1] |= same
    # Most pairs have one way, and need no further order.
    some = order[several]
    some = some[np.lexsort((ways.costs[some], ways.strings[some], pairs[some]))]
    best = np.ones(len(some), dtype=bool)
    best[1:] = (np.diff(pairs[some]) != 0) | (np.diff(ways.strings[some]) != 0)
    return ways[np.concatenate([order[~several], some[best]])]


def _matches(values: np.ndarray, wanted: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """For each of ``wanted`` the number of equal ``values`` (<= ``count``), and their indices."""
    sought = np.zeros(count + 1, dtype=bool)
    sought[wanted] = True
    places = np.flatnonzero(sought[values])
    places = places[np.argsort(values[places], kind="stable")]
    sizes, rows = rows_of(splits_of(values[places], count + 1), wanted)
    return sizes, places[rows]


def _trimmed(arcs: _Arcs, start: int, end: int) -> _Arcs:
    """Sorted, without dead and unreachable states; the start is number 0."""
    if start:
        number = np.arange(end + 1, dtype=np.int32)
        number[[0, start]] = number[[start, 0]]
        arcs = replace(arcs, sources=number[arcs.sources], targets=number[arcs.targets])
    rows = np.arange(len(arcs.sources))
    while True:
        leads = np.zeros(end + 1, dtype=bool)
        leads[arcs.sources[rows]] = leads[end] = True
        kept = leads[arcs.targets[rows]]
        if kept.all():
            break
        rows = rows[kept]
    # As k2 has it, label -1 comes last.
    keys = arcs.sources[rows].astype(np.int64) << 32 | arcs.labels[rows].astype(np.uint32)
    arcs = arcs[rows[np.argsort(keys, kind="stable")]]
    splits, reached = splits_of(arcs.sources, end + 1), np.zeros(end + 1, dtype=bool)
    front = np.zeros(1, dtype=np.int32)
    while len(front):
        reached[front] = True
        _, leaving = rows_of(splits, front)
        front = arcs.targets[leaving]
        front = np.unique(front[~reached[front]])
    kept = reached[arcs.sources]
    arcs = arcs if kept.all() else arcs[kept]
    number = (np.cumsum(reached) - 1).astype(np.int32)
    return replace(arcs, sources=number[arcs.sources], targets=number[arcs.targets])


def _with_words(arcs: _Arcs, strings: _Strings) -> WordArcs:
    spoken, starts = strings.table()
    lengths = np.diff(starts)
    before, own = lengths[arcs.before], arcs.word > 0
    splits = np.concatenate([[0], np.cumsum(before + own + lengths[arcs.behind])])
    words = np.zeros(splits[-1], dtype=np.int32)
    for of_arc, first in ((arcs.before, splits[:-1]), (arcs.behind, splits[:-1] + before + own)):
        speaking = np.flatnonzero(of_arc)
        sizes, places = rows_of(starts, of_arc[speaking])
        shift = np.repeat(first[speaking] - starts[of_arc[speaking]], sizes)
        words[places + shift] = spoken[places]
    speaking = np.flatnonzero(own)
    words[splits[speaking] + before[speaking]] = arcs.word[speaking]
    scores, splits = (-arcs.costs).astype(np.float32), splits.astype(np.int32)
    return WordArcs(arcs.sources, arcs.targets, arcs.labels, scores, words, splits)
