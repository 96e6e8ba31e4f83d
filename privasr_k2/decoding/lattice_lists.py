"""N-best lists from rescored lattices, with the LM scores of the first pass and of the new LM."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privasr_k2.decoding.jobs import JobConfig
from privasr_k2.decoding.lattice_files import Lattices
from privasr_k2.decoding.lattice_lms import SteppingLm
from privasr_k2.decoding.lattice_rescoring import LatticeSearchConfig, Rescored, rescore
from privasr_k2.decoding.lattices import END, Lattice, as_word_lattice
from privasr_k2.decoding.nbest import NbestConfig, nbest
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.scoring.hypotheses import Weights
from privasr_k2.scoring.nbest_lists import GRAPH, Hypothesis, NbestList

log = logging.getLogger(__name__)

_LISTED = 10


@dataclass(frozen=True)
class RescoreLatticesConfig(LatticeSearchConfig, NbestConfig, JobConfig):
    """Search, lists and jobs of rescoring; defaults in ``conf/rescore.yaml#rescore_lattices``.

    Args:
        name: of the LM in lists, tables and weights; empty for that of its folder or file.
    """

    name: str


def rescored_lists(
    lattices: Lattices, lm: SteppingLm[Any], name: str, config: RescoreLatticesConfig
) -> Iterator[NbestList]:
    """The lists of this job's lattices, ranked by the scores of the search.

    Args:
        name: of the new LM's scores.

    Raises:
        ConfigError: ``name`` is that of the first pass's scores.
        DataError: words that an LM without ``<unk>`` does not have.
    """
    if name == GRAPH:
        expected = f"one other than {GRAPH}, that of the first pass's scores"
        raise ConfigError("name", expected, name, "choose one: --set name=")
    _check_words(lattices, lm)
    share = lattices.lattices[config.job - 1 :: config.num_jobs]
    states = limited = 0
    results = rescore(share, lattices.words, lm, lattices.weights, config)
    for lattice, rescored in zip(share, results):
        nbest = rescored_list(lattice, rescored, name, lattices.words, lattices.weights, config)
        if rescored is not None:
            states += rescored.lattice.num_states
        limited += len(nbest.hyps) < config.num_paths
        yield nbest
    message = (
        "%d lattices of %d states, %d of them after the search;"
        " %d lists have fewer than %d hypotheses"
    )
    before = sum(lattice.num_states for lattice in share)
    log.info(message, len(share), before, states, limited, config.num_paths)


def rescored_list(
    lattice: Lattice,
    result: Rescored | None,
    name: str,
    words: Sequence[str],
    weights: Weights,
    config: RescoreLatticesConfig,
) -> NbestList:
    """The list of one lattice; empty without a path."""
    hyps = []
    if result is not None:
        totals = result.lattice.totals(weights, result.mixed(config.neural_share))
        best = nbest(as_word_lattice(result.lattice, totals), config)
        for rank, path in enumerate(best.paths, start=1):
            scores = {GRAPH: path.lm_score, name: float(result.lm_scores[path.arcs].sum())}
            text = " ".join(words[word] for word in path.words)
            hyps.append(Hypothesis(rank, text, path.am_score, scores))
    facts = lattice.id, lattice.part, lattice.speaker, lattice.ref
    return NbestList(*facts, result is None, tuple(hyps))


def _check_words(lattices: Lattices, lm: SteppingLm[Any]) -> None:
    """Refuse words without a probability; warn of those that are scored as ``<unk>``."""
    used = np.concatenate([lattice.words for lattice in lattices.lattices])
    numbers, counts = np.unique(used[used != END], return_counts=True)
    own = lm.words  # a set that the model makes when asked
    known = np.array([lattices.words[number] in own for number in numbers.tolist()], dtype=bool)
    lacking = [lattices.words[number] for number in numbers[~known].tolist()]
    if not lacking:
        return
    listed = " ".join(lacking[:_LISTED])
    if not lm.scores_unknown:
        way_out = "decode with the LM's vocabulary, or give an LM with <unk>"
        found = f"{len(lacking)} others in {lattices.place}: {listed}"
        raise DataError(lm.name, "the words of the lattices", found, way_out)
    message = (
        "%d of %d words of the lattices are not in %s, which scores them as <unk>;"
        " %d of %d arcs: %s"
    )
    arcs = counts[~known].sum()
    log.warning(message, len(lacking), len(numbers), lm.name, arcs, counts.sum(), listed)
