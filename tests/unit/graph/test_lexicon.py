"""Spellings: where pronunciations come from, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import ConfigError, DataError
from privasr_k2.graph.lexicon import (
    cmudict_path,
    load_pronunciations,
    spell_in_characters,
    spell_in_phones,
    spell_in_pieces,
    train_bpe,
)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def phones(lexicon: dict[str, list[str]]) -> dict[str, list[tuple[str, ...]]]:
    return {word: [tuple(text.split()) for text in texts] for word, texts in lexicon.items()}


def test_variants_stress_and_comments(tmp_path: Path) -> None:
    text = "read R EH1 D\nread(2) R IY0 D # present, verb\nread(3) R EH2 D\nnothing # to say\n"
    assert load_pronunciations(write(tmp_path / "l.txt", text)) == {
        "read": [("R", "EH", "D"), ("R", "IY", "D")]
    }


def test_case_counts_in_the_corpus_lexicon_alone(tmp_path: Path) -> None:
    own = write(tmp_path / "own.txt", "Polish P OW L IH SH\npolish P AA L IH SH\n")
    cmudict = write(tmp_path / "cmu.dict", "DOG D AO1 G\nDOG(2) D AA1 G\n")
    made = spell_in_phones(
        ["Polish", "polish", "Dog"], [], corpus_lexicon=own, cmudict=cmudict, g2p="none"
    )
    polish = {"Polish": ["P OW L IH SH"], "polish": ["P AA L IH SH"]}
    assert made.variants == phones({"Dog": ["D AO G", "D AA G"], **polish})


def test_phones_of_another_set_keep_their_digits(tmp_path: Path) -> None:
    assert load_pronunciations(write(tmp_path / "l.txt", "a a1 q2\n")) == {"a": [("a1", "q2")]}


def test_sources_come_in_order(tmp_path: Path) -> None:
    pytest.importorskip("espeakng_loader")
    own = write(tmp_path / "own.txt", "cat K AA T\n")
    cmudict = write(tmp_path / "cmu.dict", "cat K AE T\ndog D AO G\n")
    made = spell_in_phones(
        ["cat"], ["dog", "thing", "中"], corpus_lexicon=own, cmudict=cmudict, g2p="espeak"
    )
    assert made.variants == phones({"cat": ["K AA T"], "dog": ["D AO G"], "thing": ["TH IH NG"]})
    assert made.sources == {"corpus": 1, "cmudict": 1, "espeak": 1, "left out": 1}
    assert len(made.tokens) == 39


def test_a_lexicon_of_other_phones_is_not_filled_up(tmp_path: Path) -> None:
    own = write(tmp_path / "own.txt", "cat k a t\n")
    cmudict = write(tmp_path / "cmu.dict", "dog D AO G\n")
    made = spell_in_phones(["cat"], ["dog"], corpus_lexicon=own, cmudict=cmudict, g2p="none")
    assert (made.tokens, list(made.variants)) == (("a", "k", "t"), ["cat"])


def test_missing_words_are_listed_with_a_way_out(tmp_path: Path) -> None:
    own = write(tmp_path / "own.txt", "cat K AE T\n")
    words = ["cat", *(f"x{n:02d}" for n in range(12))]
    with pytest.raises(DataError) as caught:
        spell_in_phones(words, ["rare"], corpus_lexicon=own, cmudict=None, g2p="none")
    message = str(caught.value)
    assert message.startswith(f"{own}: ")
    assert "none for 12 words: x00 x01 x02" in message
    assert "x09 ..." in message and "x10" not in message
    assert "g2p=espeak" in message and "rare" not in message


def test_cmudict_settings(tmp_path: Path) -> None:
    assert cmudict_path("none") is None
    assert cmudict_path(str(write(tmp_path / "c", "a AH\n"))) == tmp_path / "c"
    with pytest.raises(ConfigError, match="cmudict=FILE"):
        cmudict_path(str(tmp_path / "nowhere"))


def test_characters_of_no_training_word_are_left_out() -> None:
    made = spell_in_characters(["ab"], ["ba", "bé"])
    assert made.tokens == ("▁", "a", "b")
    assert made.sources == {"spelled": 2, "left out": 1}


def test_bpe(tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece")
    text = ["the cat sat on the mat", "a cat that sat", "the thin hat"] * 5
    train_bpe(text, 20, tmp_path / "a.model")
    train_bpe(text, 20, tmp_path / "b.model")
    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()
    made = spell_in_pieces({"cat", "that"}, {"mat", "dog"}, tmp_path / "a.model")
    assert len(made.tokens) == 19 and "<blk>" not in made.tokens
    assert list(made.variants) == ["cat", "mat", "that"]
    for word, [pieces] in made.variants.items():
        assert "".join(pieces) == f"▁{word}"
        assert set(pieces) <= set(made.tokens)


def test_too_many_pieces_for_the_text(tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece")
    with pytest.raises(ConfigError, match="Vocabulary size"):
        train_bpe(["a b"], 500, tmp_path / "a.model")
    assert not list(tmp_path.iterdir())


def test_all_words_in_the_phones_of_a_voice(tmp_path: Path) -> None:
    pytest.importorskip("espeakng_loader")
    cmudict = write(tmp_path / "cmu.dict", "dog D AO G\n")
    sources = {"corpus_lexicon": None, "cmudict": cmudict, "g2p": "espeak:de"}
    made = spell_in_phones(["weg", "dog"], ["egge", "übermut"], **sources)
    assert made.variants["weg"] == [("v", "ɛ", "k")] and "AO" not in made.tokens
    # Words of other text have no phones that the training text lacks.
    assert "übermut" not in made.variants and set(made.tokens) == {
        phone for (phones,) in made.variants.values() for phone in phones
    }
    assert made.made_up == set(made.variants) and made.made_up_share == 1.0


def test_a_lexicon_goes_before_a_voice(tmp_path: Path) -> None:
    own = write(tmp_path / "own.txt", "weg v e: k\n")
    made = spell_in_phones(["weg"], ["ei"], corpus_lexicon=own, cmudict=None, g2p="espeak:de")
    assert made.variants == {"weg": [("v", "e:", "k")]} and made.made_up == set()
