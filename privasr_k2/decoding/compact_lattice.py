"""From a lattice of tokens to a compact word lattice: every word sequence once, best alignment.

Both steps are exact within a beam, in the tropical semiring: epsilon removal, then determinization
by subsets [Mohri 1997, Finite-state transducers in language and speech processing]. Residuals carry
cost, acoustic and LM score [Povey et al. 2012, Generating exact lattices in the WFST framework].
Costs are relative to the best path through a state (``WordLattice.costs``). Sequences beyond the
beam may remain, at worse alignments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from privasr_k2.decoding.acyclic import Dag, grouped
from privasr_k2.decoding.word_lattices import WordLattice
from privasr_k2.ragged import Columns, items_of, splits_of

# Residuals that differ by less are the same; beams are widened by it.
_DELTA = 2.0**-16
# Ways without words, for each state that is allowed: what step 1 may take.
_WAYS = 100
_ODD = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class CompactLattice:
    """A deterministic lattice of words; fields as in :class:`privasr_k2.decoding.lattices.Lattice`.

    Attributes:
        frames: (S,) int64, the end of the best alignment of the words up to a state.
    """

    frames: np.ndarray
    sources: np.ndarray
    targets: np.ndarray
    words: np.ndarray
    am_scores: np.ndarray
    lm_scores: np.ndarray


@dataclass(frozen=True, eq=False)
class _Arcs(Columns):
    """Arcs with costs (M,) and scores (M, 2), acoustic and LM's."""

    sources: np.ndarray
    targets: np.ndarray
    words: np.ndarray
    costs: np.ndarray
    scores: np.ndarray

    def after(self, sources: np.ndarray, costs: np.ndarray, scores: np.ndarray) -> _Arcs:
        """The same arcs with a way from ``sources`` before them."""
        return replace(self, sources=sources, costs=costs + self.costs, scores=scores + self.scores)


def compact(lattice: WordLattice, beam: float, max_states: int | None) -> CompactLattice | None:
    """The compact lattice of all word sequences within a beam of the best one.

    Args:
        beam: natural log, 0 or more.
        max_states: ``None`` = any number.

    Returns:
        ``None`` where it takes more than ``max_states`` states, or 100 times as many silent paths.
    """
    arcs, frames, final = _single_words(lattice, beam + _DELTA)
    max_ways = None if max_states is None else _WAYS * max_states
    without_epsilons = _without_epsilons(arcs, final, beam + _DELTA, max_ways)
    if without_epsilons is None:
        return None
    anchors, words = without_epsilons
    frames = np.append(frames[anchors], frames[final])
    return _deterministic(words, frames, beam + _DELTA, max_states)


def _single_words(lattice: WordLattice, beam: float) -> tuple[_Arcs, np.ndarray, int]:
    """Arcs within the beam with at most one word each, the frames of states, the final state."""
    kept = np.flatnonzero(lattice.excess <= beam)
    sources, targets = (ends[kept].astype(np.int64) for ends in (lattice.sources, lattice.targets))
    into_final = targets == lattice.final
    frames = lattice.frames
    if frames is None:
        frames = Dag(lattice.final + 1, sources, targets).levels
        if into_final.any() and (lattice.labels[kept[into_final]] < 0).all():
            frames[lattice.final] = frames[sources[into_final]].max()  # these consume no frame
    owners, items = items_of(lattice.word_splits, kept)
    spoken = lattice.word_values[items] > 0
    owners, link_words = owners[spoken], lattice.word_values[items[spoken]].astype(np.int64)
    counts = np.bincount(owners, minlength=len(kept))
    links = np.maximum(counts, 1)
    arc = np.repeat(np.arange(len(kept)), links)
    first = np.cumsum(links) - links
    is_first = np.arange(len(arc)) == first[arc]
    is_last = np.append(is_first[1:], True)[: len(arc)]
    between = lattice.final + np.cumsum(~is_last)  # the state behind each link that is not the last
    ends = np.where(is_last, targets[arc], between)
    starts = np.where(is_first, sources[arc], np.roll(ends, 1))
    words = np.zeros(len(arc), dtype=np.int64)
    words[np.repeat(counts, links) > 0] = link_words
    costs = np.where(is_first, lattice.costs[kept][arc], 0.0)
    scores = np.stack((lattice.am_scores[kept], lattice.lm_scores[kept]), axis=1)[arc]
    scores = scores * is_first[:, None]
    frames = np.concatenate((frames, frames[targets[arc[~is_last]]]))
    return _Arcs(starts, ends, words, costs, scores), frames, lattice.final


