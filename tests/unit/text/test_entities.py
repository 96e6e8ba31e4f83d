from __future__ import annotations

import pytest

from privasr_k2.errors import DataError
from privasr_k2.text.entities import Entity, checked, fold, moved, outermost, united
from privasr_k2.text.normalize import normalize_english


def normalized(tokens):
    return normalize_english(" ".join(tokens)).split()


def test_labels_fold_whatever_their_spelling_and_unknown_ones_are_named():
    classes = {"PERSON": "PER", "CREATIVE_WORK": "MISC", "DATE": ""}
    spans = [(0, 1, "person"), (2, 3, "creative-work"), (3, 4, "DATE")]
    assert fold(spans, classes, "x") == (Entity(0, 1, "PER"), Entity(2, 3, "MISC"))
    with pytest.raises(DataError, match=r"u7: .*found planet\n.*classes.PLANET=MISC"):
        fold([(0, 1, "planet")], classes, "u7")


def test_a_nested_entity_gives_way_but_not_to_one_that_is_left_out():
    classes = {"ORG": "ORG", "LOC": "LOC", "DATE": ""}
    assert fold([(1, 2, "LOC"), (0, 4, "ORG")], classes, "x") == (Entity(0, 4, "ORG"),)
    assert fold([(1, 2, "LOC"), (0, 4, "DATE")], classes, "x") == (Entity(1, 2, "LOC"),)


def test_of_two_that_overlap_the_longer_one_stays_and_united_prefers_the_first():
    spans = [Entity(0, 2, "PER"), Entity(1, 4, "ORG"), Entity(4, 5, "LOC")]
    assert outermost(spans) == (Entity(1, 4, "ORG"), Entity(4, 5, "LOC"))
    assert united(spans[:1], spans[1:]) == (Entity(0, 2, "PER"), Entity(4, 5, "LOC"))


def test_spans_survive_normalization():
    text = "Hello , Dr. Ann-Marie O'Neill 's [noise] friend at E.ON -- yes !"
    tokens = text.split()
    spans = [[2, 5, "PER"], [9, 10, "ORG"], [1, 2, "LOC"], [10, 11, "MISC"]]
    words = normalized(tokens)
    found = moved(tokens, spans, len(words), normalized)
    assert [" ".join(words[e.first : e.end]) for e in found] == ["dr ann marie o'neill", "e on"]


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([[0, 3, "PER"]], "within 2 words"),
        ([[1, 1, "PER"]], "within 2 words"),
        ([[0, True, "PER"]], "within 2 words"),
        ([[0, 1]], "within 2 words"),
        ({"PER": 1}, "a list of entities"),
        ([[0, 2, "PER"], [1, 2, "LOC"]], "do not overlap"),
    ],
)
def test_spans_that_cannot_be_are_named(spans, message):
    with pytest.raises(DataError, match=f"cuts:3.*{message}"):
        checked("cuts:3", spans, 2)


def test_nested_spans_are_allowed_before_folding():
    assert len(checked("x", [[0, 2, "PER"], [1, 2, "LOC"]], 2, nested=True)) == 2
