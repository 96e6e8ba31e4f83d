from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import write_jsonl
from privasr_k2.scoring.align import align, to_scored_units
from privasr_k2.scoring.bootstrap import Interval
from privasr_k2.scoring.counts import ErrorCounts, count_pairs, total
from privasr_k2.scoring.entities import Entities, read_entities, score_entities
from privasr_k2.scoring.entity_scores import ALL, OUTSIDE, EntityCounts, EntityScore


def _cut(name: str, text: str, entities: Any = None) -> dict[str, Any]:
    custom = None if entities is None else {"entities": entities}
    return {"id": name, "supervisions": [{"text": text, "custom": custom}]}


def _write(folder: Path, role: str, *cuts: dict[str, Any]) -> None:
    write_jsonl(folder / f"cuts_{role}.jsonl.gz", cuts)


DEAN = "anna says the dean of the university of bonn"
SPEAKERS = {"u1": "s1", "u2": "s2", "u3": "s1", "u4": "s3"}


def _score(
    known: Entities, units: dict[str, str] | None = None, **texts: tuple[str, str]
) -> EntityScore:
    aligned = []
    for name, both in texts.items():
        pairs = align(*(to_scored_units(text.split(), units or {}) for text in both))
        aligned.append((name, SPEAKERS[name], pairs))
    found = score_entities(aligned, known)
    assert found is not None
    return found


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    nested = [[1, 3, "PER"], [4, 6, "ORG"], [4, 5, "LOC"]]
    _write(
        tmp_path,
        "test",
        _cut("u1", "ask anna rose of bonn university", nested),
        _cut("u2", "a rose and a rose", []),
        _cut("u3", DEAN, [[0, 1, "PER"], [6, 9, "ORG"]]),
        _cut("u4", "nobody looked at this anna"),
    )
    _write(tmp_path, "train", _cut("t1", "call karl", [[1, 2, "PER"]]), _cut("t2", "karl karl"))
    return tmp_path


def test_words_have_the_classes_of_all_spans_around_them(manifests: Path) -> None:
    known = read_entities(manifests, "test", {})
    assert known is not None
    none, per, org = frozenset(), frozenset({"PER"}), frozenset({"ORG"})
    assert known.words["u1"] == (none, per, per, none, org | {"LOC"}, org)
    assert known.words["u2"] == (none,) * 5
    assert "u4" not in known.words  # not annotated is not the same as without entities
    assert known.names == ("LOC", "ORG", "PER")


def test_a_word_is_typical_of_a_class_with_more_than_half_of_its_uses(manifests: Path) -> None:
    known = read_entities(manifests, "test", {})
    assert known is not None
    # rose: 1 of 3 uses; of: 1 of 3; bonn: ORG 2 of 2, LOC 1 of 2, which is not more than half.
    expected = {"anna": {"PER"}, "bonn": {"ORG"}, "university": {"ORG"}}
    assert {word: set(classes) for word, classes in known.typical.items()} == expected


def test_private_roles_are_not_looked_at(manifests: Path) -> None:
    assert "karl" not in read_entities(manifests, "test", {}).typical  # type: ignore[union-attr]
    public = read_entities(manifests, "test", {}, ("train", "pool"))
    assert public is not None
    # t2 is not annotated, so that its two uses do not count.
    assert public.typical["karl"] == {"PER"}
    assert set(public.words) == {"u1", "u2", "u3"}


def test_files_that_are_named_are_looked_at_once(manifests: Path) -> None:
    train = manifests / "cuts_train.jsonl.gz"
    known = read_entities(manifests, "test", {}, (), [train])
    assert known is not None
    assert known == read_entities(manifests, "test", {}, ("train",))
    # "rose" has 2 of 4 uses in a person; it would be typical with the new file counted twice.
    more = manifests / "more.jsonl.gz"
    write_jsonl(more, [_cut("m", "rose", [[0, 1, "PER"]])])
    twice = read_entities(manifests, "test", {}, (), [more, manifests / "." / "more.jsonl.gz"])
    assert twice is not None
    assert "rose" not in twice.typical
    found = _score(known, u2=("a rose and a rose", "a karl and a rose"))
    assert found.classes["PER"] == EntityCounts(hits=0, ref_words=0, hyp_words=1)


