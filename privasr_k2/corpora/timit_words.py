"""TIMIT in words, as its ``.TXT`` files have them; parts and speakers of :mod:`.timit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privasr_k2.corpora import timit
from privasr_k2.corpora.base import Corpus, CorpusInput

if TYPE_CHECKING:
    from lhotse import CutSet


def read(given: CorpusInput) -> dict[str, CutSet]:
    """The cuts of train, dev and core test."""
    return timit.read(given, lambda supervision: supervision.text)


CORPUS = Corpus(name="timit_words", read=read, expected_utterances=timit.CORPUS.expected_utterances)
