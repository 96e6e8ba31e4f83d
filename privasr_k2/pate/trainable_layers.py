"""The trainable upper layers of a public model, computed for many heads at once.

The layers below are frozen, without dropout, and computed once. Gradients by features pass them.
Parameters are (I, ...) for I heads. Inputs are (H, N, ...): H = I where each head has its own
utterances (training), H = 1 where all share them (votes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from privasr_k2.am.encoders.common import valid_frames
from privasr_k2.am.losses import ctc_loss
from privasr_k2.am.model import AcousticModel
from privasr_k2.am.rnnt_loss import log_likelihood
from privasr_k2.compat import stacked_call
from privasr_k2.errors import ConfigError
from privasr_k2.pate.heads_ctc import log_likelihoods
from privasr_k2.training.trainable import (
    BIAS,
    HEAD,
    LAST_BLOCK,
    LORA,
    OUTPUT,
    LoraConfig,
    add_adapters,
    names_of_part,
)

TRAINED = (OUTPUT, LAST_BLOCK, HEAD, BIAS, LORA)

Parameters = Mapping[str, Tensor]


@dataclass(frozen=True)
class Inputs:
    """R transcripts of N utterances for each head, or for all of them (H = 1).

    Attributes:
        lower: (H, N, T, D) of the frozen layers, zero at padding.
        lengths: (H, N) true frames.
        states: (H, R, U + 1, S) of transcripts, zero at padding; S is 0 where the model reads none.
        rows: (R,) which utterance a transcript is of: the same place in every head.
        targets: (H, R, U) token numbers from 1.
        target_lengths: (H, R) true tokens.
    """

    lower: Tensor
    lengths: Tensor
    states: Tensor
    rows: Tensor
    targets: Tensor
    target_lengths: Tensor


class TrainableLayers(Protocol):
    """The trained layers of one kind of model."""

    names: tuple[str, ...]

    def lower(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(N, T, F) features to (N, T', D) of the frozen layers, and (N,) lengths."""

    def states(self, lower: Tensor, lengths: Tensor, targets: Tensor) -> Tensor:
        """(N, U + 1, S) from one transcript of each utterance; S = 0 where the model reads none."""

    def scores(self, parameters: Parameters, inputs: Inputs, *, training: bool) -> Tensor:
        """(I, R) log-likelihoods.

        Args:
            training: with gradients, and weighted as in the model's loss; else H = 1.
        """

    def numbers(self, inputs: Inputs) -> int:
        """How many numbers a head needs for :meth:`scores` of votes, about."""


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A linear layer of every head: (H, ..., D), (I, C, D), (I, C) to (I, ..., C); H is I or 1.

    >>> weight = torch.tensor([[[1.0, 1.0]], [[2.0, 2.0]]])
    >>> linear(torch.ones(1, 4, 2), weight, torch.zeros(2, 1))[:, 0, 0].tolist()
    [2.0, 4.0]
    """
    heads, classes, dim = weight.shape
    if x.size(0) == 1:  # one matrix product instead of a copy of x for each head
        y = functional.linear(x[0], weight.reshape(heads * classes, dim), bias.reshape(-1))
        return y.unflatten(-1, (heads, classes)).movedim(-2, 0)
    flat = torch.baddbmm(bias.unsqueeze(1), x.flatten(1, -2), weight.transpose(1, 2))
    return flat.view(*x.shape[:-1], classes)


_Result = TypeVar("_Result")


def _frozen(call: Callable[..., _Result]) -> Callable[..., _Result]:
    """Compute gradients by inputs only, where the first one requires them."""

    @wraps(call)
    def called(self: _ModelLayers, x: Tensor, *others: Tensor) -> _Result:
        with torch.set_grad_enabled(torch.is_grad_enabled() and x.requires_grad):
            return call(self, x, *others)

    return called


class _ModelLayers:
    """The names of the trained parameters, and the frozen encoder."""

    part = OUTPUT

    def __init__(self, model: Any) -> None:
        self._model = model.eval()
        self.names = names_of_part(model, self.part)

    @_frozen
    def lower(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        encoded, lengths = self._model.encoded(features, lengths)
        return encoded.transpose(1, 2), lengths

    def states(self, lower: Tensor, lengths: Tensor, targets: Tensor) -> Tensor:
        return lower.new_zeros(len(targets), targets.size(1) + 1, 0)


def _aligned(log_probs: Tensor, inputs: Inputs, *, training: bool) -> Tensor:
    """(I, R) log-likelihoods of CTC from (I, N, T, C)."""
    heads = len(log_probs)
    if not training:
        labels = (inputs.targets[0], inputs.target_lengths[0])
        return log_likelihoods(log_probs, inputs.lengths[0], inputs.rows, *labels)
    given = (inputs.lengths[:, inputs.rows], inputs.targets, inputs.target_lengths)
    lengths, targets, target_lengths = (_expanded(x, heads) for x in given)
    by_row = log_probs[:, inputs.rows].flatten(0, 1)
    return -ctc_loss(by_row, lengths, targets, target_lengths).view(heads, -1)


def _aligned_numbers(inputs: Inputs, num_tokens: int) -> int:
    """All log-probabilities, and the forward recursion's states in double precision."""
    outputs = inputs.lower.size(1) * inputs.lower.size(2) * num_tokens
    return 2 * outputs + 8 * len(inputs.rows) * (2 * inputs.targets.size(2) + 1)


