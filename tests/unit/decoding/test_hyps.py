"""Records of decoded utterances."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.decoding.hyps import Hyp, Record, read_hyps
from privasr_k2.errors import DataError
from privasr_k2.fileio import write_jsonl


def test_written_is_read_again(tmp_path: Path) -> None:
    records = [
        Record(
            "u1",
            "test_other",
            "s1",
            "a b",
            False,
            (Hyp(0.5, 0.0, "a", -1.5, -2.0), Hyp(1.0, 0.0, "b", -2.0, -1.0)),
        ),
        Record("u2", "test_other", "s2", "c", True, (Hyp(0.5, 0.0, "", 0.0, 0.0),)),
    ]
    write_jsonl(tmp_path / "1.jsonl", (record.to_dict() for record in records))
    assert list(read_hyps(tmp_path / "1.jsonl")) == records


@pytest.mark.parametrize("record", [{"id": "u1"}, {"id": "u1", "hyps": [{"words": "a"}]}])
def test_broken_records(tmp_path: Path, record: dict[str, object]) -> None:
    write_jsonl(tmp_path / "1.jsonl", [record])
    with pytest.raises(DataError, match="record 1: expected a decoded utterance"):
        list(read_hyps(tmp_path / "1.jsonl"))
