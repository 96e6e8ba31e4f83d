"""Decoding one job's share of a role's cuts, each speaker with names of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privasr_k2.decoding.first_pass import Decoder, SearchConfig
from privasr_k2.decoding.hyps import Hyp, Record
from privasr_k2.decoding.jobs import (
    AcousticModel,
    DecodeConfig,
    recognized,
    record_of,
    speaker_of,
)
from privasr_k2.graph.contacts import ContactConfig, ContactGraph
from privasr_k2.graph.hlg import Graph
from privasr_k2.text.hotwords import Hotwords

if TYPE_CHECKING:
    import torch
    from lhotse import CutSet
    from lhotse.cut import Cut


@dataclass(frozen=True)
class ContactDecodeConfig(DecodeConfig, ContactConfig):
    """Settings of decoding with contacts: sections ``decode`` and ``contacts``."""


class ContactSearch:
    """The searches of all speakers, in one graph that takes names.

    Args:
        lists: speaker -> names. All others are decoded with the model alone.
        log_prob: ln P(a name of the list | the empty history).

    Attributes:
        graph: that of the model alone.

    Raises:
        DataError: a name that cannot be pronounced, with its line.
    """

    def __init__(
        self,
        opened: ContactGraph,
        lists: Mapping[str, Hotwords],
        config: SearchConfig,
        *,
        log_prob: float,
        device: str,
    ) -> None:
        cased = opened.pronounced(lists.values())  # all at once, and before anything is decoded
        self._lists = dict(zip(lists, cased))
        self._opened, self._config = opened, config
        self._log_prob, self._device = log_prob, device
        self.graph: Graph = opened.graph(None, log_prob=log_prob, device=device)
        self._without = Decoder(self.graph, config)
        self._last: tuple[str, Decoder] | None = None

    def of(self, speaker: str) -> Decoder:
        """The search for one speaker; that of the last one is kept."""
        if speaker not in self._lists:
            return self._without
        if self._last is None or self._last[0] != speaker:
            names, device = self._lists[speaker], self._device
            graph = self._opened.graph(names, log_prob=self._log_prob, device=device)
            self._last = speaker, Decoder(graph, self._config)
        return self._last[1]


def decode_with_contacts(
    model: AcousticModel, search: ContactSearch, cuts: CutSet, config: DecodeConfig, device: str
) -> Iterator[Record]:
    """The records of this job's cuts, speaker by speaker."""

    def recognize(
        features: torch.Tensor, lengths: torch.Tensor, batch: Sequence[Cut]
    ) -> Sequence[tuple[Hyp, ...] | None]:
        log_probs = model.log_probs(features, lengths)
        return search.of(speaker_of(batch[0])).decode(*log_probs)

    for cut, hyps in recognized(recognize, cuts, config, device, by_speaker=True):
        yield record_of(cut, hyps, config)
