from pathlib import Path

import numpy as np
import pytest
import soundfile

from privasr_k2.data.audio import AudioHeader, missing_samples, read_header, read_headers


@pytest.fixture
def samples() -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.1, 32000).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "format_"), [("a.flac", "FLAC"), ("a.wav", "WAV"), ("a.sph", "NIST")]
)
def test_whole_and_truncated_files(
    tmp_path: Path, samples: np.ndarray, name: str, format_: str
) -> None:
    path = tmp_path / name
    soundfile.write(path, samples, 16000, format=format_, subtype="PCM_16")
    header = read_header(path)
    assert header == AudioHeader(32000, 16000, 1)
    assert missing_samples(path) is None
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    assert "truncated" in (missing_samples(path) or "")


def test_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "empty.wav").write_bytes(b"")
    (tmp_path / "text.wav").write_text("not audio at all\n" * 100)
    head = (
        b"NIST_1A\n   1024\nsample_count -i 7\nsample_coding -s26"
        b" pcm,embedded-shorten-v2.00\nend_head\n"
    )
    (tmp_path / "short.wav").write_bytes(head.ljust(1024) + b"ajkg")
    problem = {path.name: h.problem for path, h in read_headers(tmp_path.iterdir(), 2).items()}
    assert problem["empty.wav"] == "an empty file"
    assert "no readable audio" in str(problem["text.wav"])
    assert "sph2pipe" in str(problem["short.wav"])
    assert read_header(tmp_path / "missing.wav").problem == "no such file"
