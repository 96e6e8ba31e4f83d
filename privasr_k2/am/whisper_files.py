"""Whisper's decoder from its files, as a model that :mod:`privasr_k2.am.whisper` trains further."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from privasr_k2 import config
from privasr_k2.am.checkpoints import save_model
from privasr_k2.am.encoders import AnyEncoderConfig
from privasr_k2.am.encoders.identity import IdentityConfig
from privasr_k2.am.transformer_decoder import DecoderConfig
from privasr_k2.am.whisper import KIND, WhisperRecognizer, WhisperSpec
from privasr_k2.encoders.common import Weights, fill
from privasr_k2.encoders.families.whisper import Names, Whisper, prefix_of, renamed
from privasr_k2.encoders.loading import load_encoder, open_weights
from privasr_k2.errors import DataError
from privasr_k2.graph.lang import Lang
from privasr_k2.graph.tokenizer import TOKENIZER, Tokenizer

#: Frames of silence behind an utterance, 1.5 s. Without them the decoder says everything again.
SILENCE = 75
#: Tokens from which on a model knows languages besides English, as OpenAI's code has it.
_MULTILINGUAL = 51865
_LANGUAGE = "<|en|>"
_END, _START = "<|endoftext|>", "<|startoftranscript|>"
_TASK, _NO_TIMES = "<|transcribe|>", "<|notimestamps|>"

_PARTS = {"attention": ("attn", "self_attn"), "cross": ("cross_attn", "encoder_attn")}
_LINEAR = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "out": "out_proj"}
_OPENAI = Names(
    "decoder.blocks.{}.",
    {
        "embedding.weight": "decoder.token_embedding.weight",
        "positions": "decoder.positional_embedding",
        "norm.": "decoder.ln.",
    },
    {
        **{
            f"{our}.{name}.": f"{his}.{name}."
            for our, (his, _) in _PARTS.items()
            for name in _LINEAR
        },
        **{"attention_norm.": "attn_ln.", "cross_norm.": "cross_attn_ln."},
        **{"feedforward_norm.": "mlp_ln.", "wide.": "mlp.0.", "narrow.": "mlp.2."},
    },
)
_HUGGING_FACE = Names(
    "decoder.layers.{}.",
    {
        "embedding.weight": "decoder.embed_tokens.weight",
        "positions": "decoder.embed_positions.weight",
        "norm.": "decoder.layer_norm.",
    },
    {
        **{
            f"{our}.{name}.": f"{his}.{theirs}."
            for our, (_, his) in _PARTS.items()
            for name, theirs in _LINEAR.items()
        },
        **{"attention_norm.": "self_attn_layer_norm.", "cross_norm.": "encoder_attn_layer_norm."},
        **{"feedforward_norm.": "final_layer_norm.", "wide.": "fc1.", "narrow.": "fc2."},
    },
)


def import_whisper(source: Path, lang: Lang, folder: Path) -> WhisperSpec:
    """Write Whisper's decoder as a model in the tokens of a language folder.

    Args:
        source: the model's folder with its ``tokenizer.json``: Hugging Face's safetensors, OpenAI's
            checkpoint, or CTranslate2's ``model.bin``.
        lang: of ``units=tokenizer`` with that file.
        folder: gets what ``train_am`` writes, and ``encoder.yaml`` with the origin of the weights.

    Raises:
        DataError: no Whisper model, or a language folder of other tokens.
    """
    weights, origin = open_weights(source)
    tokenizer = Tokenizer(source / TOKENIZER)
    tensors = decoder_tensors(weights)
    numbers = tokenizer.numbers
    embedding = tensors["embedding.weight"].float()
    task = [_LANGUAGE, _TASK] if len(embedding) >= _MULTILINGUAL else []
    special = [_START, *task, _NO_TIMES]
    missing = [name for name in (*special, _END) if name not in numbers]
    unknown = [token for token in lang.tokens[1:] if token not in tokenizer.pieces]
    if missing or unknown:
        found = f"no {(missing or unknown)[0]}"
        way_out = f"prepare the lang folder with units=tokenizer and {source / TOKENIZER}"
        raise DataError(lang.folder / "tokens.txt", "pieces of the tokenizer", found, way_out)
    encoder = load_encoder(source, pad_seconds=30.0)
    kept = [numbers[_END], *(tokenizer.pieces[token] for token in lang.tokens[1:])]
    tensors["prompt"] = embedding[[numbers[name] for name in special]]
    tensors["embedding.weight"] = embedding[kept]
    spec = _spec(weights, tensors, encoder.dim, len(kept), len(special))
    model = WhisperRecognizer(spec)
    fill(model.decoder, {name: value.float() for name, value in tensors.items()}, weights.path)
    model.silence = silence_of(encoder)
    save_model(folder, spec, model.state_dict(), lang.tokens)
    config.save({"name": origin.name, "sha256": origin.sha256}, folder / "encoder.yaml")
    return spec


def silence_of(encoder: Whisper) -> Tensor:
    """(D,) the mean output for silence behind an utterance, here behind three seconds of noise."""
    generator = torch.Generator().manual_seed(0)
    audio = 0.1 * torch.randn(1, 3 * encoder.sample_rate, generator=generator)
    features, lengths = encoder.features(audio, torch.tensor([audio.size(1)]))
    with torch.no_grad():
        heard, _ = encoder(features, torch.full_like(lengths, features.size(1)))
    end = (int(lengths[0]) + 1) // 2
    return heard[0, end + 5 : end + 5 + SILENCE].mean(dim=0)


def decoder_tensors(weights: Weights) -> dict[str, Tensor]:
    """A decoder's tensors by the names of :class:`privasr_k2.am.transformer_decoder.Decoder`.

    Raises:
        DataError: weights without one.
    """
    if "decoder/embeddings/weight" in weights.tensors:
        return _from_ctranslate2(weights.tensors)
    for names in (_OPENAI, _HUGGING_FACE):
        prefix = prefix_of(weights, names.stem["embedding.weight"])
        if prefix is not None:
            return renamed(weights, names, prefix)
    expected, way_out = "a Whisper model with its decoder", "give the whole model"
    raise DataError(weights.path, expected, "no decoder", way_out)


def _from_ctranslate2(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Queries, keys and values of tokens are one product there, keys and values of frames one."""
    made = {
        "embedding.weight": tensors["decoder/embeddings/weight"],
        "positions": tensors["decoder/position_encodings/encodings"],
        **_named(tensors, "decoder/layer_norm", "norm", {"gamma": "weight", "beta": "bias"}),
    }
    number = 0
    while f"decoder/layer_{number}/ffn/linear_0/weight" in tensors:
        theirs, ours = f"decoder/layer_{number}", f"blocks.{number}"
        for part, of in {"attention": "self_attention", "cross": "attention"}.items():
            fused = ["query", "key", "value"]
            place, last = f"{theirs}/{of}/linear_0", f"{theirs}/{of}/linear_1"
            if part == "cross":
                made |= _named(tensors, place, f"{ours}.cross.query")
                fused, place, last = ["key", "value"], last, f"{theirs}/{of}/linear_2"
            made |= _split(tensors, place, [f"{ours}.{part}.{name}" for name in fused])
            made |= _named(tensors, last, f"{ours}.{part}.out")
        norms = {"attention_norm": "self_attention", "cross_norm": "attention"}
        for our, his in {**norms, "feedforward_norm": "ffn"}.items():
            names = {"gamma": "weight", "beta": "bias"}
            made |= _named(tensors, f"{theirs}/{his}/layer_norm", f"{ours}.{our}", names)
        for our, his in {"wide": "linear_0", "narrow": "linear_1"}.items():
            made |= _named(tensors, f"{theirs}/ffn/{his}", f"{ours}.{our}")
        number += 1
    return {name: value for name, value in made.items() if not name.endswith(".key.bias")}


