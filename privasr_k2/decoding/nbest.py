"""Exact N-best lists: the n best different word sequences of a lattice, each at its best alignment.

The word acceptor of the lattice, with the costs ``-(am + lm_weight * lm - insertion_penalty *
words)``, is determinized in the tropical semiring and its n shortest paths are taken [Mohri & Riley
2002, An efficient algorithm for the n-best-strings problem]. Arcs and determinization are pruned by
a beam, which is doubled until n sequences lie within it; the list is then exact. Beyond
``max_states`` states the beam is halved: the list is shorter, still exact, and marked. Costs
are relative to the best path through each state, for the sake of Kaldi's single precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np

from privasr_k2.constraints import Checked, Count, Finite, one_of
from privasr_k2.decoding.first_pass import Decoder, total_scores
from privasr_k2.decoding.posteriors import word_posteriors
from privasr_k2.decoding.sampled import draw_paths
from privasr_k2.decoding.word_lattices import WordLattice, word_lattices
from privasr_k2.graph.class_delimiters import ClassDelimiters, Span
from privasr_k2.graph.openfst import Fst
from privasr_k2.ragged import items_of
from privasr_k2.scoring.hypotheses import Weights

if TYPE_CHECKING:
    import kaldifst
    import torch

METHODS = ("exact", "sampled")
# Subsets of states whose costs differ by less are one state of the deterministic acceptor.
_DELTA = 2.0**-16
# A path's cost as the acceptor has it, in single precision, against its arcs' sum in double
# precision.
_AGREEMENT = 1e-3
# The beam is halved so often before a list of the best path only is given.
_HALVINGS = 8


@dataclass(frozen=True)
class NbestConfig(Checked):
    """How long the lists are.

    Args:
        num_paths: most hypotheses of an utterance.
        first_beam: natural log, the first beam; it changes the time only.
        max_states: of the deterministic acceptor.
    """

    num_paths: Count
    first_beam: Finite
    max_states: Count


@dataclass(frozen=True)
class NbestSearchConfig(NbestConfig):
    """How lists of a first pass are made; defaults in ``conf/common.yaml#nbest``.

    Args:
        posterior_scale: on total scores, for word posteriors and drawn paths.
        method: ``exact``, or ``sampled``: the different sequences of ``num_paths`` drawn paths.
    """

    posterior_scale: Finite
    method: Annotated[str, one_of(*METHODS)]


@dataclass(frozen=True, eq=False)
class Path:
    """The best alignment of one word sequence.

    Attributes:
        words: their numbers.
        am_score, lm_score: natural logs, unweighted.
        labels: (T,) int32, the token of each output frame; 0 is the blank.
        arcs: its arcs in the lattice, in order.
        posteriors, depths: of each word, see :mod:`privasr_k2.decoding.posteriors`.
        classes: spans of names, where the graph has classes.
    """

    words: tuple[int, ...]
    am_score: float
    lm_score: float
    labels: np.ndarray
    arcs: np.ndarray
    posteriors: np.ndarray | None = None
    depths: np.ndarray | None = None
    classes: tuple[Span, ...] | None = None


@dataclass(frozen=True, eq=False)
class Nbest:
    """The list of one utterance.

    Attributes:
        paths: the best first; equal totals by the numbers of words.
        limited: ``max_states`` was reached before ``num_paths``.
        beam: natural log; the list is whole within it, up to ``num_paths``. -inf for drawn paths.
    """

    paths: tuple[Path, ...]
    limited: bool
    beam: float


class NbestSearch:
    """Finds the N-best lists of a decoder's lattices, ranked at ``weights``."""

    def __init__(self, decoder: Decoder, weights: Weights, config: NbestSearchConfig) -> None:
        self.decoder, self.weights, self.config = decoder, weights, config

    def decode(self, log_probs: torch.Tensor, lengths: torch.Tensor) -> list[Nbest | None]:
        """As :meth:`Decoder.decode`: lists with word posteriors, ``None`` without a path."""
        results: list[Nbest | None] = [None] * len(lengths)
        for utterances, lattice in self.decoder.lattices(log_probs, lengths):
            drawn: Sequence[Sequence[np.ndarray] | None] = [None] * len(utterances)
            if self.config.method == "sampled":
                scores = total_scores(lattice, self.weights) * self.config.posterior_scale
                drawn = draw_paths(lattice, scores, self.config.num_paths)
            word_arcs = word_lattices(lattice, self.weights)
            for utterance, own, paths in zip(utterances, word_arcs, drawn):
                if own is not None:
                    hypotheses = nbest(own, self.config) if paths is None else of_paths(own, paths)
                    with_names = _with_classes(hypotheses, own, self.decoder.graph.delimiters)
                    scale = self.config.posterior_scale
                    results[utterance] = with_posteriors(with_names, own, scale)
        return results


def _with_classes(result: Nbest, lattice: WordLattice, delimiters: ClassDelimiters) -> Nbest:
    if not delimiters.classes:
        return result
    split = (delimiters.split(lattice.symbols(path.arcs)) for path in result.paths)
    paths = [replace(path, classes=classes) for path, (_, classes) in zip(result.paths, split)]
    return replace(result, paths=tuple(paths))


