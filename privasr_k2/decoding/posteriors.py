"""Word posteriors of a lattice: ``C_max`` of [wessel2001] over frames.

A path with the score s has a probability proportional to exp(scale * s). In each frame one word
is under way: that of the frame's arc (of several the last), else the next one, since
determinization moves words only later. A word's posterior is its largest probability among the
frames in which it is under way on its path; its depth is exp of the entropy there, an effective
number of competing words. Words that paths carry in disjoint frames get too small a posterior.

[wessel2001] F. Wessel, R. Schlüter, K. Macherey and H. Ney, Confidence measures for large
vocabulary continuous speech recognition, IEEE Trans. Speech and Audio Processing 9(3), 2001.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from privasr_k2.ragged import rows_of

if TYPE_CHECKING:
    from privasr_k2.decoding.word_lattices import WordLattice


_DIGITS = 9


@dataclass(frozen=True, eq=False)
class WordPosteriors:
    """The distribution of the word under way in each frame of a lattice.

    Attributes:
        words: (V,) numbers of the lattice's words, increasing.
        frames: (T + 1, V + 1) probabilities, rows sum to 1; the last column is "no word any more",
            the last row that of the arcs into the final state.
        depths: (T + 1,) exp of each row's entropy, 1 or more.
        arc_posteriors: (A,) probability of the paths through each arc; 0 for an arc on no path.
        arc_levels: (A,) the row of each arc; -1 for an arc on no path.
        word_splits, word_values: as in the lattice, without epsilons.
    """

    words: np.ndarray
    frames: np.ndarray
    depths: np.ndarray
    arc_posteriors: np.ndarray
    arc_levels: np.ndarray
    word_splits: np.ndarray
    word_values: np.ndarray

    def of_path(self, arcs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(W,) posteriors in [0, 1] and (W,) depths of the words of a path.

        A word without a frame (an arc with several words) gets the probability of the arcs of its
        frame that carry it.

        Args:
            arcs: (T + 1,) the path's arcs, in order.
        """
        levels = self.arc_levels[arcs]
        counts, places = rows_of(self.word_splits, arcs)
        before = np.cumsum(counts) - counts
        spoken, num_words = self.word_values[places], len(places)
        carried = np.repeat(levels, counts)
        under_way = np.where(counts > 0, before + counts - 1, before)
        here = under_way < num_words
        under_way, rows = under_way[here], levels[here]
        probs = self.frames[rows, np.searchsorted(self.words, spoken[under_way])]
        # The best frame of each word comes last; of frames that differ by rounding, the last one.
        order = np.lexsort((probs.round(_DIGITS), under_way))
        posteriors, best = np.full(num_words, -1.0), carried.copy()
        posteriors[under_way[order]], best[under_way[order]] = probs[order], rows[order]
        for n in np.flatnonzero(posteriors < 0):
            posteriors[n] = self._carrying(int(spoken[n]), int(carried[n]))
        return np.clip(posteriors, 0.0, 1.0), self.depths[best]

    def _carrying(self, word: int, level: int) -> float:
        """The probability of the arcs of a level that carry a word."""
        of_arc = np.repeat(np.arange(len(self.arc_levels)), np.diff(self.word_splits))
        arcs = np.unique(of_arc[self.word_values == word])
        return float(self.arc_posteriors[arcs[self.arc_levels[arcs] == level]].sum())


def word_posteriors(lattice: WordLattice, scale: float) -> WordPosteriors:
    """Sum over all paths of a lattice, as a Markov chain from its backward sums.

    Costs are relative to the best path through each state: sums neither overflow nor vanish.

    Args:
        lattice: every arc but those into the final state is a frame; the paths to a state have one
            length.
        scale: above 0, on total scores; below 1 it flattens the distribution over paths.

    Raises:
        ValueError: paths of different lengths reach one state.
    """
    chain = _chain(lattice, scale)
    word_splits, word_values = _words(lattice)
    words, columns = np.unique(word_values, return_inverse=True)
    counts, none = word_splits[chain.arcs + 1] - word_splits[chain.arcs], len(words)
    padded = np.append(columns, none)  # so that the last arc without words has an index
    first = np.where(counts > 0, padded[word_splits[chain.arcs]], none)
    last = np.where(counts > 0, padded[word_splits[chain.arcs + 1] - 1], none)
    flow = chain.occupancy[chain.sources] * chain.chances
    frames = coming_words(chain, counts == 0, first, none)
    # The word under way on an arc with several words is the last of them.
    several = np.flatnonzero(counts > 1)
    np.add.at(frames, (chain.levels[several], last[several]), flow[several])
    np.subtract.at(frames, (chain.levels[several], first[several]), flow[several])
    frames = np.clip(frames, 0.0, 1.0)
    logs = np.log(frames, where=frames > 0, out=np.zeros_like(frames))
    depths = np.exp(np.maximum(-(frames * logs).sum(axis=1), 0.0))
    arc_posteriors, arc_levels = np.zeros(len(lattice.costs)), np.full(len(lattice.costs), -1)
    arc_posteriors[chain.arcs], arc_levels[chain.arcs] = flow, chain.levels
    arcs = arc_posteriors, arc_levels
    return WordPosteriors(words, frames, depths, *arcs, word_splits, word_values)


