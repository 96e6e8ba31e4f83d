"""TIMIT in words, as its ``.TXT`` files have them; parts and speakers of :mod:`.timit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2.corpora import timit
from privasr_k2.corpora.base import Corpus, CorpusInput
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines

if TYPE_CHECKING:
    from lhotse import CutSet


def words_of(phones: Path) -> str:
    """The sentence beside a ``.PHN``: ``FIRST LAST Words of the sentence.``"""
    name = f"{phones.stem.lower()}.txt"
    path = next((p for p in sorted(phones.parent.iterdir()) if p.name.lower() == name), None)
    if path is None:
        way_out = "complete your copy of TIMIT"
        raise DataError(phones, "the sentence in a .TXT beside it", "none", way_out)
    fields = " ".join(line for _, line in read_lines(path)).split(maxsplit=2)
    if len(fields) != 3 or not all(field.isdigit() for field in fields[:2]):
        raise DataError(path, "FIRST LAST WORDS", " ".join(fields)[:60], "replace the file")
    return fields[2]


def read(given: CorpusInput) -> dict[str, CutSet]:
    """The cuts of train, dev and core test."""
    return timit.read(given, words_of)


CORPUS = Corpus(name="timit_words", read=read, expected_utterances=timit.CORPUS.expected_utterances)
