"""The verb: a table on the terminal and in a file, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.made_scores import write_score
from tests.support.verbs import call, refused

REFS = {f"u{i}": "a b c d" for i in range(9)}


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    for name, hyp in (("good", "a b c d"), ("bad", "a x c d"), ("worse", "x y")):
        hyps = {u: hyp if i % 2 else "a b c d" for i, u in enumerate(REFS)}
        write_score(tmp_path / name / "score_test", {"test_x": (REFS, hyps)})
    return [f"{name}/score_test" for name in ("good", "bad", "worse")]


def test_one_table(folders: list[str], capsys: pytest.CaptureFixture) -> None:
    call("compare --in-scores", *folders, "--out-table out/table.md")
    text = Path("out/table.md").read_text()
    assert capsys.readouterr().out.strip() == text.strip()
    assert text.startswith("# Systems compared\n") and text.count("| WER difference |") == 3
    assert sum(line.startswith("| test_x ") for line in text.splitlines()) == 3


def test_the_terminal_is_enough(
    folders: list[str], capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    before = sorted(tmp_path.rglob("*"))
    call("compare", *folders[:2])
    assert capsys.readouterr().out.count("| WER difference |") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_one_system_alone_is_refused(folders: list[str]) -> None:
    with refused("two"):
        call("compare", folders[0])


def test_other_references_are_refused_in_words(folders: list[str], tmp_path: Path) -> None:
    other = {**REFS, "u3": "a b c e"}
    write_score(tmp_path / "other" / "score_test", {"test_x": (other, other)})
    with refused("score both systems on the same data"):
        call("compare --in-scores", *folders, "other/score_test", "--out-table table.md")
    assert not Path("table.md").exists()


def test_systems_of_one_folder_keep_their_names(
    folders: list[str], capsys: pytest.CaptureFixture
) -> None:
    """They had one name, and the last one's errors stood in both rows."""
    Path(folders[1]).rename("good/score_test_lm")
    call("compare good/score_test good/score_test_lm")
    printed = capsys.readouterr().out.splitlines()
    rows = [line.split("|") for line in printed if line.startswith("| test_x ")]
    found = {row[2].strip(): row[4].strip() for row in rows}
    assert found["score_test"] == "0.00" and found["score_test_lm"] == "11.11"


def test_a_folder_twice_is_refused(folders: list[str]) -> None:
    with refused("name it once"):
        call("compare", folders[0], folders[1], folders[0])
