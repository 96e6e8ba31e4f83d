"""The public list of all units."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.data.roster import read_roster, read_speakers, read_units, write_roster
from privasr_k2.errors import DataError
from privasr_k2.fileio import write_text


def test_what_is_written_is_read(tmp_path: Path) -> None:
    utterances = {"u2": "bob", "u1": "anna", "u3": "bob"}
    write_roster(tmp_path / "utt2spk", utterances, "utterance")
    assert (tmp_path / "utt2spk").read_text() == "u1 anna\nu2 bob\nu3 bob\n"
    assert read_roster(tmp_path / "utt2spk", "utterance") == utterances
    assert read_speakers(tmp_path / "utt2spk") == (["anna", "bob"], utterances)
    write_roster(tmp_path / "speakers", {"bob": "", "anna": ""}, "speaker")
    assert read_roster(tmp_path / "speakers", "speaker") == {"anna": "anna", "bob": "bob"}
    assert read_speakers(tmp_path / "speakers") == (["anna", "bob"], None)
    both = {"anna": "anna", "bob": "bob"}
    assert all(read_units(tmp_path / name, "speaker") == both for name in ("speakers", "utt2spk"))
    assert read_units(tmp_path / "utt2spk", "utterance") == utterances


@pytest.mark.parametrize(
    ("text", "unit", "message"),
    [
        ("", "speaker", "the names of all speakers"),
        ("a\nb\na\n", "speaker", "roster:3: expected every speaker once"),
        ("u1 anna\nu2\n", "utterance", "roster:2: expected an utterance and its speaker"),
    ],
)
def test_what_names_nobody_is_refused(tmp_path: Path, text: str, unit: str, message: str) -> None:
    write_text(tmp_path / "roster", text)
    with pytest.raises(DataError, match=message):
        read_roster(tmp_path / "roster", unit)
