"""Hybrid CTC and attention: one encoder, whose alignment CTC keeps in order.

Kim et al. (2017), "Joint CTC-attention based end-to-end speech recognition using multi-task
learning", eq. 11; decoding as Watanabe et al. (2017), "Hybrid CTC/attention architecture for
end-to-end speech recognition", section IV.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Interval
from torch import Tensor, nn

from privasr_k2.am.attention import Speller, SpellerConfig, SpellerSteps
from privasr_k2.am.ctc_prefix import CtcSteps
from privasr_k2.am.kinds import KINDS, Kind
from privasr_k2.am.losses import ctc_loss
from privasr_k2.am.sequence import SequenceConfig, SequenceModel, SequenceSpec, SequenceTask
from privasr_k2.am.shared_prefixes import share_prefixes
from privasr_k2.am.steps import JointSteps
from privasr_k2.constraints import Share, one_of

KIND = "ctc_attention"


@dataclass(frozen=True)
class CtcAttentionConfig(SequenceConfig):
    """Section ``am_ctc_attention`` of the configuration."""

    kind: Annotated[str, one_of(KIND)]
    speller: SpellerConfig
    ctc_share: Annotated[float, Interval(gt=0, lt=1)]
    ctc_weight: Share


@dataclass(frozen=True)
class CtcAttentionSpec(SequenceSpec):
    """Content of a :class:`CtcAttentionModel`'s ``model.yaml``."""

    speller: SpellerConfig
    ctc_share: float
    ctc_weight: float


class CtcAttentionModel(SequenceModel):
    """Encoder, speller and CTC's outputs.

    Scores of hypotheses are weighted sums of two log-probabilities: log P(y | x) up to a constant
    of the utterance. A softmax over the next tokens normalizes them.

    Attributes:
        ctc_weight: of CTC in the scores; may be changed after loading.
        ctc_topology: as :class:`privasr_k2.am.ctc.CtcModel`.
    """

    ctc_topology = "standard"
    output_layers = ("speller.output", "ctc_output")

    def __init__(self, spec: CtcAttentionSpec) -> None:
        super().__init__(spec)
        self.ctc_weight = spec.ctc_weight
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
        """True: CTC's transcripts must fit."""
        return True

    def log_probs(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        encoded, lengths = self.encode(features, lengths)
        with torch.no_grad():
            return self.ctc_log_probs(encoded), lengths

    @torch.no_grad()
    def log_likelihoods(
        self, encoded: Tensor, lengths: Tensor, rows: Tensor, targets: Tensor, sizes: Tensor
    ) -> Tensor:
        """As :meth:`privasr_k2.am.sequence.Recognizer.log_likelihoods`, with ``ctc_weight``."""
        self.eval()
        scores = encoded.new_zeros(len(rows), dtype=torch.float64)
        if self.ctc_weight < 1:
            hyps = share_prefixes(rows, targets, sizes)
            attention = self.speller.log_likelihoods(encoded, lengths, hyps)
            scores = scores + (1.0 - self.ctc_weight) * attention
        if self.ctc_weight > 0:
            log_probs = self.ctc_log_probs(encoded)[rows]
            aligned = -ctc_loss(log_probs, lengths[rows], targets, sizes).double()
            scores = scores + self.ctc_weight * aligned
        return scores

    @torch.no_grad()
    def stepper(self, encoded: Tensor, lengths: Tensor) -> JointSteps:
        self.eval()
        attention = SpellerSteps(self.speller, encoded, lengths)
        aligned = CtcSteps(self.ctc_log_probs(encoded), lengths)
        return JointSteps([(1.0 - self.ctc_weight, attention), (self.ctc_weight, aligned)])


KINDS.add(KIND, Kind(CtcAttentionConfig, CtcAttentionSpec, CtcAttentionModel, SequenceTask))
