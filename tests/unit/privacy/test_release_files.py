"""A release's sentences may change with the version, and its files tell no times."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from pathlib import Path

from privasr_k2.privacy import release
from privasr_k2.privacy.spending import Spending
from tests.support.made_spending import COUNTS


def begin(folder: Path, spending: Spending = COUNTS):
    """Begin a release of these words."""
    return release.begin(
        folder / "ledger.json", beside=folder / "privacy.json", spending=spending,
        fingerprint="a" * 64, max_epsilon=None,
    )  # fmt: skip


def test_other_words_on_what_is_not_covered_are_the_same_release(tmp_path: Path) -> None:
    """A finished release is not made again because a later version says more."""
    told = [dataclasses.replace(COUNTS, does_not_cover=(words,)) for words in ("old", "new")]
    with begin(tmp_path, told[0]) as first:
        first.finish()
    with begin(tmp_path, told[1]) as second:
        assert second.is_continued and second.is_finished
    assert first.entry == second.entry


def test_all_files_have_the_time_of_the_entry(tmp_path: Path) -> None:
    (tmp_path / "out/checkpoints").mkdir(parents=True)
    (tmp_path / "out/checkpoints/latest").touch()
    (tmp_path / "out/gone").symlink_to("nowhere")
    with begin(tmp_path) as made:
        made.date(tmp_path / "out")
    began = datetime.fromisoformat(made.entry.time).timestamp()
    paths = [tmp_path / "out", *(tmp_path / "out").rglob("*")]
    assert len(paths) == 4 and {path.lstat().st_mtime for path in paths} == {began}
