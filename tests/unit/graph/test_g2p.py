"""espeak-ng's phonemes as phones of CMUdict."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from privasr_k2.errors import ConfigError
from privasr_k2.graph.g2p import (
    ARPABET,
    arpabet_of_ipa,
    espeak_pronunciations,
    ipa_pronunciations,
)


@pytest.mark.parametrize(
    ("ipa", "phones"),
    [
        ("b_ˈʌ_ɾ_ɚ", "B AH T ER"),
        ("n_ˈɪɹ", "N IH R"),
        ("b_ˈʌ_ʔ_n̩", "B AH T AH N"),
        ("tʃ_ˈɜː_tʃ", "CH ER CH"),
        ("ˈaʊ_ɚ", "AW ER"),
        ("b_ˈɑː_ɾ_əl", "B AA T AH L"),
        ("(fr)_y", ""),
        ("", ""),
    ],
)
def test_table(ipa: str, phones: str) -> None:
    assert " ".join(arpabet_of_ipa(ipa)) == phones


def test_thirty_nine_phones() -> None:
    assert len(ARPABET) == 39


def test_words() -> None:
    pytest.importorskip("espeakng_loader")
    said = espeak_pronunciations(["thing", "judge", "ragtag", "中"])
    assert said["thing"] == ("TH", "IH", "NG")
    assert said["judge"] == ("JH", "AH", "JH")
    assert {phone for phones in said.values() for phone in phones} <= set(ARPABET)


@pytest.mark.shared_data
def test_agrees_with_cmudict_in_most_phones(shared_data: Path) -> None:
    pytest.importorskip("espeakng_loader")
    kaldialign = pytest.importorskip("kaldialign")
    expected = {}
    with gzip.open(shared_data / "lexicon" / "cmudict-en-us.dict.gz", "rt") as file:
        for line in list(file)[::100]:
            word, *phones = line.split()
            if "(" not in word:
                expected[word] = phones
    said = espeak_pronunciations(expected)
    assert len(said) > 0.99 * len(expected)
    errors = sum(kaldialign.edit_distance(expected[w], list(said[w]))["total"] for w in said)
    # 0.10 was measured: vowels without stress and names differ.
    assert errors / sum(len(expected[w]) for w in said) < 0.15


def test_words_of_other_languages_in_ipa() -> None:
    pytest.importorskip("espeakng_loader")
    said = ipa_pronunciations(["straße", "7", "中文", "中", "привет", "computer"], "de")
    assert said["straße"] == ("ʃ", "t", "ɾ", "ɑː", "s", "ə")
    assert set(said) == {"straße", "7", "computer"}  # the others would be names of letters
    assert ipa_pronunciations(["привет"], "ru")["привет"][0] == "p"
    assert ipa_pronunciations(["computer"], "fr")["computer"][-1] == "ə"  # "(en)_..._(fr)"
    # The voice is that of each call.
    assert espeak_pronunciations(["thing"])["thing"] == ("TH", "IH", "NG")


def test_an_unknown_voice_is_one_error() -> None:
    pytest.importorskip("espeakng_loader")
    with pytest.raises(ConfigError, match="g2p=espeak:xx: expected a voice"):
        ipa_pronunciations(["wort"], "xx")
