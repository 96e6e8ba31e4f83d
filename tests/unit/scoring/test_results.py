from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from privasr_k2 import config
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import write_json, write_jsonl
from privasr_k2.scoring.bootstrap import Interval
from privasr_k2.scoring.counts import ErrorCounts, total
from privasr_k2.scoring.entities import Entities
from privasr_k2.scoring.entity_scores import ALL, OUTSIDE, EntityCounts
from privasr_k2.scoring.hypotheses import Decoded, Utterance, Weights
from privasr_k2.scoring.names import score_names
from privasr_k2.scoring.results import (
    PartScore,
    Score,
    ScoreOptions,
    check_role,
    read_score,
    read_scored_words,
    score_part,
    score_utterances,
)
from tests.support.conf import section

POINT = Weights(0.5, 0.0)
OPTIONS = ScoreOptions(role="", num_replicates=200, confidence=0.95, seed=1)


def utterance(name: str, speaker: str, ref: str, hyp: str | None) -> Utterance:
    hyps = {} if hyp is None else {POINT: tuple(hyp.split())}
    return Utterance(name, "test_x", speaker, tuple(ref.split()), hyp is None, hyps)


UTTERANCES = [
    utterance("1", "ann", "a b c", "a x c"),
    utterance("2", "bob", "a b", "a b b"),
    utterance("3", "ann", "d", None),
    utterance("4", "bob", "", "q"),
]


def _score(utterances: list[Utterance], vocabulary: set[str] | None = None) -> PartScore:
    scored = score_utterances(utterances, POINT, {})
    refs = [u.ref for u in utterances]
    return score_part("test_x", scored, OPTIONS, raw_refs=refs, vocabulary=vocabulary)


def test_counts_by_speaker_add_up_to_the_part() -> None:
    part = _score(UTTERANCES)
    assert part.speakers == {
        "ann": ErrorCounts(hits=2, substitutions=1, deletions=1),
        "bob": ErrorCounts(hits=2, insertions=2),
    }
    assert part.counts == ErrorCounts(hits=4, substitutions=1, deletions=1, insertions=2)
    assert part.counts.rate == pytest.approx(4 / 6)
    assert part.no_path == ("3",)
    assert part.oov is None


def test_unknown_words_of_the_references_are_counted() -> None:
    part = _score(UTTERANCES, {"a", "b", "x", "q"})
    assert (part.oov, part.ref_words) == (2, 6)  # c and d


def test_without_an_interval_it_says_why() -> None:
    several = [utterance(f"u{i}", f"s{i}", "a b c d", "x b c d"[: 2 * i + 1]) for i in range(6)]
    silent = utterance("v", "v", "", "q")
    six = _score(several)
    assert six.interval is not None and six.interval.low < six.interval.high
    assert six.interval_note == ""
    for kept, few in ((5, "5"), (1, "1")):
        part = _score([*several[:kept], silent])
        assert part.interval is None and part.interval_note.endswith(few)
    assert _score([silent]).interval_note == "no reference words"


def test_scored_units_apply_to_both_sides_and_not_to_the_vocabulary() -> None:
    u = utterance("1", "ann", "ix t q", "ih t")
    (scored,) = score_utterances([u], POINT, {"ix": "ih", "q": ""})
    assert scored.counts == ErrorCounts(hits=2)
    part = score_part("p", [scored], OPTIONS, raw_refs=[u.ref], vocabulary={"ix", "t", "q"})
    assert (part.oov, part.ref_words) == (0, 3)


def test_each_part_has_draws_of_its_own() -> None:
    several = [utterance(str(i), f"s{i}", "a b c d e f g", "x " * (i % 7) + "a") for i in range(9)]
    scored = score_utterances(several, POINT, {})
    x, y, again = (
        score_part(part, scored, replace(OPTIONS, num_replicates=20), raw_refs=[], vocabulary=None)
        for part in ("x", "y", "x")
    )
    assert x.interval == again.interval
    assert x.interval != y.interval


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "ctc_blstm" / "score_test"
    parts = {"test_x": _score(UTTERANCES, {"a"})}
    score = Score(folder, "ctc_blstm", "test", POINT, OPTIONS, parts)
    write_json(folder / "wer.json", score.to_dict())
    assert read_score(folder) == score
    content = json.loads((folder / "wer.json").read_text())
    assert content["parts"]["test_x"]["wer_percent"] == pytest.approx(400 / 6)

    records = [u.to_dict() for u in score_utterances(UTTERANCES, POINT, {})]
    write_jsonl(folder / "utterances.jsonl", records)
    assert read_scored_words(folder)["test_x"]["1"] == (("a", "b", "c"), ("a", "x", "c"))


