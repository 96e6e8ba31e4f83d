"""The first stages of the recipe ctc on every corpus but mini: up to a graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import trees
from tests.support.recipe_tools import run_recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]


def reaches_a_graph(work: Path, *arguments: str | Path) -> None:
    """The recipe runs stages 0 to 4."""
    done = run_recipe(*arguments, "--preset", "tiny", "--work-dir", work, "--stop-stage", "4")
    assert done.returncode == 0, done.stdout
    assert (work / "data/graph_phone/HLG.safetensors").is_file()


def test_timit(tmp_path: Path) -> None:
    for part, speaker in (("TRAIN", "FCJF0"), ("TEST", "FAKS0"), ("TEST", "MDAB0")):
        for sentence in ("SX127", "SI648"):
            stem = tmp_path / "TIMIT" / part / "DR1" / speaker / sentence
            trees.noise(stem.with_suffix(".WAV"), 1.0, file_format="NIST")
            trees.lines(
                stem.with_suffix(".PHN"),
                "0 4000 h#",
                "4000 5000 sh",
                "5000 6000 ix",
                "6000 7000 dcl",
            )
    reaches_a_graph(tmp_path / "work", "timit", "ctc", "--corpus-dir", tmp_path / "TIMIT")
    words = (tmp_path / "work/data/lang_phone/words.txt").read_text().split()
    assert {"sil", "sh", "ix", "vcl"} <= set(words)


@pytest.mark.shared_data
def test_ami_spoken_by_synthetic_voices(shared_data: Path, tmp_path: Path) -> None:
    corpus_dir = shared_data / "ami"
    reaches_a_graph(
        tmp_path / "work", "ami", "ctc", "--corpus-dir", corpus_dir, "--speech", "synthetic"
    )


@pytest.mark.shared_data
def test_a_kaldi_folder_with_features(shared_data: Path, tmp_path: Path) -> None:
    reaches_a_graph(tmp_path / "work", f"data:{shared_data}/an4", "ctc")
    assert "kind: given" in (tmp_path / "work/data/feats_auto/features.yaml").read_text()