def test_hits_misses_and_false_alarms(manifests: Path) -> None:
    known = read_entities(manifests, "test", {})
    assert known is not None
    found = _score(
        known,
        # rose is lost, bonn wrong
        u1=("ask anna rose of bonn university", "ask anna of born university"),
        # anna is inserted; rose is right, and "of" typical of no class
        u2=("a rose and a rose", "a rose anna and of rose"),
        u3=(DEAN, DEAN.replace("anna", "and")),
        u4=("nobody looked at this anna", "anna anna anna anna anna"),
    )
    assert found.utterances == 3
    assert found.classes == {
        "LOC": EntityCounts(hits=0, ref_words=1, hyp_words=0),
        "ORG": EntityCounts(hits=4, ref_words=5, hyp_words=4),
        "PER": EntityCounts(hits=1, ref_words=3, hyp_words=2),
    }
    assert (found.classes["PER"].recall, found.classes["PER"].precision) == (1 / 3, 1 / 2)
    assert found.classes["LOC"].precision is None
    assert EntityScore.from_dict(found.to_dict()) == found


def test_units_that_are_not_scored_move_no_entity(manifests: Path) -> None:
    units = {"ask": "", "of": "", "rose": "roses"}
    known = read_entities(manifests, "test", units)
    assert known is not None
    assert known.words["u1"] == tuple(
        frozenset(names) for names in (["PER"], ["PER"], ["ORG", "LOC"], ["ORG"])
    )
    found = _score(known, units, u1=("ask anna rose of bonn university", "anna rose bonn"))
    assert found.classes["PER"] == EntityCounts(hits=2, ref_words=2, hyp_words=2)
    assert found.classes["ORG"] == EntityCounts(hits=1, ref_words=2, hyp_words=1)


def test_a_corpus_without_entities_has_none(tmp_path: Path) -> None:
    _write(tmp_path, "test", _cut("u1", "a b"), {"id": "u2"})
    assert read_entities(tmp_path, "test", {}) is None


def test_a_part_without_annotations_has_none() -> None:
    assert (
        score_entities([("u", "s", [("a", "a")])], Entities({}, {}, ("PER",), frozenset())) is None
    )


@pytest.mark.parametrize(
    "span",
    [
        [1, 3, "PER"],
        [-1, 1, "PER"],
        [1, 1, "PER"],
        [0, 1],
        [0, True, "PER"],
        [0, 1, ""],
        [0, 1, ALL],
        [0, 1, OUTSIDE],
        "PER",
        None,
    ],
)
def test_a_span_outside_its_text_is_named_with_its_line(tmp_path: Path, span: Any) -> None:
    _write(tmp_path, "test", _cut("u1", "a b", []), _cut("u2", "a b", [span]))
    with pytest.raises(
        DataError, match=r"cuts_test\.jsonl\.gz:2 \(u2\): expected .* within 2 words"
    ):
        read_entities(tmp_path, "test", {})


def test_another_reference_than_that_of_the_manifests_is_refused(manifests: Path) -> None:
    known = read_entities(manifests, "test", {})
    assert known is not None
    with pytest.raises(DataError, match="u2: expected a reference of 5 words"):
        _score(known, u2=("a rose", "a rose"))


def test_counts_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="hits"):
        EntityCounts(hits=2, ref_words=1, hyp_words=2)


def test_where_all_words_are_of_one_class_recall_is_that_of_all_words() -> None:
    rng = np.random.default_rng(6)
    pairs, words = {}, {}
    for i in range(50):
        ref, hyp = (rng.choice(list("abcdef"), size=rng.integers(0, 9)).tolist() for _ in range(2))
        pairs[f"u{i}"], words[f"u{i}"] = align(ref, hyp), (frozenset({"PER"}),) * len(ref)
    letters = frozenset("abcdef")
    everything = Entities(words, {w: frozenset({"PER"}) for w in letters}, ("PER",), letters)
    counts = total(map(count_pairs, pairs.values()))
    found = score_entities(
        ((name, f"s{len(name)}", one) for name, one in pairs.items()), everything
    )
    assert found is not None
    assert found.classes["PER"] == EntityCounts(counts.hits, counts.ref_words, counts.hyp_words)
    assert found.together == found.classes["PER"]
    assert sorted(found.speakers) == ["s2", "s3"]


