"""Entities by Presidio's analyzer (package ``presidio-analyzer``), for comparison.

No lock file has it: it is installed beside the environment (docs/sanitization.md). Its recognizers
of persons, organizations and places are those of a spaCy model, here the one of ``tag_spacy``. As
shipped it asks for ``en_core_web_lg``, which is not on PyPI.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.text.entities import Entity

_NAMES = ("PERSON", "ORGANIZATION", "LOCATION", "NRP", "DATE_TIME")
_BATCH = 256


class PresidioTagger:
    """Tag with Presidio's default recognizers, of names and dates alone.

    Args:
        models: spaCy models; the first that is installed is taken.

    Raises:
        DataError: Presidio or all of the models are missing.
    """

    def __init__(self, models: Sequence[str]) -> None:
        way_out = "pip install presidio-analyzer, or tag with --set taggers=[spacy]"
        try:
            import presidio_analyzer
            import spacy
            from presidio_analyzer.nlp_engine import NlpEngineProvider
        except ImportError as error:
            expected = "the package presidio-analyzer"
            raise DataError("Presidio", expected, str(error), way_out) from error
        name = next((model for model in models if spacy.util.is_package(model)), None)
        if name is None:
            expected = f"one of {' '.join(models)}"
            way_out = "pip install 'privasr_k2[entities]'"
            raise DataError("Presidio's spaCy model", expected, "none of them", way_out)
        engine = {
            "nlp_engine_name": "spacy",
            "models": [{"lang_code": "en", "model_name": name}],
        }
        nlp = NlpEngineProvider(nlp_configuration=engine).create_engine()
        analyzer = presidio_analyzer.AnalyzerEngine(nlp_engine=nlp, supported_languages=["en"])
        self._analyzer = presidio_analyzer.BatchAnalyzerEngine(analyzer)

    def tag(self, texts: Sequence[Sequence[str]]) -> list[tuple[Entity, ...]]:
        """The entities of each text; an entity covers every token that it touches."""
        found = self._analyzer.analyze_iterator(
            [" ".join(tokens) for tokens in texts],
            "en",
            batch_size=_BATCH,
            entities=[*_NAMES],
        )
        tagged = []
        for tokens, results in zip(texts, found, strict=True):
            starts = np.cumsum([0, *(len(token) + 1 for token in tokens)])
            firsts = np.searchsorted(starts, [result.start for result in results], "right") - 1
            ends = np.searchsorted(starts, [result.end for result in results], "left")
            labels = [result.entity_type for result in results]
            tagged.append(tuple(sorted(map(Entity, firsts.tolist(), ends.tolist(), labels))))
        return tagged
