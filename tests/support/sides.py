"""Helpers shared with ``test_sides.py``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from privasr_k2.data.manifests import load_cuts, save_cuts
from privasr_k2.fileio import write_text
from tests.support.small_am import write_corpus


def corpus(folder: Path, name: str, speakers: Sequence[str], *, dim: int = 5) -> Path:
    """A features folder with two utterances of each speaker in train; dev and test of others."""
    from lhotse.utils import fastcopy

    feats, _ = write_corpus(folder / name, utterances=2 * len(speakers))
    train = [speaker for speaker in speakers for _ in "ab"]
    for role, names in (("train", train), ("dev", [f"{name}_dev"] * 6)):
        cuts = []
        for cut, speaker in zip(load_cuts(feats, role), names):
            said = [fastcopy(cut.supervisions[0], speaker=speaker)]
            cuts.append(fastcopy(cut, id=f"{name}-{cut.id}", supervisions=said))
        save_cuts(cuts, feats, role)
    about = {"kind": "given", "dim": dim, "frame_shift": 0.01}
    write_text(feats / "features.yaml", yaml.safe_dump(about))
    return feats


@pytest.fixture
def feats(tmp_path: Path) -> Path:
    return corpus(tmp_path, "own", [f"s{number}" for number in range(8)])


def speakers(folder: Path, role: str) -> set[str]:
    """Who speaks."""
    return {cut.supervisions[0].speaker for cut in load_cuts(folder, role)}
