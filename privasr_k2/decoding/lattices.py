"""Compact word lattices, which rescoring reads in place of the first pass's lattices of tokens.

Every word sequence within a beam of the best one is one path, with the scores of its best
alignment. Sequences beyond the beam may remain, at worse alignments. A sentence ends with an arc
of the word 0, so that an LM can score its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np
from annotated_types import Ge

from privasr_k2.constraints import Checked, FiniteOrZero
from privasr_k2.decoding.acyclic import Dag
from privasr_k2.decoding.compact_lattice import CompactLattice, compact
from privasr_k2.decoding.first_pass import Decoder
from privasr_k2.decoding.word_lattices import WordLattice, word_lattices
from privasr_k2.scoring.hypotheses import Weights

if TYPE_CHECKING:
    import torch

#: Id, part, speaker and reference of an utterance.
Facts = tuple[str, str, str, str]

END = 0
"""The word of the arcs that end a sentence."""

# The beam is halved so often before the lattice has the best path only.
_HALVINGS = 8


@dataclass(frozen=True)
class LatticeConfig(Checked):
    """The size of lattices; defaults in ``conf/common.yaml#lattices``.

    Args:
        beam: natural log, of word sequences against the best one.
        max_states: of a lattice; the beam is halved until it has no more.
    """

    beam: FiniteOrZero
    max_states: Annotated[int, Ge(2)]


@dataclass(frozen=True, eq=False)
class Lattice:
    """The compact word lattice of one utterance; without a path it has no states.

    Attributes:
        id, part, speaker, ref: as of :class:`privasr_k2.decoding.hyps.Record`.
        beam: natural log; all word sequences within it are there.
        seconds: (S,) float64, the end of the best alignment of the words up to a state.
        sources, targets: (A,) int32 states in topological order, sources ascending; paths lead from
            0 to the last one.
        words: (A,) int32, :data:`END` on the arcs into the last state, and only there.
        am_scores, lm_scores: (A,) float64, natural log, unweighted.
    """

    id: str
    part: str
    speaker: str
    ref: str
    beam: float
    seconds: np.ndarray
    sources: np.ndarray
    targets: np.ndarray
    words: np.ndarray
    am_scores: np.ndarray
    lm_scores: np.ndarray

    def __post_init__(self) -> None:
        problem = self._problem()
        if problem:
            raise ValueError(f"{self.id}: {problem}")

    @classmethod
    def without_path(cls, facts: Facts, beam: float) -> Lattice:
        """The empty lattice of an utterance."""
        none, scores = np.zeros(0, dtype=np.int32), np.zeros(0)
        return cls(*facts, beam, scores, none, none, none, scores, scores)

    @property
    def num_states(self) -> int:
        """S; 0 where there is no path."""
        return len(self.seconds)

    @cached_property
    def dag(self) -> Dag:
        """States and arcs."""
        return Dag(self.num_states, self.sources.astype(np.int64), self.targets.astype(np.int64))

    def totals(self, weights: Weights, lm_scores: np.ndarray | None = None) -> np.ndarray:
        """(A,) ``am + lm_weight * lm - insertion_penalty * (has a word)``, at given LM scores."""
        lm = self.lm_scores if lm_scores is None else lm_scores
        words = self.words != END
        return self.am_scores + weights.lm_weight * lm - weights.insertion_penalty * words

    def _problem(self) -> str:
        arcs = (self.sources, self.targets, self.words, self.am_scores, self.lm_scores)
        sizes = {len(values) for values in arcs}
        if len(sizes) > 1:
            return "its arrays of arcs have different lengths"
        if not self.num_states:
            return "it has arcs without states" if len(self.words) else ""
        if not len(self.words) or self.sources[0] != 0 or (np.diff(self.sources) < 0).any():
            return "its arcs are not sorted by source, from state 0"
        if (self.targets <= self.sources).any() or self.targets.max() != self.num_states - 1:
            return "its states are not in topological order up to the last"
        at_end = self.targets == self.num_states - 1
        if ((self.words == END) != at_end).any() or (self.words < 0).any():
            return "the word 0 stands elsewhere than on all arcs into the last state"
        if not (np.isfinite(self.am_scores).all() and np.isfinite(self.lm_scores).all()):
            return "it has scores that are not finite"
        leads = np.bincount(self.sources, minlength=self.num_states)[:-1].all()
        reached = np.bincount(self.targets, minlength=self.num_states)[1:].all()
        return "" if leads and reached else "it has states on no path"


def as_word_lattice(lattice: Lattice, totals: np.ndarray) -> WordLattice:
    """The lattice in the form that :func:`privasr_k2.decoding.nbest.nbest` reads; it has no tokens.

    Args:
        totals: (A,) the score by which paths are ranked, as of :meth:`Lattice.totals`.
    """
    dag, final = lattice.dag, lattice.num_states - 1
    come, go = dag.best_from(0, totals), dag.best_to(final, totals)
    onward = totals + go[dag.targets]
    spoken = lattice.words != END
    return WordLattice(
        final=final,
        sources=lattice.sources,
        targets=lattice.targets,
        labels=np.full(len(lattice.words), -1),
        word_splits=np.append(0, np.cumsum(spoken)),
        word_values=lattice.words[spoken],
        am_scores=lattice.am_scores,
        lm_scores=lattice.lm_scores,
        costs=np.maximum(go[dag.sources] - onward, 0.0),
        excess=np.maximum(go[0] - come[dag.sources] - onward, 0.0),
    )


@dataclass(frozen=True, eq=False)
class Found:
    """The compact lattice of a search.

    Attributes:
        beam: natural log; all word sequences within it are there.
        limited: whether ``max_states`` reduced the beam.
    """

    arrays: CompactLattice
    beam: float
    limited: bool

    def lattice(self, facts: Facts, seconds: np.ndarray) -> Lattice:
        """The lattice of an utterance, whose states end at ``seconds`` (S,)."""
        arrays = self.arrays
        labels = arrays.sources, arrays.targets, arrays.words
        sources, targets, words = (values.astype(np.int32) for values in labels)
        arcs = sources, targets, words, arrays.am_scores, arrays.lm_scores
        return Lattice(*facts, self.beam, seconds, *arcs)


class LatticeSearch:
    """Finds the compact lattices of a decoder's lattices; ``weights`` rank alignments."""

    def __init__(self, decoder: Decoder, weights: Weights, config: LatticeConfig) -> None:
        self.decoder, self.weights, self.config = decoder, weights, config

    def decode(self, log_probs: torch.Tensor, lengths: torch.Tensor) -> list[Found | None]:
        """As :meth:`Decoder.decode`: the lattice of each utterance, ``None`` without a path."""
        results: list[Found | None] = [None] * len(lengths)
        for utterances, lattice in self.decoder.lattices(log_probs, lengths):
            for utterance, word_lattice in zip(utterances, word_lattices(lattice, self.weights)):
                if word_lattice is not None:
                    results[utterance] = widest(word_lattice, self.config)
        return results


def widest(lattice: WordLattice, config: LatticeConfig) -> Found:
    """The compact lattice at the configured beam, halved until ``max_states`` allows it."""
    beam = config.beam
    for halvings in range(_HALVINGS + 1):
        arrays = compact(lattice, beam, config.max_states)
        if arrays is not None:
            return Found(arrays, beam, halvings > 0)
        beam /= 2
    arrays = compact(lattice, 0.0, None)
    assert arrays is not None
    return Found(arrays, 0.0, limited=True)
