from __future__ import annotations

import pytest

from privasr_k2.text.entities import Entity, TaggedText
from privasr_k2.text.tags import is_tag, tag_of, with_tags, without_entities

TEXT = TaggedText(
    "u",
    ("ask", "ann", "lee", "about", "bath", "and", "ann's", "zoe"),
    (Entity(1, 3, "PER"), Entity(4, 5, "LOC"), Entity(6, 8, "PER")),
    cased="Ask Ann",
)


def test_tags_and_deletion() -> None:
    tagged = with_tags(TEXT)
    assert " ".join(tagged.words) == "ask <PER> about <LOC> and <PER>"
    assert tagged.entities is not None
    assert [tagged.words[e.first] for e in tagged.entities] == ["<PER>", "<LOC>", "<PER>"]
    assert with_tags(tagged) == tagged
    gone = without_entities(TEXT)
    assert gone.words == ("ask", "about", "and") and gone.entities == () and gone.cased == ""


@pytest.mark.parametrize("word", ["<PER>", "<A_1>", tag_of("ORG"), "<UNKNOWN>"])
def test_tags(word: str) -> None:
    assert is_tag(word)


@pytest.mark.parametrize(
    "word", ["<unk>", "<UNK>", "<s>", "<S>", "</s>", "</S>", "PER", "<per>", "<1A>", "<>", ""]
)
def test_special_words_are_no_tags_in_capitals_either(word: str) -> None:
    assert not is_tag(word)
