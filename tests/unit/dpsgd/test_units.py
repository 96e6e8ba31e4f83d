"""Units, and batches in parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privasr_k2.dpsgd.units import Unit, parts, people_of, units_of
from privasr_k2.errors import DataError


@dataclass
class FakeCut:
    """What units are made of."""

    id: str
    speaker: str | None = "anna"
    custom: dict[str, Any] | None = None
    supervisions: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.supervisions = [SimpleNamespace(speaker=self.speaker)]


CUTS = [
    FakeCut("b"),
    FakeCut("a"),
    FakeCut("a_sp0.9", custom={"original_id": "a"}),
    FakeCut("c", "berta"),
    FakeCut("d", "carl"),
]


def test_copies_belong_to_their_utterance() -> None:
    everything = [cut.id for cut in CUTS]
    assert units_of(CUTS, "utterance", everything)[0] == Unit("a", (("a", "a_sp0.9"),))
    found = units_of(CUTS, "speaker", everything)
    assert found[0] == Unit("anna", (("a", "a_sp0.9"), ("b",))) and len(found) == 3


def test_people_stand_behind_units() -> None:
    found = people_of(CUTS, "utterance", Path("feats"))
    assert found is not None and found.names == {"anna", "berta", "carl"}
    assert found.most_units == 2  # a and b of anna; a at another speed is a
    of_speakers = people_of(CUTS, "speaker", Path("feats"))
    assert of_speakers is not None and of_speakers.most_units == 1
    assert people_of([*CUTS, FakeCut("e", None)], "utterance", Path("feats")) is None


def test_units_without_usable_utterances_stay() -> None:
    assert units_of(CUTS, "speaker", ["a", "b"])[1:] == [Unit("berta", ()), Unit("carl", ())]
    assert Unit("carl", ()).weights("mean", 0, 1, 0) == {}


def test_a_listed_unit_without_data_is_a_unit() -> None:
    everything, roster = [cut.id for cut in CUTS], ["carl", "anna", "berta", "dora"]
    found = units_of(CUTS, "speaker", everything, roster)
    assert [unit.name for unit in found] == sorted(roster) and found[-1] == Unit("dora", ())
    without = [cut for cut in CUTS if cut.speaker != "berta"]
    assert len(units_of(without, "speaker", everything, roster)) == len(found)
    with pytest.raises(DataError, match="no carl"):
        units_of(CUTS, "speaker", everything, ["anna", "berta"])


def test_speakers_must_be_known() -> None:
    with pytest.raises(DataError, match="a speaker"):
        units_of([FakeCut("a", None)], "speaker", ["a"])
    assert len(units_of([FakeCut("a", None)], "utterance", ["a"])) == 1


def test_utterances_of_a_step() -> None:
    unit = Unit("anna", tuple((name,) for name in "abcdef"))
    assert unit.weights("sum", 0, 1, 0) == dict.fromkeys("abcdef", 1.0)
    drawn = [tuple(unit.weights("mean", 2, 1, step)) for step in range(8)]
    assert all(len(set(one)) == 2 for one in drawn) and len(set(drawn)) > 2
    assert drawn == [tuple(unit.weights("sum", 2, 1, step)) for step in range(8)]
    assert set(unit.weights("mean", 2, 1, 0).values()) == {0.5}


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(1, 30), max_size=5), max_size=8),
    st.integers(1, 60),
    st.integers(0, 6),
)
def test_parts_hold_each_utterance_once_within_the_limits(
    lengths: list[list[int]], most_frames: int, most_rows: int
) -> None:
    names = [[f"{u}-{n}" for n in range(len(of_unit))] for u, of_unit in enumerate(lengths)]
    weights = [dict.fromkeys(of_unit, 1.0 + u) for u, of_unit in enumerate(names)]
    frames = dict(zip(chain(*names), chain(*lengths)))
    made = [*parts(weights, frames, most_frames=most_frames, most_rows=most_rows)]
    assert sorted(name for part in made for name in part.names) == sorted(frames)
    unfinished: str | None = None
    for part in made:
        units = [name.split("-")[0] for name in part.names]
        assert part.weights == tuple(1.0 + int(unit) for unit in units)
        # An owner is a unit, and units are numbered in their order.
        numbered = [(u, n) for n, u in enumerate(dict.fromkeys(units))]
        assert [*dict.fromkeys(zip(units, part.owners))] == numbered
        padded = len(units) * max(frames[name] for name in part.names)
        assert len(units) == 1 or padded <= most_frames
        assert len(units) <= max(1, most_rows) or (most_rows == 0 and len(set(units)) == 1)
        if unfinished is not None:
            assert set(units) == {unfinished}
        assert part.ends or len(set(units)) == 1
        unfinished = None if part.ends else units[0]
    assert unfinished is None
    ended = [{name.split("-")[0] for name in part.names} for part in made if part.ends]
    assert sorted(chain(*ended)) == sorted({name.split("-")[0] for name in frames})
