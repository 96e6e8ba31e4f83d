"""Whisper's encoder: Radford et al. (2022), "Robust speech recognition via large-scale weak
supervision", section 2.2.

Two convolutions over log-mel spectra, the second of stride 2, sinusoidal positions, Transformer
blocks with layer normalization in front of each part, and one at the end. Weights are read from
Hugging Face's names, OpenAI's and CTranslate2's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from privasr_k2.encoders.attention import SelfAttention, gelu
from privasr_k2.encoders.common import (
    FAMILIES,
    SAMPLE_RATE,
    Family,
    Kept,
    PublicEncoder,
    UpperLayers,
    Weights,
    checked_audio,
    fill,
    is_true,
)
from privasr_k2.encoders.log_mel import HOP, log_mel
from privasr_k2.errors import ConfigError, DataError

_HEAD_DIM = 64
"""Channels of a head in every published size."""


@dataclass(frozen=True)
class WhisperSizes:
    """Sizes of an encoder.

    Attributes:
        bins: F, 80 or 128.
        positions: frames behind the second convolution, 1500 for 30 s.
    """

    bins: int
    dim: int
    layers: int
    heads: int
    feedforward: int
    positions: int


class WhisperBlock(nn.Module):
    """Attention and a feed-forward network, each with a norm in front: (N, T, D) -> (N, T, D)."""

    def __init__(self, dim: int, heads: int, feedforward: int) -> None:
        super().__init__()
        self.attention_norm, self.feedforward_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = SelfAttention(dim, heads, key_bias=False)
        self.wide, self.narrow = nn.Linear(dim, feedforward), nn.Linear(feedforward, dim)

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), valid)
        return x + self.narrow(gelu(self.wide(self.feedforward_norm(x))))


class Whisper(PublicEncoder):
    """Log-mel spectra (N, T, F) -> (N, ceil(T / 2), D).

    With ``pad_seconds`` the frames of the silence are attended to, and not given out.
    """

    frame_shift = 2 * HOP / SAMPLE_RATE

    def __init__(self, sizes: WhisperSizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.name, self.dim, self.num_layers = "whisper", sizes.dim, sizes.layers
        self.bins, self.max_seconds = sizes.bins, sizes.positions * self.frame_shift
        self.conv1 = nn.Conv1d(sizes.bins, sizes.dim, kernel_size=3, padding=1)
        self.conv2 = nn.Conv1d(sizes.dim, sizes.dim, kernel_size=3, stride=2, padding=1)
        self.register_buffer("positions", torch.zeros(sizes.positions, sizes.dim))
        block = (sizes.dim, sizes.heads, sizes.feedforward)
        self.blocks = nn.ModuleList(WhisperBlock(*block) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(sizes.dim)

    def features(self, audio: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Log-mel spectra; with ``pad_seconds`` also of the silence, which is in no length."""
        audio = checked_audio(self, audio, lengths)
        samples = round(self.pad_seconds * self.sample_rate)
        longest = round(self.max_seconds * self.sample_rate)
        if samples and (samples % (2 * HOP) or not audio.size(1) <= samples <= longest):
            expected = f"pad_seconds from the longest audio to {self.max_seconds:g}"
            expected += f", in steps of {self.frame_shift:g}"
            way_out = f"take {self.max_seconds:g}, or 0 for true lengths"
            raise ConfigError(self.name, expected, f"{self.pad_seconds:g}", way_out)
        return log_mel(audio, lengths, self.bins, samples)

    def forward(
        self, inputs: Tensor, lengths: Tensor, *, layers: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        kept = Kept(self, layers)
        if inputs.size(1) > 2 * self.positions.size(0):
            expected = f"at most {2 * self.positions.size(0)} frames"
            way_out = "read it in chunks: encoders.chunks"
            raise DataError(self.name, expected, str(inputs.size(1)), way_out)
        heard = torch.full_like(lengths, inputs.size(1)) if self.pad_seconds else lengths
        x = inputs.transpose(1, 2)
        x = gelu(self.conv1(x * is_true(heard, x.size(2)).unsqueeze(1)))
        x = gelu(self.conv2(x * is_true(heard, x.size(2)).unsqueeze(1)))
        x = x.transpose(1, 2)
        x = x + self.positions[: x.size(1)]
        valid, lengths = is_true(_halved(heard), x.size(1)), _halved(lengths)
        for number, block in enumerate(self.blocks[: kept.last]):
            kept.keep(number, x)
            x = block(x, valid)
        kept.keep(kept.last, self.norm(x) if kept.last == self.num_layers else x)
        return kept.given(lengths), lengths

    def above(self, first: int) -> WhisperUpper:
        return WhisperUpper(self.blocks[first:], self.norm)


class WhisperUpper(UpperLayers):
    """Whisper's blocks and the norm behind the last."""

    frame_shift = Whisper.frame_shift

    def through(self, x: Tensor, lengths: Tensor, blocks: Sequence[nn.Module]) -> Tensor:
        valid = is_true(lengths, x.size(1))
        for block in blocks:
            x = block(x, valid)
        return x


def _halved(lengths: Tensor) -> Tensor:
    return torch.div(lengths + 1, 2, rounding_mode="floor")


@dataclass(frozen=True)
class Names:
    """The names of one source: ours to theirs, below the name of a block or of the whole."""

    block: str
    stem: Mapping[str, str]
    inner: Mapping[str, str]


_OPENAI = Names(
    "encoder.blocks.{}.",
    {
        **{f"{name}.": f"encoder.{name}." for name in ("conv1", "conv2")},
        **{"norm.": "encoder.ln_post.", "positions": "encoder.positional_embedding"},
    },
    {
        **{f"attention.{name}.": f"attn.{name}." for name in ("query", "key", "value", "out")},
        **{"attention_norm.": "attn_ln.", "feedforward_norm.": "mlp_ln."},
        **{"wide.": "mlp.0.", "narrow.": "mlp.2."},
    },
)
_HUGGING_FACE = Names(
    "encoder.layers.{}.",
    {
        **{f"{name}.": f"encoder.{name}." for name in ("conv1", "conv2")},
        **{"norm.": "encoder.layer_norm.", "positions": "encoder.embed_positions.weight"},
    },
    {
        **{
            f"attention.{ours}.": f"self_attn.{theirs}."
            for ours, theirs in zip(
                ("query", "key", "value", "out"), ("q_proj", "k_proj", "v_proj", "out_proj")
            )
        },
        **{"attention_norm.": "self_attn_layer_norm.", "feedforward_norm.": "final_layer_norm."},
        **{"wide.": "fc1.", "narrow.": "fc2."},
    },
)


def renamed(weights: Weights, names: Names, prefix: str) -> dict[str, Tensor]:
    """The tensors of an encoder, or of a decoder, by our names."""
    tensors, number = weights.tensors, 0
    parts = {f"{prefix}{theirs}": ours for ours, theirs in names.stem.items()}
    while any(name.startswith(f"{prefix}{names.block.format(number)}") for name in tensors):
        block = f"{prefix}{names.block.format(number)}"
        parts |= {f"{block}{his}": f"blocks.{number}.{our}" for our, his in names.inner.items()}
        number += 1
    return {
        f"{ours}{name.removeprefix(theirs)}": tensors[name]
        for theirs, ours in parts.items()
        for name in (theirs, f"{theirs}weight", f"{theirs}bias")
        if name in tensors
    }


def _from_ctranslate2(weights: Weights) -> dict[str, Tensor]:
    """Queries, keys and values are one product there, and keys have a bias, of zeros."""
    tensors, renamed, number = weights.tensors, {}, 0
    parts = {f"encoder/{name}/": f"{name}." for name in ("conv1", "conv2")}
    parts["encoder/layer_norm/"] = "norm."
    while f"encoder/layer_{number}/self_attention/linear_0/weight" in tensors:
        theirs, ours = f"encoder/layer_{number}/", f"blocks.{number}."
        parts |= {
            f"{theirs}self_attention/layer_norm/": f"{ours}attention_norm.",
            f"{theirs}self_attention/linear_1/": f"{ours}attention.out.",
            f"{theirs}ffn/layer_norm/": f"{ours}feedforward_norm.",
            f"{theirs}ffn/linear_0/": f"{ours}wide.",
            f"{theirs}ffn/linear_1/": f"{ours}narrow.",
        }
        for kind in ("weight", "bias"):
            fused = tensors[f"{theirs}self_attention/linear_0/{kind}"].chunk(3)
            for name, part in zip(("query", "key", "value"), fused):
                renamed[f"{ours}attention.{name}.{kind}"] = part
        if renamed.pop(f"{ours}attention.key.bias").any():
            found, way_out = "one that is not 0", "take a model of Whisper's own architecture"
            raise DataError(weights.path, "keys without a bias", found, way_out)
        number += 1
    for theirs, ours in parts.items():
        for kind, name in {"weight": "weight", "bias": "bias", **_NORM}.items():
            if f"{theirs}{kind}" in tensors:
                renamed[f"{ours}{name}"] = tensors[f"{theirs}{kind}"]
    renamed["positions"] = tensors["encoder/position_encodings/encodings"]
    return renamed


_NORM = {"gamma": "weight", "beta": "bias"}


def prefix_of(weights: Weights, ends: str) -> str | None:
    """What stands in front of a tensor's name."""
    return next((n.removesuffix(ends) for n in weights.tensors if n.endswith(ends)), None)


def _reader(weights: Weights) -> Callable[[], dict[str, Tensor]] | None:
    tensors, prefix = weights.tensors, prefix_of(weights, "encoder.conv1.weight")
    if "encoder/position_encodings/encodings" in tensors and "encoder/conv2/weight" in tensors:
        return lambda: _from_ctranslate2(weights)
    if prefix is None:
        return None
    if f"{prefix}encoder.positional_embedding" in tensors:
        return lambda: renamed(weights, _OPENAI, prefix)
    if f"{prefix}encoder.embed_positions.weight" in tensors:
        return lambda: renamed(weights, _HUGGING_FACE, prefix)
    return None


#: Of sizes, in config.json of Hugging Face and in OpenAI's checkpoints.
_STATED = {
    "bins": ("num_mel_bins", "dims.n_mels"),
    "dim": ("d_model", "dims.n_audio_state"),
    "layers": ("encoder_layers", "dims.n_audio_layer"),
    "heads": ("encoder_attention_heads", "dims.n_audio_head"),
    "feedforward": ("encoder_ffn_dim",),
    "positions": ("max_source_positions", "dims.n_audio_ctx"),
}


def _sizes(weights: Weights, tensors: Mapping[str, Tensor]) -> WhisperSizes:
    """The sizes of the weights, which those that the config states must equal."""
    try:
        dim, bins, _ = tensors["conv1.weight"].shape
        layers = len({name.split(".")[1] for name in tensors if name.startswith("blocks.")})
        feedforward, positions = len(tensors["blocks.0.wide.weight"]), len(tensors["positions"])
    except (KeyError, ValueError) as error:
        expected, found = "the weights of a Whisper encoder", f"a part of them ({error})"
        raise DataError(weights.path, expected, found, "get the model again") from error
    measured = {"bins": bins, "dim": dim, "layers": layers, "feedforward": feedforward}
    measured |= {"positions": positions, "heads": max(1, dim // _HEAD_DIM)}
    if "encoder/num_heads" in weights.tensors:
        measured["heads"] = int(weights.tensors["encoder/num_heads"])
    for size, keys in _STATED.items():
        for key in keys:
            stated = weights.config.get(key, measured[size])
            if size == "heads" and isinstance(stated, int) and stated > 0 and dim % stated == 0:
                measured[size] = stated
            elif stated != measured[size]:
                expected, found = f"{key} = {stated}, as its config states", str(measured[size])
                way_out = "give the weights and the config of one model"
                raise DataError(weights.path, f"weights with {expected}", found, way_out)
    return WhisperSizes(**measured)


def build(weights: Weights) -> Whisper:
    """The encoder of weights from Hugging Face, OpenAI or CTranslate2.

    Raises:
        DataError: a tensor that is missing, or weights of another size than their config states.
    """
    read = _reader(weights)
    tensors = read() if read else {}
    encoder = Whisper(_sizes(weights, tensors))
    fill(encoder, tensors, weights.path)
    return encoder


FAMILIES.add(
    "whisper", Family(lambda weights: _reader(weights) is not None, build, WhisperSizes, Whisper)
)
