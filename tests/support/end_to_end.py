"""Small end-to-end models for tests, whose outputs are far from uniform."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import torch

from privasr_k2.am.attention import SpellerConfig
from privasr_k2.am.ctc import CtcSpec
from privasr_k2.am.ctc_attention import CtcAttentionSpec
from privasr_k2.am.encoders import AnyEncoderConfig
from privasr_k2.am.encoders.identity import IdentityConfig
from privasr_k2.am.encoders.pyramid import PyramidConfig
from privasr_k2.am.kinds import new_model
from privasr_k2.am.las import LasSpec
from privasr_k2.am.rnnt import RnntSpec, TransducerConfig
from privasr_k2.am.transformer_decoder import DecoderConfig
from privasr_k2.am.whisper import WhisperSpec
from tests.support.small_am import encoder_settings

END_TO_END = ("rnnt", "ctc_attention", "las")
ENCODERS = ("tdnn", "blstm", "conformer", "pyramid")


def encoder(kind: str, dropout: float = 0.0) -> AnyEncoderConfig:
    """A tiny encoder that keeps a quarter of the frames."""
    pyramid = PyramidConfig(dim=6, reductions=1, subsampling=2, dropout=dropout)
    every = encoder_settings(subsampling=4, dropout=dropout) | {"pyramid": pyramid}
    return AnyEncoderConfig(kind, every[kind])


def speller(**changes: Any) -> SpellerConfig:
    """A tiny speller."""
    values: dict[str, Any] = dict(embedding=4, dim=6, layers=2, attention=5, location_filters=2)
    values |= dict(location_kernel=3, dropout=0.0, label_smoothing=0.0)
    return SpellerConfig(**{**values, **changes})


def transducer(**changes: Any) -> TransducerConfig:
    """A tiny prediction and joint network."""
    values: dict[str, Any] = dict(embedding=4, dim=6, layers=1, joint=5, dropout=0.0, joint_mb=10.0)
    values |= dict(backend="auto", prune_range=0, simple_share=0.5)
    return TransducerConfig(**{**values, **changes})


def spec(kind: str, encoder_kind: str = "tdnn", *, dropout: float = 0.0, **changes: Any) -> Any:
    """What a tiny model of 5 features and 4 tokens is built from."""
    shared = (kind, 5, 4, True, encoder(encoder_kind, dropout))
    if kind == "ctc":
        return CtcSpec(*shared)
    if kind == "whisper":
        own = AnyEncoderConfig("identity", IdentityConfig(subsampling=1, dropout=0.0))
        sizes = DecoderConfig(layers=2, heads=1, feedforward=7, positions=9, prompt=2)
        return WhisperSpec(kind, 5, 4, False, own, decoder=sizes, silence=3)
    if kind == "rnnt":
        return RnntSpec(*shared, transducer(dropout=dropout, **changes))
    if kind == "las":
        return LasSpec(*shared, speller(dropout=dropout, **changes))
    own = speller(dropout=dropout, **changes)
    return CtcAttentionSpec(*shared, own, ctc_share=0.3, ctc_weight=0.4)


def model(kind: str, encoder_kind: str = "tdnn", **options: Any) -> Any:
    """A tiny model of random weights, with output layers that make differences."""
    return sharpened(new_model(spec(kind, encoder_kind, **options), seed=1))


def sharpened(made: Any) -> Any:
    """A model with larger output layers, so that outputs are far from uniform."""
    layers = ("joint.output", "speller.output", "ctc_output", "output", "decoder.embedding")
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if name.removesuffix(".weight") in layers:
                parameter.mul_(6.0)
    return made.eval()


def everything(longest: int) -> list[tuple[int, ...]]:
    """All sequences of the tokens 1 to 3 with at most so many of them."""
    return [text for length in range(longest + 1) for text in product((1, 2, 3), repeat=length)]


def spelled_lang(lang: Path) -> Path:
    """Give a lang folder of ``small_am.write_corpus`` words that begin with a mark."""
    (lang / "tokens.txt").write_text("<blk> 0\na 1\nb 2\nc 3\n▁ 4\n", encoding="utf-8")
    (lang / "lexicon.txt").write_text("AB ▁ a b\nC ▁ c\nCA ▁ c a\n", encoding="utf-8")
    return lang


def renamed(name: str) -> str:
    """``lstm.l0.ih.weight`` of Opacus as ``lstm.weight_ih_l0``."""
    parts = name.removeprefix("_module.").split(".")
    if len(parts) > 3 and parts[-2] in ("ih", "hh"):
        return ".".join([*parts[:-3], f"{parts[-1]}_{parts[-2]}_{parts[-3]}"])
    return ".".join(parts)
