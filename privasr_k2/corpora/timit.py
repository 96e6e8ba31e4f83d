"""TIMIT [Garofolo et al. 1993], the user's own licensed copy, for phone recognition.

The "words" are phones: the 61 of the ``.PHN`` files mapped to 48 for training, scored on 39 [Lee
and Hon 1989]. Names in any case, SPHERE and RIFF audio are read. SA sentences are left out.
``test`` is the core test of 24 speakers and ``dev`` the usual 50 others of TEST.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2.corpora.base import Corpus, CorpusInput
from privasr_k2.corpora.utterances import Utterance, make_cuts
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines

if TYPE_CHECKING:
    from lhotse import CutSet

_CORE_TEST_SPEAKERS = """
mdab0 mwbt0 felc0 mtas1 mwew0 fpas0 mjmp0 mlnt0 fpkt0 mlll0 mtls0 fjlm0 mbpm0 mklt0 fnlp0 mcmj0
mjdh0 fmgd0 mgrt0 mnjm0 fdhc0 mjln0 mpam0 fmld0
"""
CORE_TEST_SPEAKERS = frozenset(_CORE_TEST_SPEAKERS.split())
_DEV_SPEAKERS = """
faks0 fdac1 fjem0 mgwt0 mjar0 mmdb1 mmdm2 mpdf0 fcmh0 fkms0 mbdg0 mbwm0 mcsh0 fadg0 fdms0 fedw0
mgjf0 mglb0 mrtk0 mtaa0 mtdt0 mthc0 mwjg0 fnmr0 frew0 fsem0 mbns0 mmjr0 mdls0 mdlf0 mdvc0 mers0
fmah0 fdrw0 mrcs0 mrjm4 fcal1 mmwh0 fjsj0 majc0 mjsw0 mreb0 fgjd0 fjmg0 mroa0 mteb0 mjfc0 mrjr0
fmml0 mrws1
"""
DEV_SPEAKERS = frozenset(_DEV_SPEAKERS.split())

_PHONES_48 = """
aa ae ah ao aw ax ay b ch cl d dh dx eh el en epi er ey f g hh ih ix iy jh k l m n ng ow oy p r s sh
sil t th uh uw v vcl w y z zh
"""
PHONES_48 = tuple(_PHONES_48.split())
# The glottal stop q is left out of the transcripts.
_61_TO_48 = {phone: phone for phone in PHONES_48}
_61_TO_48 |= {"ax-h": "ax", "axr": "er", "em": "m", "eng": "ng", "hv": "hh", "nx": "n", "ux": "uw"}
_61_TO_48 |= {"h#": "sil", "pau": "sil", "q": ""}
_61_TO_48 |= {"bcl": "vcl", "dcl": "vcl", "gcl": "vcl", "pcl": "cl", "tcl": "cl", "kcl": "cl"}
PHONES_48_TO_39 = {phone: phone for phone in PHONES_48}
PHONES_48_TO_39 |= {"ao": "aa", "ax": "ah", "ix": "ih", "el": "l", "en": "n", "zh": "sh"}
PHONES_48_TO_39 |= {"cl": "sil", "vcl": "sil", "epi": "sil"}


def phones_of(path: Path) -> str:
    """Read a ``.PHN`` file as 48 phones."""
    phones = []
    for number, line in read_lines(path):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 3 or fields[2].lower() not in _61_TO_48:
            expected = "FIRST LAST PHONE, one of 61 phones"
            raise DataError(f"{path}:{number}", expected, repr(line), "replace the file")
        phones.append(_61_TO_48[fields[2].lower()])
    return " ".join(filter(None, phones))


def read(given: CorpusInput, text_of: Callable[[Path], str] = phones_of) -> dict[str, CutSet]:
    """The cuts of train, dev and core test.

    Args:
        text_of: from a ``.PHN`` to the text of its utterance.
    """
    given.refuse_unknown()
    raw_dir = given.folder().absolute()
    top = raw_dir
    while (inner := _child(top, "timit")) is not None:
        top = inner
    folders = {name: _child(top, name) for name in ("train", "test")}
    if None in folders.values():
        there = ", ".join(sorted(path.name for path in top.iterdir())[:8]) or "an empty folder"
        way_out = "give the folder of your TIMIT that holds TRAIN and TEST"
        raise DataError(top, "TRAIN and TEST", there, way_out)
    by_role: dict[str, list[Utterance]] = {"train": [], "dev": [], "test": []}
    for name, folder in folders.items():
        for utterance in _utterances(folder, text_of) if folder is not None else ():
            is_core, is_dev = (utterance.speaker in s for s in (CORE_TEST_SPEAKERS, DEV_SPEAKERS))
            role = "train" if name == "train" else "test" if is_core else "dev" if is_dev else None
            if role is not None:
                by_role[role].append(utterance)
    return {
        role: make_cuts(of_role, given.num_jobs) for role, of_role in by_role.items() if of_role
    }


def _child(folder: Path, name: str) -> Path | None:
    found = sorted(p for p in folder.iterdir() if p.is_dir() and p.name.lower() == name)
    return found[0] if found else None


def _utterances(folder: Path, text_of: Callable[[Path], str]) -> Iterator[Utterance]:
    """All but SA sentences of TRAIN or TEST, sorted by lower-case speaker and sentence."""
    part = folder.name.lower()
    phones = [path for path in folder.glob("*/*/*") if path.suffix.lower() == ".phn"]
    for path in sorted(phones, key=lambda path: (path.parent.name.lower(), path.name.lower())):
        speaker, sentence = path.parent.name.lower(), path.stem.lower()
        if sentence.startswith("sa"):
            continue
        of_test = "core_test" if speaker in CORE_TEST_SPEAKERS else "dev"
        yield Utterance(
            id=f"{speaker}_{sentence}",
            text=text_of(path),
            speaker=speaker,
            part=part if part == "train" else of_test,
            audio=_audio(path),
            place=str(path),
        )


def _audio(phones: Path) -> Path:
    """The audio beside a ``.PHN``; of several, as some copies have them, the converted one."""
    names = {path.name.lower(): path for path in phones.parent.iterdir()}
    stem = phones.stem.lower()
    # sph2pipe and others leave SX1.WAV.wav beside the original.
    for name in (f"{stem}.wav.wav", f"{stem}_.wav", f"{stem}.wav", f"{stem}.sph", f"{stem}.flac"):
        if name in names:
            return names[name]
    return phones.with_suffix(".WAV")


def lexicon(given: CorpusInput) -> Path:
    """Every phone is its own word."""
    return Path(__file__).with_name("timit_phones.txt")


CORPUS = Corpus(
    name="timit",
    read=read,
    normalize=str.strip,
    lexicon=lexicon,
    expected_utterances={"train": 3696, "dev": 400, "core_test": 192},
    scored_units=PHONES_48_TO_39,
    unit="phone",
    license="LDC User Agreement for Non-Members or Members (LDC93S1)",
    # 13 phones a second on the average, of three characters with their blank
    max_characters_per_second=75.0,
)
