"""The student's data: voted labels of a public pool, public transcripts, and guesses at the rest.

A label is a list of hypotheses with weights of sum 1: one for cross-entropy, several for
sequence-level distillation [yang2022, eq. 5]. All data are released or public.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import numpy as np
from annotated_types import MinLen

from privasr_k2.constraints import (
    Checked,
    Count,
    Different,
    Finite,
    Natural,
    Positive,
    PositiveShare,
    Share,
    one_of,
)
from privasr_k2.data.batches import drop_unalignable, needed_frames
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import read_jsonl
from privasr_k2.graph.lang import Lang
from privasr_k2.graph.spelled import spelled_targets, spellings
from privasr_k2.scoring.nbest_lists import NbestLists

if TYPE_CHECKING:
    from lhotse import CutSet

log = logging.getLogger(__name__)

NONE, SELF_TRAINING, CONSISTENCY = "none", "self_training", "consistency"
UNLABELED_DATA = (NONE, SELF_TRAINING, CONSISTENCY)
ALL, BEST = "all", "best"

_TOLERANCE = 1e-6
_REPAIR = "aggregate the votes again, or correct the line"
_NAMED = 10

Fits = Callable[[str, Sequence[int]], bool]


class Hyp(NamedTuple):
    """A hypothesis of a label and its weight in (0, 1].

    Attributes:
        text: words, or phones, with one space between them.
    """

    text: str
    weight: float
    in_phones: bool = False


Labels = Mapping[str, tuple[Hyp, ...]]


class Target(NamedTuple):
    """Token sequences, the heaviest first, and weights; empty: to be guessed while training."""

    sequences: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...]


@dataclass(frozen=True)
class UnansweredSettings(Checked):
    """The use of utterances without a label; ``conf/pate.yaml#student`` explains the values."""

    weight: PositiveShare
    min_confidence: Share
    hyps: Count
    scale: Finite


@dataclass(frozen=True)
class StudentSettings(Checked):
    """The student's training data; ``conf/pate.yaml#student`` explains the values."""

    NEUTRAL: ClassVar[Mapping[str, str]] = {"unlabeled_data": "each value is a training of its own"}

    pool_role: str
    labeled_role: str
    labeled_weight: Positive
    hyps: Annotated[str, one_of(ALL, BEST)]
    least_steps: Natural
    patience: Natural
    unlabeled_data: Annotated[list[Annotated[str, one_of(*UNLABELED_DATA)]], MinLen(1), Different()]
    unanswered: UnansweredSettings


@dataclass(frozen=True)
class StudentPart:
    """Section ``student`` of ``conf/pate.yaml``, read beside that of an acoustic model."""

    student: StudentSettings


def read_labels(path: Path) -> dict[str, tuple[Hyp, ...]]:
    """Released labels: utterance to hypotheses, the heaviest first.

    Raises:
        DataError: with the utterance: one twice, none or equal hypotheses, a weight that is not
            above 0, or weights that do not sum to 1.
    """
    labels: dict[str, tuple[Hyp, ...]] = {}
    for record in read_jsonl(path):
        name = str(record.get("id"))
        source = f"{path} ({name})"
        try:
            hyps = [_hyp(**one) for one in record["hyps"]]
            texts = {hyp.text for hyp in hyps}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            expected = "an id, and hyps with text or phones, and weight"
            raise DataError(source, expected, repr(error), _REPAIR) from error
        if "id" not in record or name in labels:
            raise DataError(source, "every utterance once", "one without id, or twice", _REPAIR)
        if not hyps or len(texts) < len(hyps):
            numbers = f"{len(hyps)}, {len(texts)} different"
            raise DataError(source, "different hypotheses", numbers, _REPAIR)
        total = math.fsum(hyp.weight for hyp in hyps)
        if not all(0 < hyp.weight < math.inf for hyp in hyps) or abs(total - 1) > _TOLERANCE:
            weights = " ".join(f"{hyp.weight:g}" for hyp in hyps)
            raise DataError(source, "weights above 0 that sum to 1", weights, _REPAIR)
        labels[name] = tuple(sorted(hyps, key=lambda hyp: -hyp.weight))
    return labels


def _hyp(weight: float, text: str | None = None, phones: str | None = None) -> Hyp:
    if (text is None) == (phones is None):
        raise ValueError("text and phones" if text is not None else "neither text nor phones")
    said = text if phones is None else phones
    return Hyp(" ".join(said.split()), float(weight), phones is not None)  # type: ignore[union-attr]


def guesses(lists: NbestLists, settings: UnansweredSettings) -> dict[str, tuple[Hyp, ...]]:
    """Labels for self-training, from N-best lists whose best hypothesis is confident.

    With acoustic scores s_n, share_n = exp(scale s_n) / sum over the list. The first ``hyps`` are
    kept and their shares normalized. Lists whose best hypothesis has no words are left out.
    """
    guessed = {}
    for nbest in lists.lists:
        if nbest.no_path:
            continue
        scores = settings.scale * np.array([hyp.am_score for hyp in nbest.hyps])
        shares = np.exp(scores - np.logaddexp.reduce(scores))
        order = np.argsort(-shares, kind="stable")
        if not nbest.hyps[order[0]].words or shares[order[0]] < settings.min_confidence:
            continue
        kept = [n for n in order[: settings.hyps].tolist() if shares[n] > 0]
        total = float(shares[kept].sum())
        guessed[nbest.id] = tuple(Hyp(nbest.hyps[n].words, float(shares[n]) / total) for n in kept)
    return guessed


