"""Hybrid CTC and attention: one encoder, two outputs, one of which keeps the other's alignment in
order.

Kim, Hori and Watanabe (2017), "Joint CTC-attention based end-to-end speech recognition using
multi-task learning", eq. 11, and for decoding with both Watanabe et al. (2017), "Hybrid
CTC/attention architecture for end-to-end speech recognition", section IV.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from privasr_k2.am.attention import Speller, SpellerConfig, SpellerSteps
from privasr_k2.am.ctc_prefix import CtcSteps
from privasr_k2.am.encoders import AnyEncoderConfig
from privasr_k2.am.kinds import KINDS, Kind
from privasr_k2.am.losses import ctc_loss
from privasr_k2.am.sequence import SequenceConfig, SequenceModel, SequenceTask
from privasr_k2.am.shared_prefixes import share_prefixes
from privasr_k2.am.steps import JointSteps

KIND = "ctc_attention"


@dataclass(frozen=True)
class CtcAttentionConfig(SequenceConfig):
    """Section ``am_ctc_attention`` of the configuration.

    Attributes:
        ctc_share: of the loss, the rest being the speller's, in (0, 1).
        ctc_weight: of CTC where hypotheses are searched and scored, in [0, 1].
    """

    speller: SpellerConfig
    ctc_share: float
    ctc_weight: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_kind(KIND)
        if not 0 < self.ctc_share < 1:
            raise ValueError(f"ctc_share must be in (0, 1), got {self.ctc_share}")
        if not 0 <= self.ctc_weight <= 1:
            raise ValueError(f"ctc_weight must be in [0, 1], got {self.ctc_weight}")


@dataclass(frozen=True)
class CtcAttentionSpec:
    """All that is needed to build a :class:`CtcAttentionModel` again, besides its weights."""

    kind: str
    feature_dim: int
    num_tokens: int
    utterance_mean: bool
    encoder: AnyEncoderConfig
    speller: SpellerConfig
    ctc_share: float
    ctc_weight: float


class CtcAttentionModel(SequenceModel):
    """Encoder, speller and CTC's outputs.

    Its scores of hypotheses are weighted sums of two log-probabilities: log P(y | x) up to a
    constant of the utterance. A softmax over the next tokens normalizes them.

    Attributes:
        ctc_weight: of CTC in the scores; may be changed after loading.
        ctc_topology: as :class:`privasr_k2.am.ctc.CtcModel`: its outputs of CTC can be decoded with
            a graph.
    """

    ctc_topology = "standard"

    def __init__(self, spec: CtcAttentionSpec) -> None:
        super().__init__(
            spec.feature_dim, spec.num_tokens, spec.encoder, utterance_mean=spec.utterance_mean
        )
        self.spec, self.ctc_weight = spec, spec.ctc_weight
        self.speller = Speller(self.encoder.out_dim, spec.num_tokens, spec.speller)
        self.ctc_output = nn.Linear(self.encoder.out_dim, spec.num_tokens)

    def ctc_log_probs(self, encoded: Tensor) -> Tensor:
        """(N, T', C) of CTC; token 0 is the blank."""
        return self.ctc_output(encoded).float().log_softmax(dim=2)

    def losses(
        self, encoded: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor
    ) -> Tensor:
        """As :meth:`SequenceModel.losses`; infinite where the tokens do not fit CTC's frames."""
        share = self.spec.ctc_share
        attention = self.speller(encoded, lengths, targets, target_lengths)
        aligned = ctc_loss(self.ctc_log_probs(encoded), lengths, targets, target_lengths)
        return share * aligned + (1.0 - share) * attention

    def needs_frames(self) -> bool:
        """Whether a transcript must fit its frames: CTC's must."""
        return True

    def log_probs(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As :meth:`privasr_k2.am.ctc.CtcModel.log_probs`."""
        encoded, lengths = self.encode(features, lengths)
        with torch.no_grad():
            return self.ctc_log_probs(encoded), lengths

    @torch.no_grad()
    def log_likelihoods(
        self,
        encoded: Tensor,
        lengths: Tensor,
        rows: Tensor,
        targets: Tensor,
        target_lengths: Tensor,
    ) -> Tensor:
        """As :meth:`privasr_k2.am.sequence.Recognizer.log_likelihoods`, with ``ctc_weight``."""
        self.eval()
        scores = encoded.new_zeros(len(rows), dtype=torch.float64)
        if self.ctc_weight < 1:
            hyps = share_prefixes(rows, targets, target_lengths)
            scores = scores + (1.0 - self.ctc_weight) * self.speller.log_likelihoods(
                encoded, lengths, hyps
            )
        if self.ctc_weight > 0:
            log_probs = self.ctc_log_probs(encoded)[rows]
            aligned = -ctc_loss(log_probs, lengths[rows], targets, target_lengths).double()
            scores = scores + self.ctc_weight * aligned
        return scores

    @torch.no_grad()
    def stepper(self, encoded: Tensor, lengths: Tensor) -> JointSteps:
        """As :meth:`privasr_k2.am.sequence.Recognizer.stepper`, with ``ctc_weight``."""
        self.eval()
        return JointSteps(
            [
                (1.0 - self.ctc_weight, SpellerSteps(self.speller, encoded, lengths)),
                (self.ctc_weight, CtcSteps(self.ctc_log_probs(encoded), lengths)),
            ]
        )


KINDS.add(KIND, Kind(CtcAttentionConfig, CtcAttentionSpec, CtcAttentionModel, SequenceTask))
