"""The first stages of the recipe ctc on every corpus but mini: up to a graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import trees
from tests.support.recipe_tools import recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]


def reaches_a_graph(work: Path, command: str) -> None:
    """The recipe runs stages 0 to 4."""
    recipe(f"{command} --preset tiny --stop-stage 4", "--work-dir", work)
    assert (work / "data/graph_phone/HLG.safetensors").is_file()


def test_timit(tmp_path: Path) -> None:
    phones = ("0 4000 h#", "4000 5000 sh", "5000 6000 ix", "6000 7000 dcl")
    for part, speaker in (("TRAIN", "FCJF0"), ("TEST", "FAKS0"), ("TEST", "MDAB0")):
        for sentence in ("SX127", "SI648"):
            stem = tmp_path / "TIMIT" / part / "DR1" / speaker / sentence
            trees.noise(stem.with_suffix(".WAV"), 1.0, file_format="NIST")
            trees.lines(stem.with_suffix(".PHN"), *phones)
    reaches_a_graph(tmp_path / "work", f"timit ctc --corpus-dir {tmp_path / 'TIMIT'}")
    words = (tmp_path / "work/data/lang_phone/words.txt").read_text().split()
    assert {"sil", "sh", "ix", "vcl"} <= set(words)


@pytest.mark.shared_data
def test_ami_spoken_by_synthetic_voices(shared_data: Path, tmp_path: Path) -> None:
    reaches_a_graph(tmp_path, f"ami ctc --corpus-dir {shared_data}/ami --speech synthetic")


@pytest.mark.shared_data
def test_a_kaldi_folder_with_features(shared_data: Path, tmp_path: Path) -> None:
    reaches_a_graph(tmp_path, f"data:{shared_data}/an4 ctc")
    assert "kind: given" in (tmp_path / "data/feats_auto/features.yaml").read_text()
