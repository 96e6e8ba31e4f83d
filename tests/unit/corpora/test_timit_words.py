"""TIMIT's sentences in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.corpora.base import CorpusInput
from privasr_k2.corpora.prepare import prepare
from privasr_k2.corpora.timit_words import CORPUS
from privasr_k2.data.manifests import load_cuts
from privasr_k2.errors import DataError
from tests.support import trees


def test_words_instead_of_phones(tmp_path: Path) -> None:
    for part, speaker in (("TRAIN", "FCJF0"), ("TEST", "FAKS0"), ("TEST", "MDAB0")):
        stem = tmp_path / "TIMIT" / part / "DR1" / speaker / "SX127"
        trees.noise(stem.with_suffix(".WAV"), 3.0, file_format="NIST")
        trees.lines(stem.with_suffix(".PHN"), "0 4000 h#", "4000 5000 sh")
        trees.lines(stem.with_suffix(".TXT"), "0 46797 The emperor had a mean temper.")
    given = CorpusInput(tmp_path / "TIMIT", tmp_path / "out", {}, (), num_jobs=1)
    prepare(CORPUS, given)
    [cut] = load_cuts(tmp_path / "out", "test")
    assert cut.supervisions[0].text == "the emperor had a mean temper"
    assert cut.custom["part"] == "core_test"
    stem.with_suffix(".TXT").unlink()
    with pytest.raises(DataError, match=r"SX127.PHN: expected words, found empty text"):
        prepare(CORPUS, given)
