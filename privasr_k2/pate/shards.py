"""Disjoint shards of private data, one a teacher.

Which shard a unit belongs to follows from the roster (the names of all units, public) and a seed
alone, never
from how much a unit has said: so that without the data of one unit one shard changes, and no other.
A roster with another name in it is another deal.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privasr_k2.data.manifests import cuts_path, load_cuts, save_cuts
from privasr_k2.errors import DataError
from privasr_k2.fileio import atomic_path, read_json, read_lines, write_json
from privasr_k2.randomness import stream

if TYPE_CHECKING:
    from lhotse.cut import Cut

FILE = "shards.json"
UNITS = ("speaker", "utterance")
_FORMAT = "privasr_k2 shards 1"


@dataclass(frozen=True)
class ShardsConfig:
    """How private data are dealt out; defaults in ``conf/pate.yaml#shards``.

    Args:
        teachers: I, 2 or more.
        unit: whose presence is hidden: ``speaker``, or ``utterance``, which hides no speaker.
        seed: of the deal.
    """

    teachers: int
    unit: str
    seed: int

    def __post_init__(self) -> None:
        if self.teachers < 2:
            raise ValueError(f"teachers must be at least 2, got {self.teachers}")
        if self.unit not in UNITS:
            raise ValueError(f"unit must be one of {' '.join(UNITS)}, got {self.unit!r}")


@dataclass(frozen=True)
class Shards:
    """The content of ``shards.json``.

    Attributes:
        teachers: number of shards, numbered from 1.
        unit: what the roster names.
        roster: unit -> shard; public.
    """

    teachers: int
    unit: str
    roster: Mapping[str, int]


def deal(roster: Iterable[str], teachers: int, seed: int) -> dict[str, int]:
    """Units to shards 1 to ``teachers``, whose numbers of units differ by one at most.

    Raises:
        DataError: more teachers than units.

    >>> deal("abcd", 2, seed=1) == deal("dcba", 2, seed=1), sorted(deal("abcd", 2, seed=1).values())
    (True, [1, 1, 2, 2])
    """
    names = sorted(set(roster))
    if len(names) < teachers:
        raise DataError(
            "the roster",
            f"{teachers} units or more, one a teacher",
            f"{len(names)}",
            "take fewer teachers, or unit=utterance, which protects less",
        )
    order = stream(seed, "shards").permutation(len(names))
    return dict(sorted((names[unit], place % teachers + 1) for place, unit in enumerate(order)))


def unit_of(cut: Cut, unit: str) -> str:
    """The unit that a cut belongs to; an utterance at other speeds is that utterance.

    Raises:
        DataError: a cut that names no speaker.
    """
    if unit == "utterance":
        return str((cut.custom or {}).get("original_id", cut.id))
    speaker = cut.supervisions[0].speaker
    if not speaker:
        raise DataError(cut.id, "a speaker", "none", "name the speakers, or take unit=utterance")
    return str(speaker)


def make_shards(
    private_feats: Path, public_dev: Path, folder: Path, config: ShardsConfig, roster: Path | None
) -> Shards:
    """Write ``shard_<k>/`` for every teacher, each a features folder, and ``shards.json``; all or
    nothing.

    Args:
        private_feats: its role ``train`` is private.
        public_dev: its role ``dev`` is public.
        folder: where they go.
        roster: the names of all units, one a line; ``None``: those of the data.

    Raises:
        DataError: fewer units than teachers, a shard without data, a unit that the roster lacks, or
            one that is in dev too.
    """
    private, dev = load_cuts(private_feats, "train"), load_cuts(public_dev, "dev")
    by_unit: dict[str, list[Cut]] = {}
    for cut in private:
        by_unit.setdefault(unit_of(cut, config.unit), []).append(cut)
    named = (
        set(by_unit) if roster is None else {line.strip() for _, line in read_lines(roster)} - {""}
    )
    if unknown := sorted(set(by_unit) - named):
        raise DataError(
            roster or private_feats,
            "every unit of the data",
            f"no {unknown[0]}",
            "complete the roster",
        )
    if both := sorted(named & {unit_of(cut, config.unit) for cut in dev}):
        raise DataError(
            cuts_path(public_dev, "dev"),
            f"none of the private {config.unit}s: dev chooses checkpoints and weights",
            f"{both[0]}, and {len(both) - 1} others",
            "take a dev part of public speakers",
        )
    dealt = deal(named, config.teachers, config.seed)
    shards: list[list[Cut]] = [[] for _ in range(config.teachers)]
    for unit in sorted(by_unit):
        shards[dealt[unit] - 1] += by_unit[unit]
    if empty := [k for k, cuts in enumerate(shards, start=1) if not cuts]:
        raise DataError(
            f"shard {empty[0]}",
            "data of one unit at least",
            "none",
            "take fewer teachers or another seed",
        )
    made = Shards(config.teachers, config.unit, dealt)
    with atomic_path(folder) as temporary:
        for k, cuts in enumerate(shards, start=1):
            here, final = temporary / f"shard_{k}", folder / f"shard_{k}"
            save_cuts(cuts, here, "train", final=final)
            save_cuts(dev, here, "dev", final=final)
            if (private_feats / "features.yaml").is_file():
                shutil.copyfile(private_feats / "features.yaml", here / "features.yaml")
        write_json(temporary / FILE, {"format": _FORMAT, "seed": config.seed, **asdict(made)})
    return made


def read_shards(path: Path) -> Shards:
    """Read the output of :func:`make_shards`; ``path`` is the folder or ``shards.json`` itself.

    Raises:
        DataError: no such file, or another kind of file.
    """
    path = path / FILE if path.is_dir() else path
    if not path.is_file():
        raise DataError(path, "the shards of the teachers", "no such file", "run make_shards")
    told: Any = read_json(path)
    if not isinstance(told, dict) or told.get("format") != _FORMAT:
        raise DataError(path, _FORMAT, str(told)[:60], "run make_shards again")
    return Shards(told["teachers"], told["unit"], told["roster"])
