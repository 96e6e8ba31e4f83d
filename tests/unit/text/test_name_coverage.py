from __future__ import annotations

from privasr_k2.text.entities import Entity, TaggedText
from privasr_k2.text.name_coverage import ALL, name_coverage


def _text(words: str, *spans: tuple[int, int, str]) -> TaggedText:
    return TaggedText("u", tuple(words.split()), tuple(Entity(*span) for span in spans))


def test_words_of_names_count_as_often_as_they_stand_and_others_not_at_all() -> None:
    texts = [
        _text("ann hill's ann met acme", (0, 2, "PER"), (2, 3, "PER"), (4, 5, "ORG")),
        TaggedText("v", ("ann",), None),
    ]
    background = [_text("hill met ann", (0, 1, "LOC"))]
    found = name_coverage(texts, background, {"ORG": ["ann"], "PER": ["hill", "acme"]})
    assert found == {
        "ORG": {"words": 1, "on_lists": 1, "on_own_list": 0, "in_names": 0},
        "PER": {"words": 3, "on_lists": 3, "on_own_list": 1, "in_names": 1},
        ALL: {"words": 4, "on_lists": 4, "on_own_list": 1, "in_names": 1},
    }
    assert list(found) == ["ORG", "PER", ALL]


def test_text_without_names_has_no_coverage() -> None:
    assert name_coverage([_text("so it is")], [], {"PER": ["ann"]}) == {}
