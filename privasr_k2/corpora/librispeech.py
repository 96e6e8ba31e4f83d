"""LibriSpeech [Panayotov et al. 2015] in its official layout, whole or any subset of it.

``train``, ``dev`` and ``test`` hold all parts of that name. Without a dev part, whole speakers are
cut from train: drawn with ``dev_seed`` until they hold ``dev_fraction`` of the duration, at least
``dev_min_speakers``. Speakers of ``recovered_transcripts.txt`` are trained on, never scored.
Options: ``dev_fraction=0.06 dev_min_speakers=1 dev_seed=0``; ``unlabelled=DIR``, audio without
transcripts, by other speakers: the role ``pool``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2.corpora.base import Corpus, CorpusInput
from privasr_k2.corpora.utterances import Utterance, make_cuts, split_by_speaker
from privasr_k2.data.problems import Problem, report
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines

if TYPE_CHECKING:
    from lhotse import CutSet

PARTS = {
    "train": ("train-clean-100", "train-clean-360", "train-other-500", "train-clean-5"),
    "dev": ("dev-clean", "dev-other", "dev-clean-2"),
    "test": ("test-clean", "test-other"),
}
_UTTERANCES = {
    **{"train_clean_100": 28539, "train_clean_360": 104014, "train_other_500": 148688},
    **{"dev_clean": 2703, "dev_other": 2864, "test_clean": 2620, "test_other": 2939},
}


def read(given: CorpusInput) -> dict[str, CutSet]:
    """The cuts of the parts that are there."""
    given.refuse_unknown("dev_fraction", "dev_min_speakers", "dev_seed", "unlabelled")
    raw_dir = given.folder().absolute()
    found: dict[str, list[Utterance]] = {}
    for role, parts in PARTS.items():
        folders = [raw_dir / part for part in parts if (raw_dir / part).is_dir()]
        found[role] = [utterance for folder in folders for utterance in _utterances(folder)]
    if not found["train"] or not found["test"]:
        names = sorted(path.name for path in raw_dir.iterdir() if path.is_dir())
        there = ", ".join(names[:8]) or "no folders"
        expected = "utterances in a train-* and in a test-* folder of LibriSpeech"
        way_out = "give the folder that holds train-clean-100 and the like, with"
        raise DataError(raw_dir, expected, there, f"{way_out} <speaker>/<chapter>/*.trans.txt")
    unlabelled = given.option("unlabelled", "")
    if unlabelled:
        found["pool"] = _without_transcripts(Path(unlabelled))
    cuts = {role: make_cuts(of_role, given.num_jobs) for role, of_role in found.items() if of_role}
    if "dev" not in cuts:
        cuts["train"], cuts["dev"] = split_by_speaker(
            cuts["train"],
            fraction=given.number("dev_fraction", 0.06),
            at_least=int(given.number("dev_min_speakers", 1)),
            seed=int(given.number("dev_seed", 0)),
            never=_recovered_speakers(raw_dir),
        )
    return cuts


def _utterances(part_dir: Path) -> Iterator[Utterance]:
    problems = []
    for transcript in sorted(part_dir.glob("*/*/*.trans.txt")):
        listed = set()
        for number, line in read_lines(transcript):
            utterance_id, _, text = line.strip().partition(" ")
            if not utterance_id:
                expected = "an utterance id and its words"
                problems.append(Problem(f"{transcript}:{number}", expected, "an empty line"))
                continue
            listed.add(utterance_id)
            yield Utterance(
                id=utterance_id,
                text=text,
                speaker=transcript.parent.parent.name,
                part=part_dir.name.replace("-", "_"),
                audio=transcript.parent / f"{utterance_id}.flac",
                place=f"{transcript}:{number}",
            )
        for audio in sorted(transcript.parent.glob("*.flac")):
            if audio.stem not in listed:
                problems.append(Problem(str(audio), f"its transcript in {transcript.name}", "none"))
    report(problems, place=part_dir, way_out="complete the transcripts, or remove the audio")


def _without_transcripts(folder: Path) -> list[Utterance]:
    """All audio below a folder."""
    paths = sorted(folder.rglob("*.flac"))
    if not paths:
        expected = "SPEAKER-CHAPTER-NUMBER.flac, in any folders"
        raise DataError(folder, expected, "none", "correct unlabelled=DIR")
    speakers = (path.stem.split("-")[0] for path in paths)
    return [Utterance(p.stem, "", s, "unlabelled", p.absolute()) for p, s in zip(paths, speakers)]


def _recovered_speakers(raw_dir: Path) -> frozenset[str]:
    path = raw_dir / "recovered_transcripts.txt"
    lines = read_lines(path) if path.is_file() else ()
    return frozenset(line.split("-")[0] for _, line in lines)


def lm_text(given: CorpusInput) -> list[Path]:
    """The official text for language models, or the books beside a subset."""
    if given.raw_dir is None:
        return []
    folders, name = (given.raw_dir, given.raw_dir.parent), "librispeech-lm-norm.txt.gz"
    paths = (*(folder / name for folder in folders), folders[1] / "books" / "books.txt.gz")
    return [path for path in paths if path.is_file()][:1]


CORPUS = Corpus(
    "librispeech",
    read,
    lm_text=lm_text,
    expected_utterances=_UTTERANCES,
    license="CC BY 4.0",
)
