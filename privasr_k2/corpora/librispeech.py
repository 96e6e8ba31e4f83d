"""LibriSpeech [Panayotov et al. 2015] in its official layout, whole or any subset of it.

``lhotse.recipes.prepare_librispeech`` reads the parts; what it would leave out is reported before.

``train``, ``dev`` and ``test`` hold all parts of that name. Without a dev part, whole speakers are
cut from train: drawn with ``dev_seed`` until they hold ``dev_fraction`` of the duration, at least
``dev_min_speakers``. Speakers of ``recovered_transcripts.txt`` are trained on, never scored.
Options: ``dev_fraction=0.06 dev_min_speakers=1 dev_seed=0``; ``unlabelled=DIR``, audio without
transcripts, by other speakers: the role ``pool``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2.corpora.base import Corpus, CorpusInput
from privasr_k2.corpora.lhotse_manifests import call_recipe, cuts_of
from privasr_k2.corpora.utterances import Utterance, make_cuts, split_by_speaker
from privasr_k2.data.audio import read_headers
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
    from lhotse import CutSet
    from lhotse.recipes import prepare_librispeech

    given.refuse_unknown("dev_fraction", "dev_min_speakers", "dev_seed", "unlabelled")
    raw_dir = given.folder().absolute()
    problems: list[Problem] = []
    places = {
        role: {part: _places(raw_dir / part, given.num_jobs, problems) for part in parts}
        for role, parts in PARTS.items()
    }
    report(problems, place=raw_dir, way_out="complete transcripts and audio, or remove both")
    if not any(places["train"].values()) or not any(places["test"].values()):
        names = sorted(path.name for path in raw_dir.iterdir() if path.is_dir())
        there = ", ".join(names[:8]) or "no folders"
        expected = "utterances in a train-* and in a test-* folder of LibriSpeech"
        way_out = "give the folder that holds train-clean-100 and the like, with"
        raise DataError(raw_dir, expected, there, f"{way_out} <speaker>/<chapter>/*.trans.txt")
    cuts = {}
    for role, parts in places.items():
        there = [part for part, of_part in parts.items() if of_part]
        manifests = call_recipe(
            prepare_librispeech, raw_dir, dataset_parts=there, num_jobs=given.num_jobs
        )
        of_parts = [cuts_of(manifests[part], part.replace("-", "_"), parts[part]) for part in there]
        if of_parts:
            cuts[role] = CutSet.from_cuts(cut for of_part in of_parts for cut in of_part)
    if unlabelled := given.option("unlabelled", ""):
        cuts["pool"] = make_cuts(_without_transcripts(Path(unlabelled)), given.num_jobs)
    if "dev" not in cuts:
        cuts["train"], cuts["dev"] = split_by_speaker(
            cuts["train"],
            fraction=given.number("dev_fraction", 0.06),
            at_least=int(given.number("dev_min_speakers", 1)),
            seed=int(given.number("dev_seed", 0)),
            never=_recovered_speakers(raw_dir),
        )
    return cuts


def _places(part_dir: Path, num_jobs: int, problems: list[Problem]) -> dict[str, str]:
    """Utterance -> ``file:line``; what lhotse would leave out or fail on is a problem."""
    places: dict[str, str] = {}
    for transcript in sorted(part_dir.glob("*/*/*.trans.txt")):
        for number, line in read_lines(transcript):
            place, words = f"{transcript}:{number}", line.split()
            if len(words) < 2:
                problems.append(Problem(place, "an utterance id and its words", repr(line)))
            elif words[0] in places:
                found = f"{words[0]!r} again, after {places[words[0]]}"
                problems.append(Problem(place, "an id that stands once", found))
            else:
                places[words[0]] = place
    audio = {part_dir.joinpath(*name.split("-")[:-1], f"{name}.flac"): name for name in places}
    for path, header in read_headers(audio, num_jobs).items():
        if header.problem is not None:
            problems.append(Problem(str(path), f"audio for {audio[path]}", header.problem))
    for path in sorted(part_dir.glob("*/*/*.flac")):
        if path not in audio:
            problems.append(Problem(str(path), "its transcript in a .trans.txt beside it", "none"))
    return places


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
