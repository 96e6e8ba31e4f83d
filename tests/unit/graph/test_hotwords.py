"""Words of a list in a lexicon and in a grammar, and lists that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2 import config
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import write_text
from privasr_k2.graph.hotwords import HotwordGraphConfig, with_words
from privasr_k2.graph.lang import Lang
from privasr_k2.text.hotwords import read_hotwords
from tests.support.conf import section
from tests.support.hotwords import write_list
from tests.support.small_graphs import make_lang

CHARACTERS = "ab ▁ a b\nn ▁ n\n"
PHONES = "ab AE B\nknee N IY\n"


def extended(folder: Path, lexicon: str, *lines: str) -> tuple[Lang, Lang]:
    """A language without and with a list."""
    lang = make_lang(folder / "lang", lexicon)
    write_text(lang.folder / "lang.yaml", "units: phone\ncmudict: auto\ng2p: espeak\n")
    return lang, with_words(lang, read_hotwords(write_list(folder / "names.txt", *lines)))


def test_new_words_are_spelled_in_characters_and_follow_the_others(tmp_path: Path) -> None:
    lang, whole = extended(tmp_path, CHARACTERS, "Nan ab", "ban")
    assert whole.words == ("<eps>", "ab", "n", "ban", "nan", "#0")
    assert whole.tokens == lang.tokens
    new = (("ban", ("▁", "b", "a", "n")), ("nan", ("▁", "n", "a", "n")))
    assert whole.pronunciations == (*lang.pronunciations, *new)


def test_new_words_have_the_phones_of_dictionary_and_g2p(tmp_path: Path) -> None:
    pytest.importorskip("pocketsphinx")
    pytest.importorskip("espeakng_loader")
    lang, whole = extended(tmp_path, PHONES, "bean", "neeb")
    assert dict(whole.pronunciations[len(lang.pronunciations) :]) == {
        "bean": ("B", "IY", "N"),
        "neeb": ("N", "IY", "B"),
    }


@pytest.mark.parametrize(
    ("lexicon", "lines", "place"),
    [
        (CHARACTERS, ["ab", "ab nx"], "names.txt:2"),
        (CHARACTERS, ["李雷"], "names.txt:1"),
        (PHONES, ["ab", "", "zoo"], "names.txt:3"),
        (PHONES, ["李雷"], "names.txt:1"),
    ],
)
def test_words_without_pronunciation_are_refused(
    tmp_path: Path, lexicon: str, lines: list[str], place: str
) -> None:
    if lexicon == PHONES:
        pytest.importorskip("pocketsphinx")
        pytest.importorskip("espeakng_loader")
    with pytest.raises(DataError) as error:
        extended(tmp_path, lexicon, *lines)
    assert error.value.place.endswith(place)
    assert repr(lines[-1].split()[-1]) in error.value.found


def test_defaults_and_ranges() -> None:
    layers = [section("graph"), section("hotwords")]
    assert config.load(HotwordGraphConfig, layers).hotword_bonus > 0
    for wrong in ("hotword_bonus=-1", "hotword_bonus=.nan", "hotword_log_prob=1"):
        with pytest.raises(ConfigError, match=wrong.split("=")[0]):
            config.load(HotwordGraphConfig, layers, [wrong])
