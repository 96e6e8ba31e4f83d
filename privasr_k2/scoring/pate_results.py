"""What the stages of recipes ``pate`` and ``dpsgd`` measured, by model and system, for their report.

Names stand in the paths: ``<model>/<system>/score_<role>``, ``<model>/<system>/privacy.json``,
``<model>/<system>/labels``, ``<model>/agreement_<I>.json``. A model is an architecture (rnnt,
ctc_attention, las, ctc); a system is

    public                                    the publicly pre-trained model, which has seen no private data
    self_trained                              that model, trained on its own guesses at the pool alone
    nonprivate                                trained on all private data
    teacher_<I>[_<k>]                         one of I teachers
    ensemble_<I>                              I teachers together
    clean_<I>                                 a student of their votes without noise
    <mechanism>_<I>_<epsilon>[_<reading>]     a student of noisy votes
    dpsgd_<epsilon>                           trained by DP-SGD

A mechanism is one of :data:`MECHANISMS`. The epsilon is what was asked for, ``inf`` for none; with a reading,
``equation`` or ``figures``, it is as published [yang2022, eq. 4], which is no guarantee.

[yang2022] C.-H. H. Yang, I-F. Chen, A. Stolcke, S. M. Siniscalchi, C.-H. Lee, An experimental study on
private aggregation of teacher ensemble learning for end-to-end speech recognition, SLT 2022.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json
from privasr_k2.privacy.ledger import Entry, only_entry
from privasr_k2.privacy.pate.mechanisms import all_mechanisms, mechanism
from privasr_k2.scoring.results import Score, read_score

PUBLIC, SELF_TRAINED, NONPRIVATE, TEACHER, ENSEMBLE, CLEAN, DPSGD = (
    "public", "self_trained", "nonprivate", "teacher", "ensemble", "clean", "dpsgd",
)  # fmt: skip
#: Of which nothing private can be learned.
FREE = (PUBLIC, SELF_TRAINED)
GNMAX, LNMAX = "gnmax", "lnmax"
MECHANISMS = {name: mechanism(name).label for name in all_mechanisms()}
MODELS = {"rnnt": "RNN-T", "ctc_attention": "CTC/attention", "las": "LAS", "ctc": "CTC"}
EXACT = "exact"
_NUMBER = r"inf|[0-9]+(?:\.[0-9]+)?"
_SYSTEM = re.compile(
    rf"(?P<plain>{PUBLIC}|{SELF_TRAINED}|{NONPRIVATE})"
    rf"|{TEACHER}_(?P<of>[0-9]+)(?:_(?P<number>[0-9]+))?"
    rf"|(?P<together>{ENSEMBLE}|{CLEAN})_(?P<all>[0-9]+)"
    rf"|(?P<mechanism>{'|'.join(MECHANISMS)})_(?P<teachers>[0-9]+)_(?P<epsilon>{_NUMBER})"
    r"(?:_(?P<reading>equation|figures))?"
    rf"|{DPSGD}_(?P<budget>{_NUMBER})"
)


class System(NamedTuple):
    """A way to a recognizer.

    Attributes:
        kind: one of the names above, or a mechanism.
        teachers: I; ``None`` where there are none.
        epsilon: that was asked for; ``None`` where nothing is claimed or published.
        means: ``exact``, ``equation`` or ``figures``.
        number: of the teacher.
    """

    kind: str
    teachers: int | None = None
    epsilon: float | None = None
    means: str = EXACT
    number: str = ""

    @property
    def is_pate(self) -> bool:
        """Whether it is a student of noisy votes."""
        return self.kind in MECHANISMS

    @property
    def label(self) -> str:
        """For tables.

        >>> parse_system("gnmax_15_10_figures", Path("x")).label
        'GNMax, 15 teachers, epsilon 10 as published (figures)'
        """
        epsilon = "" if self.epsilon is None else f"epsilon {self.epsilon:g}"
        if self.means != EXACT:
            epsilon += f" as published ({self.means})"
        several = f"{self.teachers} teachers"
        return {
            PUBLIC: "public only",
            SELF_TRAINED: "public, self-trained",
            NONPRIVATE: "not private",
            TEACHER: f"teacher {self.number or '1'} of {self.teachers}",
            ENSEMBLE: f"ensemble of {several}",
            CLEAN: f"clean votes, {several}",
            DPSGD: f"DP-SGD, {epsilon}",
        }.get(self.kind) or f"{MECHANISMS[self.kind]}, {several}, {epsilon}"


class Name(NamedTuple):
    """Which model, and which system; both are folders."""

    model: str
    system: str

    @property
    def label(self) -> str:
        """For tables of several models."""
        return f"{model_label(self.model)}: {parse_system(self.system, Path(self.system)).label}"


def model_label(model: str) -> str:
    """An architecture as the paper calls it; other names as they are."""
    return MODELS.get(model, model)


def parse_system(name: str, place: Path) -> System:
    """What a system's name says.

    Raises:
        DataError: not the name of a system.

    >>> parse_system("lnmax_5_0.5", Path("x"))
    System(kind='lnmax', teachers=5, epsilon=0.5, means='exact', number='')
    >>> parse_system("teacher_15_3", Path("x")).label, parse_system("dpsgd_inf", Path("x")).epsilon
    ('teacher 3 of 15', inf)
    """
    found = _SYSTEM.fullmatch(name)
    if found is None:
        raise DataError(
            place,
            f"a system: {PUBLIC}, {SELF_TRAINED}, {NONPRIVATE}, {TEACHER}_I[_K], {ENSEMBLE}_I, {CLEAN}_I, "
            f"MECHANISM_I_EPSILON[_equation|_figures], {DPSGD}_EPSILON",
            name,
            "rename its folder",
        )
    if found["plain"]:
        return System(found["plain"])
    if found["of"]:
        return System(TEACHER, int(found["of"]), number=found["number"] or "")
    if found["together"]:
        return System(found["together"], int(found["all"]))
    if found["mechanism"]:
        means = found["reading"] or EXACT
        return System(found["mechanism"], int(found["teachers"]), float(found["epsilon"]), means)
    return System(DPSGD, epsilon=float(found["budget"]))


def name_of(path: Path) -> Name:
    """Model and system of what lies in ``<model>/<system>/``.

    Raises:
        DataError: not the name of a system.
    """
    folder = path.resolve().parent
    parse_system(folder.name, path)
    return Name(folder.parent.name, folder.name)


@dataclass(frozen=True)
class Votes:
    """What a ``labels.json`` tells of a release.

    Attributes:
        vote: what was voted on.
        teachers: I.
        noise: in votes.
        asked, answered: votes.
        utterances: that have a label.
        published: the paper's epsilon by reading, ``K`` and ``scale``; empty where nothing was drawn.
    """

    vote: str
    teachers: int
    noise: float
    asked: int
    answered: int
    utterances: int
    published: Mapping[str, Any]


def read_scores(folders: Iterable[Path]) -> dict[Name, Score]:
    """Error rates on test by model and system, the public models first; those of dev are passed over.

    Raises:
        DataError: a folder of no system, or a system twice.
    """
    found: dict[Name, Score] = {}
    for folder in folders:
        name, score = name_of(folder), read_score(folder)
        if score.role == "dev":
            continue
        if name in found:
            raise DataError(folder, "every system of a model once", f"{name.system} twice", "name it once")
        found[name] = score
    return dict(sorted(found.items(), key=lambda item: _rank(item[0])))


def parts_of(scores: Mapping[Name, Score]) -> list[str]:
    """The parts of the corpus that were scored, in their order."""
    return list(dict.fromkeys(part for score in scores.values() for part in score.parts))


def _rank(name: Name) -> tuple[Any, ...]:
    kinds = [PUBLIC, SELF_TRAINED, NONPRIVATE, TEACHER, ENSEMBLE, CLEAN, *MECHANISMS, DPSGD]
    models = list(MODELS)
    system = parse_system(name.system, Path(name.system))
    place = models.index(name.model) if name.model in models else len(models)
    epsilon = math.inf if system.epsilon is None else system.epsilon
    number = int(system.number or 0)
    return (
        place, name.model, kinds.index(system.kind), system.teachers or 0, system.means, epsilon, number,
    )  # fmt: skip


def read_entries(paths: Iterable[Path]) -> dict[Name, Entry]:
    """The release of each system, from ``<model>/<system>/privacy.json``.

    Raises:
        PrivacyError: a file without exactly one entry, or with one that was changed.
    """
    return {name_of(path): only_entry(path) for path in paths}


def read_votes(folders: Iterable[Path]) -> dict[Name, Votes]:
    """What was asked and answered for each system, from ``<model>/<system>/labels/labels.json``.

    Raises:
        DataError: something else, or of another number of teachers than the system's name says.
    """
    found = {}
    for folder in folders:
        path, name = folder / "labels.json", name_of(folder)
        told = read_json(path)
        try:
            votes = Votes(
                vote=str(told["vote"]),
                teachers=int(told["teachers"]),
                noise=float(told["noise"] or 0.0),
                asked=int(told["votes_asked"]),
                answered=int(told["votes_answered"]),
                utterances=int(told["utterances_answered"]),
                published=dict(told["as_published"] or {}),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(path, "what aggregate_votes writes", repr(error), "aggregate again") from error
        teachers = parse_system(name.system, path).teachers
        if votes.teachers != teachers:
            raise DataError(path, f"votes of {teachers} teachers", str(votes.teachers), "correct the folder")
        found[name] = votes
    return found


def read_agreement(paths: Iterable[Path]) -> dict[tuple[str, int], dict[str, float]]:
    """How far the teachers of a model agree, from ``<model>/agreement_<I>.json``; private.

    Raises:
        DataError: something else, or a file of another name.
    """
    found = {}
    for path in paths:
        teachers, told = path.stem.removeprefix("agreement_"), read_json(path)
        if not teachers.isdecimal() or path.stem == teachers:
            raise DataError(path, "agreement_<I>.json, of I teachers", path.name, "rename it")
        if not isinstance(told, dict) or told.get("for_release") is not False:
            raise DataError(path, "what report_votes writes", "something else", "make it again")
        shares = {name: float(value) for name, value in told.items() if name != "for_release"}
        found[path.resolve().parent.name, int(teachers)] = shares
    return found
