"""wav2vec 2.0, HuBERT and WavLM, bare or with a CTC head, from Hugging Face's names.

Baevski et al. (2020), "wav2vec 2.0"; Hsu et al. (2021), "HuBERT"; Chen et al. (2022), "WavLM".
Convolutions over the waveform, a convolution that gives positions, Transformer blocks. A head
behind the encoder is not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    numbers,
)
from privasr_k2.encoders.relative_positions import RelativePositions
from privasr_k2.errors import DataError

_MODELS = ("wav2vec2", "hubert", "wavlm")
_VARIANCE_FLOOR = 1e-7
_LISTS = ("conv_dim", "conv_kernel", "conv_stride")
_FIRST = "feature_extractor.conv_layers.0.conv.weight"


@dataclass(frozen=True)
class Wav2vecSizes:
    """Sizes and variants of an encoder.

    Attributes:
        convolutions: channels, kernel and stride of each.
        group_norm: whether the first convolution alone has a norm, over time.
        projection_norm: whether there is a norm behind the convolutions.
        stable: whether norms stand in front of the parts of a block ("stable layer norm").
        positions: kernel and groups of the convolution that gives positions.
        buckets: number and longest distance of relative positions (WavLM), or None.
        normalized: whether the waveform gets mean 0 and variance 1.
    """

    dim: int
    layers: int
    heads: int
    feedforward: int
    convolutions: tuple[tuple[int, int, int], ...]
    convolution_bias: bool
    group_norm: bool
    projection_norm: bool
    stable: bool
    positions: tuple[int, int]
    buckets: tuple[int, int] | None
    eps: float
    normalized: bool


class TimeNorm(nn.Module):
    """Each channel to mean 0 and variance 1 over an utterance's true frames: (N, C, T)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor, valid: Tensor) -> Tensor:
        """Normalized channels.

        Args:
            valid: (N, T).
        """
        inside = valid.unsqueeze(1)
        count = inside.sum(dim=2, keepdim=True)
        centred = (x - (x * inside).sum(dim=2, keepdim=True) / count) * inside
        variance = centred.square().sum(dim=2, keepdim=True) / count
        scale = self.weight.unsqueeze(1) * (variance + 1e-5).rsqrt()
        return centred * scale + self.bias.unsqueeze(1)


class WaveConvolution(nn.Module):
    """Convolution, norm and GELU: (N, C, T) -> (N, C', T')."""

    def __init__(self, in_dim: int, sizes: Wav2vecSizes, number: int) -> None:
        super().__init__()
        out_dim, self.kernel, self.stride = sizes.convolutions[number]
        self.conv = nn.Conv1d(
            in_dim, out_dim, self.kernel, self.stride, bias=sizes.convolution_bias
        )
        self.norm: nn.Module | None = nn.LayerNorm(out_dim)
        if sizes.group_norm:
            self.norm = TimeNorm(out_dim) if number == 0 else None

    def lengths(self, lengths: Tensor) -> Tensor:
        """Frames that see true input alone."""
        return torch.div(lengths - self.kernel, self.stride, rounding_mode="floor") + 1

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x, lengths = self.conv(x), self.lengths(lengths)
        if isinstance(self.norm, TimeNorm):
            x = self.norm(x, is_true(lengths, x.size(2)))
        elif self.norm is not None:
            x = self.norm(x.transpose(1, 2)).transpose(1, 2)
        return gelu(x), lengths


class Wav2vecBlock(nn.Module):
    """Attention and a feed-forward network with norms: (N, T, D) -> (N, T, D)."""

    def __init__(self, sizes: Wav2vecSizes) -> None:
        super().__init__()
        self.attention = SelfAttention(sizes.dim, sizes.heads, key_bias=True)
        self.attention_norm = nn.LayerNorm(sizes.dim, eps=sizes.eps)
        self.feedforward_norm = nn.LayerNorm(sizes.dim, eps=sizes.eps)
        self.wide = nn.Linear(sizes.dim, sizes.feedforward)
        self.narrow = nn.Linear(sizes.feedforward, sizes.dim)
        self.relative = RelativePositions(sizes.dim, sizes.heads) if sizes.buckets else None
        self.stable = sizes.stable

    def forward(self, x: Tensor, valid: Tensor, distances: Tensor | None) -> Tensor:
        """Outputs of the block.

        Args:
            distances: (H, T, T) scores by relative position, which a gate weighs.
        """
        if self.stable:
            x = x + self._attended(self.attention_norm(x), valid, distances)
            return x + self._widened(self.feedforward_norm(x))
        x = self.attention_norm(x + self._attended(x, valid, distances))
        return self.feedforward_norm(x + self._widened(x))

    def _attended(self, x: Tensor, valid: Tensor, distances: Tensor | None) -> Tensor:
        bias = None
        if self.relative is not None and distances is not None:
            bias = self.relative(x, distances)
        return self.attention(x, valid, bias)

    def _widened(self, x: Tensor) -> Tensor:
        return self.narrow(gelu(self.wide(x)))


