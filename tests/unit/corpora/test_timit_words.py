"""TIMIT's sentences in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.corpora.base import CorpusInput
from privasr_k2.corpora.prepare import prepare
from privasr_k2.corpora.timit_words import CORPUS, words_of
from privasr_k2.data.manifests import load_cuts
from privasr_k2.errors import DataError
from tests.support import trees


def test_words_instead_of_phones(tmp_path: Path) -> None:
    for part, speaker in (("TRAIN", "FCJF0"), ("TEST", "MDAB0")):
        stem = tmp_path / "TIMIT" / part / "DR1" / speaker / "SX127"
        trees.noise(stem.with_suffix(".WAV"), 3.0, file_format="NIST")
        trees.lines(stem.with_suffix(".PHN"), "0 4000 h#", "4000 5000 sh")
        trees.lines(stem.with_suffix(".TXT"), "0 46797 The emperor had a mean temper.")
    prepare(CORPUS, CorpusInput(tmp_path / "TIMIT", tmp_path / "out", {}, (), num_jobs=1))
    [cut] = load_cuts(tmp_path / "out", "test")
    assert cut.supervisions[0].text == "the emperor had a mean temper"
    assert cut.custom["part"] == "core_test"


def test_sentences_that_are_not_there(tmp_path: Path) -> None:
    phones = trees.lines(tmp_path / "sx1.phn", "0 1 h#")
    with pytest.raises(DataError, match=r"the sentence in a .TXT beside it"):
        words_of(phones)
    trees.lines(tmp_path / "sx1.txt", "The words alone.")
    with pytest.raises(DataError, match="FIRST LAST WORDS"):
        words_of(phones)
