"""End-to-end models behind one interface: losses, scores of hypotheses, posteriors of tokens.

Every model, CTC included, is a distribution over token sequences (:mod:`privasr_k2.am.steps`):
:func:`nbest` searches it, and :meth:`Recognizer.log_likelihoods` scores given sequences.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from privasr_k2.am.beam_search import Found, beam_search
from privasr_k2.am.ctc import token_errors
from privasr_k2.am.encoders import AnyEncoderConfig
from privasr_k2.am.model import AcousticModel, AmConfig, AmTask, ModelSpec
from privasr_k2.am.steps import Stepper
from privasr_k2.data.batches import Batch
from privasr_k2.training.task import Loss

# Greedy search on dev stops so many tokens behind the text.
_BEYOND = 10


@dataclass(frozen=True)
class SequenceConfig(AmConfig):
    """Settings that end-to-end models share."""

    encoder: AnyEncoderConfig


@dataclass(frozen=True)
class SequenceSpec(ModelSpec):
    """Content of ``model.yaml`` that end-to-end models share."""

    encoder: AnyEncoderConfig


class Recognizer(Protocol):
    """The interface of a model for search, votes and attacks, without gradients."""

    num_tokens: int
    subsampling: int
    tokens: list[str] | None

    def encode(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(N, T, F) features and (N,) frames to (N, T', D) and (N,), for all that follows."""

    def log_likelihoods(
        self, encoded: Tensor, lengths: Tensor, rows: Tensor, targets: Tensor, sizes: Tensor
    ) -> Tensor:
        """log P(tokens | utterance), (M,) float64.

        Args:
            encoded: (N, T', D) of :meth:`encode`, with its ``lengths``.
            rows: (M,) utterance of each sequence.
            targets: (M, U) token numbers from 1.
            sizes: (M,) true tokens, 0 or more.
        """

    def stepper(self, encoded: Tensor, lengths: Tensor) -> Stepper:
        """A stepper that reads prefixes of the utterances' transcripts token by token."""


class SequenceModel(AcousticModel):
    """An end-to-end model: called, it gives the losses of a batch's utterances."""

    def forward(
        self,
        features: Tensor,
        lengths: Tensor,
        targets: Tensor,
        target_lengths: Tensor,
        masks: Tensor | None = None,
    ) -> Tensor:
        """(N,) losses in nats, in the model's mode and with gradients; utterances do not mix.

        Args:
            features: (N, T, F).
            lengths: (N,) true frames.
            targets: (N, U) token numbers from 1.
            target_lengths: (N,) true tokens.
            masks: as in :meth:`encoded`.
        """
        encoded, lengths = self.encoded(features, lengths, masks)
        return self.losses(encoded.transpose(1, 2), lengths, targets, target_lengths)

    @abstractmethod
    def losses(
        self, encoded: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor
    ) -> Tensor:
        """(N,) losses from encoder outputs (N, T', D)."""

    def needs_frames(self) -> bool:
        """Whether a transcript must fit its frames as CTC's must."""
        return False

    @torch.no_grad()
    def encode(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        self.eval()
        encoded, lengths = self.encoded(features, lengths)
        return encoded.transpose(1, 2), lengths


class SequenceTask(AmTask):
    """Losses of a :class:`SequenceModel`, in nats; when scoring also greedy token errors."""

    def loss(self, model: nn.Module, batch: Batch, generator: torch.Generator | None) -> Loss:
        batch = self.augmented(batch, generator)
        given = batch.features, batch.lengths, batch.targets, batch.target_lengths
        sums = model(*given, batch.masks)
        extra: Mapping[str, float] = {}
        if generator is None:
            longest = batch.target_lengths + _BEYOND
            hyps = nbest(model, *given[:2], longest, beam=1, num_paths=1)  # type: ignore[arg-type]
            extra = {"token_errors": token_errors(batch, [found[0].tokens for found in hyps])}
        return Loss(sums=sums, count=int(batch.target_lengths.sum()), extra=extra)


def nbest(
    model: Recognizer,
    features: Tensor,
    lengths: Tensor,
    max_tokens: Tensor,
    *,
    beam: int,
    num_paths: int,
    length_penalty: float = 0.0,
) -> list[list[Found]]:
    """The best token sequences of N utterances by :func:`privasr_k2.am.beam_search.beam_search`.

    Args:
        features: (N, T, F) float32.
        lengths: (N,) true frames.
        max_tokens: (N,) longest sequences.
        beam: prefixes that are read on; 1 = greedy.
        num_paths: most sequences of an utterance.
        length_penalty: of :func:`privasr_k2.am.beam_search.beam_search`.
    """
    stepper = model.stepper(*model.encode(features, lengths))
    limits = {"beam": beam, "num_paths": num_paths}
    return beam_search(stepper, max_tokens, length_penalty=length_penalty, **limits)
