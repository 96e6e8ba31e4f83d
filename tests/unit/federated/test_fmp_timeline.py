"""Whose utterances are whose, and in which order they came."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.federated.fmp_timeline import (
    Occasion,
    TimelineConfig,
    read_occasions,
    read_timeline,
    timeline_of,
    write_timeline,
)
from privasr_k2.fileio import write_jsonl
from tests.support.fmp_tiny import made_lists


def occasion(name: str, start: float, **more: str) -> Occasion:
    told = {"speaker": "s", "recording": "r", "document": "", "part": "p", "text": "a", **more}
    return Occasion(id=name, start=start, **told)  # type: ignore[arg-type]


SAID = {
    "m-1": occasion("m-1", 5.0, recording="headset1", speaker="x"),
    "m-2": occasion("m-2", 1.0, recording="headset2", speaker="x"),
    "n-3": occasion("n-3", 0.0, recording="headset1", speaker="y"),
}


@pytest.mark.parametrize(
    ("client", "order"),
    [
        ("prefix", ["m-2", "m-1", "n-3"]),
        # Recordings one after the other: they have no common clock.
        ("speaker", ["m-1", "m-2", "n-3"]),
        ("recording", ["n-3", "m-1", "m-2"]),
        ("part", ["n-3", "m-1", "m-2"]),
        ("meeting_speaker", ["m-2", "m-1", "n-3"]),
    ],
)
def test_order(client: str, order: list[str]) -> None:
    lists = made_lists([["a"]] * 3, ids=list(SAID))
    found = timeline_of(lists.lists, SAID, TimelineConfig(client))
    assert [turn.id for turn in found] == order


def test_each_speaker_of_a_meeting_is_a_client() -> None:
    said = {**SAID, "n-4": occasion("n-4", 3.0, speaker="x"), "m-5": occasion("m-5", 0.5)}
    lists = made_lists([["a"]] * 5, ids=list(said))
    found = timeline_of(lists.lists, said, TimelineConfig("meeting_speaker"))
    by_pair: dict[tuple[str, str], set[str]] = {}
    for turn in found:
        by_pair.setdefault((turn.id[0], said[turn.id].speaker), set()).add(turn.client)
    assert len(by_pair) == 4 == len({turn.client for turn in found})
    assert all(len(clients) == 1 for clients in by_pair.values())
    with pytest.raises(DataError, match="its meeting_speaker"):
        unknown = {"m-1": occasion("m-1", 0.0, speaker="")}
        timeline_of(lists.lists[:1], unknown, TimelineConfig("meeting_speaker"))


def test_what_cannot_be(tmp_path: Path) -> None:
    lists = made_lists([["a"]] * 3, ids=list(SAID))
    with pytest.raises(DataError, match="its document"):
        timeline_of(lists.lists, SAID, TimelineConfig("document"))
    with pytest.raises(DataError, match="1 others: q"):
        timeline_of(made_lists([["a"]], ids=["q"]).lists, SAID, TimelineConfig("part"))
    with pytest.raises(ValueError, match="client must be one of"):
        TimelineConfig("house")
    write_jsonl(tmp_path / "bad.jsonl", [{"id": "a", "text": "x"}, {"id": "b"}])
    with pytest.raises(DataError, match=r"bad\.jsonl:2"):
        read_occasions([tmp_path / "bad.jsonl"])
    write_jsonl(tmp_path / "twice.jsonl", [{"id": "a", "text": "x"}] * 2)
    with pytest.raises(DataError, match="each id once"):
        read_occasions([tmp_path / "twice.jsonl"])
    with pytest.raises(DataError, match=r"bad\.jsonl:1"):
        read_timeline(tmp_path / "bad.jsonl")


def test_written_and_read(tmp_path: Path) -> None:
    lists = made_lists([["a"]] * 3, ids=list(SAID))
    turns = timeline_of(lists.lists, SAID, TimelineConfig("recording"))
    write_timeline(tmp_path / "t.jsonl", turns, lists.lists)
    assert read_timeline(tmp_path / "t.jsonl") == turns
    assert {turn.kind for turn in turns} == {"recording"}


TURN = {"id": "u", "client": "c", "kind": "part", "user": "s", "ref_words": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": None}, "kind"),
        ({"kind": "house"}, "one kind of client"),
        ({"kind": "prefix"}, "one kind of client"),  # after a part
        ({"kind": 3}, "kind and user"),
    ],
)
def test_what_a_client_is_stands_in_the_timeline(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    other = {**TURN, "id": "v", **change}
    write_jsonl(
        tmp_path / "t.jsonl",
        [TURN, {key: value for key, value in other.items() if value is not None}],
    )
    with pytest.raises(DataError, match=message):
        read_timeline(tmp_path / "t.jsonl")


def test_speakers_are_their_own_clients(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "t.jsonl", [{**TURN, "kind": "speaker"}])
    with pytest.raises(DataError, match="another for u"):
        read_timeline(tmp_path / "t.jsonl")