def _spelled(log_probs: Tensor, inputs: Inputs) -> Tensor:
    """(I, R) log-likelihoods of a speller's (I, R, U + 1, C); token 0 is the end."""
    positions = torch.arange(log_probs.size(2), device=log_probs.device)
    inside = positions < inputs.target_lengths.unsqueeze(2)
    wanted = (functional.pad(inputs.targets, (0, 1)) * inside).expand(*log_probs.shape[:3])
    scores = log_probs.gather(3, wanted.unsqueeze(3)).squeeze(3)
    return (scores * (positions <= inputs.target_lengths.unsqueeze(2))).sum(2)


def _expanded(x: Tensor, heads: int) -> Tensor:
    """(H, R, ...) to (I R, ...)."""
    return x.expand(heads, *x.shape[1:]).flatten(0, 1)


class CtcLayers(_ModelLayers):
    """The output layer of CTC."""

    def scores(self, parameters: Parameters, inputs: Inputs, *, training: bool) -> Tensor:
        log_probs = self.log_probs(parameters, inputs.lower, inputs.lengths)
        return _aligned(log_probs, inputs, training=training)

    def log_probs(self, parameters: Parameters, lower: Tensor, lengths: Tensor) -> Tensor:
        """(I, N, T, C) natural log, from (H, N, T, D) of the frozen layers."""
        x = self._upper(parameters, lower, lengths)
        weight = parameters["output.weight"].squeeze(3)
        return linear(x, weight, parameters["output.bias"]).float().log_softmax(3)

    def numbers(self, inputs: Inputs) -> int:
        return _aligned_numbers(inputs, self._model.num_tokens)

    def _upper(self, parameters: Parameters, lower: Tensor, lengths: Tensor) -> Tensor:
        return lower


