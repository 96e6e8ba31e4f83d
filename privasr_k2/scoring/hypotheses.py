"""Reader of decoded hypotheses: a folder of ``*.jsonl``, one record an utterance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_jsonl

_AGAIN = "decode again"
_LISTED = 3


class Weights(NamedTuple):
    """One point of the grid that ``tune_weights`` searches; LM weights order first.

    Attributes:
        lm_weight: factor of the language model's log probability, 0 or more.
        insertion_penalty: added to a path's cost for every word.
    """

    lm_weight: float
    insertion_penalty: float

    @property
    def setting(self) -> str:
        """The name that result files carry.

        >>> Weights(0.5, 0.0).setting
        'lm_weight_0.5_insertion_penalty_0.0'
        """
        return f"lm_weight_{self.lm_weight}_insertion_penalty_{self.insertion_penalty}"


@dataclass(frozen=True)
class Utterance:
    """A reference and what was recognized at every point of the grid.

    Attributes:
        id: of the cut.
        part: the corpus's own name of the part it belongs to.
        speaker: the user.
        ref: words of the reference.
        no_path: whether the search ended without a final path.
        hyps: words for each point of the grid; may be empty where ``no_path``.
    """

    id: str
    part: str
    speaker: str
    ref: tuple[str, ...]
    no_path: bool
    hyps: Mapping[Weights, tuple[str, ...]]

    def hyp(self, weights: Weights) -> tuple[str, ...]:
        """The words at one point of the grid; none where there was no path."""
        return self.hyps.get(weights, ())


@dataclass(frozen=True)
class Decoded:
    """All utterances of one role.

    Attributes:
        place: the folder.
        role: ``dev``, ``test``, ...
        utterances: sorted by id, whichever job wrote them.
        grid: the points that every utterance with a path has, in increasing order.
    """

    place: Path
    role: str
    utterances: tuple[Utterance, ...]
    grid: tuple[Weights, ...]


def read_decoded(folder: Path) -> Decoded:
    """Read the records of all jobs.

    The role is each record's ``role``; where records have none, it is what follows ``decode_`` in
    the folder's name.

    Raises:
        DataError: no records, a record without one of its keys, an utterance twice, utterances of
            several roles, or utterances that were searched with different grids.
    """
    files = sorted(folder.glob("*.jsonl"))
    utterances: dict[str, Utterance] = {}
    seen: dict[str, Path] = {}
    roles: dict[str, str] = {}
    for path in files:
        for record in read_jsonl(path):
            utterance = _utterance(path, record)
            if utterance.id in seen:
                found = f"{utterance.id} again, which {seen[utterance.id]} has"
                raise DataError(path, "every utterance once", found, _other_runs(folder))
            utterances[utterance.id], seen[utterance.id] = utterance, path
            roles.setdefault(str(record.get("role", _role_of_folder(folder))), utterance.id)
    if not utterances:
        expected = "*.jsonl files with a record an utterance"
        raise DataError(folder, expected, "none", f"{_AGAIN}, or correct --in-hyps")
    if len(roles) > 1:
        found = ", ".join(f"{role} (such as {example})" for role, example in sorted(roles.items()))
        raise DataError(folder, "utterances of one role", found, _AGAIN)
    ordered = tuple(utterances[name] for name in sorted(utterances))
    return Decoded(folder, next(iter(roles)), ordered, _grid(folder, ordered))


def check_complete(decoded: Decoded, manifests: Path) -> None:
    """Refuse a decoding that has not the utterances of ``cuts_<role>.jsonl.gz`` in ``manifests``.

    Raises:
        DataError: ids are missing, or there are others.
    """
    source = manifests / f"cuts_{decoded.role}.jsonl.gz"
    expected, got = set(read_cut_ids(source)), {u.id for u in decoded.utterances}
    if missing := sorted(expected - got):
        found = f"{len(missing)} of {len(expected)} missing: {some_of(missing)}"
        way_out = f"{_AGAIN}: a job may have been lost"
        raise DataError(decoded.place, f"the utterances of {source}", found, way_out)
    if surplus := sorted(got - expected):
        found = f"{len(surplus)} others: {some_of(surplus)}"
        way_out = f"remove {decoded.place} and {_AGAIN}"
        raise DataError(decoded.place, f"the utterances of {source}", found, way_out)


def read_cut_ids(path: Path) -> list[str]:
    """The ids of a ``cuts_<role>.jsonl.gz``, without the library that made it.

    Raises:
        DataError: a record without an id.
    """
    ids = []
    for number, cut in enumerate(read_jsonl(path), start=1):
        if "id" not in cut:
            expected = "cuts with an id"
            raise DataError(path, expected, f"none in cut {number}", "prepare the corpus again")
        ids.append(str(cut["id"]))
    return ids


def _utterance(path: Path, record: Mapping[str, Any]) -> Utterance:
    place = f"{path} ({record.get('id', 'a record without id')})"
    try:
        hyps = {}
        for hyp in record["hyps"]:
            point = Weights(float(hyp["lm_weight"]), float(hyp["insertion_penalty"]))
            hyps[point] = tuple(str(hyp["words"]).split())
        utterance = Utterance(
            id=str(record["id"]),
            part=str(record["part"]),
            speaker=str(record["speaker"]),
            ref=tuple(str(record["ref"]).split()),
            no_path=bool(record["no_path"]),
            hyps=hyps,
        )
    except KeyError as error:
        raise DataError(place, f"the key {error}", f"only {' '.join(record)}", _AGAIN) from error
    except (TypeError, ValueError, OverflowError) as error:
        expected = "hyps with numbers as weights and text as words"
        raise DataError(place, expected, str(error), _AGAIN) from error
    if not all(math.isfinite(number) for point in hyps for number in point):
        raise DataError(place, "finite weights", "others", _AGAIN)
    if not hyps and not utterance.no_path:
        raise DataError(place, "a hypothesis, or no_path", "neither", _AGAIN)
    return utterance


def _other_runs(folder: Path) -> str:
    return f"remove {folder} and {_AGAIN}: its files come from different runs"


def _role_of_folder(folder: Path) -> str:
    return folder.name.removeprefix("decode_")


def _grid(folder: Path, utterances: Iterable[Utterance]) -> tuple[Weights, ...]:
    grids = {u.id: tuple(sorted(u.hyps)) for u in utterances if u.hyps}
    first, grid = next(iter(grids.items()), ("", ()))
    for name, points in grids.items():
        if points != grid:
            expected = f"every utterance with the {len(grid)} LM weights and insertion penalties of"
            found = f"{name} with {len(points)}, not all of them the same"
            raise DataError(folder, f"{expected} {first}", found, _other_runs(folder))
    if not grid:
        way_out = "widen the search beam, or look at the acoustic model"
        raise DataError(folder, "an utterance with a path", "none", way_out)
    return grid


def some_of(names: list[str]) -> str:
    """The first names, for an error."""
    return " ".join(names[:_LISTED]) + (" ..." if len(names) > _LISTED else "")
