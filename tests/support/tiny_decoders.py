"""Tiny Whisper models with decoder and tokenizer, in the files that others write."""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from privasr_k2.am.transformer_decoder import Decoder, DecoderConfig
from privasr_k2.bin.prepare_lang import main as prepare_lang
from tests.support.tiny_encoders import (
    WHISPER_CONFIG,
    ctranslate2_arrays,
    drawn,
    hugging_face_tensors,
    openai_tensors,
    save_ctranslate2,
    save_safetensors,
    tiny_whisper,
)

SIZES = DecoderConfig(layers=2, heads=1, feedforward=48, positions=30, prompt=2)
SPECIAL = ("<|endoftext|>", "<|startoftranscript|>", "<|notimestamps|>")
_PARTS = {"attention": ("self_attn", "attn"), "cross": ("encoder_attn", "cross_attn")}


def tiny_decoder(num_tokens: int) -> Decoder:
    """A decoder upon ``tiny_whisper``."""
    return drawn(lambda: Decoder(64, num_tokens, SIZES))


def _renamed(decoder: Decoder, *, hugging_face: bool) -> dict[str, Tensor]:
    stem = "model.decoder." if hugging_face else "decoder."
    names = {"embedding.weight": "embed_tokens.weight", "positions": "embed_positions.weight"}
    norms = {"attention_norm": "self_attn_layer_norm", "cross_norm": "encoder_attn_layer_norm"}
    norms |= {"feedforward_norm": "final_layer_norm", "wide": "fc1", "narrow": "fc2"}
    top, blocks = "layer_norm", "layers"
    if not hugging_face:
        names = {"embedding.weight": "token_embedding.weight", "positions": "positional_embedding"}
        norms = {"attention_norm": "attn_ln", "cross_norm": "cross_attn_ln"}
        norms |= {"feedforward_norm": "mlp_ln", "wide": "mlp.0", "narrow": "mlp.2"}
        top, blocks = "ln", "blocks"
    renamed = {}
    for name, value in decoder.state_dict().items():
        if name == "prompt":
            continue
        theirs = names.get(name) or name.replace("norm.", f"{top}.", 1)
        if name.startswith("blocks."):
            _, number, part, *rest = name.split(".")
            if part in _PARTS:
                rest[0] = f"{rest[0][0]}_proj" if hugging_face and rest[0] != "out" else rest[0]
                rest[0] = "out_proj" if hugging_face and rest[0] == "out" else rest[0]
                part = _PARTS[part][0 if hugging_face else 1]
            theirs = ".".join((blocks, number, norms.get(part, part), *rest))
        renamed[f"{stem}{theirs}"] = value.contiguous()
    return renamed


def _arrays(decoder: Decoder) -> dict[str, np.ndarray]:
    state = {name: tensor.numpy() for name, tensor in decoder.state_dict().items()}
    arrays = {
        "decoder/embeddings/weight": state["embedding.weight"],
        "decoder/position_encodings/encodings": state["positions"],
        "decoder/layer_norm/gamma": state["norm.weight"],
        "decoder/layer_norm/beta": state["norm.bias"],
        "decoder/num_heads": np.int16(SIZES.heads),
    }

    def fused(ours: str, names: tuple[str, ...], theirs: str) -> None:
        weights = [state[f"{ours}.{name}.weight"] for name in names]
        biases = [state.get(f"{ours}.{n}.bias", 0 * w[:, 0]) for n, w in zip(names, weights)]
        arrays[f"{theirs}/weight"] = np.concatenate(weights)
        arrays[f"{theirs}/bias"] = np.concatenate(biases)

    for number in range(SIZES.layers):
        ours, theirs = f"blocks.{number}", f"decoder/layer_{number}"
        fused(f"{ours}.attention", ("query", "key", "value"), f"{theirs}/self_attention/linear_0")
        fused(f"{ours}.attention", ("out",), f"{theirs}/self_attention/linear_1")
        fused(f"{ours}.cross", ("query",), f"{theirs}/attention/linear_0")
        fused(f"{ours}.cross", ("key", "value"), f"{theirs}/attention/linear_1")
        fused(f"{ours}.cross", ("out",), f"{theirs}/attention/linear_2")
        fused(ours, ("wide",), f"{theirs}/ffn/linear_0")
        fused(ours, ("narrow",), f"{theirs}/ffn/linear_1")
        norms = {"attention_norm": "self_attention", "cross_norm": "attention"}
        for norm, place in {**norms, "feedforward_norm": "ffn"}.items():
            arrays[f"{theirs}/{place}/layer_norm/gamma"] = state[f"{ours}.{norm}.weight"]
            arrays[f"{theirs}/{place}/layer_norm/beta"] = state[f"{ours}.{norm}.bias"]
    return arrays


def save_hugging_face(folder: Path, decoder: Decoder) -> None:
    """The whole model as transformers saves it, with its tokenizer."""
    tensors = {**hugging_face_tensors(tiny_whisper()), **_renamed(decoder, hugging_face=True)}
    save_safetensors(folder, tensors, WHISPER_CONFIG)
    write_tokenizer(folder)


def save_openai(folder: Path, decoder: Decoder) -> None:
    """A checkpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {**openai_tensors(tiny_whisper()), **_renamed(decoder, hugging_face=False)}
    torch.save({"dims": {}, "model_state_dict": OrderedDict(state)}, str(folder / "tiny.pt"))
    write_tokenizer(folder)


def save_by_ctranslate2(folder: Path, decoder: Decoder) -> None:
    """``model.bin``."""
    save_ctranslate2(
        folder / "model.bin", {**ctranslate2_arrays(tiny_whisper()), **_arrays(decoder)}
    )
    write_tokenizer(folder)


#: By the name of who writes such files.
SAVE = {
    "hugging_face": save_hugging_face,
    "openai": save_openai,
    "ctranslate2": save_by_ctranslate2,
}


def write_tokenizer(folder: Path) -> None:
    """A byte-level tokenizer of letters, a few merges, a capital, a figure, special tokens."""
    letters = "abcdefghijklmnopqrstuvwxyzT'1"
    starts = [f"\u0120{letter}" for letter in letters[:26]]
    pieces = [*SPECIAL, *letters, "\u0120", *starts, "he", "\u0120the", "ab"]
    merges = [*(f"\u0120 {letter}" for letter in letters[:26]), "h e", "\u0120t he", "a b"]
    special = [
        {"id": n, "content": name, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for n, name in enumerate(SPECIAL)
    ]  # fmt: skip
    model = {"type": "BPE", "vocab": {piece: n for n, piece in enumerate(pieces)}, "merges": merges}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    content = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special}
    content |= {"normalizer": None, "pre_tokenizer": {**byte_level, "use_regex": True}}
    content |= {"post_processor": None, "decoder": byte_level, "model": model}
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")


def write_lang(folder: Path, whisper: Path) -> Path:
    """A language folder in the tokens of a model's tokenizer, by the command itself."""
    import sys
    from unittest import mock

    text = folder.parent / "text.txt"
    text.write_text("the cab hit\nabe\n", encoding="utf-8")
    conf = Path(__file__).parents[2] / "conf/common.yaml"
    words = [
        "--raw-lm-text",
        text,
        "--raw-bpe-model",
        whisper / "tokenizer.json",
        "--out-dir",
        folder,
    ]
    words += ["--config", f"{conf}#lang", "--set", "units=tokenizer", "train_words=false"]
    with mock.patch.object(sys, "argv", ["prepare_lang", *map(str, words)]):
        prepare_lang()
    return folder