def test_another_file_is_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "wer.json", {"role": "test"})
    write_jsonl(tmp_path / "utterances.jsonl", [{"id": "1"}])
    with pytest.raises(DataError, match="what wer writes"):
        read_score(tmp_path)
    with pytest.raises(DataError, match="what wer writes"):
        read_scored_words(tmp_path)


def test_the_options_that_come_with_the_project_are_valid() -> None:
    loaded = config.load(ScoreOptions, [section("wer")])
    assert loaded.confidence == 0.95
    with pytest.raises(ValueError, match="num_replicates"):
        replace(loaded, num_replicates=0)
    with pytest.raises(ConfigError, match="confidence"):
        config.load(ScoreOptions, [section("wer")], ["confidence=95"])


def test_another_role_is_refused() -> None:
    decoded = Decoded(Path("decode_dev"), "dev", tuple(UTTERANCES), (POINT,))
    check_role(decoded, "dev")
    check_role(decoded, "")
    with pytest.raises(DataError, match="the role test, found the role dev"):
        check_role(decoded, "test")


def test_the_recall_of_names_is_drawn_over_annotated_speakers() -> None:
    person, none = frozenset({"PER"}), frozenset[str]()
    hyps = ["ask ann" if i % 3 else "ask on" for i in range(48)]
    spoken = [utterance(f"u{i}", f"s{i % 8}", "ask ann", hyp) for i, hyp in enumerate(hyps)]
    scored = score_utterances(spoken, POINT, {})
    words = {f"u{i}": (none, person) for i in range(48) if i % 8 > 1}
    known = Entities(words, {}, ("PER",), frozenset())
    found = score_names("test_x", scored, known, OPTIONS)
    assert found is not None and list(found.speakers) == [f"s{n}" for n in range(2, 8)]
    assert found.classes["PER"] == found.together == EntityCounts(24, 36, 24)
    recall = Interval(24 / 36, 24 / 36, 0.95)  # 4 of 6 for each speaker
    assert found.intervals["PER"] == found.intervals[ALL] == recall
    wrong = Interval(12 / 36, 12 / 36, 0.95)
    right = Interval(0.0, 0.0, 0.95)
    assert found.error_intervals == {ALL: wrong, "PER": wrong, OUTSIDE: right}
    assert found.false_alarm_intervals == {ALL: right, "PER": right}
    five = replace(known, words={name: of for name, of in words.items() if int(name[1:]) % 8 > 2})
    few = score_names("test_x", scored, five, OPTIONS)
    assert few is not None and few.intervals == {ALL: None, "PER": None}
    known = replace(known, words={"u1": (none, person), "u2": (none, none)}, names=("LOC", "PER"))
    few = score_names("test_x", scored, known, OPTIONS)
    assert few is not None and few.intervals == {ALL: None, "LOC": None, "PER": None}
    assert score_names("test_x", scored, replace(known, words={}), OPTIONS) is None


def test_false_alarms_are_drawn_by_annotated_word() -> None:
    person, none = frozenset({"PER"}), frozenset[str]()
    # Two speakers of six write a name that nobody said, in 1 of 4 words.
    spoken = [
        utterance(f"u{i}", f"s{i}", "ask ann to come", f"ask ann to {'ann' if i < 2 else 'come'}")
        for i in range(6)
    ]
    known = Entities({u.id: (none, person, none, none) for u in spoken}, {"ann": person},
                     ("PER",), frozenset({"ann"}))  # fmt: skip
    scored = score_utterances(spoken, POINT, {}, None, known)
    assert [u.to_dict()["entities"] for u in scored] == [[[1, 2, "PER"]]] * 6
    found = score_names("test_x", scored, known, replace(OPTIONS, num_replicates=5000))
    assert found is not None and found.together == EntityCounts(6, 6, 8)
    interval = found.false_alarm_intervals[ALL]
    # A speaker has 0.25 with probability 1/3: of six draws 2.5 % have 0, 2.5 % five or six.
    assert interval is not None and (interval.low, interval.high) == (0.0, pytest.approx(4 / 24))
    assert found.error_intervals[ALL] == Interval(0.0, 0.0, 0.95)
    assert total(found.errors_of(OUTSIDE)) == ErrorCounts(hits=16, substitutions=2)
