"""Disjoint shards of private data, one a teacher.

The shard of a unit follows from the roster (the public names of all units) and a seed alone.
Without the data of one unit exactly one shard changes, and may be empty: its teacher abstains.
Another roster is another deal.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge

from privasr_k2.constraints import Checked, one_of
from privasr_k2.data.features import ABOUT
from privasr_k2.data.manifests import cuts_path, load_cuts, save_cuts
from privasr_k2.data.roster import read_roster
from privasr_k2.errors import DataError
from privasr_k2.fileio import atomic_path, read_json, write_json
from privasr_k2.privacy.pate.sensitivity import Change
from privasr_k2.privacy.people import People
from privasr_k2.randomness import stream

if TYPE_CHECKING:
    from lhotse.cut import Cut

FILE = "shards.json"
_FORMAT = "privasr_k2 shards 2"


@dataclass(frozen=True)
class ShardsConfig(Checked):
    """How private data are dealt out; ``conf/pate.yaml#shards`` explains the values."""

    teachers: Annotated[int, Ge(2)]
    unit: Annotated[str, one_of("speaker", "utterance")]
    seed: int


@dataclass(frozen=True)
class Shards:
    """The content of ``shards.json``.

    Attributes:
        teachers: number of shards, numbered from 1.
        unit: what the roster names.
        roster: unit -> shard; public.
        persons: person -> number of shards that hold a unit of theirs; public, as the roster.
    """

    teachers: int
    unit: str
    roster: Mapping[str, int]
    persons: Mapping[str, int]

    @property
    def units_in_a_shard(self) -> int:
        """The largest number of the roster's units in a shard."""
        return max(Counter(self.roster.values()).values())

    @property
    def change(self) -> Change:
        """What one unit changes in a query."""
        return Change.of(self.units_in_a_shard)

    @property
    def people(self) -> People:
        """Who stands behind the units: a person has a vote in every shard with a unit of theirs."""
        votes = ((f"{name}\0{k}", name) for name, many in self.persons.items() for k in range(many))
        found = People.of(votes, source=FILE)
        return replace(found, most_units=min(found.most_units, self.teachers))


def deal(roster: Iterable[str], teachers: int, seed: int) -> dict[str, int]:
    """Units to shards 1 to ``teachers``, whose numbers of units differ by one at most.

    Raises:
        DataError: more teachers than units.

    >>> deal("abcd", 2, seed=1) == deal("dcba", 2, seed=1), sorted(deal("abcd", 2, seed=1).values())
    (True, [1, 1, 2, 2])
    """
    names = sorted(set(roster))
    if len(names) < teachers:
        expected = f"{teachers} units or more, one a teacher"
        way_out = "take fewer teachers, or unit=utterance, which protects less"
        raise DataError("the roster", expected, f"{len(names)}", way_out)
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
    private_feats: Path, public_dev: Path, folder: Path, config: ShardsConfig, roster: Path
) -> Shards:
    """Write ``shard_<k>/``, a features folder a teacher, and ``shards.json``; all or nothing.

    A unit without data is an empty part of its shard; a shard may have no data at all.

    Args:
        private_feats: its role ``train`` is private.
        public_dev: its role ``dev`` is public.
        roster: the public names of all units, see :mod:`privasr_k2.data.roster`.

    Raises:
        DataError: fewer units than teachers, a unit that the roster lacks, or one that is in dev
            too.
    """
    private, dev = load_cuts(private_feats, "train"), load_cuts(public_dev, "dev")
    by_unit: dict[str, list[Cut]] = {}
    for cut in private:
        by_unit.setdefault(unit_of(cut, config.unit), []).append(cut)
    named = read_roster(roster, config.unit)
    if unknown := sorted(set(by_unit) - set(named)):
        raise DataError(roster, "every unit of the data", f"no {unknown[0]}", "complete the roster")
    if both := sorted(set(named) & {unit_of(cut, config.unit) for cut in dev}):
        expected = f"none of the private {config.unit}s: dev chooses checkpoints and weights"
        others = f"{both[0]}, and {len(both) - 1} others"
        way_out = "take a dev part of public speakers"
        raise DataError(cuts_path(public_dev, "dev"), expected, others, way_out)
    dealt = deal(named, config.teachers, config.seed)
    shards: list[list[Cut]] = [[] for _ in range(config.teachers)]
    for unit in sorted(by_unit):
        shards[dealt[unit] - 1] += by_unit[unit]
    pairs = {(named[unit], shard) for unit, shard in dealt.items()}
    persons = dict(sorted(Counter(person for person, _ in pairs).items()))
    result = Shards(config.teachers, config.unit, dealt, persons)
    with atomic_path(folder) as temporary:
        for k, cuts in enumerate(shards, start=1):
            here, final = temporary / f"shard_{k}", folder / f"shard_{k}"
            save_cuts(cuts, here, "train", final=final)
            save_cuts(dev, here, "dev", final=final)
            if (private_feats / ABOUT).is_file():
                shutil.copyfile(private_feats / ABOUT, here / ABOUT)
        about = {"format": _FORMAT, "seed": config.seed, **asdict(result)}
        write_json(temporary / FILE, about | {"units_in_a_shard": result.units_in_a_shard})
    return result


def check_shard(feats: Path, shards: Path) -> None:
    """Refuse features that are no shard of a ``shards.json``.

    Raises:
        DataError: other features, or no shards.
    """
    names = {f"shard_{k}" for k in range(1, read_shards(shards).teachers + 1)}
    if feats.name not in names or feats.resolve().parent != shards.resolve().parent:
        raise DataError(feats, f"a shard of {shards}", "other features", "leave out --in-shards")


def read_shards(path: Path) -> Shards:
    """Read the output of :func:`make_shards`; ``path`` is the folder or ``shards.json`` itself.

    Raises:
        DataError: no such file, or another kind of file.
    """
    path = path / FILE if path.is_dir() else path
    if not path.is_file():
        raise DataError(path, "the shards of the teachers", "no such file", "run make_shards")
    content: Any = read_json(path)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise DataError(path, _FORMAT, str(content)[:60], "run make_shards again")
    return Shards(**{name: content[name] for name in ("teachers", "unit", "roster", "persons")})
