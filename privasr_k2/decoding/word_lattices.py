"""The lattices of a first pass as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privasr_k2.decoding.first_pass import total_scores
from privasr_k2.ragged import rows_of
from privasr_k2.scoring.hypotheses import Weights

if TYPE_CHECKING:
    import k2


@dataclass(frozen=True, eq=False)
class WordLattice:
    """The arcs of an acyclic lattice, from the state 0 to the state ``final``.

    Attributes:
        sources, targets: (A,) states.
        labels: (A,) tokens; -1 on the arcs into the last state.
        word_splits, word_values: arc i has ``word_values[word_splits[i]:word_splits[i + 1]]``.
        am_scores, lm_scores: (A,) float64, natural log, unweighted.
        costs: (A,) float64, 0 or more: the arc and the best path behind it against the best path
            from its source; inf on no path.
        excess: (A,) float64, 0 or more: the best path through the arc against the best path of the
            lattice; inf on no path.
        symbol_splits, symbol_values: words with class delimiters, for a graph with classes.
        frames: (S,) where each state stands, if an arc is not a frame; ``None``: an arc is one.
    """

    final: int
    sources: np.ndarray
    targets: np.ndarray
    labels: np.ndarray
    word_splits: np.ndarray
    word_values: np.ndarray
    am_scores: np.ndarray
    lm_scores: np.ndarray
    costs: np.ndarray
    excess: np.ndarray
    symbol_splits: np.ndarray | None = None
    symbol_values: np.ndarray | None = None
    frames: np.ndarray | None = None

    def words(self, arcs: np.ndarray) -> tuple[int, ...]:
        """The words of a path's arcs."""
        return _said(self.word_splits, self.word_values, arcs)

    def symbols(self, arcs: np.ndarray) -> tuple[int, ...]:
        """The words and delimiters of a path's arcs."""
        if self.symbol_splits is None or self.symbol_values is None:
            raise ValueError("a lattice without delimiters")
        return _said(self.symbol_splits, self.symbol_values, arcs)


def _said(splits: np.ndarray, values: np.ndarray, arcs: np.ndarray) -> tuple[int, ...]:
    spoken = values[rows_of(splits, arcs)[1]]
    return tuple(spoken[spoken > 0].tolist())


def word_lattices(lattice: k2.Fsa, weights: Weights) -> Iterator[WordLattice | None]:
    """The lattices of :meth:`Decoder.lattice` one by one; ``None`` for an empty one."""
    lattice.scores = total_scores(lattice, weights)
    forward = lattice.get_forward_scores(use_double_scores=True, log_semiring=False).cpu().numpy()
    backward = lattice.get_backward_scores(use_double_scores=True, log_semiring=False).cpu().numpy()
    shape = lattice.arcs.shape()
    states = shape.row_splits(1).cpu().numpy()
    arcs = shape.remove_axis(1).row_splits(1).cpu().numpy()
    values = lattice.arcs.values()[:, :3].cpu().numpy()
    lattice_scores = lattice.scores, lattice.am_scores, lattice.lm_scores
    scores, am, lm = (values.detach().double().cpu().numpy() for values in lattice_scores)
    word_splits = lattice.aux_labels.shape.row_splits(1).cpu().numpy()
    word_values = lattice.aux_labels.values.cpu().numpy()
    marked = getattr(lattice, "symbols", None)
    symbol_splits = None if marked is None else marked.shape.row_splits(1).cpu().numpy()
    symbol_values = None if marked is None else marked.values.cpu().numpy()
    for n in range(len(arcs) - 1):
        own, first = slice(arcs[n], arcs[n + 1]), states[n]
        sources, targets, labels = values[own].T
        if not len(labels) or not np.isfinite(backward[first]):
            yield None
            continue
        come, go = forward[first + sources], backward[first + targets]
        alive = np.isfinite(come) & np.isfinite(go)
        costs, excess = np.full(len(labels), np.inf), np.full(len(labels), np.inf)
        onward = (scores[own] + go)[alive]
        costs[alive] = np.maximum(backward[first + sources[alive]] - onward, 0.0)
        excess[alive] = np.maximum(backward[first] - come[alive] - onward, 0.0)
        words = slice(arcs[n], arcs[n + 1] + 1)
        ends, totals = (sources, targets), (am[own], lm[own], costs, excess)
        symbols = None if symbol_splits is None else symbol_splits[words], symbol_values
        final = int(states[n + 1] - first - 1)
        yield WordLattice(final, *ends, labels, word_splits[words], word_values, *totals, *symbols)