def targets_of(labels: Labels, lang: Lang, fits: Fits, *, weight: float = 1.0) -> dict[str, Target]:
    """Labels in tokens; hypotheses that cannot be spelled or exceed the frames are left out.

    The weights of the others are scaled to the sum ``weight``.

    Args:
        fits: whether the frames of an utterance hold a token sequence.
    """
    every = [hyp for hyps in labels.values() for hyp in hyps]
    words = {word for hyp in every if not hyp.in_phones for word in hyp.text.split()}
    of_words = spellings(lang, words)
    of_phones = {token: (number,) for token, number in lang.token_ids.items() if number}
    targets, lost = {}, []
    for name, hyps in labels.items():
        kept = []
        for hyp in hyps:
            spelled = of_phones if hyp.in_phones else of_words
            if all(word in spelled for word in hyp.text.split()):
                tokens = tuple(token for word in hyp.text.split() for token in spelled[word])
                if fits(name, tokens):
                    kept.append((tokens, hyp.weight))
        if len(kept) < len(hyps):
            lost.append(name)
        if kept:
            total = math.fsum(share for _, share in kept)
            sequences, shares = zip(*kept)
            targets[name] = Target(sequences, tuple(weight * share / total for share in shares))
    if lost:
        names = " ".join(lost[:_NAMED]) + " ..." * (len(lost) > _NAMED)
        problem = "left out, that cannot be spelled or exceed the frames"
        numbers = (len(lost), len(labels), problem, names)
        log.warning("labels: hypotheses of %d of %d utterances %s: %s", *numbers)
    return targets


@dataclass(frozen=True)
class StudentData:
    """Utterances to learn from: cuts with features, a target of each, and counts by kind."""

    cuts: CutSet
    targets: Mapping[str, Target]
    counts: Mapping[str, int]

    @property
    def teaches(self) -> bool:
        """Whether there is any text to learn."""
        return any(target.sequences for target in self.targets.values())


def student_data(
    way: str,
    pool: CutSet,
    labels: Labels,
    labeled: CutSet | None,
    lists: NbestLists | None,
    lang: Lang,
    settings: StudentSettings,
    output_frames: Callable[[int], int] | None,
    shortest: float,
) -> StudentData:
    """Collect the utterances and targets for one of :data:`UNLABELED_DATA`.

    Args:
        pool: answered or not; their own texts are not read.
        lists: N-best lists of the pool, for self-training.
        output_frames: input to output frames, where a transcript must fit them.
        shortest: smallest share of an utterance's frames that augmentation leaves.

    Raises:
        DataError: labels of utterances that the pool lacks, or an utterance in both parts.
        ConfigError: self-training without lists.
    """
    from lhotse import CutSet

    frames = {cut.id: cut.num_frames for cut in pool}
    if unknown := sorted(labels.keys() - frames.keys()):
        others = f"{len(unknown)} others: {' '.join(unknown[:3])}"
        expected = "labels of the pool's utterances"
        raise DataError("--in-labels", expected, others, "give the pool of the votes")

    def fits(name: str, tokens: Sequence[int]) -> bool:
        if output_frames is None:
            return True
        return needed_frames(tokens) <= output_frames(int(frames[name] * shortest))

    if settings.hyps == BEST:
        labels = {name: (Hyp(hyps[0].text, 1.0),) for name, hyps in labels.items()}
    targets = targets_of(labels, lang, fits)
    counts = {"pool": len(frames), "answered": len(labels), "answered_used": len(targets)}
    unanswered = frames.keys() - labels.keys()
    if way == SELF_TRAINING:
        if lists is None:
            setting = f"student.unlabeled_data={SELF_TRAINING}"
            raise ConfigError(setting, "--in-public-nbest", "none", "decode the pool, or omit it")
        guessed = guesses(lists, settings.unanswered)
        confident = {name: hyps for name, hyps in guessed.items() if name in unanswered}
        targets |= targets_of(confident, lang, fits, weight=settings.unanswered.weight)
    elif way == CONSISTENCY:
        targets |= {name: Target((), ()) for name in unanswered}
    counts["unanswered_used"] = len(targets) - counts["answered_used"]
    cuts = [cut for cut in pool if cut.id in targets]
    if labeled is not None:
        cuts += _labeled(labeled, lang, settings, targets, output_frames, shortest)
    counts["labelled_used"] = len(cuts) - counts["answered_used"] - counts["unanswered_used"]
    return StudentData(CutSet.from_cuts(cuts), targets, counts)


def _labeled(
    labeled: CutSet,
    lang: Lang,
    settings: StudentSettings,
    targets: dict[str, Target],
    output_frames: Callable[[int], int] | None,
    shortest: float,
) -> list[Any]:
    """Cuts with texts of their own; their targets are added to ``targets``."""
    role = settings.labeled_role
    kept, texts = spelled_targets(labeled, lang, role=role)
    if output_frames is not None:
        kept = drop_unalignable(kept, texts, lambda n: output_frames(int(n * shortest)), role=role)
    if both := sorted(cut.id for cut in kept if cut.id in targets):
        expected = "utterances that are not in the pool"
        raise DataError("--in-public-feats", expected, " ".join(both[:3]), "give other parts")
    weights = (settings.labeled_weight,)
    targets.update({cut.id: Target((tuple(texts[cut.id]),), weights) for cut in kept})
    return list(kept)
