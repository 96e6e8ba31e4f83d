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
    names = ("mentions", "words", "different_words", "off_list_words", "changed_words_at_least")
    values = {"LOC": (1, 1, 1, 1, 1), "PER": (2, 2, 2, 0, 1)}
    assert counts == {label: dict(zip(names, of_class)) for label, of_class in values.items()}
    assert "changed_words_at_least" not in entity_counts([TEXT], None, None)["PER"]


def test_texts_are_found_again_in_any_order_by_what_is_no_name():
    def text(number, *words):
        return TaggedText(number, ("call", *words), (Entity(1, 2, "PER"),))

    words = {"a": ("ann", "now"), "b": ("ann",), "c": ("bob",), "d": ("bob",), "e": ("eve's",)}
    given = [text(name, *said) for name, said in words.items()]
    words = {"1": ("bob",), "2": ("bob's",), "3": ("ann",), "4": ("eve",), "5": ("ann", "now")}
    made = [text(name, *said) for name, said in words.items()]
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
