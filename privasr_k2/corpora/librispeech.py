"""LibriSpeech [Panayotov et al. 2015] in its official layout, whole or any subset of it.

``train`` is every ``train-*`` part there is, ``dev`` is dev-clean and dev-other, ``test`` is
test-clean and test-other.
Where there is no dev part, whole speakers are cut from train: in an order drawn with ``dev_seed``,
until they hold ``dev_fraction`` of the duration, and at least ``dev_min_speakers``. Speakers named
in ``recovered_transcripts.txt`` (utterances whose transcripts were located afterwards) are trained
on and never scored.

Options: ``dev_fraction=0.06 dev_min_speakers=1 dev_seed=0``; ``unlabelled=DIR``: audio named as
LibriSpeech's, without transcripts, by other speakers: the role ``pool``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2.corpora.base import Corpus, CorpusInput
from privasr_k2.corpora.utterances import Utterance, make_cuts
from privasr_k2.data.problems import Problem, report
from privasr_k2.data.users import hold_out
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
    "train_clean_100": 28539,
    "train_clean_360": 104014,
    "train_other_500": 148688,
    "dev_clean": 2703,
    "dev_other": 2864,
    "test_clean": 2620,
    "test_other": 2939,
}


def read(given: CorpusInput) -> dict[str, CutSet]:
    """The cuts of the parts that are there."""
    given.refuse_unknown("dev_fraction", "dev_min_speakers", "dev_seed", "unlabelled")
    raw_dir = given.folder().absolute()
    found = {
        role: [
            u for part in parts if (raw_dir / part).is_dir() for u in _utterances(raw_dir / part)
        ]
        for role, parts in PARTS.items()
    }
    if not found["train"] or not found["test"]:
        there = (
            ", ".join(sorted(p.name for p in raw_dir.iterdir() if p.is_dir())[:8]) or "no folders"
        )
        raise DataError(
            raw_dir,
            "utterances in a train-* and in a test-* folder of LibriSpeech",
            there,
            "give the folder that holds train-clean-100 and the like, with"
            " <speaker>/<chapter>/*.trans.txt",
        )
    unlabelled = given.option("unlabelled", "")
    if unlabelled:
        found["pool"] = _without_transcripts(Path(unlabelled))
    cuts = {
        role: make_cuts(utterances, given.num_jobs)
        for role, utterances in found.items()
        if utterances
    }
    if "dev" not in cuts:
        seconds: Counter[str] = Counter()
        for cut in cuts["train"]:
            seconds[cut.supervisions[0].speaker] += cut.duration
        dev = hold_out(
            seconds,
            fraction=given.number("dev_fraction", 0.06),
            at_least=int(given.number("dev_min_speakers", 1)),
            seed=int(given.number("dev_seed", 0)),
            never=_recovered_speakers(raw_dir),
        )
        train = cuts["train"]
        cuts["dev"] = train.filter(lambda cut: cut.supervisions[0].speaker in dev).to_eager()
        cuts["train"] = train.filter(lambda cut: cut.supervisions[0].speaker not in dev).to_eager()
    return cuts


def _utterances(part_dir: Path) -> Iterator[Utterance]:
    problems = []
    for transcript in sorted(part_dir.glob("*/*/*.trans.txt")):
        listed = set()
        for number, line in read_lines(transcript):
            utterance_id, _, text = line.strip().partition(" ")
            if not utterance_id:
                problems.append(
                    Problem(
                        f"{transcript}:{number}", "an utterance id and its words", "an empty line"
                    )
                )
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
    found = [
        Utterance(path.stem, "", path.stem.split("-")[0], "unlabelled", path.absolute())
        for path in sorted(folder.rglob("*.flac"))
    ]
    if not found:
        raise DataError(
            folder, "SPEAKER-CHAPTER-NUMBER.flac, in any folders", "none", "correct unlabelled=DIR"
        )
    return found


def _recovered_speakers(raw_dir: Path) -> frozenset[str]:
    path = raw_dir / "recovered_transcripts.txt"
    return (
        frozenset(line.split("-")[0] for _, line in read_lines(path))
        if path.is_file()
        else frozenset()
    )


def lm_text(given: CorpusInput) -> list[Path]:
    """The official text for language models, or the books beside a subset."""
    raw_dir = given.raw_dir
    if raw_dir is None:
        return []
    places = (
        raw_dir / "librispeech-lm-norm.txt.gz",
        raw_dir.parent / "librispeech-lm-norm.txt.gz",
        raw_dir.parent / "books" / "books.txt.gz",
    )
    return [path for path in places if path.is_file()][:1]


CORPUS = Corpus(
    name="librispeech",
    read=read,
    lm_text=lm_text,
    expected_utterances=_UTTERANCES,
)