class CtcBlockLayers(CtcLayers):
    """The encoder's last block, the layers behind it and the output layer of CTC."""

    part = LAST_BLOCK

    def __init__(self, model: Any) -> None:
        self._last = f"encoder.blocks.{len(model.encoder.blocks) - 1}"
        super().__init__(model)

    @_frozen
    def lower(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """What enters the last block."""
        entering: list[Tensor] = []
        block = self._model.encoder.blocks[-1]
        hook = block.register_forward_pre_hook(lambda _, given: entering.append(given[0]))
        try:
            _, lengths = self._model.encoded(features, lengths)
        finally:
            hook.remove()
        return entering[0].transpose(1, 2), lengths

    def _upper(self, parameters: Parameters, lower: Tensor, lengths: Tensor) -> Tensor:
        x = lower.transpose(2, 3)  # (H, N, D, T)
        frames = torch.arange(x.size(3), device=x.device)
        valid = (frames < lengths.unsqueeze(2)).unsqueeze(2).to(x.dtype)
        block = self._model.encoder.blocks[-1]
        y = _called(block, self._last, parameters, (x, valid))
        norm = getattr(self._model.encoder, "norm", None)
        if norm is not None:
            y = _called(norm, "encoder.norm", parameters, (y,))
        return y.transpose(2, 3)

    def numbers(self, inputs: Inputs) -> int:
        return super().numbers(inputs) + 8 * inputs.lower[0].numel()


class CtcUpperLayers(CtcLayers):
    """A part of a CTC model with layers of a public encoder, which may begin in these layers.

    What lies above the first layer that the part is in is computed by each head.
    """

    def __init__(self, model: Any, part: str) -> None:
        self.part = part
        super().__init__(model)
        blocks = len(model.public.blocks)
        self._start = {HEAD: blocks, LAST_BLOCK: blocks - 1}.get(part, 0)

    @_frozen
    def lower(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """What enters the first block that a head computes."""
        x = self._model.public.below(features, lengths, self._start)
        return x * valid_frames(x.transpose(1, 2), lengths).transpose(1, 2), lengths

    def log_probs(self, parameters: Parameters, lower: Tensor, lengths: Tensor) -> Tensor:
        """(I, N, T, C) natural log, from (H, N, T, D) of the frozen layers."""
        own = {f"model.{name}": value for name, value in parameters.items()}
        return _called(_From(self._model, self._start), "", own, (lower, lengths))

    def numbers(self, inputs: Inputs) -> int:
        blocks = len(self._model.public.blocks) - self._start
        return super().numbers(inputs) + 8 * (1 + blocks) * inputs.lower[0].numel()


class _From(nn.Module):
    """A CTC model from a block of its public encoder's layers on, whose frames stay as they are."""

    def __init__(self, model: nn.Module, start: int) -> None:
        super().__init__()
        self.model, self.start = model, start

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        log_probs: Tensor = self.model(x, lengths, start=self.start)[0]
        return log_probs


def _called(
    module: nn.Module, name: str, parameters: Parameters, inputs: Sequence[Tensor]
) -> Tensor:
    """A module of the model with every head's parameters; (H, ...) inputs to (I, ...)."""
    prefix = f"{name}." if name else ""
    own = {k.removeprefix(prefix): v for k, v in parameters.items() if k.startswith(prefix)}
    heads = len(next(iter(own.values())))
    shared = len(inputs[0]) == 1 != heads
    given = tuple(x[0] for x in inputs) if shared else tuple(inputs)
    y: Tensor = stacked_call(module, own, given, shared=shared)
    return y


class LasLayers(_ModelLayers):
    """The speller's output layer."""

    @_frozen
    def states(self, lower: Tensor, lengths: Tensor, targets: Tensor) -> Tensor:
        """What the speller's output layer reads."""
        speller = self._model.speller
        return torch.tanh(speller.hidden(speller.seen(lower, lengths, targets)))

    def scores(self, parameters: Parameters, inputs: Inputs, *, training: bool) -> Tensor:
        """Without label smoothing."""
        return self._attention(parameters, inputs)

    def numbers(self, inputs: Inputs) -> int:
        return 2 * self._model.num_tokens * len(inputs.rows) * (inputs.targets.size(2) + 1)

    def _attention(self, parameters: Parameters, inputs: Inputs) -> Tensor:
        weight, bias = parameters["speller.output.weight"], parameters["speller.output.bias"]
        return _spelled(linear(inputs.states, weight, bias).float().log_softmax(3), inputs)


class CtcAttentionLayers(LasLayers):
    """The output layers of CTC and of the speller."""

    def scores(self, parameters: Parameters, inputs: Inputs, *, training: bool) -> Tensor:
        """Weighted by ``ctc_share`` in training and by ``ctc_weight`` in votes."""
        share = self._model.spec.ctc_share if training else self._model.ctc_weight
        scores: Tensor | float = 0.0
        if share < 1:
            scores = (1.0 - share) * self._attention(parameters, inputs)
        if share > 0:
            weight, bias = parameters["ctc_output.weight"], parameters["ctc_output.bias"]
            log_probs = linear(inputs.lower, weight, bias).float().log_softmax(3)
            scores = scores + share * _aligned(log_probs, inputs, training=training)
        return scores  # type: ignore[return-value]

    def numbers(self, inputs: Inputs) -> int:
        return super().numbers(inputs) + _aligned_numbers(inputs, self._model.num_tokens)


class RnntLayers(_ModelLayers):
    """The output layer of the joint network."""

    @_frozen
    def states(self, lower: Tensor, lengths: Tensor, targets: Tensor) -> Tensor:
        """Projections of the prediction network's outputs."""
        prefixes, _ = self._model.predictor(functional.pad(targets, (1, 0)))
        projected: Tensor = self._model.joint.prefix(prefixes)
        return projected

    @_frozen
    def lower(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Projections of the encoder's outputs."""
        encoded, lengths = super().lower(features, lengths)
        return self._model.joint.frame(encoded), lengths

    def scores(self, parameters: Parameters, inputs: Inputs, *, training: bool) -> Tensor:
        """Never pruned."""
        frames = inputs.lower[:, inputs.rows].unsqueeze(3)
        cells = torch.tanh(frames + inputs.states.unsqueeze(2))  # (H, R, T, U + 1, J)
        weight, bias = parameters["joint.output.weight"], parameters["joint.output.bias"]
        logits = linear(cells, weight, bias).float()
        total = logits.logsumexp(4)
        heads, num, times = logits.shape[:3]
        wanted = inputs.targets[:, :, None, :, None].expand(heads, -1, times, -1, -1)
        label = logits[..., :-1, :].gather(4, wanted).squeeze(4) - total[..., :-1]
        blank = logits[..., 0] - total
        lengths = _expanded(inputs.lengths[:, inputs.rows], heads)
        given = (blank.flatten(0, 1), label.flatten(0, 1), lengths)
        backend = self._model.spec.transducer.backend
        sizes = _expanded(inputs.target_lengths, heads)
        scores = log_likelihood(*given, sizes, backend=backend)
        return scores.view(heads, num)

    def numbers(self, inputs: Inputs) -> int:
        cells = len(inputs.rows) * inputs.lower.size(2) * inputs.states.size(2)
        return cells * (2 * self._model.num_tokens + inputs.states.size(3))


_LAYERS: dict[str, type[_ModelLayers]] = {"ctc": CtcLayers, "rnnt": RnntLayers, "las": LasLayers}
_LAYERS["ctc_attention"] = CtcAttentionLayers


def trainable_layers(
    model: AcousticModel, trained: str, lora: LoraConfig | None = None, seed: int = 0
) -> TrainableLayers:
    """The layers of ``model`` of which each head has its own parameters.

    Args:
        trained: ``output``; ``last_block`` for CTC models whose encoder has blocks; ``head``,
            ``bias`` and ``lora`` for those with layers of a public encoder.
        lora, seed: of ``lora``; the model gets the adapters, unless it has them.

    Raises:
        ConfigError: a part that the model lacks, or a kind without such layers.
    """
    kind = model.spec.kind
    if model.public is not None and trained != OUTPUT:
        return _upper_layers(model, trained, lora, seed)
    if trained in (HEAD, BIAS, LORA):
        expected, given = "a CTC model with layers of a public encoder", "a model without"
        raise ConfigError(f"trained={trained}", expected, given, f"set trained={OUTPUT}")
    if trained == LAST_BLOCK:
        if kind != "ctc" or not hasattr(model.encoder, "blocks"):
            expected = "a CTC model with a TDNN or a Conformer"
            given, way_out = f"{kind} with {model.spec.encoder.kind}", f"set trained={OUTPUT}"
            raise ConfigError(f"trained={LAST_BLOCK}", expected, given, way_out)
        return CtcBlockLayers(model)
    if kind not in _LAYERS:
        known = f"a model of kind {', '.join(_LAYERS)}"
        raise ConfigError("heads", known, kind, "train whole teachers")
    return _LAYERS[kind](model)  # type: ignore[return-value]


def _upper_layers(
    model: AcousticModel, trained: str, lora: LoraConfig | None, seed: int
) -> TrainableLayers:
    if (
        model.spec.kind != "ctc"
        or model.spec.encoder.kind == "blstm"
        or model.output_frames(7) != 7
    ):
        expected = "a CTC model with a TDNN or a Conformer that keeps all frames"
        given = f"{model.spec.kind} with {model.spec.encoder.kind}"
        raise ConfigError(f"trained={trained}", expected, given, f"set trained={OUTPUT}")
    if trained == LORA and lora is not None:
        add_adapters(model, lora, seed)
    return CtcUpperLayers(model, trained)
