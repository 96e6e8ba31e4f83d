"""Corpora in other languages than English: what recipes refuse before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import ConfigError
from privasr_k2.recipe.front import declare
from tests.support import trees

ROOT = Path(__file__).resolve().parents[3]
REFUSED = "no lexicon: the words would get English phones"
GERMAN = ("--corpus-options", "language=de")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for role in ("train", "test"):
        trees.kaldi(tmp_path / "raw", role, [role])
    return tmp_path / "raw"


def declared(corpus: str, *words: str, caller: Path) -> None:
    declare(corpus, "ctc", [*words, "--work-dir", str(caller / "work")], ROOT, caller)


def test_phones_without_a_lexicon_are_refused(corpus: Path, tmp_path: Path) -> None:
    name = f"data:{corpus}"
    with pytest.raises(ConfigError, match=REFUSED) as error:
        declared(name, *GERMAN, caller=tmp_path)
    for way_out in ("--token-type char", "bpe_500", "--lexicon", "g2p=espeak:de"):
        assert way_out in str(error.value)
    with pytest.raises(ConfigError, match="code of a language"):
        declared(name, "--corpus-options", "language=German", caller=tmp_path)
    declared(name, caller=tmp_path)
    declared(name, "--corpus-options", "language=en-gb", caller=tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ("--token-type", "char"),
        ("--token-type", "bpe_500"),
        ("--lang-options", "g2p=espeak:de"),
        ("--lexicon", "words.txt"),
    ],
)
def test_each_way_out_is_one(corpus: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "words.txt").write_text("weg v e k\n")
    declared(f"data:{corpus}", *GERMAN, *words, caller=tmp_path)


def test_a_lexicon_beside_the_data_and_values_of_the_user(corpus: Path, tmp_path: Path) -> None:
    (corpus / "conf.yaml").write_text("lang: {g2p: 'espeak:de'}\n")
    declared(f"data:{corpus}", *GERMAN, caller=tmp_path)
    (corpus / "conf.yaml").unlink()
    (corpus / "lexicon.txt").write_text("weg v e k\n")
    declared(f"data:{corpus}", *GERMAN, caller=tmp_path)


def test_a_definition_says_its_language(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    text = "import lhotse\nCORPUS = Corpus(name='mine', read=read, language='de'{more})\n"
    file.write_text(text.format(more=""))
    with pytest.raises(ConfigError, match=REFUSED):
        declared(str(file), caller=tmp_path)
    # Whether its lexicon is there the manifests tell: stage 2 refuses.
    file.write_text(text.format(more=", lexicon=lexicon"))
    declared(str(file), caller=tmp_path)
