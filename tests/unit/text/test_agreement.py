from __future__ import annotations

import pytest

from privasr_k2.errors import DataError
from privasr_k2.text.agreement import ALL, agreement
from privasr_k2.text.entities import Entity, TaggedText


def text(name, *entities, words="a b c d e f"):
    spans = None if entities == (None,) else tuple(Entity(*e) for e in entities)
    return TaggedText(name, tuple(words.split()), spans)


def test_counts_by_class():
    gold = [text("1", (0, 2, "PER"), (3, 5, "LOC")), text("2", (0, 1, "PER")), text("3", None)]
    found = [text("1", (0, 2, "PER"), (4, 5, "ORG")), text("2"), text("9", (0, 6, "ORG"))]
    counts = agreement(gold, found, "gold")
    per, loc, org = (counts[label].to_dict() for label in ("PER", "LOC", "ORG"))
    assert (per["gold_spans"], per["agreed_spans"], per["span_recall_percent"]) == (2, 1, 50.0)
    assert (per["gold_words"], per["agreed_words"], per["residual_words"]) == (3, 2, 1)
    assert (loc["agreed_words"], loc["covered_words"], loc["residual_percent"]) == (0, 1, 50.0)
    assert (org["found_spans"], org["span_precision_percent"], org["span_recall_percent"]) == (
        1,
        0.0,
        None,
    )
    assert counts[ALL].gold_words == 5 and counts[ALL].covered_words == 3
    assert counts[ALL].found_spans == 2


def test_a_span_of_another_class_or_length_does_not_agree():
    gold = [text("1", (0, 2, "PER"))]
    assert agreement(gold, [text("1", (0, 2, "ORG"))], "gold")["PER"].agreed_spans == 0
    assert agreement(gold, [text("1", (0, 3, "PER"))], "gold")["PER"].agreed_spans == 0
    assert agreement(gold, [text("1", (0, 3, "PER"))], "gold")["PER"].agreed_words == 2


@pytest.mark.parametrize(
    ("gold", "found", "message"),
    [
        ([text("1", None)], [], "gold: expected texts with gold entities"),
        ([text("1")], [], "gold: expected a tagged text 1 of 6 words, found none"),
        ([text("1")], [text("1", words="a")], "found one of 1 words"),
    ],
)
def test_texts_that_do_not_fit_are_refused(gold, found, message):
    with pytest.raises(DataError, match=message):
        agreement(gold, found, "gold")


def test_f1_is_the_harmonic_mean_of_both_rates():
    gold = [text("1", (0, 1, "PER"), (2, 3, "PER"), (4, 5, "PER"))]
    of = agreement(gold, [text("1", (0, 1, "PER"), (3, 4, "PER"))], "gold")["PER"].to_dict()
    recall, precision = of["span_recall_percent"], of["span_precision_percent"]
    assert of["span_f1_percent"] == pytest.approx(
        2 * recall * precision / (recall + precision), abs=0.01
    )
