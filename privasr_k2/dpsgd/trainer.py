"""DP-SGD step by step: who is drawn, their gradients in parts, clip, noise, and the step.

A unit's part of the sum depends on that unit, the weights and the step alone: there is no dropout,
and masks and stretching are drawn for each utterance and step.
"""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from privasr_k2.am.kinds import KINDS
from privasr_k2.am.model import AcousticModel, AmTask
from privasr_k2.am.specaugment import SpecAugment
from privasr_k2.compat import out_of_memory
from privasr_k2.data.batches import Batch, pad_batch
from privasr_k2.dpsgd.examples import (
    ExampleGradients,
    check_examples,
    trained_parameters,
    without_dropout,
)
from privasr_k2.dpsgd.lstm import with_example_lstms
from privasr_k2.dpsgd.optimizer import UnitOptimizer, make_optimizer
from privasr_k2.dpsgd.settings import DpSgdConfig, highest_lr
from privasr_k2.dpsgd.units import Part, Speech, Unit, parts
from privasr_k2.errors import PrivasrError
from privasr_k2.privacy.streams import Secrets
from privasr_k2.randomness import NoiseStream, derive_seed
from privasr_k2.recipe.progress import report_progress
from privasr_k2.training.trainable import choose_trained, layer_of
from privasr_k2.training.trainer import learning_rate

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class PrivateData:
    """The private data.

    Attributes:
        units: sorted by name: a batch is drawn by their places.
        speech: their utterances.
        replaced: a unit's name -> the gradient (P,) that it adds, for audits.
    """

    units: Sequence[Unit]
    speech: Speech
    replaced: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Step:
    """The record of a step.

    Attributes:
        number: from 0.
        gradient: (P,) what the optimizer stepped with, noise included.
        units, left_out: units that took part, and those whose gradient was not finite; private
            where a guarantee is claimed.
    """

    number: int
    gradient: Tensor
    lr: float
    units: int
    left_out: int


