"""Why readers of corpora are longer than a map of roles: what lhotse's recipes do by themselves.

docs/design.md names these gaps. Where a test here fails, lhotse has closed one, and code may go.
"""

from __future__ import annotations

import re
from pathlib import Path

import lhotse.recipes
import pytest
from lhotse.recipes import prepare_ami, prepare_timit

from tests.support import trees
from tests.support.ami_trees import annotations, headsets
from tests.support.conf import ROOT

MODULES = ROOT / "privasr_k2/corpora"


def lines_of(*names: str) -> int:
    return sum(len((MODULES / f"{name}.py").read_text().splitlines()) for name in names)


def test_the_page_has_the_lines_of_each_reader() -> None:
    page = " ".join((ROOT / "docs/design.md").read_text(encoding="utf-8").split())
    [item] = re.findall(r"- \*\*Readers of corpora\*\* .*?(?= - \*\*)", page)
    readers = (("librispeech",), ("timit",), ("speechocean762",), ("ami", "ami_headsets"))
    for names in readers:
        found = re.search(rf"`{names[0]}` \((\d+) lines", item)
        assert found and int(found[1]) == lines_of(*names), names
    assert lines_of("librispeech") <= 60


def timit(root: Path, *, lower: bool = False) -> Path:
    """TIMIT as lhotse wants it, below ``data/``, maybe in lower case as many copies are."""
    trees.timit(root / "data")
    if lower:
        for path in sorted((root / "data").rglob("*"), reverse=True):
            path.rename(path.with_name(path.name.lower()))
    return root


def test_timit_in_lower_case_is_none(tmp_path: Path) -> None:
    found = prepare_timit(timit(tmp_path / "upper"))
    assert [len(found[part]["recordings"]) for part in ("TRAIN", "DEV", "TEST")] == [2, 2, 2]
    with pytest.raises(AssertionError, match="No recordings left") as caught:
        prepare_timit(timit(tmp_path / "lower", lower=True))
    assert "lower" not in str(caught.value)


@pytest.mark.parametrize(("line", "error"), [("10 20 xx", KeyError), ("10 20", ValueError)])
def test_timit_ends_at_a_bad_line_without_its_place(
    tmp_path: Path, line: str, error: type[Exception]
) -> None:
    path = timit(tmp_path) / "data/TRAIN/DR1/FCJF0/SX127.PHN"
    trees.lines(path, "0 10 h#", line)
    with pytest.raises(error) as caught:
        prepare_timit(tmp_path)
    assert "SX127" not in str(caught.value)


def test_timit_without_words_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (timit(tmp_path) / "data/TRAIN/DR1/FCJF0/SX127.WRD").unlink()
    assert len(prepare_timit(tmp_path)["TRAIN"]["recordings"]) == 1
    assert "SX127" not in caplog.text


def test_ami_counts_headsets_for_their_numbers(tmp_path: Path) -> None:
    """Of a meeting without its first headset, the second one's speech is left out."""
    manual, audio = annotations(tmp_path / "manual"), headsets(tmp_path / "amicorpus")

    def meetings() -> set[str]:
        made = prepare_ami(audio, manual, partition="full-corpus-asr", normalize_text="none")
        return {one.recording_id for one in made["train"]["supervisions"]}

    assert meetings() == {"ES2002a", "ES2003a"}
    (audio / "ES2002a/audio/ES2002a.Headset-0.wav").unlink()
    assert meetings() == {"ES2003a"}


def test_lhotse_reads_no_speechocean762() -> None:
    assert not [name for name in dir(lhotse.recipes) if "ocean" in name]
