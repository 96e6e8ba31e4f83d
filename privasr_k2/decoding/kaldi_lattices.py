"""Kaldi's first pass as ours: its lattices as compact lattices or N-best lists.

Costs become scores: ``am_score = -acoustic_scale * acoustic``, LM score ``-lm_scale * graph`` (as
``lattice-scale``). Kaldi's LM weight of N is then ours of ``N * acoustic_scale``. Graph costs hold
transitions and pronunciations, besides the LM.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from privasr_k2.constraints import Finite, FiniteOrZero, Positive, one_of
from privasr_k2.decoding.acyclic import Dag
from privasr_k2.decoding.kaldi_archives import KaldiLattice, read_kaldi_lattices
from privasr_k2.decoding.lattices import END, Facts, Lattice, LatticeConfig, widest
from privasr_k2.decoding.nbest import NbestConfig, nbest
from privasr_k2.decoding.word_lattices import WordLattice
from privasr_k2.errors import DataError
from privasr_k2.scoring.hypotheses import Weights, some_of
from privasr_k2.scoring.nbest_formats import Reference
from privasr_k2.scoring.nbest_lists import GRAPH, Hypothesis, NbestList

log = logging.getLogger(__name__)

EPSILON = "<eps>"
CASES = ("keep", "lower", "upper")
_TABLE = "give the words.txt of the graph folder, which the lattices were made with"


@dataclass(frozen=True)
class KaldiLatticeConfig(LatticeConfig, NbestConfig):
    """How lattices are read; defaults in ``conf/common.yaml#kaldi_lattices``.

    Args:
        acoustic_scale, lm_scale: factors of the costs.
        lm_weight, insertion_penalty: at which alignments and lists are ranked.
        frame_seconds: from one transition id to the next.
        text_case: ``keep``, ``lower`` or ``upper``, of the words.
        silent_words: symbols that are no words, and are left out, also of references.
        posterior_scale: on total scores, for the confidences of lists.
    """

    acoustic_scale: Positive
    lm_scale: Finite
    lm_weight: FiniteOrZero
    insertion_penalty: float
    frame_seconds: Positive
    text_case: Annotated[str, one_of(*CASES)]
    silent_words: list[str]
    posterior_scale: Positive

    @property
    def weights(self) -> Weights:
        """Those of the first pass."""
        return Weights(self.lm_weight, self.insertion_penalty)

    def spoken(self, words: Iterable[str]) -> list[str]:
        """Words as lists have them, ``<eps>`` in place of what is no word."""
        silent = {EPSILON, *self.silent_words}
        case = {"keep": str, "lower": str.lower, "upper": str.upper}[self.text_case]
        return [EPSILON if word in silent else case(word) for word in words]

    def reference(self, reference: Reference) -> Reference:
        """A reference with the same words left out, in the same case."""
        words = (word for word in self.spoken(reference.text.split()) if word != EPSILON)
        return reference._replace(text=" ".join(words))


@dataclass(frozen=True, eq=False)
class WordTable:
    """Kaldi's words and ours.

    Attributes:
        place: the file.
        words: ours, ``<eps>`` first, each once.
        numbers: (V,) int64, ours of each of Kaldi's; 0 of what is no word, -1 where there is none.
    """

    place: Path
    words: tuple[str, ...]
    numbers: np.ndarray

    @classmethod
    def of(cls, place: Path, symbols: Sequence[str], config: KaldiLatticeConfig) -> WordTable:
        """The table of a ``words.txt``, as :func:`privasr_k2.graph.kaldi_files.read_table`."""
        said = [EPSILON, *config.spoken(symbols[1:])]
        words = tuple(dict.fromkeys(word for word in said if word))
        own = {"": -1, **{word: number for number, word in enumerate(words)}}
        return cls(place, words, np.array([own[word] for word in said], dtype=np.int64))

    def check(self, words: np.ndarray, place: str | Path) -> None:
        """Refuse numbers of words that the table lacks.

        Args:
            words: (A,) of a lattice's or graph's arcs, 0 for none.
            place: the lattice or graph.

        Raises:
            DataError: such a number.
        """
        lacking = words[words >= len(self.numbers)]
        if not len(lacking):
            lacking = words[self.numbers[words] < 0]
        if len(lacking):
            expected = f"words of {self.place}, which has {np.count_nonzero(self.numbers >= 0)}"
            raise DataError(place, expected, f"the word {lacking[0]}", _TABLE)


def read_all(paths: Iterable[Path], table: WordTable) -> Iterator[KaldiLattice]:
    """The lattices of several archives, checked.

    Raises:
        DataError: as of :func:`read_kaldi_lattices`; an utterance twice, or a word that the table
            lacks.
    """
    places: dict[str, str] = {}
    for path in paths:
        for lattice in read_kaldi_lattices(path):
            if lattice.id in places:
                found = f"{lattice.id} again, which {places[lattice.id]} has"
                way_out = "give the archives of one decode folder"
                raise DataError(path, "every utterance once", found, way_out)
            places[lattice.id] = lattice.place
            table.check(lattice.words, lattice.place)
            yield lattice


def word_lattice(
    lattice: KaldiLattice, table: WordTable, config: KaldiLatticeConfig
) -> WordLattice | None:
    """The lattice with scores and states' frames; ``None`` without a path.

    Raises:
        DataError: a cycle.
    """
    final = lattice.num_states - 1
    dag = Dag(lattice.num_states, lattice.sources, lattice.targets)
    lm, am = -lattice.costs.T * np.array([[config.lm_scale], [config.acoustic_scale]])
    words = np.where(lattice.targets == final, END, table.numbers[lattice.words])
    spoken = words != END
    totals = am + config.lm_weight * lm - config.insertion_penalty * spoken
    try:
        come, go = dag.best_from(0, totals), dag.best_to(final, totals)
    except ValueError as error:
        way_out = "decode again; a lattice has none"
        raise DataError(lattice.place, "a lattice", "a cycle", way_out) from error
    if not len(words) or not np.isfinite(go[0]):
        return None
    alive = np.isfinite(come[dag.sources]) & np.isfinite(go[dag.targets])
    costs, excess = np.full(len(words), np.inf), np.full(len(words), np.inf)
    onward = totals[alive] + go[dag.targets[alive]]
    costs[alive] = np.maximum(go[dag.sources[alive]] - onward, 0.0)
    excess[alive] = np.maximum(go[0] - come[dag.sources[alive]] - onward, 0.0)
    ends = dag.best_from(0, lattice.frames.astype(np.float64))
    return WordLattice(
        final=final,
        sources=lattice.sources,
        targets=lattice.targets,
        labels=np.full(len(words), -1),
        word_splits=np.append(0, np.cumsum(spoken)),
        word_values=words[spoken],
        am_scores=am,
        lm_scores=lm,
        costs=costs,
        excess=excess,
        frames=np.where(np.isfinite(ends), ends, 0).astype(np.int64),
    )


def imported_lattices(
    lattices: Iterable[KaldiLattice],
    table: WordTable,
    references: Mapping[str, Reference] | None,
    config: KaldiLatticeConfig,
) -> Iterator[Lattice]:
    """Compact lattices; utterances with a reference and without a lattice have no path, and last.

    Raises:
        DataError: a lattice of an utterance without a reference.
    """
    left = dict(references or {})
    limited = 0
    for lattice in lattices:
        facts = _facts(lattice, left, references)
        whole = word_lattice(lattice, table, config)
        if whole is None:
            yield Lattice.without_path(facts, config.beam)
            continue
        found = widest(whole, config)
        limited += found.limited
        yield found.lattice(facts, found.arrays.frames * config.frame_seconds)
    if limited:
        text = "%d lattices hold less than the beam of %g: raise max_states, or lower the beam"
        log.warning(text, limited, config.beam)
    _tell_missing(left, references)
    for name, reference in left.items():
        yield Lattice.without_path((name, *reference), config.beam)


def imported_lists(
    lattices: Iterable[KaldiLattice],
    table: WordTable,
    references: Mapping[str, Reference] | None,
    config: KaldiLatticeConfig,
) -> Iterator[NbestList]:
    """N-best lists of lattices, exactly the best word sequences, without times and confidences.

    Utterances without a path as for :func:`imported_lattices`.
    """
    left = dict(references or {})
    for lattice in lattices:
        facts = _facts(lattice, left, references)
        whole = word_lattice(lattice, table, config)
        paths = () if whole is None else nbest(whole, config).paths
        hyps = (
            Hypothesis(rank, _said(path.words, table), path.am_score, {GRAPH: path.lm_score})
            for rank, path in enumerate(paths, start=1)
        )
        yield NbestList(*facts, whole is None, tuple(hyps))
    _tell_missing(left, references)
    for name, reference in left.items():
        yield NbestList(name, *reference, True, ())


def _said(numbers: Iterable[int], table: WordTable) -> str:
    return " ".join(table.words[number] for number in numbers)


def _facts(
    lattice: KaldiLattice, left: dict[str, Reference], references: Mapping[str, Reference] | None
) -> Facts:
    """Id, part, user and reference; takes them out of what is ``left``."""
    if references is None:
        return lattice.id, "", "", ""
    if lattice.id not in references:
        way_out = "give the cuts or the data directory that was recognized"
        raise DataError(lattice.place, "an utterance with a reference", lattice.id, way_out)
    return lattice.id, *left.pop(lattice.id)


def _tell_missing(
    left: Mapping[str, Reference], references: Mapping[str, Reference] | None
) -> None:
    if left:
        text = "nothing for %d of %d utterances (no path there): %s"
        log.warning(text, len(left), len(references or {}), some_of(sorted(left)))
