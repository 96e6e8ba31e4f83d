"""Tiny public encoders with random weights, in the files that others write."""

from __future__ import annotations

import json
import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from privasr_k2.encoders.families.wav2vec import Wav2vec, Wav2vecSizes
from privasr_k2.encoders.families.whisper import Whisper, WhisperSizes

WHISPER = WhisperSizes(bins=80, dim=64, layers=2, heads=1, feedforward=48, positions=1500)
WHISPER_CONFIG = {
    **{"model_type": "whisper", "num_mel_bins": 80, "d_model": 64, "encoder_layers": 2},
    **{"encoder_attention_heads": 1, "encoder_ffn_dim": 48, "max_source_positions": 1500},
}
WAV2VEC_CONFIG = {
    **{"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3},
    **{"intermediate_size": 40, "conv_dim": [16] * 7, "conv_kernel": [10, 3, 3, 3, 3, 2, 2]},
    **{"conv_stride": [5, 2, 2, 2, 2, 2, 2], "num_conv_pos_embeddings": 8},
    **{"num_conv_pos_embedding_groups": 2, "num_buckets": 32, "max_bucket_distance": 80},
}


def drawn(make: Callable[[], nn.Module]) -> nn.Module:
    """A module with random weights, the same at every call, and none of them 0 or 1 alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        module = make()
        for tensor in module.state_dict().values():
            tensor.add_(0.1 * torch.randn(tensor.shape))
    return module.eval()


def tiny_whisper() -> Whisper:
    return drawn(lambda: Whisper(WHISPER))


def tiny_wav2vec(model_type: str, norm: str, stable: bool) -> Wav2vec:
    config = WAV2VEC_CONFIG
    convolutions = zip(config["conv_dim"], config["conv_kernel"], config["conv_stride"])
    sizes = Wav2vecSizes(
        *(24, 2, 3, 40),
        convolutions=tuple(convolutions),
        convolution_bias=norm == "layer",
        group_norm=norm == "group",
        projection_norm=True,
        stable=stable,
        positions=(8, 2),
        buckets=(32, 80) if model_type == "wavlm" else None,
        eps=1e-5,
        normalized=True,
    )
    return drawn(lambda: Wav2vec(sizes))


def speechlike(*lengths: int) -> tuple[Tensor, Tensor]:
    """Audio (N, S) of a few tones in noise, and 9 behind the end of each utterance."""
    generator = torch.Generator().manual_seed(5)
    audio = torch.full((len(lengths), max(lengths)), 9.0)
    for row, length in zip(audio, lengths):
        t = torch.arange(length) / 16000
        tones = sum(torch.sin(2 * torch.pi * f * t) / f for f in (110.0, 430.0, 2500.0))
        row[:length] = 20 * tones + 0.02 * torch.randn(length, generator=generator)
    return audio, torch.tensor(lengths)


_OPENAI = [
    *(("attention.", "attn."), ("attention_norm.", "attn_ln."), ("feedforward_norm.", "mlp_ln.")),
    *(("wide.", "mlp.0."), ("narrow.", "mlp.2.")),
]
_HUGGING_FACE = [
    *((f"attention.{n}.", f"self_attn.{n[0]}_proj.") for n in ("query", "key", "value")),
    ("attention.out.", "self_attn.out_proj."),
    *(("attention_norm.", "self_attn_layer_norm."), ("feedforward_norm.", "final_layer_norm.")),
    *(("wide.", "fc1."), ("narrow.", "fc2.")),
]


def _renamed(name: str, block: str, table: list[tuple[str, str]]) -> str:
    for ours, theirs in [("blocks.", block), *table]:
        name = name.replace(ours, theirs)
    return name


def openai_tensors(whisper: Whisper) -> dict[str, Tensor]:
    tops = {"norm.weight": "ln_post.weight", "norm.bias": "ln_post.bias"}
    tops["positions"] = "positional_embedding"
    return {
        "encoder." + (tops.get(name) or _renamed(name, "blocks.", _OPENAI)): tensor
        for name, tensor in whisper.state_dict().items()
    }


def hugging_face_tensors(whisper: Whisper, prefix: str = "model.encoder.") -> dict[str, Tensor]:
    tops = {"norm.weight": "layer_norm.weight", "norm.bias": "layer_norm.bias"}
    tops["positions"] = "embed_positions.weight"
    return {
        prefix + (tops.get(name) or _renamed(name, "layers.", _HUGGING_FACE)): tensor.contiguous()
        for name, tensor in whisper.state_dict().items()
    }


def wav2vec_tensors(wav2vec: Wav2vec, prefix: str, *, parametrized: bool) -> dict[str, Tensor]:
    """As transformers stores them, the convolution of positions as size and direction."""
    table = [
        *((f"attention.{n}.", f"attention.{n[0]}_proj.") for n in ("query", "key", "value")),
        *(
            ("attention.out.", "attention.out_proj."),
            ("relative.gate.", "attention.gru_rel_pos_linear."),
        ),
        ("relative.scale", "attention.gru_rel_pos_const"),
        *(("feedforward_norm.", "final_layer_norm."), ("attention_norm.", "layer_norm.")),
        *(("wide.", "feed_forward.intermediate_dense."), ("narrow.", "feed_forward.output_dense.")),
    ]
    tensors = {}
    for name, tensor in wav2vec.state_dict().items():
        if name.startswith("convs."):
            theirs = name.replace("convs.", "feature_extractor.conv_layers.")
            theirs = theirs.replace(".norm.", ".layer_norm.")
        elif name.startswith("projection_norm."):
            theirs = name.replace("projection_norm.", "feature_projection.layer_norm.")
        elif name.startswith("projection."):
            theirs = f"feature_projection.{name}"
        elif name.startswith("blocks."):
            theirs = _renamed(name, "encoder.layers.", table)
        else:
            theirs = {
                "norm.weight": "encoder.layer_norm.weight",
                "norm.bias": "encoder.layer_norm.bias",
                "places.bias": "encoder.pos_conv_embed.conv.bias",
                "places.weight": "encoder.pos_conv_embed.conv.weight",
                "distances.weight": "encoder.layers.0.attention.rel_attn_embed.weight",
            }[name]
        tensors[prefix + theirs] = tensor.contiguous()
    weight = tensors.pop(f"{prefix}encoder.pos_conv_embed.conv.weight")
    names = ("weight_g", "weight_v")
    if parametrized:
        names = ("parametrizations.weight.original0", "parametrizations.weight.original1")
    size, direction = (f"{prefix}encoder.pos_conv_embed.conv.{name}" for name in names)
    tensors[size] = weight.norm(dim=(0, 1), keepdim=True).contiguous()
    tensors[direction] = (3.0 * weight).contiguous()
    return tensors


def save_safetensors(folder: Path, tensors: Mapping[str, Tensor], config: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    save_file(dict(tensors), str(folder / "model.safetensors"))
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def save_openai(path: Path, whisper: Whisper) -> Path:
    sizes = WHISPER
    dims = {"n_mels": sizes.bins, "n_audio_ctx": sizes.positions, "n_audio_state": sizes.dim}
    dims |= {"n_audio_head": sizes.heads, "n_audio_layer": sizes.layers, "n_vocab": 10}
    state = OrderedDict(openai_tensors(whisper))
    torch.save({"dims": dims, "model_state_dict": state}, str(path))
    return path


def ctranslate2_arrays(whisper: Whisper) -> dict[str, np.ndarray]:
    """CTranslate2's variables, float32."""
    state = {name: tensor.numpy() for name, tensor in whisper.state_dict().items()}
    arrays = {"encoder/position_encodings/encodings": state["positions"]}
    arrays["encoder/num_heads"] = np.int16(WHISPER.heads)
    for name in ("conv1", "conv2"):
        arrays |= {f"encoder/{name}/{kind}": state[f"{name}.{kind}"] for kind in ("weight", "bias")}
    norms = [("norm", "encoder/layer_norm")]
    for number in range(WHISPER.layers):
        ours, theirs = f"blocks.{number}.", f"encoder/layer_{number}/"
        norms.append((f"{ours}attention_norm", f"{theirs}self_attention/layer_norm"))
        norms.append((f"{ours}feedforward_norm", f"{theirs}ffn/layer_norm"))
        parts = [state[f"{ours}attention.{name}.weight"] for name in ("query", "key", "value")]
        arrays[f"{theirs}self_attention/linear_0/weight"] = np.concatenate(parts)
        query, value = (state[f"{ours}attention.{name}.bias"] for name in ("query", "value"))
        biases = np.concatenate([query, 0 * query, value])
        arrays[f"{theirs}self_attention/linear_0/bias"] = biases
        for name, place in (
            *(("attention.out", "self_attention/linear_1"), ("wide", "ffn/linear_0")),
            ("narrow", "ffn/linear_1"),
        ):
            for kind in ("weight", "bias"):
                arrays[f"{theirs}{place}/{kind}"] = state[f"{ours}{name}.{kind}"]
    for ours, theirs in norms:
        arrays[f"{theirs}/gamma"] = state[f"{ours}.weight"]
        arrays[f"{theirs}/beta"] = state[f"{ours}.bias"]
    return arrays


def quantized(arrays: Mapping[str, np.ndarray], kind: str) -> dict[str, np.ndarray]:
    """As CTranslate2's converters quantize weights: int8 with a scale a row, int16 with one."""
    stored: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        if not name.endswith("/weight"):
            stored[name] = array
        elif kind == "int16":
            scale = np.float32(2**10 / np.abs(array).max())
            stored |= {name: np.rint(array * scale).astype(np.int16), f"{name}_scale": scale}
        else:
            scale = (127 / np.abs(array.reshape(len(array), -1)).max(axis=1)).astype(np.float32)
            shaped = scale.reshape(-1, *[1] * (array.ndim - 1))
            stored |= {name: np.rint(array * shaped).astype(np.int8), f"{name}_scale": scale}
    return stored


def save_ctranslate2(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    aliases: Mapping[str, str] | None = None,
    version: int = 6,
) -> Path:
    """``model.bin``; arrays of uint16 are written as bfloat16."""

    def text(value: str) -> bytes:
        return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"

    kinds = ("float32", "int8", "int16", "int32", "float16", "uint16")
    data = struct.pack("<I", version) + text("WhisperSpec") + struct.pack("<II", 3, len(arrays))
    for name, given in arrays.items():
        array = np.asarray(given)
        data += text(name) + struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
        data += struct.pack("<BI", kinds.index(array.dtype.name), array.nbytes) + array.tobytes()
    data += struct.pack("<I", len(aliases or {}))
    for name, target in (aliases or {}).items():
        data += text(name) + text(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
