from __future__ import annotations

import pytest

from privasr_k2.text.entities import Entity
from privasr_k2.text.gazetteer import Gazetteer

NAMES = {
    "PER": ["Ann", "Ann Lee", "Reading", "McDonald's fan", "May"],
    "LOC": ["Reading", "New York City", "York"],
    "ORG": ["McDonald's"],
}


def tag(text, **options):
    given = {"ignore_case": True, "small": {}} | options
    [found] = Gazetteer(NAMES, **given).tag([text.split()])
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ask ann lee now", [Entity(1, 3, "PER")]),
        ("Ann, Lee", [Entity(0, 1, "PER")]),  # no name goes on after a comma
        ("(Ann Lee's)", [Entity(0, 2, "PER")]),
        ("new york", [Entity(1, 2, "LOC")]),  # the longer name is not whole
        ("New York City York", [Entity(0, 3, "LOC"), Entity(3, 4, "LOC")]),
        ("McDonald's is Ann's", [Entity(0, 1, "ORG"), Entity(2, 3, "PER")]),
        ("a McDonald\u2019s fan", [Entity(1, 3, "PER")]),
        ("reading", [Entity(0, 1, "PER")]),  # the first class that has it
        ("", []),
    ],
)
def test_the_longest_name_is_found(text, expected):
    assert list(tag(text)) == expected


def test_capitals_count_unless_they_are_ignored():
    assert tag("ask ann", ignore_case=False) == ()
    assert tag("ask Ann", ignore_case=False) == (Entity(1, 2, "PER"),)


def test_plain_words_are_names_only_with_a_capital_inside_a_sentence():
    small = {"may": 0.4, "ann": 0.4}
    assert tag("may i", small=small) == tag("May I", small=small) == tag("i may", small=small) == ()
    assert tag("No. May I", small=small) == tag("No ? May I", small=small) == ()
    assert tag("ask May", small=small) == (Entity(1, 2, "PER"),)
    assert tag("ann lee", small=small) == (Entity(0, 2, "PER"),), "two words are a name"
    assert tag("ask May", small={"may": 0.95}) == (), "it is hardly ever a name"


def test_a_name_of_one_word_needs_a_capital_where_there_are_capitals():
    assert tag("Ask ann") == () and tag("ask ann") == (Entity(1, 2, "PER"),)
    assert tag("Ask Ann") == tag("Ask ANN") == (Entity(1, 2, "PER"),)
    assert tag("Ask ann lee") == (Entity(1, 3, "PER"),), "two words are a name"
    assert tag("Ask. Ann came") == (Entity(1, 2, "PER"),), "it is no plain word"


def test_names_of_several_classes_are_counted():
    assert Gazetteer(NAMES, ignore_case=True, small={}).ambiguous == 1
