"""Pronunciations from espeak-ng: English as the 39 phones of CMUdict, other languages in IPA.

espeak-ng is a separate program under the GPL, called through its C interface.
"""

from __future__ import annotations

import atexit
import ctypes
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

from privasr_k2.errors import ConfigError

ARPABET = (
    "AA", "AE", "AH", "AO", "AW", "AY", "B", "CH", "D", "DH", "EH", "ER", "EY", "F", "G", "HH",
    "IH", "IY", "JH", "K", "L", "M", "N", "NG", "OW", "OY", "P", "R", "S", "SH", "T", "TH", "UH",
    "UW", "V", "W", "Y", "Z", "ZH",
)  # fmt: skip

# General American IPA as espeak-ng's voice en-us writes it, without stress and length marks. A flap
# stands for both t and d there; t is the more frequent one.
_IPA = {
    "ɑ": "AA", "a": "AA", "ɒ": "AA", "æ": "AE", "ʌ": "AH", "ə": "AH", "ɐ": "AH", "ɔ": "AO",
    "aʊ": "AW", "aɪ": "AY", "b": "B", "tʃ": "CH", "d": "D", "ð": "DH", "ɛ": "EH", "e": "EH",
    "ɚ": "ER", "ɜ": "ER", "ɝ": "ER", "eɪ": "EY", "f": "F", "ɡ": "G", "g": "G", "h": "HH", "ɪ": "IH",
    "ᵻ": "IH", "i": "IY", "dʒ": "JH", "k": "K", "x": "K", "ç": "K", "l": "L", "ɬ": "L", "m": "M",
    "n": "N", "n̩": "AH N", "ŋ": "NG", "oʊ": "OW", "o": "OW", "ɔɪ": "OY", "p": "P", "ɹ": "R",
    "r": "R", "s": "S", "ʃ": "SH", "t": "T", "ɾ": "T", "ʔ": "T", "θ": "TH", "ʊ": "UH", "u": "UW",
    "v": "V", "w": "W", "j": "Y", "z": "Z", "ʒ": "ZH",
}  # fmt: skip
_UNWRITTEN = re.compile("[ˈˌːʲ\u0303_ ]+")  # stress, length, palatalization, nasality, separators
_STRESS, _SWITCH = re.compile("[ˈˌ]"), re.compile(r"\([a-z0-9-]+\)")
_ENGLISH = "en-us"
_MOST_PHONES = 4  # of a letter; names of letters have more
_LATIN = re.compile("[0-9A-Za-z\u00c0-\u024f'.\u2019-]+")
_PHONEME = re.compile("|".join(sorted(map(re.escape, _IPA), key=len, reverse=True)))


def arpabet_of_ipa(ipa: str) -> tuple[str, ...]:
    """The phones of an IPA transcription; empty where some of it has no phone of American English.

    >>> arpabet_of_ipa("m_ə_k_ˈɑːɹ_ð_i")
    ('M', 'AH', 'K', 'AA', 'R', 'DH', 'IY')
    """
    phones: list[str] = []
    for piece in _UNWRITTEN.sub("_", ipa).split("_"):
        of_piece = _arpabet_of_piece(piece)
        if of_piece is None:
            return ()
        phones.extend(of_piece)
    return tuple(phones)


@lru_cache(maxsize=4096)  # the same few pieces make up all words
def _arpabet_of_piece(piece: str) -> tuple[str, ...] | None:
    """Its phones; None where some of it has no phone of American English."""
    if _PHONEME.sub("", piece):
        return None
    return tuple(phone for phoneme in _PHONEME.findall(piece) for phone in _IPA[phoneme].split())


def espeak_pronunciations(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The phones of each word, by espeak-ng; words that are not English to it are left out."""
    say = _espeak(_ENGLISH)
    # Of other scripts espeak-ng reads the letters' names ("Chinese letter").
    spoken = ((word, arpabet_of_ipa(say(word))) for word in words if _LATIN.fullmatch(word))
    return {word: phones for word, phones in spoken if phones}


def ipa_pronunciations(words: Iterable[str], voice: str) -> dict[str, tuple[str, ...]]:
    """IPA phones of each word by a voice of espeak-ng, without stress.

    Words of a script that the voice does not read are left out: it would name their letters.

    Args:
        voice: a language of espeak-ng: ``de``, ``fr``, ``es-419``, ...

    Raises:
        ConfigError: there is no such voice.
    """
    say, spoken = _espeak(voice), {}
    for word in words:
        said = say(word)
        phones = ipa_phones(said)
        foreign = "(" in said or " " in said or len(phones) > _MOST_PHONES * len(word)
        if phones and (_LATIN.fullmatch(word) or not foreign):
            spoken[word] = phones
    return spoken


def ipa_phones(ipa: str) -> tuple[str, ...]:
    """The phones of espeak-ng's IPA without stress, and without marks of a change of language.

    >>> ipa_phones("(en)_k_ə_m_p_j_ˈuː_t_ə_(fr)")
    ('k', 'ə', 'm', 'p', 'j', 'uː', 't', 'ə')
    """
    return tuple(filter(None, re.split("[_ ]+", _STRESS.sub("", _SWITCH.sub("_", ipa)))))


def _espeak(voice: str) -> Callable[[str], str]:
    """A function from a word to its IPA; the library holds one voice at a time."""
    library, say = _library()
    if library.espeak_SetVoiceByName(voice.encode()) != 0:
        place, way_out = f"g2p=espeak:{voice}", "write a language of espeak-ng: de, fr, es, ru, ..."
        raise ConfigError(place, "a voice of espeak-ng", f"none named {voice!r}", way_out)
    return say


@lru_cache(maxsize=1)
def _library() -> tuple[ctypes.CDLL, Callable[[str], str]]:
    """The library, and the function from a word to its IPA in the voice that is set."""
    try:
        import espeakng_loader
    except ImportError as error:
        way_out = "install it, or give a lexicon with every word and --set g2p=none"
        raise ConfigError("g2p=espeak", "espeakng-loader", "no such package", way_out) from error
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    # espeak-ng cuts the path of its data at 160 bytes.
    folder = tempfile.mkdtemp(prefix="espeak")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    data = Path(folder) / "espeak-ng-data"
    data.symlink_to(Path(espeakng_loader.get_data_path()).resolve())
    # No sound device is opened; a missing voice does not end the process.
    synchronous, dont_exit = 2, 0x8000
    rate = library.espeak_Initialize(synchronous, 0, str(data).encode(), dont_exit)
    if rate < 0:
        expected = "espeak-ng with its voices"
        raise ConfigError("g2p=espeak", expected, "it did not start", "reinstall espeakng-loader")
    translate = library.espeak_TextToPhonemes
    translate.restype = ctypes.c_char_p
    translate.argtypes = [ctypes.POINTER(ctypes.c_char_p), ctypes.c_int, ctypes.c_int]
    utf8, ipa_separated = 1, 0x02 | (ord("_") << 8)

    def say(word: str) -> str:
        text = ctypes.c_char_p(word.encode())
        clauses = []
        while text.value:  # one call translates up to the end of a clause and moves the pointer
            clauses.append((translate(ctypes.byref(text), utf8, ipa_separated) or b"").decode())
        return "_".join(clauses)

    return library, say