def nbest(lattice: WordLattice, config: NbestConfig) -> Nbest:
    """The best ``config.num_paths`` word sequences of a lattice.

    Raises:
        RuntimeError: a path's scores do not add up to its cost, which is a defect.
    """
    # No path is worse than one that takes every arc.
    worst = float(lattice.costs[np.isfinite(lattice.costs)].sum())
    beam = config.first_beam
    sequences = _sequences(lattice, beam, config.num_paths, config.max_states)
    limited = sequences is None
    for _ in range(_HALVINGS):
        if sequences is not None:
            break
        beam /= 2
        sequences = _sequences(lattice, beam, config.num_paths, config.max_states)
    if sequences is None:
        beam = 0.0
        sequences = _sequences(lattice, beam, 1, None) or []
    while not limited and len(sequences) < config.num_paths and beam <= worst:
        wider = _sequences(lattice, 2 * beam, config.num_paths, config.max_states)
        if wider is None:
            limited = True
        else:
            sequences, beam = wider, 2 * beam
    # With a smaller beam there may still have been enough.
    limited = limited and len(sequences) < config.num_paths
    worst_cost = max(cost for cost, _ in sequences)
    aligned = _aligned(lattice, [words for _, words in sequences], worst_cost)
    for (exact, path), (cost, _) in zip(aligned, sequences):
        if abs(exact - cost) > _AGREEMENT:
            raise RuntimeError(f"the path of {path.words} costs {exact} and was found with {cost}")
    return Nbest(_ranked(aligned), limited, beam)


def of_paths(lattice: WordLattice, drawn: Sequence[np.ndarray]) -> Nbest:
    """The different word sequences of one or more paths, each with its best alignment."""
    # A word sequence's best alignment costs no more than the one that was drawn.
    beam = max(float(lattice.costs[arcs].sum()) for arcs in drawn)
    sequences = list(dict.fromkeys(lattice.words(arcs) for arcs in drawn))
    return Nbest(_ranked(_aligned(lattice, sequences, beam)), False, -math.inf)


def with_posteriors(result: Nbest, lattice: WordLattice, scale: float) -> Nbest:
    """A list of ``lattice`` with the posterior and depth of every word."""
    posteriors = word_posteriors(lattice, scale)
    paths = []
    for path in result.paths:
        values, depths = posteriors.of_path(path.arcs)
        paths.append(replace(path, posteriors=values, depths=depths))
    return replace(result, paths=tuple(paths))


def _sequences(
    lattice: WordLattice, beam: float, num_paths: int, max_states: int | None
) -> list[tuple[float, tuple[int, ...]]] | None:
    """Costs and words within a beam, by cost; ``None`` beyond ``max_states`` states."""
    import kaldifst

    acceptor = _transducer(lattice, beam + _AGREEMENT, acceptor=True)
    kaldifst.rmepsilon(acceptor)
    limits = {"nstate": max_states or -1, "weight": repr(beam + _AGREEMENT)}
    deterministic = kaldifst.determinize(acceptor, delta=_DELTA, **limits)
    if max_states is not None and deterministic.num_states >= max_states:
        return None
    sequences = []
    shortest = kaldifst.shortest_path(deterministic, n=num_paths)
    for path in kaldifst.convert_nbest_to_vector(shortest):
        _, words, _, cost = kaldifst.get_linear_symbol_sequence(path)
        if cost.value <= beam or not sequences:
            sequences.append((cost.value, tuple(words)))
    return sequences


def _transducer(lattice: WordLattice, beam: float, *, acceptor: bool) -> kaldifst.StdVectorFst:
    """The arcs within a beam in OpenFst, from words to words, or to arc numbers from 1."""
    import kaldifst

    kept = np.flatnonzero(lattice.excess <= beam)
    owners, places = items_of(lattice.word_splits, kept)
    words = lattice.word_values[places]
    owners, words = owners[words > 0], words[words > 0]
    counts = np.bincount(owners, minlength=len(kept))
    of = np.repeat(np.arange(len(kept)), np.maximum(counts, 1))
    is_first = np.diff(of, prepend=-1) > 0
    later = np.flatnonzero(~is_first)
    sources, targets = lattice.sources[kept][of], lattice.targets[kept][of]
    sources[later] = targets[later - 1] = lattice.final + 1 + np.arange(len(later))
    labels = np.zeros(len(of), dtype=np.int64)
    labels[counts[of] > 0] = words
    numbers = np.where(is_first, kept[of] + 1, 0)
    costs = np.where(is_first, lattice.costs[kept][of], 0.0)
    # Few states are left within a beam: they are numbered anew, the first one 0.
    ends = np.concatenate([[0, lattice.final], sources, targets])
    states, numbered = np.unique(ends, return_inverse=True)
    sources, targets = np.split(numbered[2:], 2)
    finals = np.full(len(states), np.inf)
    finals[numbered[1]] = 0.0
    fst = Fst.from_arcs(sources, targets, labels, labels if acceptor else numbers, costs, finals)
    return kaldifst.StdVectorFst(fst.to_kaldifst())


def _aligned(
    lattice: WordLattice, sequences: Sequence[tuple[int, ...]], beam: float
) -> list[tuple[float, Path]]:
    """The best path of each word sequence and its cost over the best, at most ``beam``."""
    import kaldifst

    transducer = _transducer(lattice, beam + _AGREEMENT, acceptor=False)
    kaldifst.arcsort(transducer, "ilabel")
    aligned = []
    for words in sequences:
        linear = kaldifst.make_linear_acceptor(list(words))
        best = kaldifst.shortest_path(kaldifst.compose(linear, transducer))
        arcs = np.asarray(kaldifst.get_linear_symbol_sequence(best)[2], dtype=np.int64) - 1
        if not len(arcs):
            raise RuntimeError(f"no path of {words} within {beam}")
        am, lm = (float(scores[arcs].sum()) for scores in (lattice.am_scores, lattice.lm_scores))
        labels = lattice.labels[arcs]
        path = Path(words, am, lm, labels[labels >= 0], arcs)
        aligned.append((float(lattice.costs[arcs].sum()), path))
    return aligned


def _ranked(aligned: Sequence[tuple[float, Path]]) -> tuple[Path, ...]:
    return tuple(path for _, path in sorted(aligned, key=lambda item: (item[0], item[1].words)))
