"""The example of docs/new_corpus.md, and the verbs that a recipe calls on it, as a new user would
run them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from privasr_k2.data.manifests import load_cuts
from tests.support import trees
from tests.support.conf import section


def verb(repo_root: Path, name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"privasr_k2.bin.{name}", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=repo_root)


@pytest.mark.slow
def test_the_example_of_the_manual(repo_root: Path, tmp_path: Path) -> None:
    page = (repo_root / "docs" / "new_corpus.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(# my_corpus\.py\n.*?)```", page, flags=re.DOTALL)
    assert example is not None
    definition, raw, data = tmp_path / "my_corpus.py", tmp_path / "recordings", tmp_path / "data"
    definition.write_text(example[1])
    for role in ("train", "dev", "test"):
        trees.noise(raw / role / f"{role}_anna" / "1.wav", 1.0, file_format="WAV")
        trees.lines(raw / role / f"{role}_anna" / "1.txt", "Hello, World!")
    prepare = ("--in-definition", definition, "--raw-corpus", raw, "--out-dir", data / "manifests")
    done = verb(
        repo_root, "prepare_corpus", *prepare, "--set", "allow_pipes=false", "--num-jobs", "2"
    )
    assert done.returncode == 0, done.stderr
    assert "train: 1 utterances, 0.00 h, 1 speakers" in done.stderr
    layers = ("--config", section("features"), "--set", "kind=mfcc", "speed_perturb=true")
    features = ("--in-manifests", data / "manifests", "--out-dir", data / "feats_mfcc", *layers)
    done = verb(repo_root, "compute_features", *features)
    assert done.returncode == 0, done.stderr
    cut = load_cuts(data / "feats_mfcc", "test")[0]
    assert cut.supervisions[0].text == "hello world"
    assert cut.load_features().shape == (100, 40)
    (raw / "test" / "test_anna" / "1.txt").write_text("")
    done = verb(repo_root, "prepare_corpus", *prepare)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-2:][0].startswith("error: test_anna-1: expected words")
    assert "way out:" in done.stderr
