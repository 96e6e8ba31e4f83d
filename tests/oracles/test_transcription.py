"""A folder of real speech through a recognizer upon the real tiny.en, against its parts by hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.support.verbs import run

soundfile = pytest.importorskip("soundfile")


@pytest.mark.k2
@pytest.mark.slow
@pytest.mark.shared_data
def test_real_speech_upon_tiny_en(shared_data: Path, tmp_path: Path) -> None:
    import torch

    from privasr_k2.decoding.kaldi_backend import open_decoder
    from privasr_k2.encoders.chunks import ChunkConfig, encode_long
    from privasr_k2.encoders.loading import load_encoder
    from tests.support.encoder_recognizer import SEARCH, write_recognizer

    name = Path(os.environ.get("PRIVASR_ENCODERS", "")) / "tiny.en"
    if "PRIVASR_ENCODERS" not in os.environ or not name.is_dir():
        pytest.skip("no tiny.en: set PRIVASR_ENCODERS")
    paths = sorted((shared_data / "LibriSpeech" / "test-other").glob("*/*/*.flac"))[:6]
    signals = [soundfile.read(path, dtype="float32")[0] for path in paths]
    signals.append(np.concatenate([*signals, *signals])[: 16000 * 65])
    assert len(signals[-1]) > 16000 * 40  # more than Whisper hears at once
    for number, signal in enumerate(signals):
        path = tmp_path / f"audio/{number % 2}/{number}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, signal, 16000, subtype="FLOAT")
    chunks = {"chunk_seconds": 28.0, "chunk_overlap": 4.0}
    head = write_recognizer(tmp_path / "exp", name, 384, **chunks)
    search = open_decoder(tmp_path / "exp/graph", SEARCH)
    encoder, expected = load_encoder(name), {}
    for number, signal in enumerate(signals):
        with torch.no_grad():
            outputs = encode_long(encoder, torch.from_numpy(signal), ChunkConfig(28.0, 4.0, 1))
        assert abs(len(outputs) - len(signal) / 320) <= 1
        stored = outputs[: round(len(signal) / 320)].half().float()
        hyps = search.decode(*head.log_probs(stored[None], torch.tensor([len(stored)])))[0]
        expected[f"{number % 2}/{number}.wav"] = hyps[0].words
    shown = run(f"transcribe --in-exp {tmp_path}/exp --device cpu {tmp_path}/audio")
    lines = dict(line.split("\t") for line in shown.splitlines() if "\t" in line)
    assert lines == expected and len(set(expected.values())) > 5
