"""End-to-end models behind one interface: losses an utterance, scores of hypotheses, posteriors of tokens.

Whatever its architecture, a model is a distribution over token sequences (:mod:`privasr_k2.am.steps`):
:func:`nbest` searches it, :func:`score_hypotheses` scores given sequences, :func:`next_log_probs` tells what
follows given prefixes. A CTC model has this interface, too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from privasr_k2.am.beam_search import Found, beam_search
from privasr_k2.am.ctc import token_errors
from privasr_k2.am.encoders import AnyEncoderConfig
from privasr_k2.am.model import AcousticModel, AmConfig, AmTask
from privasr_k2.am.steps import Stepper
from privasr_k2.data.batches import Batch
from privasr_k2.training.task import Loss

# Dev is scored with greedy hypotheses; a model that does not stop is stopped so many tokens behind the text.
_BEYOND = 10


@dataclass(frozen=True)
class SequenceConfig(AmConfig):
    """What the YAML files of end-to-end models hold besides their own part."""

    encoder: AnyEncoderConfig


class Recognizer(Protocol):
    """What search, votes and attacks need of a model. Nothing here has gradients."""

    num_tokens: int
    subsampling: int
    tokens: list[str] | None

    def encode(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(N, T, F) features and (N,) frames to (N, T', D) and (N,): computed once for all that follows."""

    def log_likelihoods(
        self, encoded: Tensor, lengths: Tensor, rows: Tensor, targets: Tensor, target_lengths: Tensor
    ) -> Tensor:
        """log P(tokens | utterance), (M,) float64.

        Args:
            encoded: (N, T', D) what :meth:`encode` gave, with its ``lengths``.
            rows: (M,) which utterance each sequence is a hypothesis of.
            targets: (M, U) token numbers from 1.
            target_lengths: (M,) true tokens, 0 too.
        """

    def stepper(self, encoded: Tensor, lengths: Tensor) -> Stepper:
        """What reads prefixes of the utterances' transcripts token by token."""


class SequenceModel(AcousticModel):
    """An end-to-end model: called, it gives the losses of a batch's utterances."""

    def forward(self, features: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor) -> Tensor:
        """The loss of every utterance, in the mode that the model is in and with gradients.

        Args:
            features: (N, T, F).
            lengths: (N,) true frames.
            targets: (N, U) token numbers from 1.
            target_lengths: (N,) true tokens.

        Returns:
            (N,) in nats. No layer mixes utterances, and padding changes nothing.
        """
        encoded, lengths = self.encoded(features, lengths)
        return self.losses(encoded.transpose(1, 2), lengths, targets, target_lengths)

    @abstractmethod
    def losses(self, encoded: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor) -> Tensor:
        """(N,) losses from encoder outputs (N, T', D)."""

    def needs_frames(self) -> bool:
        """Whether a transcript must fit its frames as CTC's must."""
        return False

    @torch.no_grad()
    def encode(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """As :meth:`Recognizer.encode`."""
        self.eval()
        encoded, lengths = self.encoded(features, lengths)
        return encoded.transpose(1, 2), lengths

    @abstractmethod
    def log_likelihoods(
        self, encoded: Tensor, lengths: Tensor, rows: Tensor, targets: Tensor, target_lengths: Tensor
    ) -> Tensor:
        """As :meth:`Recognizer.log_likelihoods`."""

    @abstractmethod
    def stepper(self, encoded: Tensor, lengths: Tensor) -> Stepper:
        """As :meth:`Recognizer.stepper`."""


class SequenceTask(AmTask):
    """Losses of a :class:`SequenceModel` for the trainer: nats and, when scoring, greedy errors, a token."""

    def loss(self, model: nn.Module, batch: Batch, generator: torch.Generator | None) -> Loss:
        """The losses of a batch; ``generator`` is None when scoring."""
        features, lengths = self.augmented(batch, generator)
        sums = model(features, lengths, batch.targets, batch.target_lengths)
        extra: Mapping[str, float] = {}
        if generator is None:
            longest = batch.target_lengths + _BEYOND
            hyps = nbest(model, features, lengths, longest, beam=1, num_paths=1)  # type: ignore[arg-type]
            extra = {"token_errors": token_errors(batch, [found[0].tokens for found in hyps])}
        return Loss(sums=sums, count=int(batch.target_lengths.sum()), extra=extra)


def nbest(
    model: Recognizer, features: Tensor, lengths: Tensor, max_tokens: Tensor, *, beam: int, num_paths: int
) -> list[list[Found]]:
    """The best token sequences of N utterances, as :func:`privasr_k2.am.beam_search.beam_search` finds them.

    Args:
        features: (N, T, F) float32.
        lengths: (N,) true frames.
        max_tokens: (N,) longest sequences.
        beam: prefixes that are read on; 1 = greedy.
        num_paths: sequences of an utterance, at most.
    """
    return beam_search(
        model.stepper(*model.encode(features, lengths)), max_tokens, beam=beam, num_paths=num_paths
    )


def score_hypotheses(
    model: Recognizer, features: Tensor, lengths: Tensor, hyps: Sequence[Sequence[Sequence[int]]]
) -> list[Tensor]:
    """log P(hypothesis | utterance) of given token sequences.

    Args:
        hyps: for each of the N utterances its hypotheses, numbers from 1; there may be none.

    Returns:
        for each utterance (number of its hypotheses,) float64.
    """
    rows, targets, target_lengths = _flat(hyps, features.device)
    if not len(rows):
        return [torch.zeros(0, dtype=torch.float64, device=features.device)] * len(hyps)
    encoded, lengths = model.encode(features, lengths)
    scores = model.log_likelihoods(encoded, lengths, rows, targets, target_lengths)
    return list(scores.split([len(of_one) for of_one in hyps]))


def next_log_probs(
    model: Recognizer, features: Tensor, lengths: Tensor, prefixes: Sequence[Sequence[int]]
) -> Tensor:
    """What follows one given prefix of each of N utterances: (N, C) log-probabilities, 0 = the end.

    Reading on from there, token by token, is what :meth:`Recognizer.stepper` is for: teachers that are given
    the same tokens keep a stepper each.
    """
    _, targets, target_lengths = _flat([[one] for one in prefixes], features.device)
    return _after(model.stepper(*model.encode(features, lengths)), targets, target_lengths)


@torch.no_grad()
def _after(stepper: Stepper, targets: Tensor, target_lengths: Tensor) -> Tensor:
    found = stepper.start()
    scores, everyone = found.scores, torch.arange(len(targets), device=targets.device)
    for position, tokens in enumerate(targets.clamp(min=1).unbind(1)):
        found = stepper.extend(found, everyone, tokens)
        scores = torch.where((target_lengths > position).unsqueeze(1), found.scores, scores)
    return scores.log_softmax(dim=1)


def _flat(hyps: Sequence[Sequence[Sequence[int]]], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Rows (M,), padded tokens (M, U) and lengths (M,) of all hypotheses of all utterances."""
    sequences = [torch.tensor(list(one), dtype=torch.int64) for of_one in hyps for one in of_one]
    rows = [row for row, of_one in enumerate(hyps) for _ in of_one]
    padded = (
        torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True)
        if sequences
        else torch.zeros(0, 0, dtype=torch.int64)
    )
    lengths = torch.tensor([len(one) for one in sequences], dtype=torch.int64)
    return torch.tensor(rows, dtype=torch.int64).to(device), padded.to(device), lengths.to(device)
