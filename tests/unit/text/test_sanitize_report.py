from __future__ import annotations

from dataclasses import replace

import pytest

from privasr_k2.errors import DataError
from privasr_k2.text.entities import Entity, TaggedText
from privasr_k2.text.sanitize_report import entity_counts, privacy_of

LISTS = {"PER": ["ann", "bob"], "LOC": ["bath", "rome"]}
TEXT = TaggedText(
    "1",
    ("ann", "in", "paris", "bob's"),
    (Entity(0, 1, "PER"), Entity(2, 3, "LOC"), Entity(3, 4, "PER")),
)
MADE = replace(TEXT, words=("ann", "in", "rome", "ann's"))


def test_what_was_found_and_done():
    counts = entity_counts([TEXT], [MADE], LISTS)
    per = {
        "mentions": 2,
        "words": 2,
        "different_words": 2,
        "off_list_words": 0,
        "changed_words_at_least": 1,
    }
    loc = {
        "mentions": 1,
        "words": 1,
        "different_words": 1,
        "off_list_words": 1,
        "changed_words_at_least": 1,
    }
    assert counts == {"LOC": loc, "PER": per}
    assert "changed_words_at_least" not in entity_counts([TEXT], None, None)["PER"]


def test_texts_are_found_again_in_any_order_by_what_is_no_name():
    def text(number, *words):
        return TaggedText(number, ("call", *words), (Entity(1, 2, "PER"),))

    given = [
        text("a", "ann", "now"),
        text("b", "ann"),
        text("c", "bob"),
        text("d", "bob"),
        text("e", "eve's"),
    ]
    made = [
        text("1", "bob"),
        text("2", "bob's"),
        text("3", "ann"),
        text("4", "eve"),
        text("5", "ann", "now"),
    ]
    # Of b, c and d one at least is another: bob stands once instead of twice.
    assert entity_counts(given, made, None)["PER"]["changed_words_at_least"] == 2
    assert entity_counts(given, given[::-1], None)["PER"]["changed_words_at_least"] == 0
    with pytest.raises(DataError, match="sanitized text of d"):
        entity_counts(given, [*made[:3], made[4], made[4]], None)


@pytest.mark.parametrize(
    "other",
    [
        replace(MADE, words=("ann", "in", "rome", "ann")),
        replace(MADE, words=("ann", "at", "rome", "ann's")),
        replace(MADE, words=MADE.words[:3]),
        replace(MADE, entities=()),
    ],
)
def test_text_that_is_not_the_sanitized_one_is_refused(other):
    entity_counts([TEXT], [replace(MADE, id="2")], None)
    with pytest.raises(DataError, match="sanitize again"):
        entity_counts([TEXT], [other], None)
    with pytest.raises(DataError, match="expected 1 texts, found 0"):
        entity_counts([TEXT], [], None)


def test_a_release_of_another_stage_is_refused():
    with pytest.raises(DataError, match="the release abc, found none"):
        privacy_of({"release": "abc"}, [])