@dataclass(frozen=True, eq=False)
class Chain:
    """The lattice as a Markov chain; states are numbered level by level, arcs sorted by source.

    Attributes:
        state_splits: (T + 3,) the states of level t are ``state_splits[t]`` to ``state_splits[t +
            1]``.
        occupancy: (S,) probability of the paths through each state.
        arcs: (A',) numbers in the lattice of the arcs on paths.
        sources, targets, levels: (A',) their states, and the level of the source.
        chances: (A',) probability of an arc among those that leave its source.
    """

    state_splits: np.ndarray
    occupancy: np.ndarray
    arcs: np.ndarray
    sources: np.ndarray
    targets: np.ndarray
    levels: np.ndarray
    chances: np.ndarray


def _chain(lattice: WordLattice, scale: float) -> Chain:
    alive = np.flatnonzero(np.isfinite(lattice.costs))
    num_states = int(max(lattice.final, lattice.sources.max(), lattice.targets.max())) + 1
    ends = (lattice.sources[alive], lattice.targets[alive])
    graph = sparse.csr_matrix((np.ones(len(alive)), ends), shape=(num_states, num_states))
    level = dijkstra(graph, indices=0, unweighted=True)
    reached = np.isfinite(level)
    if np.any(level[ends[1]] != level[ends[0]] + 1) or level[lattice.final] != level[reached].max():
        raise ValueError("arcs must be frames: paths of different lengths reach one state")
    states = np.argsort(level, kind="stable")[: np.count_nonzero(reached)]
    number = np.zeros(num_states, dtype=np.int64)
    number[states] = np.arange(len(states))
    num_levels = int(level[lattice.final])
    state_splits = np.searchsorted(level[states], np.arange(num_levels + 2))
    arcs = alive[np.argsort(number[ends[0]], kind="stable")]
    sources, targets = number[lattice.sources[arcs]], number[lattice.targets[arcs]]
    splits = np.searchsorted(sources, state_splits[:-1])  # no arc leaves the final state
    chances = _transitions(-scale * lattice.costs[arcs], sources, targets, splits)
    occupancy = np.zeros(len(states))
    occupancy[0] = 1.0
    for t in range(num_levels):
        part, to = slice(splits[t], splits[t + 1]), slice(state_splits[t + 1], state_splits[t + 2])
        flow = occupancy[sources[part]] * chances[part]
        occupancy[to] = np.bincount(targets[part] - to.start, flow, to.stop - to.start)
    levels = np.repeat(np.arange(num_levels), np.diff(splits))
    return Chain(state_splits, occupancy, arcs, sources, targets, levels, chances)


def coming_words(chain: Chain, silent: np.ndarray, first: np.ndarray, none: int) -> np.ndarray:
    """(T + 1, none + 1) the probability of each next word by level; ``none`` for no word.

    All levels at once: what has passed without a word for n frames moves on by a frame, and is
    counted n frames back, in the level that it comes from, where it meets a word.
    """
    num_levels = len(chain.state_splits) - 2
    frames = np.zeros((num_levels, none + 1))
    quiet, spoken = np.flatnonzero(silent), np.flatnonzero(~silent)
    final = len(chain.occupancy) - 1  # after the final arcs there is no word any more
    passing, passed = chain.occupancy.copy(), 0
    passing[final] = 0.0
    while passed < num_levels:
        met = passing[chain.sources[spoken]] * chain.chances[spoken]
        np.add.at(frames, (chain.levels[spoken] - passed, first[spoken]), met)
        moved = passing[chain.sources[quiet]] * chain.chances[quiet]
        passing = np.bincount(chain.targets[quiet], moved, minlength=len(passing))
        passed += 1
        frames[num_levels - passed, none] += passing[final]
        passing[final] = 0.0
        # Nothing else can follow where nothing passes.
        spoken, quiet = (arcs[passing[chain.sources[arcs]] > 0] for arcs in (spoken, quiet))
        if not len(spoken) and not len(quiet):
            break
    return frames


def _transitions(
    logs: np.ndarray, sources: np.ndarray, targets: np.ndarray, arc_splits: np.ndarray
) -> np.ndarray:
    """(A,) the probability of each arc among those of its source; they are sorted by source."""
    leaving, starts, sizes = np.unique(sources, return_index=True, return_counts=True)
    splits = np.searchsorted(starts, arc_splits)
    backward, sums = np.zeros(int(targets.max()) + 1), np.zeros(len(logs))
    for t in range(len(arc_splits) - 2, -1, -1):
        part, of = slice(arc_splits[t], arc_splits[t + 1]), slice(splits[t], splits[t + 1])
        values = logs[part] + backward[targets[part]]
        most = np.maximum.reduceat(values, starts[of] - part.start)
        rest = np.exp(values - np.repeat(most, sizes[of]))
        backward[leaving[of]] = most + np.log(np.add.reduceat(rest, starts[of] - part.start))
        sums[part] = values
    return np.exp(sums - backward[sources])


def _words(lattice: WordLattice) -> tuple[np.ndarray, np.ndarray]:
    """The words of each arc as splits and values, without epsilons and the -1 of final arcs."""
    first, last = int(lattice.word_splits[0]), int(lattice.word_splits[-1])
    values = lattice.word_values[first:last]
    kept = values > 0
    before = np.concatenate([[0], np.cumsum(kept)])
    return before[lattice.word_splits - first], values[kept].astype(np.int64)