def _without_epsilons(
    arcs: _Arcs, final: int, beam: float, max_ways: int | None
) -> tuple[np.ndarray, _Arcs] | None:
    """(R,) states behind a word, the start first, and the arcs between them; state R is the end."""
    dag = Dag(max(final, int(arcs.targets.max(initial=0))) + 1, arcs.sources, arcs.targets)
    levels, (starts, order) = dag.levels, dag.leaving
    come = -dag.best_from(0, -arcs.costs)
    spoken = arcs.words > 0
    anchors = np.unique(np.append(arcs.targets[spoken], 0))
    number = np.full(dag.num_states, -1)
    number[anchors] = np.arange(len(anchors))

    reached: list[list[_Arcs]] = [[] for _ in range(int(levels.max(initial=0)) + 1)]
    for level, here in grouped(levels[anchors]):
        reached[level].append(_zeros(here, anchors[here]))
    ways, num_ways = [], 0
    for here_arcs in reached:
        if not here_arcs:
            continue
        now = _best(_Arcs.joined(here_arcs))
        here_arcs.clear()
        num_ways += len(now.targets)
        if max_ways is not None and num_ways > max_ways:
            return None
        at, leaving = items_of(starts, now.targets)
        through = arcs[order[leaving]].after(now.sources[at], now.costs[at], now.scores[at])
        through = through[come[anchors[through.sources]] + through.costs <= beam]
        silent = np.flatnonzero(through.words == 0)
        for later, here in grouped(levels[through.targets[silent]]):
            reached[later].append(through[silent[here]])
        with_words, ended = through[through.words > 0], now[now.targets == final]
        ways.append(replace(with_words, targets=number[with_words.targets]))
        ways.append(replace(ended, targets=np.full(len(ended.targets), len(anchors))))
    return anchors, _best(_Arcs.joined(ways))


