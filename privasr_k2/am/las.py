"""Listen, attend and spell: Chan, Jaitly, Le and Vinyals (2016): an encoder and a speller."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from privasr_k2.am.attention import Speller, SpellerConfig, SpellerSteps
from privasr_k2.am.encoders import AnyEncoderConfig
from privasr_k2.am.kinds import KINDS, Kind
from privasr_k2.am.sequence import SequenceConfig, SequenceModel, SequenceTask
from privasr_k2.am.shared_prefixes import share_prefixes

KIND = "las"


@dataclass(frozen=True)
class LasConfig(SequenceConfig):
    """Section ``am_las`` of the configuration."""

    speller: SpellerConfig

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_kind(KIND)


@dataclass(frozen=True)
class LasSpec:
    """All that is needed to build a :class:`LasModel` again, besides its weights."""

    kind: str
    feature_dim: int
    num_tokens: int
    utterance_mean: bool
    encoder: AnyEncoderConfig
    speller: SpellerConfig


class LasModel(SequenceModel):
    """Encoder and speller."""

    def __init__(self, spec: LasSpec) -> None:
        super().__init__(
            spec.feature_dim, spec.num_tokens, spec.encoder, utterance_mean=spec.utterance_mean
        )
        self.spec = spec
        self.speller = Speller(self.encoder.out_dim, spec.num_tokens, spec.speller)

    def losses(
        self, encoded: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor
    ) -> Tensor:
        """As :meth:`SequenceModel.losses`."""
        return self.speller(encoded, lengths, targets, target_lengths)

    @torch.no_grad()
    def log_likelihoods(
        self,
        encoded: Tensor,
        lengths: Tensor,
        rows: Tensor,
        targets: Tensor,
        target_lengths: Tensor,
    ) -> Tensor:
        """As :meth:`privasr_k2.am.sequence.Recognizer.log_likelihoods`."""
        self.eval()
        return self.speller.log_likelihoods(
            encoded, lengths, share_prefixes(rows, targets, target_lengths)
        )

    @torch.no_grad()
    def stepper(self, encoded: Tensor, lengths: Tensor) -> SpellerSteps:
        """As :meth:`privasr_k2.am.sequence.Recognizer.stepper`."""
        self.eval()
        return SpellerSteps(self.speller, encoded, lengths)


KINDS.add(KIND, Kind(LasConfig, LasSpec, LasModel, SequenceTask))
