"""A whole language folder."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import yaml

from privasr_k2 import config
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import read_json
from privasr_k2.graph.build_lang import SPOKEN, LangConfig, build_lang
from privasr_k2.graph.lang import load_lang
from tests.support.conf import section

TEXTS = {"train": ["the cat sat", "a cat"], "dev": ["the dog sat sat"]}


@pytest.fixture(params=["char", "bpe_12"])
def units(request: pytest.FixtureRequest) -> str:
    if request.param != "char":
        pytest.importorskip("sentencepiece")
    return request.param


def conf(**changes: object) -> LangConfig:
    sizes, sources = {"max_words": 100, "min_count": 1}, {"cmudict": "none", "g2p": "none"}
    vocabulary = {"corpus_words": True, "train_words": True, **sizes}
    return LangConfig(**{"units": "char", **vocabulary, **sources, **changes})  # type: ignore[arg-type]


def make(
    folder: Path, *, tokens: list[str] | None = None, pieces: Path | None = None, **changes: object
) -> dict[str, dict[str, int]]:
    given = {"texts": TEXTS, "lm_text": ["that hat", "that tea"], "corpus_lexicon": None}
    model = {"model_tokens": tokens, "model_pieces": pieces}
    return build_lang(folder, conf(**changes), **given, **model)  # type: ignore[arg-type]


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_folder(tmp_path: Path, units: str) -> None:
    report = make(tmp_path / "lang", units=units)
    lang = load_lang(tmp_path / "lang")
    assert lang.tokens[0] == "<blk>" and lang.words[0] == "<eps>" and lang.words[-1] == "#0"
    assert set(lang.word_ids) == {"the", "cat", "sat", "a", "that", "hat", "tea"}
    assert report == read_json(tmp_path / "lang" / "oov.json")
    assert (report["train"]["oov_words"], report["dev"]["oov_words"]) == (0, 1)
    assert report["dev"]["words"] == 4
    about = yaml.safe_load((tmp_path / "lang" / "lang.yaml").read_text())
    assert about["num_tokens"] == lang.num_tokens
    assert "".join(lang.tokens[n] for n in lang.encode("the cat")) == "▁the▁cat"


def test_words_of_dev_alone_are_spelled_but_not_recognized(tmp_path: Path, units: str) -> None:
    make(tmp_path / "lang", units=units, max_words=1)
    # No training word has d, o or g.
    assert (tmp_path / "lang" / "dev_lexicon.txt").read_text() == ""
    texts = {**TEXTS, "dev": ["the chest dog"]}
    settings = conf(units=units)
    build_lang(tmp_path / "lang", settings, texts=texts, lm_text=(), corpus_lexicon=None)
    lang = load_lang(tmp_path / "lang")
    assert [word for word, _ in lang.dev_pronunciations] == ["chest"]
    assert "chest" not in lang.word_ids
    assert "".join(lang.tokens[n] for n in lang.encode("chest")) == "▁chest"


def test_what_an_acoustic_model_needs_does_not_change_with_the_lm_text(
    tmp_path: Path, units: str
) -> None:
    texts = {**TEXTS, "dev": ["the hat chest dog"]}
    files = []
    for number, lm_text in enumerate(([], ["that hat the hat", "a tea"])):
        folder = tmp_path / str(number)
        build_lang(folder, conf(units=units), texts=texts, lm_text=lm_text, corpus_lexicon=None)
        files.append(contents(folder / SPOKEN))
        whole, spoken = load_lang(folder), load_lang(folder / SPOKEN)
        assert set(spoken.word_ids) == {"the", "cat", "sat", "a"} and spoken.tokens == whole.tokens
        assert "hat" in spoken.first_pronunciations  # of dev alone
        for text in (*TEXTS["train"], "the hat"):
            assert spoken.encode(text) == whole.encode(text)
    assert files[0] == files[1]


def test_the_vocabulary_is_limited_but_holds_the_training_text(tmp_path: Path) -> None:
    make(tmp_path / "lang", max_words=5)
    assert set(load_lang(tmp_path / "lang").word_ids) == {"the", "cat", "sat", "a", "that"}
    make(tmp_path / "lang", max_words=1)
    assert set(load_lang(tmp_path / "lang").word_ids) == {"the", "cat", "sat", "a"}


def test_without_words_of_the_corpus_there_are_those_of_further_text(tmp_path: Path) -> None:
    settings = conf(corpus_words=False)
    given = {"texts": TEXTS, "lm_text": ["that hat"], "corpus_lexicon": None}
    report = build_lang(tmp_path / "lang", settings, further=["a cat asks"], **given)  # type: ignore[arg-type]
    assert set(load_lang(tmp_path / "lang").word_ids) == {"a", "cat", "asks"}
    assert report["train"]["oov_words"] == 2  # the, sat
    with pytest.raises(DataError, match="the vocabulary: expected words, found none"):
        build_lang(tmp_path / "none", settings, **given)  # type: ignore[arg-type]


def test_the_lm_text_alone_makes_a_vocabulary_without_words_of_the_training_text(
    tmp_path: Path,
) -> None:
    report = make(tmp_path / "lang", train_words=False)
    assert set(load_lang(tmp_path / "lang").word_ids) == {"that", "hat", "tea"}
    assert report["train"]["oov_words"] == report["train"]["words"] > 0
    assert yaml.safe_load((tmp_path / "lang" / "lang.yaml").read_text())["train_words"] is False
    make(tmp_path / "lang", train_words=False, max_words=1)
    assert set(load_lang(tmp_path / "lang").word_ids) == {"that"}
    with pytest.raises(ValueError, match="units must not be learned from train"):
        conf(units="bpe_12", train_words=False)
    make(tmp_path / "lang")
    assert yaml.safe_load((tmp_path / "lang" / "lang.yaml").read_text())["train_words"] is True


def test_an_earlier_folder_survives_an_error(tmp_path: Path) -> None:
    make(tmp_path / "lang")
    before = contents(tmp_path / "lang")
    with pytest.raises(DataError, match="none for 4 words: a cat sat the"):
        make(tmp_path / "lang", units="phone")
    assert before == contents(tmp_path / "lang")
    assert [path.name for path in tmp_path.iterdir()] == ["lang"]


def test_the_same_text_gives_the_same_folder(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make(tmp_path / name)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_reserved_words_are_refused(tmp_path: Path) -> None:
    settings = conf(max_words=9)
    with pytest.raises(DataError, match="the reserved '<unk>'"):
        texts = {"train": ["a <unk>"]}
        build_lang(tmp_path / "l", settings, texts=texts, lm_text=(), corpus_lexicon=None)


def test_defaults() -> None:
    assert config.load(LangConfig, [section("lang")]).units == "phone"
    with pytest.raises(ConfigError, match="g2p must be"):
        config.load(LangConfig, [section("lang")], ["g2p=maybe"])


def icefall_bpe(folder: Path) -> tuple[list[str], Path]:
    """Tokens and BPE model as icefall makes them: upper case, <blk>, <sos/eos> and <unk> first."""
    sentencepiece = pytest.importorskip("sentencepiece")
    (folder / "text").write_text("THE CAT SAT\nA CAT\nTHAT HAT\nTHAT TEA\n")
    kind = {"model_type": "unigram", "vocab_size": 14, "minloglevel": 2}
    symbols = {
        "user_defined_symbols": ["<blk>", "<sos/eos>"],
        "unk_id": 2,
        "bos_id": -1,
        "eos_id": -1,
    }
    paths = {"input": str(folder / "text"), "model_prefix": str(folder / "bpe")}
    sentencepiece.SentencePieceTrainer.train(**paths, **kind, **symbols)
    model = folder / "bpe.model"
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    return [processor.id_to_piece(number) for number in range(processor.get_piece_size())], model


def test_in_the_tokens_of_a_model_trained_with_icefall(tmp_path: Path) -> None:
    tokens, model = icefall_bpe(tmp_path)
    make(tmp_path / "lang", units="bpe_14", tokens=tokens, pieces=model)
    lang = load_lang(tmp_path / "lang")
    assert list(lang.tokens) == tokens and tokens[:3] == ["<blk>", "<sos/eos>", "<unk>"]
    assert set(lang.word_ids) == {"the", "cat", "sat", "a", "that", "hat", "tea"}
    assert "".join(lang.tokens[number] for number in lang.encode("the cat")) == "▁THE▁CAT"


def test_a_model_whose_tokens_cannot_write_the_words(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"tokens of 2 words of the training .*, found no 'c'"):
        make(tmp_path / "lang", tokens=["<blk>", "▁", "a", "s", "t"])
    assert not (tmp_path / "lang").exists()


def test_a_corpus_without_training_text_has_the_words_of_the_lm_text(tmp_path: Path) -> None:
    given = {"lm_text": ["that hat", "that tea"], "corpus_lexicon": None}
    texts = {"dev": ["the hat"]}
    report = build_lang(tmp_path / "lang", conf(max_words=2), texts=texts, **given)
    assert set(load_lang(tmp_path / "lang").word_ids) == {"that", "hat"}
    assert (report["dev"]["words"], report["dev"]["oov_words"]) == (2, 1)
    for changes in ({"units": "bpe_12"}, {"corpus_words": False}):
        with pytest.raises(DataError, match="expected words, found none"):
            build_lang(tmp_path / "none", conf(**changes), texts=texts, **given)


def test_words_of_further_text_are_in_the_vocabulary_always(tmp_path: Path, units: str) -> None:
    settings = conf(units=units, max_words=1, min_count=9)
    made = functools.partial(build_lang, tmp_path / "lang", settings, texts=TEXTS, lm_text=["hat"])
    report = made(corpus_lexicon=None, further=["tess chat", "tess"])
    words = set(load_lang(tmp_path / "lang").word_ids)
    assert words == {"the", "cat", "sat", "a", "tess", "chat"}
    assert report["train"]["types"] == 4, "further text is no training text"
    with pytest.raises(DataError, match="name lists: expected words, found the reserved '<unk>'"):
        made(corpus_lexicon=None, further=["<unk>"])
    if units != "char":
        with pytest.raises(DataError, match="that the training text has, found 1 others: zoë"):
            made(corpus_lexicon=None, further=["zoë tess"])


def german(folder: Path, lexicon: Path | None = None, **changes: object) -> dict[str, Any]:
    texts = {"train": ["der weg 7 7", "der hund"], "dev": ["der weg 2020"]}
    given = {"texts": texts, "lm_text": (), "corpus_lexicon": lexicon, "language": "de"}
    return build_lang(folder, conf(**{"units": "phone", **changes}), **given)  # type: ignore[arg-type]


def test_phones_of_another_language_are_not_english(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        german(tmp_path / "lang", cmudict="auto", g2p="espeak")
    for way_out in ("--token-type char", "--lexicon", "--lang-options g2p=espeak:de"):
        assert way_out in str(error.value)
    assert not (tmp_path / "lang").exists()
    german(tmp_path / "char", units="char", cmudict="auto", g2p="espeak")
    lexicon = tmp_path / "lexicon.txt"
    lexicon.write_text("der d e\nweg v e k\nhund h u n t\n")
    with pytest.raises(DataError, match="none for 1 words: 7"):
        german(tmp_path / "lang", lexicon, cmudict="auto", g2p="espeak")
    lexicon.write_text("der d e\nweg v e k\nhund h u n t\n7 z i b n\n")
    report = german(tmp_path / "lang", lexicon, cmudict="auto", g2p="espeak")
    assert (report["train"]["digit_words"], report["dev"]["digit_words"]) == (0, 1)
    about = yaml.safe_load((tmp_path / "lang" / "lang.yaml").read_text())
    assert [about[key] for key in ("language", "cmudict", "g2p")] == ["de", "none", "none"]
    assert about["made_up_percent"] == 0


def test_figures_that_no_lexicon_has_are_counted(tmp_path: Path) -> None:
    pytest.importorskip("espeakng_loader")
    report = german(tmp_path / "lang", g2p="espeak:de")
    assert report["train"]["digit_words"] == 2
    assert report["train"]["most_frequent_digits"] == {"7": 2}
    assert report["dev"]["most_frequent_digits"] == {"2020": 1}
    about = yaml.safe_load((tmp_path / "lang" / "lang.yaml").read_text())
    assert about["made_up_percent"] == 100 and about["words_from"]["espeak"] == 4
