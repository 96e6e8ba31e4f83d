"""Casting votes, and the private files that hold them.

A query is a row of counts: votes for an utterance's hypotheses, or for the tokens of one frame.
Posteriors instead are a weighted sum over teachers [yang2022, eq. 3] in whole steps; one teacher
moves it by at most the norm of its own vector. A teacher that abstains adds nothing to either.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from annotated_types import Ge
from safetensors.numpy import save_file

from privasr_k2.constraints import one_of
from privasr_k2.decoding.jobs import ShareConfig, recognized
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import atomic_path, disk_errors, read_arrays
from privasr_k2.pate.nbest_hypotheses import NbestHypotheses
from privasr_k2.pate.shards import Shards
from privasr_k2.privacy.discrete import FixedPointGrid
from privasr_k2.privacy.pate.mechanisms import POSTERIORS, VOTES
from privasr_k2.privacy.pate.sensitivity import Change
from privasr_k2.privacy.people import People
from privasr_k2.ragged import ranges

if TYPE_CHECKING:
    import torch
    from lhotse import CutSet
    from lhotse.cut import Cut

    from privasr_k2.pate.ensembles import TeacherEnsemble

UTTERANCE, FRAME = "utterance", "frame"
_FORMAT = "privasr_k2 votes 2"
_MOST = 1e300
_GRID = FixedPointGrid(2.0**-16)  # of posteriors, in votes
_BELOW_ONE = 1.0 - 2.0**-30  # what rounding of a float might add to a sum of 1


@dataclass(frozen=True)
class VotesConfig(ShareConfig):
    """Settings of votes; ``conf/pate.yaml#votes`` explains the values."""

    vote: Annotated[str, one_of(UTTERANCE, FRAME)]
    of: Annotated[str, one_of(VOTES, POSTERIORS)]
    per_token: bool
    max_hyps: Annotated[int, Ge(2)]
    weights: list[float]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights and self.of == VOTES:
            raise ValueError(f"weights must be empty with of={VOTES}: a teacher has one vote")
        check_weights(self.weights, len(self.weights))


def check_weights(weights: Sequence[float], teachers: int) -> np.ndarray:
    """The weights (I,) of [yang2022, eq. 3], all alike where none are given.

    Raises:
        ValueError: another number of them, one below 0, or another sum than 1.
    """
    if len(weights) not in (0, teachers):
        raise ValueError(f"weights must be {teachers}, one a teacher, got {len(weights)}")
    if weights and not (min(weights) >= 0 and math.isclose(math.fsum(weights), 1.0, abs_tol=1e-6)):
        raise ValueError(f"weights must be 0 or more and sum to 1, got {weights[:5]}")
    return np.array(weights) if weights else np.full(teachers, 1.0 / max(teachers, 1))


