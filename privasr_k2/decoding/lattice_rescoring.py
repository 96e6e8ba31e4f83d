"""Rescoring whole lattices with a language model: a pruned search that merges histories.

A state is a lattice state with its last ``order`` - 1 words; merged paths go on with the model's
state of the best of them [Liu et al. 2014, Efficient lattice rescoring using recurrent neural
network language models]. The search visits levels (arcs on the longest path to a state), of all
utterances at once. With L and G the log-probabilities of model and graph it ranks paths by

    am + lm_weight * (neural_share * L + (1 - neural_share) * G) - insertion_penalty * words

and drops arcs whose best path is more than ``beam`` below that of the utterance, with first-pass
scores for the rest of the path [Xu et al. 2018, A pruned RNNLM lattice-rescoring algorithm for
ASR]. Of a lattice state the ``max_histories`` best histories stay. L is exact with ``order`` 0 (no
merging), no beam and no bound on histories; for an n-gram model of order n, ``order`` n is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privasr_k2.constraints import Checked, Count, Natural, Positive, Share
from privasr_k2.decoding.acyclic import Dag, grouped
from privasr_k2.decoding.lattice_lms import SteppingLm
from privasr_k2.decoding.lattices import END, Lattice
from privasr_k2.ragged import Columns, items_of, splits_of
from privasr_k2.scoring.hypotheses import Weights

# Numbers in the states of the lattices that are searched together, one history each, and their
# states.
_MAX_NUMBERS = 1 << 24
_MAX_STATES = 20_000


@dataclass(frozen=True)
class LatticeSearchConfig(Checked):
    """How lattices are searched.

    Args:
        neural_share: of the new LM in the LM score, from 0 to 1; the graph's has the rest.
        order: paths whose last ``order`` - 1 words agree are merged; 0: none are.
        beam: natural log, above 0.
        max_histories: of one lattice state.
    """

    neural_share: Share
    order: Natural
    beam: Positive
    max_histories: Count


@dataclass(frozen=True, eq=False)
class Rescored:
    """A lattice after rescoring, with the states of the search.

    Attributes:
        lattice: with the scores of the first pass and its beam; pruned arcs are not in it.
        lm_scores: (A,) float64, natural log, of the LM.
    """

    lattice: Lattice
    lm_scores: np.ndarray

    def mixed(self, neural_share: float) -> np.ndarray:
        """(A,) the LM scores that the search ranked by."""
        return neural_share * self.lm_scores + (1 - neural_share) * self.lattice.lm_scores


def rescore(
    lattices: Sequence[Lattice],
    words: Sequence[str],
    lm: SteppingLm[Any],
    weights: Weights,
    config: LatticeSearchConfig,
) -> Iterator[Rescored | None]:
    """Rescore lattices; ``None`` for those without a path.

    Args:
        words: of the lattices, by their numbers.
        weights: of the search.
    """
    symbols = lm.symbols(words)
    for block in _blocks(lattices, lm):
        with_paths = [lattice for lattice in block if lattice.num_states]
        searched = _search(with_paths, symbols, lm, weights, config)
        for lattice in block:
            yield next(searched) if lattice.num_states else None


def _blocks(lattices: Sequence[Lattice], lm: SteppingLm[Any]) -> Iterator[list[Lattice]]:
    """Consecutive lattices that are searched together."""
    block: list[Lattice] = []
    states = numbers = 0
    for lattice in lattices:
        longest = int(lattice.dag.levels.max(initial=0))
        size = lattice.num_states * lm.state_size(longest)
        if block and (states + lattice.num_states > _MAX_STATES or numbers + size > _MAX_NUMBERS):
            yield block
            block, states, numbers = [], 0, 0
        block.append(lattice)
        states, numbers = states + lattice.num_states, numbers + size
    if block:
        yield block


@dataclass(frozen=True, eq=False)
class _Arcs(Columns):
    """Arcs of the search (E,): source, arc of the lattices, LM score, best total."""

    sources: np.ndarray
    along: np.ndarray
    lm_scores: np.ndarray
    totals: np.ndarray


class _Together:
    """Several lattices side by side, and what the search needs of them."""

    def __init__(
        self, lattices: Sequence[Lattice], symbols: np.ndarray, weights: Weights, share: float
    ) -> None:
        sizes = [lattice.num_states for lattice in lattices]
        self.num, self.offsets = len(lattices), np.cumsum([0, *sizes])
        self.sources, self.targets = (
            np.concatenate([getattr(lattice.dag, name) for lattice in lattices])
            + np.repeat(self.offsets[:-1], [len(lattice.words) for lattice in lattices])
            for name in ("sources", "targets")
        )
        words, am, graph = (
            np.concatenate([getattr(lattice, name) for lattice in lattices])
            for name in ("words", "am_scores", "lm_scores")
        )
        dag = Dag(int(self.offsets[-1]), self.sources, self.targets)
        self.levels, self.leaving = dag.levels, splits_of(self.sources, dag.num_states)
        self.utterances = np.repeat(np.arange(self.num), sizes)
        self.is_final = np.zeros(dag.num_states, dtype=bool)
        self.is_final[self.offsets[1:] - 1] = True
        self.symbols = symbols[words]
        spoken = am - weights.insertion_penalty * (words != END)
        self.fixed = spoken + weights.lm_weight * (1 - share) * graph
        self.factor = weights.lm_weight * share
        self.go = dag.best_to(self.offsets[1:] - 1, spoken + weights.lm_weight * graph)


class _Search:
    """The states of the search, all levels together: lattice state, history (_, H), total."""

    def __init__(self, whole: _Together, lm: SteppingLm[Any], config: LatticeSearchConfig) -> None:
        self.whole, self.lm, self.config = whole, lm, config
        self.at, self.totals = whole.offsets[:-1], np.zeros(whole.num)
        self.histories = np.full((whole.num, 2 if config.order == 0 else config.order - 1), -1)
        num_levels = int(whole.levels.max()) + 1
        self.waiting: list[list[_Arcs]] = [[] for _ in range(num_levels)]
        # The best total of what waits for each level, with the best way on.
        self.ahead = np.full((whole.num, num_levels), -np.inf)
        self.kept: list[_Arcs] = []
        self.ends: list[np.ndarray] = []
        # By level: the model's states, the number of the first one, and the last level that needs
        # them.
        self.memory: dict[int, tuple[Any, int, int]] = {}

    def run(self) -> None:
        """Go through all levels."""
        self._leave(0, 0, self.lm.start(self.whole.num))
        for level in range(1, len(self.waiting)):
            if not self.waiting[level]:
                continue
            arcs = self._within_beam(level)
            if not len(arcs.along):
                continue
            base = len(self.at)
            into = self._enter(arcs)
            going = ~self.whole.is_final[self.at[base:]]
            if going.any():
                self._leave(level, base, self._read(into[going]))
            self.memory = {n: held for n, held in self.memory.items() if held[2] > level}

    def _leave(self, level: int, base: int, states: Any) -> None:
        """Score the arcs that leave the states of a level, from number ``base``."""
        whole = self.whole
        on = np.flatnonzero(~whole.is_final[self.at[base:]])  # final states come last
        rows, along = items_of(whole.leaving, self.at[base + on])
        scores = self.lm.score(states, rows, whole.symbols[along])
        totals = self.totals[base + rows] + whole.fixed[along] + whole.factor * scores
        arcs_out = _Arcs(base + rows, along, scores, totals)
        later = whole.levels[whole.targets[along]]
        utterances = whole.utterances[whole.targets[along]]
        np.maximum.at(self.ahead, (utterances, later), self._estimates(arcs_out))
        for target, which in grouped(later):
            self.waiting[target].append(arcs_out[which])
        self.memory[level] = states, base, int(later.max())

    def _within_beam(self, level: int) -> _Arcs:
        """The arcs that wait for a level and lie within the beam of all waiting arcs."""
        arcs = _Arcs.joined(self.waiting[level])
        self.waiting[level].clear()
        bar = self.ahead[:, level:].max(axis=1) - self.config.beam
        inside = self._estimates(arcs) >= bar[self.whole.utterances[self.whole.targets[arcs.along]]]
        return arcs[inside]

    def _enter(self, arcs: _Arcs) -> _Arcs:
        """Merge arcs into states; the best arc into each new state."""
        whole = self.whole
        targets, histories = whole.targets[arcs.along], self._histories(arcs)
        state, best = _merged(targets, histories, arcs.totals, self.config.max_histories)
        # Final states last, before them those whose best arcs come from one level side by side.
        before = whole.levels[whole.sources[arcs.along[best]]]
        order = np.lexsort((before, whole.is_final[targets[best]]))
        number = np.append(np.argsort(order), -1)[state]
        best = best[order]
        self.ends.append(len(self.at) + number[number >= 0])
        self.kept.append(arcs[number >= 0])
        self.at = np.append(self.at, targets[best])
        self.totals = np.append(self.totals, arcs.totals[best])
        self.histories = np.concatenate((self.histories, histories[best]))
        return arcs[best]

    def _read(self, into: _Arcs) -> Any:
        """The model's states after the symbols of arcs, which are sorted by source level."""
        parts = [
            (self.memory[level][0], into.sources[which] - self.memory[level][1])
            for level, which in grouped(self.whole.levels[self.whole.sources[into.along]])
        ]
        return self.lm.read(parts, self.whole.symbols[into.along])

    def _estimates(self, arcs: _Arcs) -> np.ndarray:
        """(E,) totals with the best way on, by the first pass."""
        return arcs.totals + self.whole.go[self.whole.targets[arcs.along]]

    def _histories(self, arcs: _Arcs) -> np.ndarray:
        """(E, H) the histories behind arcs; all -1 at final states."""
        symbols = self.whole.symbols[arcs.along][:, None]
        if self.config.order == 0:
            histories = np.concatenate((arcs.sources[:, None], symbols), axis=1)
        else:
            histories = np.concatenate((self.histories[arcs.sources], symbols), axis=1)[:, 1:]
        return np.where(self.whole.is_final[self.whole.targets[arcs.along]][:, None], -1, histories)


