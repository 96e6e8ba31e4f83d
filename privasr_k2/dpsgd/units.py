"""Privacy units (utterances or speakers), and batches of them in parts that fit into memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from privasr_k2.data.features import FRAME_SHIFT, load_features
from privasr_k2.errors import DataError
from privasr_k2.privacy.people import People
from privasr_k2.randomness import stream

if TYPE_CHECKING:
    from lhotse import CutSet
    from lhotse.cut import Cut


@dataclass(frozen=True)
class Unit:
    """A privacy unit: the guarantee hides its presence.

    Attributes:
        name: an utterance's or a speaker's.
        copies: for each of its utterances, the names of that at all speeds; may be empty.
    """

    name: str
    copies: tuple[tuple[str, ...], ...]

    def weights(self, within: str, most: int, seed: int, step: int) -> dict[str, float]:
        """The weight of each utterance in the unit's gradient; copies of an utterance are averaged.

        Args:
            within: ``mean`` over the utterances, or their ``sum``.
            most: utterances that take part, drawn anew for every step by the unit alone; 0 = all.

        >>> Unit("anna", (("a", "a_sp0.9"), ("b",))).weights("mean", 0, 1, 0)
        {'a': 0.25, 'a_sp0.9': 0.25, 'b': 0.5}
        """
        chosen: Sequence[tuple[str, ...]] = self.copies
        if 0 < most < len(chosen):
            indices = stream(seed, "utterances", self.name, step).permutation(len(chosen))[:most]
            chosen = [self.copies[index] for index in sorted(indices.tolist())]
        share = 1.0 / len(chosen) if chosen and within == "mean" else 1.0
        return {name: share / len(copies) for copies in chosen for name in copies}


def units_of(
    cuts: Iterable[Cut], kind: str, usable: Iterable[str], roster: Iterable[str] = ()
) -> list[Unit]:
    """All units, sorted by name: those too of which no utterance is ``usable``.

    Args:
        kind: ``utterance`` or ``speaker``.
        roster: the public names of all units, also of those without cuts; empty: those of the cuts.

    Raises:
        DataError: an utterance without a speaker, where speakers are units; or a unit that the
            roster lacks.
    """
    kept = set(usable)
    by_unit: dict[str, dict[str, list[str]]] = {name: {} for name in roster}
    listed = frozenset(by_unit)
    for cut in cuts:
        original = (cut.custom or {}).get("original_id", cut.id)
        speaker = speaker_of(cut)
        if kind == "speaker" and not speaker:
            way_out = "take utterances as units, or name the speakers"
            raise DataError(cut.id, "a speaker", "none", way_out)
        name = speaker if kind == "speaker" else original
        if listed and name not in listed:
            way_out = "complete the roster"
            raise DataError("the roster", f"every {kind} of the data", f"no {name}", way_out)
        originals = by_unit.setdefault(name, {})
        copies = originals.setdefault(original, [])
        if cut.id in kept:
            copies.append(cut.id)

    def all_copies(originals: dict[str, list[str]]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(sorted(copies)) for _, copies in sorted(originals.items()) if copies)

    return [Unit(name, all_copies(originals)) for name, originals in sorted(by_unit.items())]


def people_of(cuts: Iterable[Cut], kind: str, place: Path) -> People | None:
    """Who stands behind the units of ``kind``; None where some cut names no speaker."""
    units = {(cut.custom or {}).get("original_id", cut.id): speaker_of(cut) for cut in cuts}
    if not all(units.values()):
        return None
    pairs = ((speaker if kind == "speaker" else unit, speaker) for unit, speaker in units.items())
    return People.of(pairs, source=place)


def speaker_of(cut: Cut) -> str:
    """The speaker of a cut; empty where none is named."""
    return (cut.supervisions[0].speaker or "") if cut.supervisions else ""


class Speech:
    """Features and token numbers of utterances by name.

    Args:
        cuts: with features.
        targets: token numbers by the cut's name.
        memory_gb: features are kept in memory where all of them have at most this size.

    Attributes:
        frame_shift: seconds between frames.
    """

    def __init__(
        self, cuts: CutSet, targets: Mapping[str, Sequence[int]], *, memory_gb: float
    ) -> None:
        self._cuts = {cut.id: cut for cut in cuts}
        self.targets = {name: tuple(targets[name]) for name in self._cuts}
        size = sum(cut.num_frames * cut.num_features * 4 for cut in self._cuts.values())
        self._keep, self._features = size <= memory_gb * 1e9, dict[str, Tensor]()
        self.frame_shift = next((cut.frame_shift for cut in self._cuts.values()), FRAME_SHIFT)

    def frames(self, name: str) -> int:
        """Frames of an utterance."""
        return int(self._cuts[name].num_frames)

    def features(self, name: str) -> Tensor:
        """(T, F) float32."""
        if name in self._features:
            return self._features[name]
        features = torch.from_numpy(load_features(self._cuts[name]))
        if self._keep:
            self._features[name] = features
        return features

    def content(self) -> str:
        """A hash of everything in it."""
        digest = hashlib.sha256()
        for name in sorted(self._cuts):
            digest.update(repr((name, self.targets[name])).encode())
            digest.update(self.features(name).numpy().tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Part:
    """Utterances that are computed together.

    Attributes:
        owners: the unit of each utterance, from 0 within the part.
        ends: whether its units are complete; a unit that needs several parts has them to itself.
    """

    names: tuple[str, ...]
    weights: tuple[float, ...]
    owners: tuple[int, ...]
    ends: bool


def parts(
    weights: Sequence[Mapping[str, float]],
    frames: Mapping[str, int],
    *,
    most_frames: int,
    most_rows: int,
) -> Iterator[Part]:
    """A batch of units in parts that fit into memory, units of like length together.

    Args:
        weights: for each unit, its utterances and their weights.
        most_frames: of a part, padding included; a longer utterance is by itself.
        most_rows: utterances of a part; 0: one unit a part.

    >>> units = [{"a": 1.0}, {"b": 0.5, "c": 0.5}]
    >>> [one.names for one in parts(units, {"a": 9, "b": 5, "c": 6}, most_frames=20, most_rows=9)]
    [('a',), ('c', 'b')]
    """
    ordered = [sorted(unit, key=lambda name: (-frames[name], name)) for unit in weights if unit]
    counts = {name: value for unit in weights for name, value in unit.items()}

    def made(units: Sequence[Sequence[str]], *, ends: bool = True) -> Part:
        names = tuple(name for unit in units for name in unit)
        owners = tuple(number for number, unit in enumerate(units) for _ in unit)
        return Part(names, tuple(counts[name] for name in names), owners, ends)

    together: list[list[str]] = []
    rows = longest = 0
    for unit in sorted(ordered, key=lambda names: (-frames[names[0]], names[0])):
        # Longest first, so that what is there already sets the padding.
        longest = longest if together else frames[unit[0]]
        more = rows + len(unit)
        if together and (more > most_rows or more * longest > most_frames):
            yield made(together)
            together, rows, longest = [], 0, frames[unit[0]]
        if len(unit) * longest <= most_frames and len(unit) <= max(1, most_rows):
            together.append(unit)
            rows += len(unit)
        else:
            for names, last in _pieces(unit, frames, most_frames, most_rows):
                yield made([names], ends=last)
    if together:
        yield made(together)


def _pieces(
    unit: Sequence[str], frames: Mapping[str, int], most_frames: int, most_rows: int
) -> Iterator[tuple[Sequence[str], bool]]:
    """One unit's utterances, longest first, as many at a time as fit; and whether it ends."""
    start = 0
    while start < len(unit):
        width = max(1, min(most_rows or len(unit), most_frames // max(1, frames[unit[start]])))
        yield unit[start : start + width], start + width >= len(unit)
        start += width