@dataclass(frozen=True, eq=False)
class Votes:
    """Private: the counts of all queries about N utterances.

    Attributes:
        vote, of, max_hyps: as in :class:`VotesConfig`.
        teachers: I.
        unit, units: of the shards, and their number.
        units_in_a_shard: the largest number of units in a shard.
        persons, person_votes: behind the units, and in how many shards one is at most.
        largest_weight: by how many votes a teacher can move one entry of posteriors.
        step: counts are multiples of it: 1 vote, or a fraction.
        tokens: names of the outputs of frames.
        splits: (N + 1,) where each utterance's queries begin.
        sizes: (Q,) classes of each query.
        counts: (sum of sizes,) int64.
        digests: of the hypotheses, by file: its ids and :meth:`NbestHypotheses.digest`.
    """

    vote: str
    of: str
    teachers: int
    unit: str
    units: int
    units_in_a_shard: int
    persons: tuple[str, ...]
    person_votes: int
    max_hyps: int
    largest_weight: float
    step: float
    tokens: tuple[str, ...]
    ids: tuple[str, ...]
    splits: np.ndarray
    sizes: np.ndarray
    counts: np.ndarray
    digests: tuple[tuple[tuple[str, ...], str], ...]

    @property
    def change(self) -> Change:
        """What one unit changes in a query."""
        return Change.of(self.units_in_a_shard)

    @property
    def people(self) -> People:
        """Who stands behind the units, and how many votes one of them has at most."""
        return People(frozenset(self.persons), self.person_votes)

    def of_utterances(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Queries (n,), sizes (q,) and counts of some utterances, in the order of ``places``."""
        queries = np.diff(self.splits)[places]
        rows = ranges(self.splits[:-1][places], queries)
        starts = np.concatenate(([0], np.cumsum(self.sizes)))[rows]
        sizes = self.sizes[rows]
        return queries, sizes, self.counts[ranges(starts, sizes)]


def cast_votes(
    ensemble: TeacherEnsemble,
    hypotheses: NbestHypotheses | None,
    cuts: CutSet,
    shards: Shards,
    config: VotesConfig,
    device: str,
) -> Votes:
    """The votes of this job's share of the pool.

    Raises:
        DataError: an utterance of the pool without a list.
        ConfigError: weights for another number of teachers, or an ensemble that cannot vote so.
    """
    from lhotse import CutSet

    try:
        weights = check_weights(config.weights, ensemble.num_teachers)
    except ValueError as error:
        expected = "weights of all teachers"
        raise ConfigError("weights", expected, str(error), "correct them") from error
    if config.vote == UTTERANCE:
        assert hypotheses is not None
        known = {*hypotheses.words, *hypotheses.single}
        if missing := [cut.id for cut in cuts if cut.id not in known]:
            lacking = f"none for {missing[0]} and {len(missing) - 1} others"
            way_out = "decode the pool"
            raise DataError("the N-best lists", "one for each utterance", lacking, way_out)
        cuts = CutSet.from_cuts(cut for cut in cuts if cut.id in hypotheses.words)
    share = weights * ensemble.num_teachers
    ids: list[str] = []
    counts: list[np.ndarray] = []
    for cut, rows in recognized(_caster(ensemble, hypotheses, share, config), cuts, config, device):
        ids.append(cut.id)
        counts.append(rows)  # type: ignore[arg-type]
    sizes = [np.full(len(rows), rows.shape[1]) for rows in counts]
    flat = [rows.ravel() for rows in counts]
    who = dict(teachers=ensemble.num_teachers, unit=shards.unit, units=len(shards.roster))
    people = shards.people
    return Votes(
        vote=config.vote,
        of=config.of,
        units_in_a_shard=shards.units_in_a_shard,
        persons=tuple(sorted(people.names)),
        person_votes=people.most_units,
        max_hyps=config.max_hyps,
        largest_weight=float(share.max()),
        step=1.0 if config.of == VOTES else _GRID.step,
        tokens=tuple(ensemble.tokens or ()) if config.vote == FRAME else (),
        ids=tuple(ids),
        splits=np.cumsum([0, *map(len, counts)]),
        sizes=np.concatenate([*sizes, np.zeros(0, np.int64)]),
        counts=np.concatenate([*flat, np.zeros(0, np.int64)]),
        digests=() if hypotheses is None else ((tuple(sorted(ids)), hypotheses.digest(ids)),),
        **who,
    )


def _caster(
    ensemble: TeacherEnsemble,
    hypotheses: NbestHypotheses | None,
    share: np.ndarray,
    config: VotesConfig,
) -> Any:
    """(N, T, F), (N,) and cuts to each utterance's rows of counts (queries, classes)."""

    def by_utterance(
        features: torch.Tensor, lengths: torch.Tensor, cuts: Sequence[Cut]
    ) -> list[np.ndarray]:
        assert hypotheses is not None
        hyps = [hypotheses.tokens[cut.id] for cut in cuts]
        given = features, lengths, hyps, [hypotheses.lm_scores[cut.id] for cut in cuts]
        if config.of == VOTES:
            return [row[None] for row in ensemble.hypothesis_votes(*given)]
        posteriors = ensemble.hypothesis_posteriors(*given)
        return [_steps(rows, share[:, None]).sum(axis=0)[None] for rows in posteriors]

    def by_frame(
        features: torch.Tensor, lengths: torch.Tensor, cuts: Sequence[Cut]
    ) -> list[np.ndarray]:
        counts = kept = np.zeros(0)
        teachers: Iterator[tuple[np.ndarray, np.ndarray]]
        teachers = ensemble.frame_posteriors(features, lengths)
        for weight, votes, (posteriors, kept) in zip(share, ensemble.votes, teachers):  # noqa: B007
            if config.of == VOTES:
                own = np.eye(posteriors.shape[2], dtype=np.int64)[posteriors.argmax(axis=2)] * votes
            else:
                own = _steps(posteriors * votes, weight)
            counts = own if counts.ndim == 1 else counts + own
        return [rows[:length] for rows, length in zip(counts, kept)]

    return by_frame if config.vote == FRAME else by_utterance


def _steps(posteriors: np.ndarray, weights: Any) -> np.ndarray:
    """Each teacher's vector (..., C) times its weight, in whole steps; its norm does not grow."""
    sums = np.maximum(posteriors.sum(axis=-1, keepdims=True), 1.0)
    return _GRID.steps(posteriors / sums * weights * _BELOW_ONE)


def write_votes(path: Path, votes: Votes) -> None:
    """Write one job's votes, whole or not at all."""
    arrays = {"splits": votes.splits, "sizes": votes.sizes, "counts": votes.counts}
    names = [field.name for field in dataclasses.fields(votes) if field.name not in arrays]
    header = {"format": _FORMAT, **{name: getattr(votes, name) for name in names}}
    whole = {name: np.ascontiguousarray(value, np.int64) for name, value in arrays.items()}
    with atomic_path(path) as temporary, disk_errors(path):
        save_file(whole, str(temporary), {"json": json.dumps(header)})


def read_votes(folder: Path) -> Votes:
    """The votes of all jobs, sorted by utterance, whichever job cast them.

    Raises:
        DataError: no votes, votes of different ensembles or kinds, or an utterance twice.
    """
    parts = [_read(path) for path in sorted(folder.glob("*.safetensors"))]
    if not parts:
        raise DataError(folder, "*.safetensors files with votes", "none", "run cast_votes")
    same = ("vote", "of", "teachers", "unit", "units", "max_hyps", "largest_weight", "step")
    same = (*same, "tokens", "units_in_a_shard", "persons", "person_votes")
    for part in parts[1:]:
        if different := [name for name in same if getattr(part, name) != getattr(parts[0], name)]:
            others = f"others in {', '.join(different)}"
            raise DataError(folder, "votes of one ensemble on one pool", others, "cast them again")
    ids = [name for part in parts for name in part.ids]
    if len(set(ids)) < len(ids):
        raise DataError(folder, "every utterance once", "one twice", "remove old files")
    first_rows = np.cumsum([0, *(len(part.sizes) for part in parts)])
    splits = [part.splits[1:] + first for part, first in zip(parts, first_rows)]
    whole = dataclasses.replace(
        parts[0],
        ids=tuple(ids),
        splits=np.concatenate([[0], *splits]),
        sizes=np.concatenate([part.sizes for part in parts]),
        counts=np.concatenate([part.counts for part in parts]),
        digests=tuple(digest for part in parts for digest in part.digests),
    )
    order = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int64)
    queries, sizes, counts = whole.of_utterances(order)
    splits = np.concatenate(([0], np.cumsum(queries)))
    ordered = dict(splits=splits, sizes=sizes, counts=counts)
    return dataclasses.replace(whole, ids=tuple(sorted(ids)), **ordered)