def _named(
    tensors: Mapping[str, Tensor], theirs: str, ours: str, names: Mapping[str, str] | None = None
) -> dict[str, Tensor]:
    names = names or {"weight": "weight", "bias": "bias"}
    return {f"{ours}.{our}": tensors[f"{theirs}/{his}"] for his, our in names.items()}


def _split(tensors: Mapping[str, Tensor], theirs: str, ours: Sequence[str]) -> dict[str, Tensor]:
    return {
        f"{name}.{kind}": part
        for kind in ("weight", "bias")
        for name, part in zip(ours, tensors[f"{theirs}/{kind}"].chunk(len(ours)))
    }


def _spec(
    weights: Weights, tensors: Mapping[str, Tensor], dim: int, num_tokens: int, prompt: int
) -> WhisperSpec:
    layers = len({name.split(".")[1] for name in tensors if name.startswith("blocks.")})
    heads = int(weights.tensors.get("decoder/num_heads", torch.tensor(dim // 64)))
    for key in ("decoder_attention_heads", "dims.n_text_head"):
        heads = int(weights.config.get(key, heads))  # type: ignore[call-overload]
    return WhisperSpec(
        kind=KIND,
        feature_dim=dim,
        num_tokens=num_tokens,
        utterance_mean=False,
        encoder=AnyEncoderConfig("identity", IdentityConfig(subsampling=1, dropout=0.0)),
        decoder=DecoderConfig(
            layers=layers,
            heads=heads,
            feedforward=len(tensors["blocks.0.wide.weight"]),
            positions=len(tensors["positions"]),
            prompt=prompt,
        ),
        silence=SILENCE,
    )
