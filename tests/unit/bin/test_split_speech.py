"""split_speech from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.fileio import read_json
from tests.support.conf import section
from tests.support.sides import corpus
from tests.support.verbs import call

pytest.importorskip("lhotse")


def test_the_command_line(tmp_path: Path) -> None:
    feats = corpus(tmp_path, "own", [f"s{number}" for number in range(10)])
    other = corpus(tmp_path, "other", ["o1"])
    given = ("--in-feats", feats, "--in-public-train", other, "--out-dir", tmp_path / "sides")
    config = ("--config", section("split_speech"), "--set", "pool_share=0.2")
    call("split_speech", *given, *config)
    told = read_json(tmp_path / "sides/sides.json")
    assert told["unit"] == "speaker" and told["public"]["speakers"] == ["o1"]
    assert [len(told[side]["speakers"]) for side in ("private", "pool")] == [8, 2]
