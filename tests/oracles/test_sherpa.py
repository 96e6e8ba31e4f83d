"""Exported models of filter banks in sherpa-onnx, which has its own features and greedy search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from privasr_k2.am.checkpoints import save_model
from privasr_k2.am.ctc import CtcModel, CtcSpec
from privasr_k2.am.kinds import new_model
from privasr_k2.am.losses import greedy_tokens
from privasr_k2.data.features import extract
from privasr_k2.decoding.end_to_end import join_tokens
from tests.support.small_am import KINDS, encoder_config
from tests.support.verbs import call

sherpa_onnx = pytest.importorskip("sherpa_onnx")
pytest.importorskip("onnx")

TOKENS = ["<blk>", "▁", "▁th", "e", "a", "t", "é", "'s"]


def syllables(seed: int, seconds: float, rate: int = 16000) -> np.ndarray:
    """Samples (S,) of short harmonic tones of changing pitch and loudness, in [-1, 1]."""
    rng, parts = np.random.default_rng(seed), []
    while sum(map(len, parts)) < rate * seconds:
        times = np.arange(rng.integers(rate // 20, rate // 4)) / rate
        pitch, weights = rng.uniform(80, 400), rng.uniform(0, 1, 12) ** 3
        tones = [w * np.sin(2 * np.pi * pitch * (n + 1) * times) for n, w in enumerate(weights)]
        tones.append(rng.uniform(0.01, 0.5) * rng.normal(size=len(times)))
        parts.append(rng.uniform(0.01, 0.1) * np.sum(tones, axis=0))
    return np.concatenate(parts)[: int(rate * seconds)].astype(np.float32)


def model(kind: str, subsampling: int) -> CtcModel:
    """Random weights, and outputs that differ from frame to frame."""
    encoder = encoder_config(kind, subsampling=subsampling)
    made = new_model(CtcSpec("ctc", 80, len(TOKENS), utterance_mean=True, encoder=encoder), seed=1)
    made.output.weight.data *= 20
    log_probs, _ = scores(made, syllables(9, 3.0))
    made.output.bias.data -= log_probs[0].mean(dim=0)  # otherwise one token may win everywhere
    return made


def scores(
    own: CtcModel, samples: np.ndarray, rate: int = 16000
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities (1, T, C) and their length (1,)."""
    features = torch.from_numpy(extract(samples, rate, "fbank"))
    return own.log_probs(features[None], torch.tensor([len(features)]))


def ours(own: CtcModel, samples: np.ndarray, rate: int) -> tuple[list[str], list[int]]:
    """Tokens of the best path, with the frame in which each begins."""
    log_probs, lengths = scores(own, samples, rate)
    path = log_probs[0].argmax(dim=1).tolist()
    begins = [t for t, token in enumerate(path) if token and (t == 0 or path[t - 1] != token)]
    tokens = [TOKENS[token] for token in greedy_tokens(log_probs, lengths)[0]]
    assert len(begins) == len(tokens) > 3
    return tokens, begins


@pytest.mark.parametrize(
    ("kind", "subsampling", "rate"), [*((kind, 3, 16000) for kind in KINDS), ("tdnn", 4, 8000)]
)
def test_sherpa_onnx_finds_our_tokens(
    tmp_path: Path, kind: str, subsampling: int, rate: int
) -> None:
    own = model(kind, subsampling)
    save_model(tmp_path / "am", own.spec, own.state_dict(), TOKENS)
    files = f"--out-onnx {tmp_path}/model.onnx --out-tokens {tmp_path}/tokens.txt"
    call(f"export --in-model {tmp_path}/am {files}")
    theirs = sherpa_onnx.OfflineRecognizer.from_zipformer_ctc(
        str(tmp_path / "model.onnx"), str(tmp_path / "tokens.txt"), sample_rate=rate
    )
    signals = [syllables(seed, seconds, rate) for seed, seconds in enumerate((1.0, 3.7, 6.2))]
    for batch in (signals[:1], signals):
        streams = [theirs.create_stream() for _ in batch]
        for stream, samples in zip(streams, batch):
            stream.accept_waveform(rate, samples)
        theirs.decode_streams(streams)
        for stream, samples in zip(streams, batch):
            tokens, begins = ours(own, samples, rate)
            found = [token.replace(" ", "▁") for token in stream.result.tokens]
            assert found == tokens
            assert " ".join(stream.result.text.split()) == join_tokens(tokens)
            # It counts in frames of 40 ms, whatever the model's are.
            assert stream.result.timestamps == pytest.approx([0.04 * t for t in begins])
