"""The first pass with k2: pruned search in HLG, and from one lattice the best words of each point.

:mod:`privasr_k2.decoding.kaldi_backend` is the other back end of :class:`FirstPass`.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Generic, Self, TypeVar

from annotated_types import MinLen

from privasr_k2.constraints import Checked, Count, Natural, NotNegative, Positive, one_of
from privasr_k2.decoding.hyps import Hyp
from privasr_k2.errors import ConfigError, GraphError
from privasr_k2.graph.folder import GraphFolder
from privasr_k2.graph.hlg import Graph, load_graph
from privasr_k2.scoring.hypotheses import Weights

if TYPE_CHECKING:
    import k2
    import torch

BACKENDS = ("k2", "kaldi")
G = TypeVar("G", bound=GraphFolder)


@dataclass(frozen=True)
class SearchConfig(Checked):
    """Pruning and grid; defaults in ``conf/common.yaml#decode``.

    Args:
        search_beam: natural log, of paths against the best one of a frame.
        output_beam: k2: natural log, of the lattice's arcs against the best path.
        min_active_states, max_active_states: bounds of the states kept in a frame.
        search_lm_weight: k2: the LM weight of the search; kaldi searches at each point.
        lm_weights, insertion_penalties: the grid, which k2 reads from one lattice.
    """

    backend: Annotated[str, one_of(*BACKENDS)]
    search_beam: Positive
    output_beam: Positive
    min_active_states: Natural
    max_active_states: Count
    search_lm_weight: NotNegative
    lm_weights: Annotated[list[NotNegative], MinLen(1)]
    insertion_penalties: Annotated[list[float], MinLen(1)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_active_states > self.max_active_states:
            found = self.min_active_states
            raise ValueError(f"min_active_states must be from 0 to max_active_states, got {found}")

    def at(self, weights: Weights) -> Self:
        """The search for the best path at weights that are known, as dev has chosen them.

        k2 searches at ``search_lm_weight`` and reads other weights from its lattice. At a larger
        LM weight a path that is worse by its LM score is worse by so many times more, and beams
        grow with it, as they keep what the search for the grid would keep.

        >>> config = SearchConfig("k2", 20.0, 8.0, 30, 1000, 0.8, [1.0, 2.0], [0.0, 1.0])
        >>> found = config.at(Weights(2.0, 1.0))
        >>> found.search_beam, found.output_beam, found.search_lm_weight, found.lm_weights
        (50.0, 20.0, 2.0, [2.0])
        """
        lm_weight, insertion_penalty = weights
        point = replace(self, lm_weights=[lm_weight], insertion_penalties=[insertion_penalty])
        if self.backend != "k2" or lm_weight <= self.search_lm_weight or not self.search_lm_weight:
            return point
        factor = lm_weight / self.search_lm_weight
        return replace(
            point,
            search_lm_weight=lm_weight,
            search_beam=factor * self.search_beam,
            output_beam=factor * self.output_beam,
        )


class FirstPass(ABC, Generic[G]):
    """The interface of all back ends: search in one graph."""

    def __init__(self, graph: G, config: SearchConfig) -> None:
        self.graph, self.config = graph, config

    def check_log_probs(self, log_probs: torch.Tensor) -> None:
        """Refuse (N, T, C) log-probabilities where C is not the number of the graph's tokens."""
        if log_probs.shape[-1] != len(self.graph.tokens):
            expected, found = f"{len(self.graph.tokens)} outputs", str(log_probs.shape[-1])
            raise GraphError(self.graph.folder, expected, found, "use the graph's model")

    @abstractmethod
    def decode(
        self, log_probs: torch.Tensor, lengths: torch.Tensor
    ) -> list[tuple[Hyp, ...] | None]:
        """The hypotheses of each utterance, LM weights outermost; ``None`` without a path.

        Args:
            log_probs: (N, T, C) natural log, normalized over C.
            lengths: (N,) frames of each utterance, at most T; 0 gives no path.

        Raises:
            GraphError: another number of outputs than the graph has tokens.
        """


