from __future__ import annotations

from dataclasses import replace

import pytest

from privasr_k2.errors import DataError
from privasr_k2.text.entities import Entity, TaggedText
from privasr_k2.text.sanitize_report import NOTE, check_same, entity_counts, lines, privacy_of

LISTS = {"PER": ["ann", "bob"], "LOC": ["bath", "rome"]}
TEXT = TaggedText(
    "1", ("ann", "in", "paris", "bob's"), (Entity(0, 1, "PER"), Entity(2, 3, "LOC"), Entity(3, 4, "PER"))
)
MADE = replace(TEXT, words=("ann", "in", "rome", "ann's"))


def test_what_was_found_and_done():
    counts = entity_counts([TEXT], [MADE], LISTS)
    per = {"mentions": 2, "words": 2, "different_words": 2, "off_list_words": 0, "changed_words": 1}
    loc = {"mentions": 1, "words": 1, "different_words": 1, "off_list_words": 1, "changed_words": 1}
    assert counts == {"LOC": loc, "PER": per}
    assert "changed_words" not in entity_counts([TEXT], None, None)["PER"]


@pytest.mark.parametrize(
    "other",
    [
        replace(MADE, id="2"),
        replace(MADE, words=("ann", "at", "rome", "ann's")),
        replace(MADE, words=MADE.words[:3]),
        replace(MADE, entities=()),
    ],
)
def test_text_that_is_not_the_sanitized_one_is_refused(other):
    check_same([TEXT], [MADE])
    with pytest.raises(DataError, match="sanitize again"):
        check_same([TEXT], [other])
    with pytest.raises(DataError, match="expected 1 texts, found 0"):
        check_same([TEXT], [])


def test_the_report_says_what_it_is():
    made = lines(
        {"classes": entity_counts([TEXT], [MADE], LISTS), "privacy": {"keep": 0.1, "does_not_cover": ["x"]}}
    )
    assert made[0] == NOTE and "no epsilon covers" in NOTE
    assert "| PER | 2 | 2 | 2 | 0 | 1 |" in made and "- keep: 0.1" in made and "- does not cover: x" in made


def test_a_release_of_another_stage_is_refused():
    with pytest.raises(DataError, match="the release abc, found none"):
        privacy_of({"release": "abc"}, [])
