"""Groups of utterances: their values in the manifests, and errors counted by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import write_jsonl
from privasr_k2.scoring.counts import ErrorCounts
from privasr_k2.scoring.groups import NOT_KNOWN, read_groups
from privasr_k2.scoring.hypotheses import Utterance, Weights
from privasr_k2.scoring.results import PartScore, ScoreOptions, score_part, score_utterances

POINT = Weights(0.5, 0.0)
OPTIONS = ScoreOptions(role="test", num_replicates=500, confidence=0.95, seed=1)

SAID = [  # id, speaker, reference, hypothesis, age group, whether train has the prompt
    ("1", "ann", "a b c d", "a b c d", "child", "true"),
    ("2", "ann", "a b", "a x", "child", "false"),
    ("3", "bob", "a b c d", "a b c", "child", "true"),
    ("4", "cat", "a b c d", "x x c d", "adult", "false"),
    ("5", "cat", "a", "a b", "adult", "false"),
]


def scored(groups: dict[str, dict[str, str]]) -> PartScore:
    utterances = [
        Utterance(name, "test", speaker, tuple(ref.split()), False, {POINT: tuple(hyp.split())})
        for name, speaker, ref, hyp, _, _ in SAID
    ]
    made = score_utterances(utterances, POINT, {}, groups)
    refs = [u.ref for u in utterances]
    return score_part("test", made, OPTIONS, raw_refs=refs, vocabulary=None)


GROUPS = {name: {"age": age, "seen": seen} for name, _, _, _, age, seen in SAID}


def test_errors_of_each_value() -> None:
    part = scored(GROUPS)
    assert list(part.groups) == ["age", "seen"]
    child, adult = part.groups["age"]["child"], part.groups["age"]["adult"]
    assert child.speakers == {
        "ann": ErrorCounts(hits=5, substitutions=1),
        "bob": ErrorCounts(hits=3, deletions=1),
    }
    assert (child.utterances, child.counts.percent) == (3, pytest.approx(100 * 2 / 10))
    assert child.interval is None
    assert adult.speakers == {"cat": ErrorCounts(hits=3, substitutions=2, insertions=1)}
    assert (adult.utterances, adult.counts.percent, adult.interval) == (2, 60.0, None)
    # A speaker may have utterances of both values.
    seen, unseen = part.groups["seen"]["true"], part.groups["seen"]["false"]
    assert (list(seen.speakers), list(unseen.speakers)) == (["ann", "bob"], ["ann", "cat"])
    assert (seen.counts.percent, seen.counts.ref_words) == (12.5, 8)
    assert (unseen.counts.percent, unseen.counts.ref_words) == (pytest.approx(400 / 7), 7)


def test_values_of_a_group_add_up_to_the_part() -> None:
    part = scored(GROUPS)
    for of_group in part.groups.values():
        assert sum(score.utterances for score in of_group.values()) == part.utterances == 5
        counts = [score.counts for score in of_group.values()]
        assert sum(c.errors for c in counts) == part.counts.errors
        assert sum(c.ref_words for c in counts) == part.counts.ref_words


def test_a_group_of_everybody_has_the_interval_of_the_part() -> None:
    """Speaker n has n errors in ten words; five of them are a group, six are all."""
    utterances = [
        Utterance(f"u{n}", "test", f"s{n}", ("a",) * 10, False, {POINT: ("a",) * (10 - n)})
        for n in range(6)
    ]
    groups = {f"u{n}": {"corpus": "x", "of": "five" if n else "one"} for n in range(6)}
    made = score_utterances(utterances, POINT, {}, groups)
    part = score_part("test", made, OPTIONS, raw_refs=[], vocabulary=None)
    assert part.groups["corpus"]["x"].interval == part.interval
    assert part.interval is not None and 0.05 < part.interval.low < 0.25 < part.interval.high < 0.45
    assert {value: score.interval for value, score in part.groups["of"].items()} == {
        "five": None,
        "one": None,
    }


def test_what_is_written_is_read_again_and_older_results_have_no_groups() -> None:
    part = scored(GROUPS)
    written = json.loads(json.dumps(part.to_dict()))
    assert PartScore.from_dict(written) == part
    assert written["groups"]["age"]["child"]["wer_percent"] == pytest.approx(20.0)
    del written["groups"]
    older = PartScore.from_dict(written)
    assert (older.groups, older.counts) == ({}, part.counts)
    assert "groups" not in scored({}).to_dict()


def cut(name: str, supervision: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "supervisions": [supervision]}


def manifests(folder: Path, *cuts: dict[str, Any]) -> Path:
    write_jsonl(folder / "cuts_test.jsonl.gz", cuts)
    return folder


def test_values_are_attributes_or_stand_in_custom(tmp_path: Path) -> None:
    manifests(
        tmp_path,
        cut("1", {"gender": "f", "custom": {"age": 7, "seen": True, "gender": "x"}}),
        cut("2", {"custom": {"age": 0, "seen": False}}),
        cut("3", {"gender": "m"}),
    )
    found = read_groups(tmp_path, "test", ("seen", "gender", "age", "accent"))
    assert found == {
        "1": {"seen": "true", "gender": "f", "age": "7"},
        "2": {"seen": "false", "gender": NOT_KNOWN, "age": "0"},
        "3": {"seen": NOT_KNOWN, "gender": "m", "age": NOT_KNOWN},
    }
    assert [*found["3"]] == ["seen", "gender", "age"]
    assert read_groups(tmp_path, "dev", ()) == {}


@pytest.mark.parametrize("value", [["f"], {"f": 1}, 7.5])
def test_other_values_are_refused(tmp_path: Path, value: Any) -> None:
    manifests(tmp_path, cut("1", {"gender": "f"}), cut("2", {"custom": {"gender": value}}))
    with pytest.raises(DataError, match=r"cuts_test\.jsonl\.gz:2 \(2\): expected gender as a word"):
        read_groups(tmp_path, "test", ("gender",))