def _deterministic(
    arcs: _Arcs, frames: np.ndarray, beam: float, max_states: int | None
) -> CompactLattice | None:
    """Subsets of the R + 1 states of sorted ``arcs``, level by level."""
    final = len(frames) - 1
    levels = Dag(final + 1, arcs.sources, arcs.targets).levels
    starts = splits_of(arcs.sources, final + 1)
    # What waits for a level: arcs, the best total up to their ends, and the members of the subsets
    # there.
    waiting: list[list[tuple[_Arcs, np.ndarray, _Arcs]]] = [[] for _ in range(levels.max() + 1)]
    initial = _zeros(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    waiting[0].append((replace(initial, sources=initial.sources - 1), np.zeros(1), initial))
    taken, ends, num_states, last = [], [], 0, 0
    for at_this_level in waiting:
        if not at_this_level:
            continue
        into, totals, members = _side_by_side(at_this_level)
        at_this_level.clear()
        digests = _digests(members, len(totals))
        _, first, state = np.unique(digests, return_index=True, return_inverse=True)
        come = np.full(len(first), np.inf)
        np.minimum.at(come, state, totals)
        taken.append(replace(into, targets=num_states + state))
        # The members of the first arc into a state stand for it.
        members = _of_arcs(members, first, len(totals))
        subset = members.sources
        best = np.flatnonzero(members.costs == 0.0)[::-1]
        at_frame = np.zeros(len(first), dtype=np.int64)
        at_frame[subset[best]] = frames[members.targets[best]]
        ends.append(at_frame)
        if (members.targets == final).any():
            last = num_states + int(subset[members.targets == final][0])
        at, leaving = items_of(starts, members.targets)
        onward = arcs[leaving].after(subset[at], members.costs[at], members.scores[at])
        onward = _best(onward[come[onward.sources] + onward.costs <= beam])
        out, away = _subsets(onward)
        at_level = np.full(len(out.sources), len(levels))
        np.minimum.at(at_level, away.sources, levels[away.targets])
        totals = come[out.sources] + out.costs
        out = replace(out, sources=num_states + out.sources)
        for later, here in grouped(at_level):
            waiting[later].append((out[here], totals[here], _of_arcs(away, here, len(totals))))
        num_states += len(first)
        if max_states is not None and num_states > max_states:
            return None
    determinized = _Arcs.joined(taken)
    return _trimmed(determinized[determinized.sources >= 0], np.concatenate(ends), last)


def _subsets(onward: _Arcs) -> tuple[_Arcs, _Arcs]:
    """The best arc for each source and word, and its members; ``onward`` is sorted by these."""
    same = (onward.sources[1:] == onward.sources[:-1]) & (onward.words[1:] == onward.words[:-1])
    arc = np.cumsum(np.append(True, ~same)[: len(onward.words)]) - 1
    order = np.lexsort((onward.costs, arc))
    best = onward[order[np.flatnonzero(np.diff(arc[order], prepend=-1))]]
    costs, scores = onward.costs - best.costs[arc], onward.scores - best.scores[arc]
    return best, replace(onward, sources=arc, costs=costs, scores=scores)


def _digests(members: _Arcs, num: int) -> np.ndarray:
    """(num,) hashes of subsets: the same for the same states and residuals."""
    columns = np.stack((members.costs, *members.scores.T))
    mixed = (members.targets.astype(np.uint64) + np.uint64(1)) * _ODD[0]
    for column in np.rint(columns / _DELTA).astype(np.int64).astype(np.uint64):
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _ODD[1] + column * _ODD[2]
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _ODD[1]
    digests = np.zeros(num, dtype=np.uint64)
    np.add.at(digests, members.sources, mixed ^ (mixed >> np.uint64(31)))
    return digests


def _trimmed(arcs: _Arcs, frames: np.ndarray, final: int) -> CompactLattice:
    """Without what does not lead to the final state, which becomes the last."""
    dag = Dag(len(frames), arcs.sources, arcs.targets)
    leads = np.isfinite(dag.best_to(final, np.zeros(len(arcs.words))))
    number, arcs = np.cumsum(leads) - 1, arcs[leads[arcs.targets]]
    arcs = arcs[np.lexsort((arcs.words, arcs.sources))]
    sources, targets = number[arcs.sources], number[arcs.targets]
    am_scores, lm_scores = arcs.scores.T
    return CompactLattice(frames[leads], sources, targets, arcs.words, am_scores, lm_scores)


def _zeros(sources: np.ndarray, targets: np.ndarray) -> _Arcs:
    """Arcs without words, costs and scores."""
    num = len(sources)
    return _Arcs(sources, targets, np.zeros(num, dtype=np.int64), np.zeros(num), np.zeros((num, 2)))


def _best(arcs: _Arcs) -> _Arcs:
    """The best arc for each source, word and target, sorted by these."""
    words, targets = (int(values.max(initial=0)) + 1 for values in (arcs.words, arcs.targets))
    key = (arcs.sources * words + arcs.words) * targets + arcs.targets
    order = np.lexsort((arcs.costs, key))
    return arcs[order[np.flatnonzero(np.diff(key[order], prepend=-1))]]


def _of_arcs(members: _Arcs, chosen: np.ndarray, num: int) -> _Arcs:
    """The members of some of ``num`` arcs, renumbered in the order of ``chosen``."""
    number = np.full(num, -1)
    number[chosen] = np.arange(len(chosen))
    members = members[number[members.sources] >= 0]
    return replace(members, sources=number[members.sources])


def _side_by_side(
    parts: Sequence[tuple[_Arcs, np.ndarray, _Arcs]],
) -> tuple[_Arcs, np.ndarray, _Arcs]:
    """Arcs, totals and members of several parts, the arcs numbered through."""
    offsets = np.cumsum([0, *(len(totals) for _, totals, _ in parts)])
    members = [replace(m, sources=m.sources + offset) for (_, _, m), offset in zip(parts, offsets)]
    into, totals, _ = zip(*parts)
    return _Arcs.joined(into), np.concatenate(totals), _Arcs.joined(members)
