"""The student's loss: sequence-level distillation from voted labels, :func:`student_loss`.

An utterance x has hypotheses y_n with weights w_n that sum to 1:

    L(x) = - sum over n of w_n log p_S(y_n | x)    [yang2022, eq. 5].

With one hypothesis this is the cross-entropy of a voted label, the model's own training loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from privasr_k2.am.ctc import CtcModel
from privasr_k2.am.losses import ctc_loss
from privasr_k2.am.model import AcousticModel, AmTask
from privasr_k2.am.sequence import SequenceModel, nbest
from privasr_k2.am.specaugment import SpecAugment
from privasr_k2.data.batches import Batch, needed_frames
from privasr_k2.pate.student_data import Target, UnansweredSettings
from privasr_k2.training.task import Loss

_REJECTED = Target(((),), (0.0,))
StudentLoss = Callable[[nn.Module, Batch, Sequence[Target]], Tensor]


class HypothesisLosses(nn.Module):
    """An acoustic model of any kind whose call computes the loss of each hypothesis of a batch."""

    PREFIX = "model."

    def __init__(self, model: AcousticModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        features: Tensor,
        lengths: Tensor,
        rows: Tensor,
        targets: Tensor,
        sizes: Tensor,
        masks: Tensor | None = None,
    ) -> Tensor:
        """(M,) losses of hypotheses in nats, with gradients; each utterance is encoded once.

        Args:
            features: (N, T, F).
            lengths: (N,) true frames.
            rows: (M,) the utterance of each hypothesis.
            targets: (M, U) token numbers from 1.
            sizes: (M,) true tokens, 0 or more.
            masks: (N, T, F), as in :meth:`privasr_k2.am.model.AcousticModel.encoded`.
        """
        if isinstance(self.model, CtcModel):
            log_probs, lengths = self.model(features, lengths, masks)
            return ctc_loss(log_probs[rows], lengths[rows], targets, sizes)
        model = cast(SequenceModel, self.model)
        encoded, lengths = model.encoded(features, lengths, masks)
        return model.losses(encoded.transpose(1, 2)[rows], lengths[rows], targets, sizes)

    def inner_weights(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The model's own weights, by its own names."""
        return {name.removeprefix(self.PREFIX): value for name, value in weights.items()}


def student_loss(losses: nn.Module, batch: Batch, targets: Sequence[Target]) -> Tensor:
    """(N,) losses in nats, - sum over n of w_n log p_S(y_n | x) [yang2022, eq. 5], with gradients.

    Args:
        losses: a :class:`HypothesisLosses`, or one wrapped for several processes.
        batch: N utterances x; their own targets do not count.
        targets: N targets, each with one hypothesis or more and their weights.
    """
    device = batch.features.device
    rows = [n for n, target in enumerate(targets) for _ in target.weights]
    rows = torch.tensor(rows, device=device)
    weights = torch.tensor([w for target in targets for w in target.weights], device=device)
    hyps = [torch.tensor(hyp, dtype=torch.int64) for target in targets for hyp in target.sequences]
    padded = nn.utils.rnn.pad_sequence(hyps, batch_first=True).to(device)
    sizes = torch.tensor([len(hyp) for hyp in hyps], device=device)
    values = losses(batch.features, batch.lengths, rows, padded, sizes, batch.masks)
    weighted = weights * values
    return weighted.new_zeros(len(targets)).index_add(0, rows, weighted)


class DistillationTask(AmTask):
    """The training task of a student: ``loss`` in training, the kind's own loss on dev.

    Args:
        loss: of a batch's targets, :func:`student_loss`.
        targets: of every training utterance. One without hypotheses is set in every step to the
            model's greedy hypothesis, without augmentation and dropout, where that is confident
            enough (consistency, as Sohn et al. 2020, "FixMatch", eq. 4).
        plain: the task that scores dev.
        unanswered: weight and least confidence of such hypotheses.
    """

    def __init__(
        self,
        loss: StudentLoss,
        targets: Mapping[str, Target],
        plain: AmTask,
        spec_augment: SpecAugment | None,
        *,
        time_stretch: float,
        unanswered: UnansweredSettings,
    ) -> None:
        super().__init__(spec_augment, time_stretch=time_stretch)
        self._loss, self._targets = loss, targets
        self._plain, self._unanswered = plain, unanswered

    def loss(self, model: nn.Module, batch: Batch, generator: torch.Generator | None) -> Loss:
        """Losses of a batch, counted per token of the heaviest hypotheses."""
        losses: Any = getattr(model, "module", model)  # of several processes
        if generator is None:
            dev_loss: Loss = self._plain.loss(losses.model, batch, None)
            return dev_loss
        changed = self.augmented(batch, generator)
        targets = [self._targets[name] for name in batch.ids]
        self._guess(losses.model, batch, changed.lengths, targets)
        sums = self._loss(model, changed, targets)
        count = sum(len(target.sequences[0]) for target in targets)
        return Loss(sums, max(count, 1))

    def figures(self, means: dict[str, float]) -> dict[str, float]:
        return self._plain.figures(means)

    def _guess(self, model: Any, batch: Batch, lengths: Tensor, targets: list[Target]) -> None:
        """Set targets without hypotheses to greedy ones that fit ``lengths``, or to weight 0."""
        missing = [n for n, target in enumerate(targets) if not target.sequences]
        if not missing:
            return
        chosen = torch.tensor(missing, device=batch.features.device)
        frames = batch.lengths[chosen]
        longest = torch.tensor([model.output_frames(number) for number in frames.tolist()])
        training = model.training
        greedy = nbest(model, batch.features[chosen], frames, longest, beam=1, num_paths=1)
        model.train(training)
        for n, hyps in zip(missing, greedy):
            targets[n] = self._accepted(model, hyps[0] if hyps else None, int(lengths[n]))

    def _accepted(self, model: Any, guess: Any, frames: int) -> Target:
        if guess is None or not guess.tokens:
            return _REJECTED
        tokens = tuple(guess.tokens)
        confident = math.exp(guess.score / (len(tokens) + 1)) >= self._unanswered.min_confidence
        fits = not model.needs_frames() or needed_frames(tokens) <= model.output_frames(frames)
        return Target((tokens,), (self._unanswered.weight,)) if confident and fits else _REJECTED
