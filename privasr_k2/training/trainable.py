"""What of a model is trained: everything, parts of it, biases, norms, or low-rank adapters.

The rest keeps its values bit for bit. Acoustic models, students, heads, DP-SGD and federated
clients choose by it.

An adapter [Hu et al. 2021, "LoRA", eq. 3] adds B A x to a linear layer W x, with A (R, D_in) random
and B (D_out, R) zero at first. It is a child of its layer and leaves the names of weights as they
are. :func:`merged_adapters` adds the products to the weights, so that what is saved is a model
without adapters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from privasr_k2.constraints import Checked, Count, Positive
from privasr_k2.errors import ConfigError
from privasr_k2.randomness import derive_seed

ALL, OUTPUT, HEAD, LAST_BLOCK = "all", "output", "head", "last_block"
BIAS, NORM, LORA = "bias", "norm", "lora"
PARTS = (ALL, OUTPUT, HEAD, LAST_BLOCK, BIAS, NORM, LORA)
#: Layers whose parameters are part :data:`NORM`: gains and biases, one of each a channel.
NORMS = (nn.LayerNorm, nn.GroupNorm, nn.BatchNorm1d)

_ADAPTER = "lora"
_DOWN, _UP = f".{_ADAPTER}.down.weight", f".{_ADAPTER}.up.weight"


class HasParts(Protocol):
    """A model that knows the beginnings of the names of its parameters, by part."""

    def part_names(self, part: str) -> tuple[str, ...]:
        """Of :data:`OUTPUT`, :data:`HEAD` and :data:`LAST_BLOCK`; none: the model lacks it."""


@dataclass(frozen=True)
class LoraConfig(Checked):
    """Numbers of adapters.

    Attributes:
        rank: R.
        scale: of their random weights: A is drawn from N(0, scale^2 / D_in).
        layers: ends of the names of layers that get one, such as ``query`` and ``value``.
    """

    rank: Count
    scale: Positive
    layers: list[str]


class Adapter(nn.Module):
    """x (..., D_in) -> B A x (..., D_out); of a convolution of width one, (N, D, T)."""

    def __init__(self, layer: nn.Linear | nn.Conv1d, rank: int) -> None:
        super().__init__()
        if isinstance(layer, nn.Linear):
            self.down = nn.Linear(layer.in_features, rank, bias=False)
            self.up: nn.Module = nn.Linear(rank, layer.out_features, bias=False)
        else:
            self.down = nn.Conv1d(layer.in_channels, rank, 1, bias=False)  # type: ignore[assignment]
            self.up = nn.Conv1d(rank, layer.out_channels, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.up(self.down(x))


def choose_trained(
    model: nn.Module, trained: Sequence[str], lora: LoraConfig | None = None, seed: int = 0
) -> tuple[str, ...]:
    """Freeze all parameters but the chosen ones, and return the names of these.

    Args:
        model: with :class:`HasParts` where a part of that name is chosen.
        trained: names of :data:`PARTS`, or beginnings of names of parameters; none: all.
        lora: of adapters, where ``lora`` is among them.
        seed: of the adapters' random weights.

    Raises:
        ConfigError: a part that the model lacks, a beginning that no parameter has, adapters
            without numbers or for no layer.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    >>> choose_trained(model, ["bias"])
    ('0.bias', '1.bias')
    >>> choose_trained(model, ["lora"], LoraConfig(rank=1, scale=1.0, layers=["0"]))
    ('0.lora.down.weight', '0.lora.up.weight')
    """
    if LORA in trained:
        if lora is None:
            raise ConfigError("trained", "numbers of adapters for lora", "none", "give them")
        add_adapters(model, lora, seed)
    chosen = {name for part in trained or [ALL] for name in names_of_part(model, part)}
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in chosen)
    return tuple(name for name, _ in model.named_parameters() if name in chosen)


def names_of_part(model: nn.Module, part: str) -> tuple[str, ...]:
    """The names of a part's parameters, in the model's order.

    Args:
        part: one of :data:`PARTS`, or the beginning of names.

    Raises:
        ConfigError: there are none.
    """
    names = [name for name, _ in model.named_parameters()]
    prefixes: tuple[str, ...] = (part,)
    if part in (OUTPUT, HEAD, LAST_BLOCK) and hasattr(model, "part_names"):
        prefixes = model.part_names(part)  # type: ignore[operator]
    is_own = {
        ALL: lambda name: True,
        BIAS: lambda name: name.rpartition(".")[2].startswith("bias"),
        NORM: lambda name: isinstance(model.get_submodule(name.rpartition(".")[0]), NORMS),
        LORA: lambda name: name.endswith((_DOWN, _UP)),
    }.get(part, lambda name: any(_begins(name, prefix) for prefix in prefixes))
    found = tuple(filter(is_own, names))
    if not found:
        tops = " ".join(dict.fromkeys(name.split(".")[0] for name in names))
        expected = f"one of {' '.join(PARTS)}, or the beginning of a parameter's name: {tops}"
        raise ConfigError("trained", expected, repr(part), "correct it")
    return found


def layer_of(name: str) -> str:
    """The layer that a parameter belongs to: its module, for both matrices of an adapter one.

    The parameters of a layer follow each other in a model's order.

    >>> [layer_of(name) for name in ("query.weight", "query.bias", "query.lora.down.weight")]
    ['query', 'query', 'query.lora']
    >>> layer_of("query.lora.up.weight")
    'query.lora'
    """
    for end in (_DOWN, _UP):
        if name.endswith(end):
            return f"{name.removesuffix(end)}.{_ADAPTER}"
    return name.rpartition(".")[0]


def _begins(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


def add_adapters(model: nn.Module, config: LoraConfig, seed: int) -> None:
    """Give layers adapters; the model's outputs stay as they are until these are trained.

    Raises:
        ConfigError: no linear layer, or convolution of width one, has such a name.
    """
    number = 0
    for name, layer in [*model.named_modules()]:
        if not any(name == end or name.endswith(f".{end}") for end in config.layers):
            continue
        is_pointwise = isinstance(layer, nn.Conv1d) and layer.kernel_size == (1,)
        if not isinstance(layer, nn.Linear) and not is_pointwise:
            continue
        number += 1
        if hasattr(layer, _ADAPTER):
            continue
        adapter = Adapter(layer, config.rank).to(layer.weight.device)  # type: ignore[arg-type]
        generator = torch.Generator().manual_seed(derive_seed(seed, "adapter", name))
        drawn = torch.randn(adapter.down.weight.shape, generator=generator)
        with torch.no_grad():
            adapter.down.weight.copy_(drawn * config.scale / drawn.size(1) ** 0.5)
            adapter.up.weight.zero_()  # type: ignore[operator]
        layer.add_module(_ADAPTER, adapter)
        layer.register_forward_hook(_add)
    if not number:
        layers = [name for name, layer in model.named_modules() if isinstance(layer, nn.Linear)]
        ends = " ".join(dict.fromkeys(name.rpartition(".")[2] for name in layers)) or "none"
        expected = f"ends of names of linear layers: {ends}"
        raise ConfigError("lora.layers", expected, " ".join(config.layers), "correct them")


def _add(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
    added: Tensor = layer.lora(inputs[0])
    return output + added


def adapter_of(layer: nn.Module) -> Adapter | None:
    """The adapter of a layer; None where it has none."""
    return getattr(layer, _ADAPTER, None)


def weight_rows(layer: nn.Linear, rows: Tensor | slice) -> Tensor:
    """Rows of a linear layer's W + B A, for models that read single rows of it.

    Args:
        rows: numbers (E,) int64, or a range of them.

    Returns:
        (E, D_in), with gradients; without an adapter the rows of W, bit for bit.
    """
    own, adapter = layer.weight[rows], adapter_of(layer)
    if adapter is None:
        return own
    return own + adapter.up.weight[rows] @ adapter.down.weight  # type: ignore[index]


def merged_adapters(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the same model without adapters: W + B A in place of W, A and B."""
    merged = {name: value for name, value in weights.items() if not name.endswith((_DOWN, _UP))}
    for name, down in weights.items():
        if name.endswith(_DOWN):
            layer = name.removesuffix(_DOWN)
            own = merged[f"{layer}.weight"]
            product = weights[f"{layer}{_UP}"].flatten(1) @ down.flatten(1)
            merged[f"{layer}.weight"] = own + product.view_as(own)
    return merged
