"""A training killed with SIGKILL at any moment and started again ends with the same bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.support.conf import section
from tests.support.small_am import write_corpus

pytestmark = [pytest.mark.reliability, pytest.mark.slow]


def train_am(repo_root: Path, corpus: tuple[Path, Path], out_dir: Path) -> subprocess.Popen[str]:
    """Start a training of some seconds."""
    feats, lang = corpus
    command = (
        f"{sys.executable} -m privasr_k2.bin.train_am --in-feats {feats} --in-lang {lang}"
        f" --out-dir {out_dir} --config {section('am_ctc')} {section('am_ctc', 'tiny')}"
        " --device cpu --set epochs=6 max_duration=3 save_every=3 encoder.tdnn.dropout=0.2"
    )
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return subprocess.Popen(command.split(), cwd=repo_root, **pipes)


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_and_started_again(tmp_path, repo_root, seed):
    corpus = write_corpus(tmp_path / "corpus", utterances=40)
    whole = train_am(repo_root, corpus, tmp_path / "whole")
    _, errors = whole.communicate()
    assert whole.returncode == 0, errors
    rng = np.random.default_rng(seed)
    latest = tmp_path / "killed" / "checkpoints" / "latest.safetensors"
    kills = 0
    for checkpoints in rng.integers(1, 5, size=3):
        running = train_am(repo_root, corpus, tmp_path / "killed")
        before = times = 0
        while running.poll() is None and times < checkpoints:
            written = latest.stat().st_mtime_ns if latest.exists() else 0
            times += written != before
            before = written
            time.sleep(0.002)
        time.sleep(float(rng.uniform(0, 0.05)))
        kills += running.poll() is None
        os.kill(running.pid, signal.SIGKILL)
        running.communicate()
    assert kills > 0
    again = train_am(repo_root, corpus, tmp_path / "killed")
    _, errors = again.communicate()
    assert again.returncode == 0, errors
    assert "continuing in epoch" in errors
    for name in ("model.safetensors", "train_log.jsonl"):
        killed, expected = ((tmp_path / run / name).read_bytes() for run in ("killed", "whole"))
        assert killed == expected, name
    assert not list((tmp_path / "killed" / "checkpoints").glob(".*.tmp.*"))
