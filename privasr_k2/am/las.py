"""Listen, attend and spell: Chan, Jaitly, Le and Vinyals (2016): an encoder and a speller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from privasr_k2.am.attention import Speller, SpellerConfig, SpellerSteps
from privasr_k2.am.kinds import KINDS, Kind
from privasr_k2.am.sequence import SequenceConfig, SequenceModel, SequenceSpec, SequenceTask
from privasr_k2.am.shared_prefixes import share_prefixes
from privasr_k2.constraints import one_of

KIND = "las"


@dataclass(frozen=True)
class LasConfig(SequenceConfig):
    """Section ``am_las`` of the configuration."""

    kind: Annotated[str, one_of(KIND)]
    speller: SpellerConfig


@dataclass(frozen=True)
class LasSpec(SequenceSpec):
    """Content of a :class:`LasModel`'s ``model.yaml``."""

    speller: SpellerConfig


class LasModel(SequenceModel):
    """Encoder and speller."""

    output_layers = ("speller.output",)

    def __init__(self, spec: LasSpec) -> None:
        super().__init__(spec)
        self.speller = Speller(self.encoder.out_dim, spec.num_tokens, spec.speller)

    def losses(
        self, encoded: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor
    ) -> Tensor:
        return self.speller(encoded, lengths, targets, target_lengths)

    @torch.no_grad()
    def log_likelihoods(
        self, encoded: Tensor, lengths: Tensor, rows: Tensor, targets: Tensor, sizes: Tensor
    ) -> Tensor:
        self.eval()
        hyps = share_prefixes(rows, targets, sizes)
        return self.speller.log_likelihoods(encoded, lengths, hyps)

    @torch.no_grad()
    def stepper(self, encoded: Tensor, lengths: Tensor) -> SpellerSteps:
        self.eval()
        return SpellerSteps(self.speller, encoded, lengths)


KINDS.add(KIND, Kind(LasConfig, LasSpec, LasModel, SequenceTask))
