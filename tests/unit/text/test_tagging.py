from __future__ import annotations

from dataclasses import replace

import pytest

from privasr_k2 import config
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.text.entities import Entity, TaggedText
from privasr_k2.text.normalize import normalize_english
from privasr_k2.text.tagging import TagConfig, tag_texts
from privasr_k2.text.truecase import Truecaser
from tests.support.conf import section

DEFAULTS = section("tag_entities")


def given(*values: str) -> TagConfig:
    return config.load(TagConfig, [DEFAULTS], values)


def normalized(tokens):
    return normalize_english(" ".join(tokens)).split()


class Capitals:
    """Calls each capitalized token but the first a person, and keeps what it was given."""

    def __init__(self) -> None:
        self.seen: list[list[str]] = []

    def tag(self, texts):
        self.seen = [list(text) for text in texts]
        capitals = ([n for n, token in enumerate(t) if n and token[:1].isupper()] for t in texts)
        return [tuple(Entity(n, n + 1, "PERSON") for n in of_text) for of_text in capitals]


class Last:
    """Calls the last two tokens a place."""

    def tag(self, texts):
        return [(Entity(len(text) - 2, len(text), "GPE"),) for text in texts]


TEXT = TaggedText(
    "u-1", ("ask", "ann", "marie", "in", "bath"), None, "u", cased="Ask , Ann-Marie , in Bath ."
)


def test_written_text_is_tagged_and_normalized_words_are_counted():
    [made] = tag_texts([TEXT], {"spacy": Capitals()}, given(), normalized)
    assert made == replace(TEXT, entities=(Entity(1, 3, "PER"), Entity(4, 5, "PER")))


def test_a_later_tagger_adds_where_the_earlier_found_nothing():
    taggers = {"spacy": Capitals(), "gazetteer": Last()}
    text = replace(TEXT, cased="Ask Ann-Marie in bath")
    [made] = tag_texts([text], taggers, given("taggers=[spacy,gazetteer]"), normalized)
    assert made.entities == (Entity(1, 3, "PER"), Entity(3, 5, "LOC"))
    [made] = tag_texts([TEXT], taggers, given("taggers=[spacy,gazetteer]"), normalized)
    assert made.entities == (Entity(1, 3, "PER"), Entity(4, 5, "PER"))


def test_gold_entities_are_folded():
    gold = (Entity(1, 3, "PERSON"), Entity(1, 2, "CARDINAL"), Entity(4, 5, "GPE"))
    text = replace(TEXT, entities=gold)
    [made] = tag_texts([text], {}, given("taggers=[gold]", "documents=id"), normalized)
    assert made.entities == (Entity(1, 3, "PER"), Entity(4, 5, "LOC")) and made.document == "u"
    with pytest.raises(DataError, match="u-1: expected gold entities"):
        tag_texts([TEXT], {}, given("taggers=[gold]"), normalized)


def test_text_without_capitals_needs_a_truecaser():
    text = TaggedText("u", ("ask", "ann"), None)
    with pytest.raises(DataError, match="--in-public-cased"):
        tag_texts([text], {"spacy": Capitals()}, given(), normalized)
    truecaser, tagger = Truecaser([], ["Ann"], capital_unknown=False), Capitals()
    [made] = tag_texts([text], {"spacy": tagger}, given(), normalized, truecaser)
    assert tagger.seen == [["Ask", "Ann"]] and made.entities == (Entity(1, 2, "PER"),)
    assert made.words == text.words
    tag_texts([text], {"spacy": tagger}, given("case=cased"), normalized, truecaser)
    assert tagger.seen == [["ask", "ann"]]


def test_words_that_are_not_those_of_the_written_text_are_refused():
    with pytest.raises(DataError, match="normalize=spoken"):
        tag_texts([replace(TEXT, words=("ask", "ann"))], {"spacy": Capitals()}, given(), normalized)


@pytest.mark.parametrize(
    "value", ["taggers=[crystal]", "taggers=[]", "case=upper", "classes.GPE=loc"]
)
def test_bad_settings_are_refused(value):
    with pytest.raises(ConfigError):
        given(value)


def test_clipped_words_are_no_names_whoever_finds_them():
    class Everything:
        def tag(self, texts):
            return [(Entity(0, 1, "PER"), Entity(1, 3, "PER")) for _ in texts]

    text = TaggedText("a", ("kay", "cause", "ann"), None, cased="'Kay 'cause Ann")
    settings = given("taggers=[gazetteer]")
    [tagged] = tag_texts([text], {"gazetteer": Everything()}, settings, normalized)
    assert tagged.entities == (Entity(1, 3, "PER"),)
