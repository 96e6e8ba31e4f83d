"""A language model's training killed with SIGKILL at any moment ends with the same bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.fileio import write_text
from tests.support.lm_verbs import corpus, train_flags  # noqa: F401  # a fixture
from tests.support.small_lm import grammar_sentences

pytestmark = [pytest.mark.reliability, pytest.mark.slow]


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_killed_and_started_again(
    kind: str,
    corpus: tuple[Path, Path],  # noqa: F811
    repo_root: Path,
    tmp_path: Path,
) -> None:
    text = tmp_path / "text.txt"
    write_text(text, "".join(" ".join(words) + "\n" for words in grammar_sentences(1000, seed=9)))

    def train(out_dir: Path) -> subprocess.Popen[str]:
        changes = ("epochs=4", "save_every=3", "network.dropout=0.2")
        flags = train_flags(corpus, kind, out_dir, *changes)
        command = [sys.executable, "-m", "privasr_k2.bin.train_lm", *flags, "--raw-text", text]
        run = [str(word) for word in command]
        return subprocess.Popen(run, cwd=repo_root, stderr=subprocess.PIPE, text=True)

    whole = train(tmp_path / "whole")
    _, errors = whole.communicate()
    assert whole.returncode == 0, errors
    rng = np.random.default_rng(1)
    latest = tmp_path / "killed" / "checkpoints" / "latest.safetensors"
    kills = 0
    for checkpoints in (2, 5, 4):
        running = train(tmp_path / "killed")
        before = times = 0
        while running.poll() is None and times < checkpoints:
            written = latest.stat().st_mtime_ns if latest.exists() else 0
            times += written != before
            before = written
            time.sleep(0.002)
        time.sleep(float(rng.uniform(0, 0.02)))
        kills += running.poll() is None
        os.kill(running.pid, signal.SIGKILL)
        running.communicate()
    assert kills > 0
    again = train(tmp_path / "killed")
    _, errors = again.communicate()
    assert again.returncode == 0, errors
    assert "continuing in epoch" in errors
    for name in ("model.safetensors", "train_log.jsonl"):
        killed, whole = ((tmp_path / run / name).read_bytes() for run in ("killed", "whole"))
        assert killed == whole, name
