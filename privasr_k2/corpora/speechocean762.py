"""speechocean762 [Zhang et al. 2021]: read English of Mandarin speakers, adults and children.

The folder holds the Kaldi data directories ``train`` and ``test`` with ``spk2gender`` and
``spk2age``, and ``WAVE/``. ``dev`` is cut from train: whole speakers, the same share of women and
men, children and adults. A supervision has lhotse's ``gender``, and in ``custom`` the ``age`` in
years, ``age_group`` (``child`` or ``adult``) and, but for train, ``prompt_in_train``: whether a
speaker of train reads the same words.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2.constraints import Checked, Count, Delta
from privasr_k2.corpora.base import Corpus, CorpusInput
from privasr_k2.corpora.kaldi_dir import Pipes, read_kaldi_dir, read_table
from privasr_k2.data.problems import Problem, report
from privasr_k2.data.users import hold_out
from privasr_k2.errors import DataError

if TYPE_CHECKING:
    from lhotse import CutSet

_PARTS = ("train", "test")


@dataclass(frozen=True)
class SpeechoceanConfig(Checked):
    """Settings of ``conf/corpora.yaml#speechocean762``.

    Attributes:
        dev_fraction: of train's seconds, in each group of one gender and age group.
        seed: of the choice of dev's speakers.
        adult_age: the age in years from which on a speaker is an adult.
    """

    dev_fraction: Delta
    seed: int
    adult_age: Count


def read(given: CorpusInput) -> dict[str, CutSet]:
    """The cuts of ``train``, ``dev`` and ``test``."""
    folder, options = given.folder().absolute(), given.settings(SpeechoceanConfig)
    if missing := [name for name in _PARTS if not (folder / name).is_dir()]:
        way_out = "give the unpacked folder speechocean762, which holds them and WAVE/"
        raise DataError(folder, "the folders train and test", f"no {missing[0]}", way_out)
    pipes = Pipes(False, given.out_dir, given.num_jobs)
    cuts = {
        part: read_kaldi_dir(
            folder / part, part=part, pipes=pipes, sampling_rate=CORPUS.sampling_rate
        )
        for part in _PARTS
    }
    for part, of_part in cuts.items():
        _note_ages(of_part, folder / part, options.adult_age)
    cuts["train"], cuts["dev"] = _split(cuts["train"], options)
    prompts = {CORPUS.normalize(cut.supervisions[0].text) for cut in cuts["train"]}
    for cut in [*cuts["dev"], *cuts["test"]]:
        supervision = cut.supervisions[0]
        supervision.custom["prompt_in_train"] = CORPUS.normalize(supervision.text) in prompts
    return cuts


def _note_ages(cuts: CutSet, folder: Path, adult_age: int) -> None:
    problems: list[Problem] = []
    ages = read_table(folder / "spk2age", problems)
    for place, years in ages.values():
        if not years.isdecimal():
            problems.append(Problem(place, "SPEAKER AGE, in whole years", repr(years)))
    for speaker in sorted({cut.supervisions[0].speaker for cut in cuts} - ages.keys()):
        problems.append(Problem(str(folder / "spk2age"), f"speaker {speaker}", "no such line"))
    if not (folder / "spk2gender").is_file():
        problems.append(Problem(str(folder / "spk2gender"), "a file", "nothing"))
    report(problems, place=folder, way_out="unpack the corpus again")
    for cut in cuts:
        supervision = cut.supervisions[0]
        age = int(ages[supervision.speaker].rest)
        group = "adult" if age >= adult_age else "child"
        supervision.custom = {"age": age, "age_group": group}


def _split(cuts: CutSet, options: SpeechoceanConfig) -> tuple[CutSet, CutSet]:
    """Train and dev."""
    seconds: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for cut in cuts:
        said = cut.supervisions[0]
        seconds[said.custom["age_group"], said.gender][said.speaker] += cut.duration
    drawn = dict(fraction=options.dev_fraction, at_least=1, seed=options.seed)
    held = frozenset.union(*(hold_out(of_group, **drawn) for of_group in seconds.values()))
    dev = cuts.filter(lambda cut: cut.supervisions[0].speaker in held).to_eager()
    for cut in dev:
        cut.custom["part"] = "dev"
    return cuts.filter(lambda cut: cut.supervisions[0].speaker not in held).to_eager(), dev


def lexicon(given: CorpusInput) -> Path | None:
    """The corpus's own, at its place in the release or beside ``train``."""
    places = [given.folder() / name for name in ("resource/lexicon.txt", "lexicon.txt")]
    return next((path for path in places if path.is_file()), None)


CORPUS = Corpus(
    name="speechocean762",
    read=read,
    lexicon=lexicon,
    expected_utterances={"test": 2500},
    groups=("age_group", "gender"),
    train_groups=("prompt_in_train",),
)
