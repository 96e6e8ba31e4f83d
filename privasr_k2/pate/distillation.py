"""Losses of a student: of weighted hypotheses of an utterance, and of guesses at utterances without any.

Sequence-level distillation: with hypotheses y_n of an utterance x and weights w_n that sum to 1,

    L(x) = - sum over n of w_n log p_S(y_n | x)    [yang2022, eq. 5],

which with one hypothesis is the cross-entropy of a voted label: the model's own training loss. An utterance
is encoded once, however many hypotheses it has.

[yang2022] C.-H. H. Yang, I-F. Chen, A. Stolcke, S. M. Siniscalchi, C.-H. Lee, An experimental study on
private aggregation of teacher ensemble learning for end-to-end speech recognition, SLT 2022.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
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


class HypothesisLosses(nn.Module):
    """An acoustic model of any kind that, called, gives the losses of hypotheses of a batch's utterances."""

    PREFIX = "model."

    def __init__(self, model: AcousticModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, features: Tensor, lengths: Tensor, rows: Tensor, targets: Tensor, target_lengths: Tensor
    ) -> Tensor:
        """The loss of every hypothesis, in the mode that the model is in and with gradients.

        Args:
            features: (N, T, F).
            lengths: (N,) true frames.
            rows: (M,) which utterance each hypothesis is of.
            targets: (M, U) token numbers from 1.
            target_lengths: (M,) true tokens, 0 too.

        Returns:
            (M,) in nats.
        """
        if isinstance(self.model, CtcModel):
            log_probs, lengths = self.model(features, lengths)
            return ctc_loss(log_probs[rows], lengths[rows], targets, target_lengths)
        model = cast(SequenceModel, self.model)
        encoded, lengths = model.encoded(features, lengths)
        return model.losses(encoded.transpose(1, 2)[rows], lengths[rows], targets, target_lengths)

    def inner_weights(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The model's own weights out of this module's."""
        return {name.removeprefix(self.PREFIX): value for name, value in weights.items()}


class DistillationTask(AmTask):
    """What the trainer minimizes for a student that :class:`HypothesisLosses` holds.

    Dev is scored as while training any model of its kind.

    Args:
        targets: of every utterance to train on. One without hypotheses is guessed anew in every step: the
            model's own greedy hypothesis, without augmentation and dropout, becomes the target of the
            augmented utterance where it is sure enough (consistency, as Sohn et al. 2020, "FixMatch", eq. 4).
        plain: what scores dev.
        unanswered: weight and confidence of such guesses.
    """

    def __init__(
        self,
        targets: Mapping[str, Target],
        plain: AmTask,
        spec_augment: SpecAugment | None,
        *,
        time_stretch: float,
        unanswered: UnansweredSettings,
    ) -> None:
        super().__init__(spec_augment, time_stretch=time_stretch)
        self._targets, self._plain, self._unanswered = targets, plain, unanswered

    def loss(self, model: nn.Module, batch: Batch, generator: torch.Generator | None) -> Loss:
        """The losses of a batch, a token of the heaviest hypotheses; ``generator`` is None when scoring."""
        losses: Any = getattr(model, "module", model)  # of several processes
        if generator is None:
            found: Loss = self._plain.loss(losses.model, batch, None)  # type: ignore[attr-defined]
            return found
        features, lengths = self.augmented(batch, generator)
        targets = [self._targets[name] for name in batch.ids]
        self._guess(losses.model, batch, lengths, targets)
        device = features.device
        rows = torch.tensor([n for n, target in enumerate(targets) for _ in target.weights], device=device)
        weights = torch.tensor([weight for target in targets for weight in target.weights], device=device)
        sequences = [torch.tensor(one, dtype=torch.int64) for target in targets for one in target.sequences]
        padded = nn.utils.rnn.pad_sequence(sequences, batch_first=True).to(device)
        of_hyps = torch.tensor([len(one) for one in sequences], device=device)
        each = weights * model(features, lengths, rows, padded, of_hyps)
        count = sum(len(target.sequences[0]) for target in targets)
        return Loss(each.new_zeros(len(targets)).index_add(0, rows, each), max(count, 1))

    def figures(self, means: dict[str, float]) -> dict[str, float]:
        """As those of other models of the kind."""
        return self._plain.figures(means)

    def _guess(self, model: Any, batch: Batch, lengths: Tensor, targets: list[Target]) -> None:
        """Fill in the targets that have no hypothesis; what is not sure enough gets the weight 0.

        Args:
            lengths: (N,) frames after augmentation, which a guess must fit where the model asks for it.
        """
        missing = [n for n, target in enumerate(targets) if not target.sequences]
        if not missing:
            return
        chosen = torch.tensor(missing, device=batch.features.device)
        frames = batch.lengths[chosen]
        longest = torch.tensor([model.output_frames(number) for number in frames.tolist()])
        training = model.training
        found = nbest(model, batch.features[chosen], frames, longest, beam=1, num_paths=1)
        model.train(training)
        for n, hyps in zip(missing, found):
            targets[n] = self._accepted(model, hyps[0] if hyps else None, int(lengths[n]))

    def _accepted(self, model: Any, guess: Any, frames: int) -> Target:
        if guess is None or not guess.tokens:
            return _REJECTED
        tokens = tuple(guess.tokens)
        sure = math.exp(guess.score / (len(tokens) + 1)) >= self._unanswered.min_confidence
        if not sure or (model.needs_frames() and needed_frames(tokens) > model.output_frames(frames)):
            return _REJECTED
        return Target((tokens,), (self._unanswered.weight,))
