"""A blind baseline of membership inference: it tells members from others and never sees the model.

Members and others of a study often differ in themselves: other days, rooms, topics. Then who looks
at the data alone tells them apart, and an attack upon a model shows nothing by doing so, too
[das2024]. Only what an attack tells beyond the blind baseline can come from the model.

The baseline is logistic regression on what speech and texts look like. Scores are out of fold:
a unit is scored by a classifier that has seen neither it nor anything else of its speaker.

[das2024] D. Das, J. Zhang, F. Tramer, Blind baselines beat membership inference attacks for
foundation models, 2024.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privasr_k2.data.features import load_features
from privasr_k2.errors import DataError
from privasr_k2.randomness import stream
from privasr_k2.scoring.bootstrap import MIN_CLUSTERS

if TYPE_CHECKING:
    from lhotse.cut import Cut


@dataclass(frozen=True)
class Described:
    """What is seen of a unit without a model.

    Attributes:
        values: (D,) means over its utterances.
        speaker: whose speech it is; folds and resampled groups are whole speakers.
    """

    values: np.ndarray
    speaker: str


def describe(cuts: Iterable[Cut], unit: str) -> dict[str, Described]:
    """Each unit's speech and text, seen without a model.

    Args:
        unit: ``speaker`` or ``utterance``.

    Returns:
        for features of F dimensions D = 2 F + 4 values: mean and deviation of each dimension over
        time, seconds, words, characters of a word, and characters of a second.
    """
    rows: dict[str, list[np.ndarray]] = {}
    speaker_of: dict[str, str] = {}
    for cut in cuts:
        if "original_id" in (cut.custom or {}):
            continue
        speaker = cut.supervisions[0].speaker or ""
        name = speaker if unit == "speaker" else cut.id
        rows.setdefault(name, []).append(_values(cut))
        speaker_of[name] = speaker or cut.id
    return {name: Described(np.mean(of, axis=0), speaker_of[name]) for name, of in rows.items()}


def _values(cut: Cut) -> np.ndarray:
    features, words = load_features(cut), (cut.supervisions[0].text or "").split()
    letters = sum(map(len, words))
    text = [cut.duration, len(words), letters / max(len(words), 1), letters / cut.duration]
    return np.concatenate([features.mean(axis=0), features.std(axis=0), text])


def blind_scores(
    members: Mapping[str, Described], others: Mapping[str, Described], *, folds: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Out-of-fold scores, larger where a unit looks like a member: (M,) and (N,), in nats of odds.

    Args:
        folds: parts that speakers are dealt to; a part is scored by what the others taught.
        seed: of the deal.

    Raises:
        DataError: fewer speakers on a side than folds.
    """
    every = [*members.values(), *others.values()]
    inside = np.arange(len(every)) < len(members)
    fold_of: dict[str, int] = {}
    for side, chosen in (("members", members), ("others", others)):
        names = sorted({one.speaker for one in chosen.values()})
        if len(names) < folds:
            found = f"{len(names)} speakers of {side}"
            raise DataError("folds", f"{folds} speakers or more", found, "set fewer folds")
        order = stream(seed, "folds", side).permutation(len(names))
        fold_of |= {names[place]: rank % folds for rank, place in enumerate(order)}
    values = np.stack([one.values for one in every])
    fold = np.array([fold_of[one.speaker] for one in every])
    scores = np.empty(len(every))
    for part in range(folds):
        held = fold == part
        learned = _classifier().fit(values[~held], inside[~held])
        scores[held] = learned.decision_function(values[held])
    return scores[inside], scores[~inside]


def _classifier() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # Few units, many values: a strong penalty, and sides that weigh the same.
    logistic = LogisticRegression(C=0.01, class_weight="balanced", max_iter=1000)
    return make_pipeline(StandardScaler(), logistic)


@dataclass(frozen=True)
class Paired:
    """AUC of an attack less that of the blind baseline on the same units, with its interval.

    A baseline below 1/2 counts as 1/2, which guessing reaches: out-of-fold scores of few units tend
    to fall below it.

    Attributes:
        difference: over all units.
        low, high: ends of its interval; ``None`` where a side has fewer than
            :data:`~privasr_k2.scoring.bootstrap.MIN_CLUSTERS` speakers.
        speakers: of the side that has fewer.
    """

    difference: float
    low: float | None
    high: float | None
    speakers: int


def paired_difference(
    attack: tuple[np.ndarray, np.ndarray],
    blind: tuple[np.ndarray, np.ndarray],
    speakers: tuple[Sequence[str], Sequence[str]],
    *,
    replicates: int,
    confidence: float,
    seed: int,
) -> Paired:
    """max(AUC(blind), 1/2) taken off AUC(attack), and the percentile interval.

    Speakers are drawn with replacement, members and others apart, the same ones for both scores.

    Args:
        attack, blind: scores of the M members and of the N others.
        speakers: of the members and of the others; equal names are drawn together.
        replicates: draws.

    >>> scores = np.arange(6.0), np.arange(-6.0, 0.0)
    >>> whose = list("abcdef"), list("uvwxyz")
    >>> draws = dict(replicates=100, confidence=0.95, seed=1)
    >>> paired_difference(scores, scores[::-1], whose, **draws)
    Paired(difference=0.5, low=0.5, high=0.5, speakers=6)
    >>> paired_difference(scores, scores, whose, **draws)
    Paired(difference=0.0, low=0.0, high=0.0, speakers=6)
    """
    wins = [_wins(*attack), _wins(*blind)]
    areas = [float(of.mean()) for of in wins]
    difference, fewest = areas[0] - max(areas[1], 0.5), fewest_speakers(speakers)
    if fewest < MIN_CLUSTERS:
        return Paired(difference, None, None, fewest)
    counts = [
        drawn_counts(names, replicates, stream(seed, "bootstrap", side))
        for side, names in enumerate(speakers)
    ]
    pairs = counts[0].sum(axis=1) * counts[1].sum(axis=1)
    # (B, M) @ (M, N), weighed by (B, N): an area is a mean over pairs.
    drawn = [np.einsum("bn,bn->b", counts[0] @ of, counts[1]) / pairs for of in wins]
    beyond = drawn[0] - np.maximum(drawn[1], 0.5)
    low, high = np.quantile(beyond, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Paired(difference, float(low), float(high), fewest)


def _wins(members: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(M, N): 1 where the member's score is above the other's, 1/2 where they are equal."""
    return 0.5 * (np.sign(members[:, None] - others[None]) + 1)


def fewest_speakers(sides: Iterable[Sequence[str]]) -> int:
    """Different speakers of the side that has fewer; each side is drawn by itself.

    >>> fewest_speakers([["a", "a", "b"], ["u", "v", "w"]])
    2
    """
    return min(len(set(names)) for names in sides)


def drawn_counts(
    names: Sequence[str], replicates: int, generator: np.random.Generator
) -> np.ndarray:
    """(B, units): how often each unit's speaker is drawn, of as many draws as speakers.

    Args:
        names: of the units' speakers.
        replicates: B.
    """
    different, speaker = np.unique(np.asarray(names), return_inverse=True)
    shares = np.full(len(different), 1 / len(different))
    times = generator.multinomial(len(different), shares, size=replicates)
    return times[:, speaker].astype(np.float64)