class Decoder(FirstPass[Graph]):
    """Searches an HLG with k2.

    Args:
        graph: on the device of the log-probabilities.

    Raises:
        ConfigError: ``config`` names another back end.
    """

    def __init__(self, graph: Graph, config: SearchConfig) -> None:
        super().__init__(graph, config)
        if config.backend != "k2":
            expected = "backend=k2 for what needs lattices, such as N-best lists"
            name = f"backend={config.backend}"
            raise ConfigError(name, expected, config.backend, "--set backend=k2")
        import k2

        # A graph of its own: other decoders of the same graph may search with other weights.
        self._search_graph = k2.Fsa(graph.HLG.arcs.clone(), aux_labels=graph.HLG.aux_labels)
        self._search_graph.scores = graph.HLG.lm_scores * config.search_lm_weight
        self._search_graph.lm_scores = graph.HLG.lm_scores
        if graph.delimiters.classes:
            self._search_graph.symbols = graph.HLG.symbols

    @classmethod
    def from_folder(
        cls, folder: str | Path, config: SearchConfig, *, device: str = "cpu"
    ) -> Decoder:
        """A decoder for the graph in ``folder``."""
        return cls(load_graph(folder, device), config)

    def decode(
        self, log_probs: torch.Tensor, lengths: torch.Tensor
    ) -> list[tuple[Hyp, ...] | None]:
        """As :meth:`FirstPass.decode`."""
        results: list[tuple[Hyp, ...] | None] = [None] * len(lengths)
        for utterances, lattice in self.lattices(log_probs, lengths):
            points = itertools.product(self.config.lm_weights, self.config.insertion_penalties)
            columns = [self._best(lattice, *point) for point in points]
            for row, utterance in enumerate(utterances):
                hyps = [column[row] for column in columns]
                if all(hyp is not None for hyp in hyps):
                    results[utterance] = tuple(hyp for hyp in hyps if hyp is not None)
        return results

    def lattices(
        self, log_probs: torch.Tensor, lengths: torch.Tensor
    ) -> Iterator[tuple[list[int], k2.Fsa]]:
        """The lattices of the rows of ``log_probs`` with frames; arguments as for :meth:`decode`.

        Raises:
            GraphError: another number of outputs than the graph has tokens.
        """
        self.check_log_probs(log_probs)
        # k2 wants the longest first, and no empty ones.
        longest_first = lengths.cpu().argsort(descending=True, stable=True).tolist()
        by_length = [row for row in longest_first if lengths[row] > 0]
        if by_length:
            yield by_length, self.lattice(log_probs, lengths, by_length)

    def lattice(
        self, log_probs: torch.Tensor, lengths: torch.Tensor, utterances: Sequence[int]
    ) -> k2.Fsa:
        """The lattices of some utterances, the longest first.

        Arcs have ``am_scores``, ``lm_scores``, ``num_words``, words as ``aux_labels`` and, in a
        graph with classes, words and delimiters as ``symbols``.
        """
        import k2
        import torch

        segments = torch.tensor([[n, 0, int(lengths[n])] for n in utterances], dtype=torch.int32)
        names = ("search_beam", "output_beam", "min_active_states", "max_active_states")
        lattice = k2.intersect_dense_pruned(
            self._search_graph,
            k2.DenseFsaVec(log_probs.detach().float().contiguous(), segments),
            **{name: getattr(self.config, name) for name in names},
        )
        lattice.am_scores = lattice.scores - self.config.search_lm_weight * lattice.lm_scores
        spoken = k2.RaggedTensor(lattice.aux_labels.shape, (lattice.aux_labels.values > 0).float())
        lattice.num_words = spoken.sum()
        return lattice

    def _best(
        self, lattice: k2.Fsa, lm_weight: float, insertion_penalty: float
    ) -> list[Hyp | None]:
        """The best path of each lattice; ``None`` for an empty lattice."""
        import k2

        lattice.scores = total_scores(lattice, Weights(lm_weight, insertion_penalty))
        best = k2.shortest_path(lattice, use_double_scores=True)
        arcs_of = best.arcs.shape().remove_axis(1)
        am = k2.RaggedTensor(arcs_of, best.am_scores.double()).sum().tolist()
        lm = k2.RaggedTensor(arcs_of, best.lm_scores.double()).sum().tolist()
        spoken = best.symbols if self.graph.delimiters.classes else best.aux_labels
        labels = k2.RaggedTensor(arcs_of.compose(spoken.shape), spoken.values)
        symbols = labels.remove_axis(1).remove_values_leq(0).tolist()
        num_arcs = arcs_of.row_splits(1).diff().tolist()
        hyps: list[Hyp | None] = []
        for n, path in enumerate(symbols):
            words, classes = self.graph.delimiters.split(path)
            text = " ".join(self.graph.words[word] for word in words)
            hyp = Hyp(lm_weight, insertion_penalty, text, am[n], lm[n], classes)
            hyps.append(hyp if num_arcs[n] > 0 else None)
        return hyps


def total_scores(lattice: k2.Fsa, weights: Weights) -> torch.Tensor:
    """(A,) ``am + lm_weight * lm - insertion_penalty * num_words`` of :meth:`Decoder.lattice`."""
    lm_weight, insertion_penalty = weights
    return lattice.am_scores + lm_weight * lattice.lm_scores - insertion_penalty * lattice.num_words