def _merged(
    targets: np.ndarray, histories: np.ndarray, totals: np.ndarray, max_histories: int
) -> tuple[np.ndarray, np.ndarray]:
    """(E,) the state of each arc, -1 where it is dropped; (K,) the best arc into each state."""
    codes = targets
    for column in histories.T:
        pairs = codes * (int(column.max()) + 2) + column + 1
        codes = np.unique(pairs, return_inverse=True)[1]
    order = np.lexsort((-totals, codes))
    best = order[np.flatnonzero(np.diff(codes[order], prepend=-1))]
    ranked = best[np.lexsort((-totals[best], targets[best]))]
    firsts = np.flatnonzero(np.diff(targets[ranked], prepend=-1))
    rank = np.arange(len(ranked)) - np.repeat(firsts, np.diff(np.append(firsts, len(ranked))))
    best = ranked[rank < max_histories]
    number = np.full(int(codes.max(initial=0)) + 1, -1)
    number[codes[best]] = np.arange(len(best))
    return number[codes], best


def _search(
    lattices: Sequence[Lattice],
    symbols: np.ndarray,
    lm: SteppingLm[Any],
    weights: Weights,
    config: LatticeSearchConfig,
) -> Iterator[Rescored]:
    if not lattices:
        return
    whole = _Together(lattices, symbols, weights, config.neural_share)
    search = _Search(whole, lm, config)
    search.run()
    arcs, ends = _Arcs.joined(search.kept), np.concatenate(search.ends)
    finals = np.flatnonzero(whole.is_final[search.at])
    leads = Dag(len(search.at), arcs.sources, ends).best_to(finals, np.zeros(len(ends)))
    on_path = np.isfinite(leads[ends])
    arcs, ends = arcs[on_path], ends[on_path]
    alive = np.isfinite(leads)
    owners, of_state = whole.utterances[whole.sources[arcs.along]], whole.utterances[search.at]
    for n, lattice in enumerate(lattices):
        states = np.flatnonzero(alive & (of_state == n))
        mine = np.flatnonzero(owners == n)
        mine = mine[np.lexsort((arcs.along[mine], arcs.sources[mine]))]
        number = np.full(len(search.at), -1)
        number[states] = np.arange(len(states))
        old = arcs.along[mine] - np.searchsorted(whole.sources, whole.offsets[n])
        arrays = {name: getattr(lattice, name)[old] for name in ("words", "am_scores", "lm_scores")}
        seconds = lattice.seconds[search.at[states] - whole.offsets[n]]
        sources, targets = (number[s[mine]].astype(np.int32) for s in (arcs.sources, ends))
        rescored = replace(lattice, seconds=seconds, sources=sources, targets=targets, **arrays)
        yield Rescored(rescored, arcs.lm_scores[mine])
