"""Hundreds of teachers that share a public model; each has its own upper layers.

A folder of heads holds ``heads.safetensors`` (parameters by the public model's names, (I, ...);
the header names what was trained and which heads abstain), ``encoder/`` (the public model),
``shards.json`` and ``heads.yaml``. It is private.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor, nn

from privasr_k2.am.checkpoints import load_recognizer
from privasr_k2.am.ctc_prefix import CtcSteps
from privasr_k2.constraints import (
    Checked,
    Count,
    Natural,
    NotNegative,
    Positive,
    PositiveShare,
    one_of,
)
from privasr_k2.errors import DataError
from privasr_k2.pate.ensembles import TeacherEnsemble, TokenVotes
from privasr_k2.pate.trainable_layers import (
    TRAINED,
    CtcLayers,
    Inputs,
    TrainableLayers,
    trainable_layers,
)
from privasr_k2.training.trainable import LORA, LoraConfig, add_adapters
from privasr_k2.training.weights import load_tensors, read_header

WEIGHTS, ENCODER, CONFIG = "heads.safetensors", "encoder", "heads.yaml"
_REPAIR = "run train_heads again"
# Numbers that scores of one call may need, for as many heads at a time as fit.
_LIMIT = 50_000_000
# How often a stepper holds its log-probabilities while it reads on, in double precision.
_READ_COPIES = 8


@dataclass(frozen=True)
class HeadConfig(Checked):
    """How heads are trained; ``conf/pate.yaml#heads`` explains the values."""

    NEUTRAL: ClassVar[Mapping[str, str]] = {
        "heads_at_once": "changes heads by rounding alone",
        "max_duration": "changes what is read by rounding alone",
    }

    trained: Annotated[str, one_of(*TRAINED)]
    lora: LoraConfig
    steps: Count
    batch: Count
    lr: Positive
    warmup_steps: Natural
    final_lr_share: PositiveShare
    decay_to_public: NotNegative
    clip_norm: Positive
    heads_at_once: Count
    max_duration: Positive
    seed: int