class Wav2vec(PublicEncoder):
    """Waveform (N, S, 1) -> (N, T', D)."""

    def __init__(self, sizes: Wav2vecSizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.name, self.dim, self.num_layers = "wav2vec", sizes.dim, sizes.layers
        channels = [1, *(channels for channels, _, _ in sizes.convolutions)]
        self.convs = nn.ModuleList(
            WaveConvolution(in_dim, sizes, number) for number, in_dim in enumerate(channels[:-1])
        )
        shift = 1
        for _, _, stride in sizes.convolutions:
            shift *= stride
        self.frame_shift, self.normalized = shift / SAMPLE_RATE, sizes.normalized
        norm = nn.LayerNorm(channels[-1], eps=sizes.eps) if sizes.projection_norm else None
        self.projection_norm = norm
        self.projection = nn.Linear(channels[-1], sizes.dim)
        kernel, groups = sizes.positions
        self.places = nn.Conv1d(sizes.dim, sizes.dim, kernel, padding=kernel // 2, groups=groups)
        self.norm, self.stable = nn.LayerNorm(sizes.dim, eps=sizes.eps), sizes.stable
        self.blocks = nn.ModuleList(Wav2vecBlock(sizes) for _ in range(sizes.layers))
        self.distances = nn.Embedding(sizes.buckets[0], sizes.heads) if sizes.buckets else None
        self.longest_distance = sizes.buckets[1] if sizes.buckets else 0

    def features(self, audio: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The waveform, with mean 0 and variance 1 where the model was trained so."""
        audio = checked_audio(self, audio, lengths)
        frames = lengths
        for conv in self.convs:
            frames = conv.lengths(frames)
        if int(frames.min()) < 1:
            found = f"{int(lengths.min())} samples, which give none"
            raise DataError(self.name, "audio for a frame", found, "leave the utterance out")
        if self.normalized:
            inside, count = is_true(lengths, audio.size(1)), lengths.unsqueeze(1)
            centred = (audio - audio.sum(dim=1, keepdim=True) / count) * inside
            variance = centred.square().sum(dim=1, keepdim=True) / count
            audio = centred * (variance + _VARIANCE_FLOOR).rsqrt()
        return audio.unsqueeze(2), lengths

    def forward(
        self, inputs: Tensor, lengths: Tensor, *, layers: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        kept, x = Kept(self, layers), inputs.transpose(1, 2)
        for conv in self.convs:
            x, lengths = conv(x, lengths)
        x, valid = x.transpose(1, 2), is_true(lengths, x.size(2))
        x = self.projection(x if self.projection_norm is None else self.projection_norm(x))
        x = x * valid.unsqueeze(2)
        places = self.places(x.transpose(1, 2))[:, :, : x.size(1)]  # an even kernel gives one more
        x = x + gelu(places).transpose(1, 2)
        x = x if self.stable else self.norm(x)
        distances = _scores(self.distances, x.size(1), self.longest_distance)
        for number, block in enumerate(self.blocks[: kept.last]):
            kept.keep(number, x)
            x = block(x, valid, distances)
        kept.keep(kept.last, self.norm(x) if self.stable and kept.last == self.num_layers else x)
        return kept.given(lengths), lengths

    def above(self, first: int) -> Wav2vecUpper:
        return Wav2vecUpper(self, first)


class Wav2vecUpper(UpperLayers):
    """Blocks, with the norm behind the last of those with norms in front of their parts."""

    def __init__(self, encoder: Wav2vec, first: int) -> None:
        super().__init__(encoder.blocks[first:], encoder.norm if encoder.stable else None)
        self.distances, self.longest_distance = encoder.distances, encoder.longest_distance
        self.frame_shift = encoder.frame_shift

    def through(self, x: Tensor, lengths: Tensor, blocks: Sequence[nn.Module]) -> Tensor:
        valid = is_true(lengths, x.size(1))
        distances = _scores(self.distances, x.size(1), self.longest_distance)
        for block in blocks:
            x = block(x, valid, distances)
        return x


def _scores(distances: nn.Embedding | None, frames: int, longest: int) -> Tensor | None:
    """Scores by relative position, where a model has them."""
    return None if distances is None else RelativePositions.scores(distances, frames, longest)


_OUTER = {
    "feature_projection.layer_norm.": "projection_norm.",
    "feature_projection.projection.": "projection.",
    "encoder.layer_norm.": "norm.",
    "encoder.pos_conv_embed.conv.bias": "places.bias",
    "encoder.layers.0.attention.rel_attn_embed.": "distances.",
}
_BLOCK = {
    "attention.q_proj.": "attention.query.",
    "attention.k_proj.": "attention.key.",
    "attention.v_proj.": "attention.value.",
    "attention.out_proj.": "attention.out.",
    "attention.gru_rel_pos_linear.": "relative.gate.",
    "attention.gru_rel_pos_const": "relative.scale",
    "layer_norm.": "attention_norm.",
    "final_layer_norm.": "feedforward_norm.",
    "feed_forward.intermediate_dense.": "wide.",
    "feed_forward.output_dense.": "narrow.",
}


def _renamed(weights: Weights, prefix: str, sizes: Wav2vecSizes) -> dict[str, Tensor]:
    """The encoder's tensors by our names."""
    parts = {f"{prefix}{theirs}": ours for theirs, ours in _OUTER.items()}
    for number in range(len(sizes.convolutions)):
        for theirs, ours in (("conv.", "conv."), ("layer_norm.", "norm.")):
            place = f"{prefix}feature_extractor.conv_layers.{number}.{theirs}"
            parts[place] = f"convs.{number}.{ours}"
    for number in range(sizes.layers):
        block = f"{prefix}encoder.layers.{number}."
        parts |= {f"{block}{theirs}": f"blocks.{number}.{our}" for theirs, our in _BLOCK.items()}
    renamed = {
        f"{ours}{name.removeprefix(theirs)}": weights.tensors[name]
        for theirs, ours in parts.items()
        for name in (theirs, f"{theirs}weight", f"{theirs}bias")
        if name in weights.tensors
    }
    renamed["places.weight"] = _positional_weight(weights, prefix)
    return renamed


def _positional_weight(weights: Weights, prefix: str) -> Tensor:
    """Salimans & Kingma (2016), eq. 2, w = g v / |v|, with a norm for each place of the kernel."""
    place = f"{prefix}encoder.pos_conv_embed.conv."
    for size, direction in (
        ("weight_g", "weight_v"),
        ("parametrizations.weight.original0", "parametrizations.weight.original1"),
    ):
        if f"{place}{direction}" in weights.tensors and f"{place}{size}" in weights.tensors:
            v = weights.tensors[f"{place}{direction}"].float()
            return weights.tensors[f"{place}{size}"] * v / v.norm(dim=(0, 1), keepdim=True)
    expected, way_out = f"weights with {place}weight_g and weight_v", "get the model again"
    raise DataError(weights.path, expected, "none", way_out)


def _sizes(weights: Weights) -> Wav2vecSizes:
    config, place = weights.config, weights.path.with_name("config.json")
    _check_variants(config, weights)
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    dim, layers, heads, feedforward = numbers(weights, *names)
    lists = [config.get(name) for name in _LISTS]
    same = all(isinstance(each, list) and len(each) == len(lists[0] or ()) for each in lists)
    if not same or not lists[0] or dim % heads:
        expected = "conv_dim, conv_kernel and conv_stride of one length, hidden_size by heads"
        raise DataError(place, expected, "something else", "give the model's own config.json")
    buckets = None
    if config["model_type"] == "wavlm":
        number, longest = numbers(weights, "num_buckets", "max_bucket_distance")
        buckets = (number, longest)
    kernel, groups = numbers(weights, "num_conv_pos_embeddings", "num_conv_pos_embedding_groups")
    stated: Mapping[str, Any] = config
    return Wav2vecSizes(
        *(dim, layers, heads, feedforward),
        convolutions=tuple(zip(*(stated[name] for name in _LISTS))),
        convolution_bias=bool(config.get("conv_bias", False)),
        group_norm=config.get("feat_extract_norm", "group") == "group",
        projection_norm=bool(config.get("feat_proj_layer_norm", True)),
        stable=bool(config.get("do_stable_layer_norm", False)),
        positions=(kernel, groups),
        buckets=buckets,
        eps=float(stated.get("layer_norm_eps", 1e-5)),
        normalized=bool(weights.preprocessor.get("do_normalize", True)),
    )


def _check_variants(config: Mapping[str, object], weights: Weights) -> None:
    """Refuse what no published model of these families has."""
    allowed = {
        "hidden_act": ("gelu",),
        "feat_extract_activation": ("gelu",),
        "feat_extract_norm": ("group", "layer"),
        "conv_pos_batch_norm": (False,),
        "add_adapter": (False,),
    }
    for name, values in allowed.items():
        if config.get(name, values[0]) not in values:
            place, expected = weights.path.with_name("config.json"), f"{name} of {list(values)}"
            raise DataError(place, expected, repr(config[name]), "take a model without it")


def _recognizes(weights: Weights) -> bool:
    is_one = weights.config.get("model_type") in _MODELS
    return is_one and any(name.endswith(_FIRST) for name in weights.tensors)


def build(weights: Weights) -> Wav2vec:
    """The encoder of weights from Hugging Face.

    Raises:
        DataError: a tensor that is missing, weights of another size, or a variant that is not read.
    """
    sizes = _sizes(weights)
    prefix = next(name.removesuffix(_FIRST) for name in weights.tensors if name.endswith(_FIRST))
    encoder = Wav2vec(sizes)
    fill(encoder, _renamed(weights, prefix, sizes), weights.path)
    return encoder


FAMILIES.add("wav2vec", Family(_recognizes, build, Wav2vecSizes, Wav2vec))