def test_all_classes_together_count_a_word_once_and_each_speaker_apart(manifests: Path) -> None:
    _write(
        manifests,
        "test2",
        _cut("v", "in york", [[1, 2, "LOC"]]),
        _cut("w", "ask york", [[1, 2, "PER"]]),
    )
    known = read_entities(manifests, "test", {}, (), [manifests / "cuts_test2.jsonl.gz"])
    assert known is not None
    # york: LOC 1 of 2 and PER 1 of 2, typical of neither, and always a name.
    assert "york" not in known.typical
    assert "york" in known.any_class
    assert "rose" not in known.any_class
    found = _score(
        known,
        u1=("ask anna rose of bonn university", "ask anna rose of bonn york"),
        u2=("a rose and a rose", "anna rose and a rose"),
        u3=(DEAN, DEAN.replace("anna", "york")),
    )
    # Outside are ask and of (s1), and says the dean of the (s1): none is wrong.
    assert found.errors["s1"][OUTSIDE] == ErrorCounts(hits=7)
    assert found.errors["s2"][OUTSIDE] == ErrorCounts(hits=4, substitutions=1)
    assert found.errors["s1"][ALL] == ErrorCounts(hits=6, substitutions=2)
    assert found.errors["s1"]["PER"] == ErrorCounts(hits=2, substitutions=1)
    assert "PER" not in found.errors["s2"] and found.errors_of("PER")[1] == ErrorCounts()
    assert found.words_of_speakers() == [15, 5]
    # s1 has 4 words inside names in u1 (bonn is LOC and ORG) and in u3; york replaced two of them.
    assert found.together == EntityCounts(hits=6, ref_words=8, hyp_words=9)
    assert found.speakers["s1"] == {
        ALL: EntityCounts(6, 8, 8),
        "LOC": EntityCounts(1, 1, 1),
        "ORG": EntityCounts(4, 5, 4),
        "PER": EntityCounts(2, 3, 2),
    }
    assert found.speakers["s2"] == {ALL: EntityCounts(0, 0, 1), "PER": EntityCounts(0, 0, 1)}
    assert [c.hyp_words for c in found.of_speakers("LOC")] == [1, 0]
    for name, counts in found.classes.items():
        assert sum(found.of_speakers(name), EntityCounts()) == counts


def test_older_results_have_neither_speakers_nor_intervals() -> None:
    old = EntityScore.from_dict(
        {"utterances": 1, "classes": {"PER": EntityCounts(1, 2, 1).to_dict()}}
    )
    assert (old.together, old.speakers, old.errors, old.intervals) == (None, {}, {}, {})
    assert set(old.to_dict()) == {"utterances", "classes"}


def test_speakers_and_intervals_go_through_json() -> None:
    speakers = {
        "s1": {ALL: EntityCounts(1, 2, 1), "PER": EntityCounts(1, 2, 1)},
        "s2": {ALL: EntityCounts()},
    }
    intervals = {ALL: Interval(0.25, 0.75, 0.95), "PER": None}
    errors = {"s1": {ALL: ErrorCounts(1, 1), OUTSIDE: ErrorCounts(5, 0, 2)}, "s2": {}}
    more = errors, intervals, {OUTSIDE: Interval(0.1, 0.2, 0.95)}, {ALL: None}
    found = EntityScore(3, {"PER": EntityCounts(1, 2, 1)}, speakers, *more)
    written = found.to_dict()
    assert written["speakers"] == {
        "s1": {"all": [1, 2, 1], "PER": [1, 2, 1]},
        "s2": {"all": [0, 0, 0]},
    }
    assert EntityScore.from_dict(json.loads(json.dumps(written))) == found
