"""A whole language folder."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from privasr_k2 import config
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import read_json
from privasr_k2.graph.build_lang import LangConfig, build_lang
from privasr_k2.graph.lang import load_lang

TEXTS = {"train": ["the cat sat", "a cat"], "dev": ["the dog sat sat"]}


def make(folder: Path, **changes: object) -> dict[str, dict[str, int]]:
    settings = {
        "units": "char",
        "max_words": 100,
        "min_count": 1,
        "cmudict": "none",
        "g2p": "none",
        **changes,
    }
    return build_lang(
        folder,
        LangConfig(**settings),  # type: ignore[arg-type]
        texts=TEXTS,
        lm_text=["that hat", "that tea"],
        corpus_lexicon=None,
    )


@pytest.mark.parametrize("units", ["char", "bpe_12"])
def test_folder(tmp_path: Path, units: str) -> None:
    if units != "char":
        pytest.importorskip("sentencepiece")
    report = make(tmp_path / "lang", units=units)
    lang = load_lang(tmp_path / "lang")
    assert lang.tokens[0] == "<blk>" and lang.words[0] == "<eps>" and lang.words[-1] == "#0"
    assert set(lang.word_ids) == {"the", "cat", "sat", "a", "that", "hat", "tea"}
    assert report == read_json(tmp_path / "lang" / "oov.json")
    assert (report["train"]["oov_words"], report["dev"]["oov_words"], report["dev"]["words"]) == (0, 1, 4)
    assert yaml.safe_load((tmp_path / "lang" / "lang.yaml").read_text())["num_tokens"] == lang.num_tokens
    assert "".join(lang.tokens[n] for n in lang.encode("the cat")) == "▁the▁cat"


@pytest.mark.parametrize("units", ["char", "bpe_12"])
def test_words_of_dev_alone_are_spelled_but_not_recognized(tmp_path: Path, units: str) -> None:
    if units != "char":
        pytest.importorskip("sentencepiece")
    make(tmp_path / "lang", units=units, max_words=1)
    assert (tmp_path / "lang" / "dev_lexicon.txt").read_text() == ""  # no training word has d, o or g
    texts = {**TEXTS, "dev": ["the chest dog"]}
    settings = LangConfig(units=units, max_words=100, min_count=1, cmudict="none", g2p="none")
    build_lang(tmp_path / "lang", settings, texts=texts, lm_text=(), corpus_lexicon=None)
    lang = load_lang(tmp_path / "lang")
    assert [word for word, _ in lang.dev_pronunciations] == ["chest"]
    assert "chest" not in lang.word_ids
    assert "".join(lang.tokens[n] for n in lang.encode("chest")) == "▁chest"


def test_the_vocabulary_is_limited_but_holds_the_training_text(tmp_path: Path) -> None:
    make(tmp_path / "lang", max_words=5)
    assert set(load_lang(tmp_path / "lang").word_ids) == {"the", "cat", "sat", "a", "that"}
    make(tmp_path / "lang", max_words=1)
    assert set(load_lang(tmp_path / "lang").word_ids) == {"the", "cat", "sat", "a"}


def test_an_earlier_folder_survives_an_error(tmp_path: Path) -> None:
    make(tmp_path / "lang")
    before = {path.name: path.read_bytes() for path in (tmp_path / "lang").iterdir()}
    with pytest.raises(DataError, match="none for 4 words: a cat sat the"):
        make(tmp_path / "lang", units="phone")
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "lang").iterdir()}
    assert [path.name for path in tmp_path.iterdir()] == ["lang"]


def test_the_same_text_gives_the_same_folder(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make(tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def test_reserved_words_are_refused(tmp_path: Path) -> None:
    settings = LangConfig(units="char", max_words=9, min_count=1, cmudict="none", g2p="none")
    with pytest.raises(DataError, match="the reserved '<unk>'"):
        build_lang(tmp_path / "l", settings, texts={"train": ["a <unk>"]}, lm_text=(), corpus_lexicon=None)


def test_defaults(repo_root: Path) -> None:
    assert config.load(LangConfig, [repo_root / "conf" / "lang.yaml"]).units == "phone"
    with pytest.raises(ConfigError, match="g2p must be"):
        config.load(LangConfig, [repo_root / "conf" / "lang.yaml"], ["g2p=maybe"])
