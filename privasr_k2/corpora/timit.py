"""TIMIT [Garofolo et al. 1993], the user's own licensed copy, for phone recognition.

``lhotse.recipes.prepare_timit`` reads it. The "words" are phones: the 61 of the ``.PHN`` files
mapped to 48 for training, scored on 39 [Lee and Hon 1989]. SA sentences are left out. ``test`` is
the core test of 24 speakers and ``dev`` the usual 50 others of TEST. lhotse knows one layout, in
upper case, with audio in ``.WAV``; it reads links in that layout to files in any case, and to what
programs that convert SPHERE leave beside them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2.corpora.base import Corpus, CorpusInput
from privasr_k2.corpora.layouts import audio_problems, shown
from privasr_k2.corpora.lhotse_manifests import call_recipe, cuts_of
from privasr_k2.data.problems import Problem, report
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines

if TYPE_CHECKING:
    from lhotse import CutSet, SupervisionSegment

_PHONES_48 = """
aa ae ah ao aw ax ay b ch cl d dh dx eh el en epi er ey f g hh ih ix iy jh k l m n ng ow oy p r s sh
sil t th uh uw v vcl w y z zh
"""
PHONES_48 = tuple(_PHONES_48.split())
PHONES_48_TO_39 = {phone: phone for phone in PHONES_48}
PHONES_48_TO_39 |= {"ao": "aa", "ax": "ah", "ix": "ih", "el": "l", "en": "n", "zh": "sh"}
PHONES_48_TO_39 |= {"cl": "sil", "vcl": "sil", "epi": "sil"}


_PARTS = {"train": ("TRAIN", "train"), "dev": ("DEV", "dev"), "test": ("TEST", "core_test")}
"""Role -> the part's name in lhotse, and in tables."""


def phones_of(supervision: SupervisionSegment) -> str:
    """The 48 phones of an utterance; the glottal stop is left out."""
    return " ".join(filter(None, (item.symbol for item in supervision.alignment["phone"])))


def read(
    given: CorpusInput, text_of: Callable[[SupervisionSegment], str] = phones_of
) -> dict[str, CutSet]:
    """The cuts of train, dev and core test.

    Args:
        text_of: from lhotse's supervision to the text of the utterance.
    """
    from lhotse import RecordingSet, SupervisionSet
    from lhotse.recipes import prepare_timit

    given.refuse_unknown()
    top = given.folder().absolute()
    while (inner := _child(top, "timit")) is not None:
        top = inner
    cuts = {}
    with tempfile.TemporaryDirectory() as name:
        places = _link(top, Path(name), given.num_jobs)
        manifests = call_recipe(prepare_timit, name)
        for role, (part, in_tables) in _PARTS.items():
            recordings, supervisions = map(list, manifests[part].values())
            for recording in recordings:
                recording.id = recording.id.replace("-", "_")
                recording.sources[0].source = os.readlink(recording.sources[0].source)
            for supervision in supervisions:
                supervision.id = supervision.recording_id = supervision.id.replace("-", "_")
                supervision.text = text_of(supervision)
            renamed = {
                "recordings": RecordingSet.from_recordings(recordings),
                "supervisions": SupervisionSet.from_segments(supervisions),
            }
            cuts[role] = cuts_of(renamed, in_tables, places)
    return cuts


def _child(folder: Path, name: str) -> Path | None:
    found = sorted(p for p in folder.iterdir() if p.is_dir() and p.name.lower() == name)
    return found[0] if found else None


def _link(top: Path, out_dir: Path, num_jobs: int) -> dict[str, str]:
    """Link all but SA sentences in lhotse's layout.

    Returns:
        Utterance -> its ``.PHN``.

    Raises:
        DataError: what lhotse would fail on or leave out.
    """
    from lhotse.recipes.timit import get_phonemes, get_speakers

    folders = {name: _child(top, name) for name in ("train", "test")}
    if None in folders.values():
        way_out = "give the folder of your TIMIT that holds TRAIN and TEST"
        raise DataError(top, "TRAIN and TEST", shown(top), way_out)
    problems: list[Problem] = []
    audio, places, speakers, known = {}, {}, set(), get_phonemes(48)
    for part, folder in folders.items():
        for phones in sorted(folder.glob("*/*/*")):
            speaker, sentence = phones.parent.name.lower(), phones.stem.lower()
            if phones.suffix.lower() != ".phn" or sentence.startswith("sa"):
                continue
            names = {path.name.lower(): path for path in phones.parent.iterdir()}
            words = names.get(f"{sentence}.txt", Path(os.devnull))
            link = out_dir / "data" / part.upper() / "dr" / speaker / sentence
            link.parent.mkdir(parents=True, exist_ok=True)
            link.with_suffix(".PHN").symlink_to(phones)
            link.with_suffix(".TXT").symlink_to(words)
            link.with_suffix(".WRD").touch()  # words with times, which are not used
            audio[_audio(phones, names)] = link.with_suffix(".WAV")
            problems += _problems(phones, words, known)
            places[f"{speaker}_{sentence}"] = str(phones)
            speakers.add(part if part == "train" else speaker)
    for path, of_path in audio.items():
        of_path.symlink_to(path)
    problems += audio_problems(dict.fromkeys(audio, "audio"), num_jobs)
    for role, of_role in zip(("dev", "core test", "train"), (*get_speakers(), ["train"])):
        if not speakers & {*of_role}:
            problems.append(Problem(str(top), f"utterances of the {role} speakers", "none"))
    report(problems, place=top, way_out="complete your copy of TIMIT")
    return places


def _problems(phones: Path, words: Path, known: Collection[str]) -> Iterator[Problem]:
    """Lines that lhotse would fail on, or take apart otherwise."""
    for number, line in read_lines(phones):
        fields = line.strip().split(" ")
        if len(fields) != 3 or fields[2] not in known:
            expected = "FIRST LAST PHONE, one of 61 phones"
            yield Problem(f"{phones}:{number}", expected, repr(line))
    for number, line in read_lines(words):
        fields = line.split(" ")
        if number > 1 or len(fields) < 3 or not (fields[0] + fields[1]).isdecimal():
            yield Problem(f"{words}:{number}", "one line, FIRST LAST WORDS", repr(line))


def _audio(phones: Path, names: dict[str, Path]) -> Path:
    """The audio beside a ``.PHN``; of several, as some copies have them, the converted one."""
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
    groups=("gender",),
    license="LDC User Agreement for Non-Members or Members (LDC93S1)",
    # 13 phones a second on the average, of three characters with their blank
    max_characters_per_second=75.0,
)