class Trainer:
    """Trains a model in place, on its device, with the noise multiplier ``noise``; 0 = none.

    Raises:
        ConfigError: ``trained`` names none of the parameters.
        PrivacyError: a layer mixes examples.
    """

    def __init__(
        self, model: AcousticModel, data: PrivateData, config: DpSgdConfig, noise: float
    ) -> None:
        choose_trained(model, config.trained, config.lora, config.seed)
        self.model, self._data, self.config = model, data, config
        self.trained = trained_parameters(model)
        self._size = sum(parameter.numel() for parameter in self.trained.values())
        self._device = model.mean.device
        self._task: AmTask = KINDS[model.spec.kind].task()
        masks = SpecAugment(config.spec_augment, frame_shift=data.speech.frame_shift)
        self._augment = AmTask(masks, time_stretch=config.time_stretch)
        rate = {"lr": config.lr, "momentum": config.momentum}
        plain = make_optimizer(self.trained, kind=config.optimizer, **rate)
        expected = config.rate * max(1, len(data.units))
        self.highest_lr = highest_lr(config, len(data.units), noise)
        layers = Counter(map(layer_of, self.trained)) if config.clip_by == "layer" else None
        self.optimizer = UnitOptimizer(
            plain,
            clip=config.clip,
            noise_multiplier=noise,
            expected=expected,
            layers=layers and [*layers.values()],
        )
        self._twin: nn.Module
        if config.isolate_units:
            self._twin = without_dropout(with_example_lstms(model)).train()
        else:
            self._twin = ExampleGradients(model)
            check_examples(self._twin, model, self._losses)

    def steps(self, secrets: Secrets, start: int) -> Iterator[Step]:
        """The steps from ``start`` on; after each, the model has its weights."""
        config = self.config
        for number in range(start, config.steps):
            report_progress(number, config.steps, "step")
            drawn = config.sampling.cohort(number, len(self._data.units), secrets.stream)
            noise = secrets.noise(number, "gradient") if self.optimizer.noise is not None else None
            yield self.step(number, [self._data.units[index] for index in drawn.tolist()], noise)

    def step(self, number: int, units: Sequence[Unit], noise: NoiseStream | None) -> Step:
        """One step with these units, who may be none."""
        config = self.config
        for unit in units:
            if unit.name in self._data.replaced:
                self.optimizer.add_given(self._data.replaced[unit.name].to(self._device))
        real = [unit for unit in units if unit.name not in self._data.replaced]
        drawing = config.within, config.most_utterances, config.seed, number
        weights = [unit.weights(*drawing) for unit in real]
        frames = {name: self._data.speech.frames(name) for unit in weights for name in unit}
        most_frames = int(config.max_duration / self._data.speech.frame_shift)
        for part in parts(weights, frames, most_frames=most_frames, most_rows=self._rows()):
            self._add(part, number)
        lr = learning_rate(config, number, number / config.steps)  # type: ignore[arg-type]
        lr *= self.highest_lr / config.lr
        # Opacus's optimizer still has the old groups when a state was loaded.
        for group in self.optimizer.original_optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.stream = noise
        self.optimizer.signal_skip_step(False)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        left_out = self.optimizer.left_out
        if left_out:
            reason = "whose gradients are not finite"
            log.warning("step %d: %d units left out, %s", number + 1, left_out, reason)
        return Step(number, self.optimizer.gradient, lr, self.optimizer.count, left_out)

    def _rows(self) -> int:
        """Utterances whose gradients are in memory at once; 0 = one unit at a time."""
        if self.config.isolate_units:
            return 0
        return max(1, int(self.config.gradients_mb * 1e6 / (4 * max(1, self._size))))

    def _add(self, whole: Part, number: int) -> None:
        """Clip and add a part; where memory does not suffice its halves, quarters, ..."""
        todo = deque([whole])
        while todo:
            part = todo.popleft()
            try:
                self._gradients(part, number)
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                self._forget()
                reason = str(error).split("\n")[0]
            else:
                self.optimizer.owners = (0,) if self.config.isolate_units else part.owners
                self.optimizer.ends = part.ends
                self.optimizer.signal_skip_step()
                self.optimizer.step()
                self._forget()
                continue
            if len(part.names) == 1:
                way_out = "leave it out, or take a larger subsampling or more memory"
                raise PrivasrError(part.names[0], "memory for one utterance", reason, way_out)
            log.warning("out of memory (%s): %d utterances in two parts", reason, len(part.names))
            todo.extendleft(reversed(halves(part)))

    def _gradients(self, part: Part, number: int) -> None:
        """Put gradients into ``grad_sample``: a row an utterance, or a unit where it is alone."""
        batch = self._batch(part.names, number)
        weights = torch.tensor(part.weights, device=self._device)
        if isinstance(self._twin, ExampleGradients):
            self._twin.gradients(lambda twin: self._losses(twin, batch) * weights)
            return
        (self._losses(self._twin, batch) * weights).sum().backward()
        for parameter in self.trained.values():
            parameter.grad_sample = parameter.grad.unsqueeze(0)

    def _forget(self) -> None:
        if isinstance(self._twin, ExampleGradients):
            self._twin.clear()
        for parameter in self.trained.values():
            parameter.grad = parameter.grad_sample = None

    def _batch(self, names: Sequence[str], number: int) -> Batch:
        speech, made = self._data.speech, []
        for name in names:
            alone = pad_batch([name], [speech.features(name)], [speech.targets[name]])
            seed = derive_seed(self.config.seed, "masks", name, number)
            generator = torch.Generator().manual_seed(seed)
            made.append(self._augment.augmented(alone, generator))
        features, masks = [one.features[0] for one in made], [one.masks[0] for one in made]
        targets = [speech.targets[name] for name in names]
        return pad_batch(names, features, targets, masks).to(self._device)

    def _losses(self, model: nn.Module, batch: Batch) -> Tensor:
        """Nats a token of each utterance, (N,)."""
        # A generator says that it is training; there is nothing left to draw.
        sums = self._task.loss(model, batch, torch.Generator()).sums
        return sums / batch.target_lengths


def halves(part: Part) -> list[Part]:
    """A part as two, of which the first ends only where no unit is in both.

    >>> whole = Part(("a", "b", "c"), (1.0, 1.0, 1.0), (0, 1, 2), True)
    >>> [(one.names, one.owners, one.ends) for one in halves(whole)]
    [(('a',), (0,), True), (('b', 'c'), (0, 1), True)]
    """
    middle = len(part.names) // 2
    several = len(set(part.owners)) > 1
    while several and part.owners[middle] == part.owners[middle - 1]:
        # Whole units stay together.
        middle = middle - 1 if middle > 1 else part.owners.index(part.owners[0] + 1)
    both = []
    for rows in (slice(0, middle), slice(middle, None)):
        owners = part.owners[rows]
        moved = tuple(owner - owners[0] for owner in owners)
        names, weights = part.names[rows], part.weights[rows]
        both.append(dataclasses.replace(part, names=names, weights=weights, owners=moved))
    if not several:
        both[0] = dataclasses.replace(both[0], ends=False)
    return both