def _read(path: Path) -> Votes:
    again = "cast them again"
    names = ("splits", "sizes", "counts")
    header, arrays = read_arrays(path, names, expected="votes", way_out=again)
    if header.pop("format", None) != _FORMAT:
        raise DataError(path, _FORMAT, "another format", again)
    try:
        for name in ("ids", "tokens", "persons"):
            header[name] = tuple(header[name])
        header["digests"] = tuple((tuple(names), digest) for names, digest in header["digests"])
        votes = Votes(**header, **arrays)
        problem = _problem(votes)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(path, "votes", str(error), again) from error
    if problem:
        raise DataError(path, "votes", problem, again)
    return votes


def _problem(votes: Votes) -> str:
    """The first inconsistency of a file of votes; empty if there is none."""
    texts = (votes.vote, votes.of, votes.unit, *votes.ids, *votes.tokens, *votes.persons)
    if not all(isinstance(name, str) for name in texts):
        return "names that are no text"
    numbers = (votes.teachers, votes.units, votes.max_hyps)
    numbers = (*numbers, votes.units_in_a_shard, votes.person_votes)
    if not all(type(number) is int and number > 0 for number in numbers):
        return "numbers of teachers, units or hypotheses that are not above 0"
    reals = (votes.largest_weight, votes.step)
    if not all(type(number) in (int, float) and 0 < number < _MOST for number in reals):
        return "a step or weight that is not above 0"
    splits, sizes, counts = arrays = (votes.splits, votes.sizes, votes.counts)
    if any(array.ndim != 1 or array.dtype != np.int64 for array in arrays):
        return "arrays that are no lists of whole numbers"
    begins = len(splits) == len(votes.ids) + 1 and splits[0] == 0
    if not begins or (np.diff(splits) < 0).any() or splits[-1] != len(sizes):
        return "other queries than utterances"
    if (sizes < 1).any() or sizes.sum() != len(counts) or (counts < 0).any():
        return "other counts than queries, or some below 0"
    return ""


def agreement(votes: Votes, num_teachers: int | None = None) -> dict[str, float]:
    """How far the teachers agree, of all of them. Private: no guarantee covers it.

    Returns:
        ``queries``; ``mean_share`` of the largest count; shares of queries on which all agree
        (``unanimous``), and in which the first hypothesis, or the blank, wins (``first_wins``).
    """
    starts = np.cumsum(votes.sizes) - votes.sizes
    largest = np.maximum.reduceat(votes.counts, starts) * votes.step
    first = votes.counts[starts] * votes.step
    whole = num_teachers or votes.teachers
    return {
        "queries": len(votes.sizes),
        "mean_share": float(largest.mean()) / whole,
        "unanimous": float((largest >= whole * (1 - 1e-3)).mean()),
        "first_wins": float((first >= largest).mean()),
    }
