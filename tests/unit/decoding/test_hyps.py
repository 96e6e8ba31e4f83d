"""What decode writes is what scoring reads."""

from __future__ import annotations

from pathlib import Path

from privasr_k2.decoding.hyps import Hyp, Record
from privasr_k2.fileio import write_jsonl
from privasr_k2.scoring.hypotheses import Utterance, Weights, read_decoded


def test_written_is_read_by_scoring(tmp_path: Path) -> None:
    hyps = (Hyp(0.5, 0.0, "a", -1.5, -2.0), Hyp(1.0, 0.0, "a c", -2.0, -1.0))
    empty = (Hyp(0.5, 0.0, "", 0.0, 0.0), Hyp(1.0, 0.0, "", 0.0, 0.0))
    records = [
        Record("u1", "test_other", "s1", "a b", False, hyps),
        Record("u2", "test_other", "s2", "c", True, empty),
    ]
    folder = tmp_path / "decode_test"
    write_jsonl(folder / "1.jsonl", (record.to_dict() for record in records))
    read, low, high = read_decoded(folder), Weights(0.5, 0.0), Weights(1.0, 0.0)
    assert (read.role, read.grid) == ("test", (low, high))
    assert read.utterances == (
        Utterance("u1", "test_other", "s1", ("a", "b"), False, {low: ("a",), high: ("a", "c")}),
        Utterance("u2", "test_other", "s2", ("c",), True, {low: (), high: ()}),
    )


def test_classes_are_told_where_the_graph_has_them() -> None:
    plain = Hyp(1.0, 0.0, "a b", -1.0, -2.0)
    marked = Hyp(1.0, 0.0, "a b", -1.0, -2.0, ((1, 2, "PER"),))
    told = Record("u1", "dev", "s1", "a b", False, (plain, marked)).to_dict()["hyps"]
    assert "classes" not in told[0] and told[1]["classes"] == ((1, 2, "PER"),)
