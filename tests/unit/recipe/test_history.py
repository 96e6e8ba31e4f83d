"""What is behind a file, by the stamps."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import write_json
from privasr_k2.recipe.history import History, history


def stamp(work: Path, output: str, seconds: float, code: str | None, *inputs: str) -> None:
    path = work / output
    record = {
        "fingerprint": "f",
        "command": ["verb", "--in-x", *inputs, "--out-y", output],
        "seconds": seconds,
    }
    known = {} if code is None else {"code": code}
    write_json(
        path.parent / ".stages" / f"{path.name}.json", {**record, **known, "outputs": {output: "digest"}}
    )


def test_everything_behind_a_file_counts_once(tmp_path: Path) -> None:
    stamp(tmp_path, "data/text", 1.0, "old")
    stamp(tmp_path, "data/lang", 2.0, "new", "data/text")
    stamp(tmp_path, "exp/a/lm", 4.0, "new", "data/text", "data/lang/words.txt", "elsewhere/x")
    stamp(tmp_path, "exp/a/RESULTS.md", 8.0, None, "exp/a/lm", "data/lang")
    stamp(tmp_path, "exp/b/RESULTS.md", 16.0, "other", "data/text")
    assert history(tmp_path / "exp/a/RESULTS.md", tmp_path) == History(4, 15.0, ("new", "old"))
    with pytest.raises(DataError, match="one without a stamp"):
        history(tmp_path / "exp/c", tmp_path)