class HeadEnsemble(TeacherEnsemble):
    """The heads as an ensemble: hypotheses are scored by all heads at once.

    Args:
        public: the model whose upper layers the heads replace.
        heads: the parameters of ``layers.names``, (I, ...) each.
        trained: as :attr:`HeadConfig.trained`.
        abstaining: heads, from 0, that do not vote.
        limit: numbers held at a time; fewer mean fewer heads at a time.

    Raises:
        DataError: parameters that are not those of the model.
    """

    def __init__(
        self,
        public: Any,
        heads: Mapping[str, Tensor],
        *,
        trained: str,
        per_token: bool,
        abstaining: Collection[int] = (),
        limit: int = _LIMIT,
    ) -> None:
        self._layers: TrainableLayers = trainable_layers(public, trained)
        parameters = public.named_parameters()
        wanted = {name: value.shape for name, value in parameters if name in self._layers.names}
        shapes = {name: value.shape[1:] for name, value in heads.items()}
        if wanted != shapes or len({len(value) for value in heads.values()}) != 1:
            given = " ".join(f"{name} {tuple(heads[name].shape)}" for name in sorted(heads))
            expected = f"{' '.join(sorted(wanted))} of the public model"
            raise DataError("the heads", expected, given, _REPAIR)
        self._heads, self._limit = dict(heads), limit
        num = len(next(iter(heads.values())))
        models = [teacher(public, heads, k) for k in range(num)]
        super().__init__(models, per_token=per_token, abstaining=abstaining)

    def _scores_of(self, features: Tensor, lengths: Tensor, *hyps: Tensor) -> Tensor:
        return self._scores(self._inputs(features, lengths, *hyps), training=False)

    def token_votes(self, features: Tensor, lengths: Tensor) -> TokenVotes:
        """As :meth:`TeacherEnsemble.token_votes`; heads of CTC read together."""
        if not isinstance(self._layers, CtcLayers):
            return super().token_votes(features, lengths)
        with torch.no_grad():
            lower, kept = self._layers.lower(features, lengths)
            numbers = lower.size(0) * lower.size(1) * self.num_tokens
            steppers = []
            for heads in self._parts(_READ_COPIES * numbers):
                log_probs = self._layers.log_probs(heads, lower[None], kept[None])
                steppers.append(CtcSteps(log_probs.flatten(0, 1), kept.repeat(len(log_probs))))
        return TokenVotes(steppers, len(features), features.device, self.votes)

    @torch.no_grad()
    def _log_probs(self, features: Tensor, lengths: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """As the ensemble of whole models has it; heads of CTC read together."""
        if not isinstance(self._layers, CtcLayers):
            yield from super()._log_probs(features, lengths)
            return
        lower, kept = self._layers.lower(features, lengths)
        for heads in self._parts(lower.size(0) * lower.size(1) * self.num_tokens):
            yield self._layers.log_probs(heads, lower[None], kept[None]), kept

    def losses(
        self, features: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor
    ) -> Tensor:
        """Each head's loss of one transcript an utterance, (I, N), with gradients by the features.

        Shapes as :meth:`privasr_k2.am.sequence.SequenceModel.forward`.
        """
        rows = torch.arange(len(features), device=features.device)
        inputs = self._inputs(features, lengths, rows, targets, target_lengths)
        return -self._scores(inputs, training=True)

    def _scores(self, inputs: Inputs, *, training: bool) -> Tensor:
        """(I, R), by parts of the heads."""
        parts = self._parts(self._layers.numbers(inputs))
        return torch.cat([self._layers.scores(heads, inputs, training=training) for heads in parts])

    def _parts(self, numbers: int) -> Iterator[dict[str, Tensor]]:
        """As many heads at a time as the limit allows, where one needs so many numbers."""
        size = max(self._limit // max(numbers, 1), 1)
        for first in range(0, self.num_teachers, size):
            yield {name: value[first : first + size] for name, value in self._heads.items()}

    def _inputs(
        self, features: Tensor, lengths: Tensor, rows: Tensor, targets: Tensor, sizes: Tensor
    ) -> Inputs:
        lower, kept = self._layers.lower(features, lengths)
        states = self._layers.states(lower[rows], kept[rows], targets)
        return Inputs(lower[None], kept[None], states[None], rows, targets[None], sizes[None])


def teacher(public: nn.Module, heads: Mapping[str, Tensor], number: int) -> Any:
    """Head ``number``, from 0, as a whole model that shares all other tensors with ``public``."""
    every = {**dict(public.named_parameters()), **dict(public.named_buffers())}
    # deepcopy takes what it finds in its memo for copied already.
    shared = {id(value): value for name, value in every.items() if name not in heads}
    model = copy.deepcopy(public, shared)
    parameters = dict(model.named_parameters())
    for name, value in heads.items():
        parameters[name].data = value[number]
    return model


def load_heads(
    folder: Path, device: torch.device | str, *, per_token: bool, chosen: Sequence[int] = ()
) -> HeadEnsemble:
    """The ensemble of a folder that ``train_heads`` wrote.

    Args:
        chosen: these heads alone, from 1 and in this order; none: all.

    Raises:
        DataError: a file is missing or damaged, or is of another model; or there is no such head.
    """
    heads = {name: value.to(device) for name, value in load_tensors(folder / WEIGHTS).items()}
    most = len(next(iter(heads.values()), ()))
    if wrong := [number for number in chosen if not 1 <= number <= most]:
        lacking = f"{wrong[0]} asked for"
        raise DataError(folder, f"heads 1 to {most}", lacking, "correct the number")
    if chosen:
        rows = torch.tensor([number - 1 for number in chosen], device=device)
        heads = {name: value[rows] for name, value in heads.items()}
    header = read_header(folder / WEIGHTS) or {}
    trained, empty = header.get("trained"), header.get("abstaining", [])
    if trained not in TRAINED:
        raise DataError(folder / WEIGHTS, "heads, and what was trained", repr(trained), _REPAIR)
    public = load_recognizer(folder / ENCODER, device)
    if trained == LORA:
        _add_adapters(public, heads)
    order = chosen or range(1, most + 1)
    abstaining = [place for place, number in enumerate(order) if number in empty]
    given = {"trained": trained, "per_token": per_token, "abstaining": abstaining}
    return HeadEnsemble(public, heads, **given)


def _add_adapters(public: Any, heads: Mapping[str, Tensor]) -> None:
    """Adapters of the form that heads have; theirs take the place of the values."""
    downs = {name: value for name, value in heads.items() if name.endswith(".lora.down.weight")}
    layers = [name.removesuffix(".lora.down.weight") for name in downs]
    rank = next(iter(downs.values())).size(1) if downs else 1
    add_adapters(public, LoraConfig(rank, 1.0, layers), seed=0)
