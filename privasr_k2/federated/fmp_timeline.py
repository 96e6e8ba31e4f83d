"""Timelines, as ``prepare_fmp`` writes them: the utterances of each client in the order of time.

A timeline is JSON Lines, ``{"id", "client", "kind", "user", "ref_words"}`` an utterance. The order
is that of the cuts' start in a recording, otherwise of ids.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from privasr_k2.constraints import Checked, one_of
from privasr_k2.errors import DataError
from privasr_k2.federated.fmp_spoken import CLIENT_UNITS, Turn, kind_of
from privasr_k2.fileio import read_jsonl, write_jsonl
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList

#: Clients whose recordings run side by side (headsets of a meeting): their common clock orders
#: utterances.
_ONE_CLOCK = ("recording", "document", "prefix", "meeting_speaker")


@dataclass(frozen=True)
class TimelineConfig(Checked):
    """The definition of a client; see ``conf/fmp.yaml#fmp_timeline``."""

    client: Annotated[str, one_of(*CLIENT_UNITS)]


@dataclass(frozen=True)
class Occasion:
    """Place and time of an utterance, from its cut or its line of tagged text."""

    id: str
    speaker: str
    recording: str
    document: str
    part: str
    start: float
    text: str

    def client(self, kind: str) -> str:
        """The client's name.

        Raises:
            DataError: the utterance has none.
        """
        meeting = self.id.partition("-")[0]
        if kind == "meeting_speaker":
            name = f"{meeting}/{self.speaker}" if meeting and self.speaker else ""
        else:
            name = meeting if kind == "prefix" else str(getattr(self, kind))
        if not name:
            raise DataError(f"utterance {self.id}", f"its {kind}", "none", "set another client=")
        return name


def read_occasions(paths: Sequence[Path]) -> dict[str, Occasion]:
    """Utterances of cuts or tagged text, by id.

    Raises:
        DataError: with file and line: a record that is neither, or a second one of an id.
    """
    occasions: dict[str, Occasion] = {}
    for path in paths:
        for number, record in enumerate(read_jsonl(path), start=1):
            place = f"{path}:{number}"
            try:
                occasion = _of_cut(record) if "supervisions" in record else _of_text(record)
                if not math.isfinite(occasion.start):
                    raise ValueError(f"the start {occasion.start}")
            except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
                raise DataError(place, "a cut or tagged text", repr(error), "mend it") from error
            if occasion.id in occasions:
                raise DataError(place, "each id once", f"{occasion.id!r} again", "rename one")
            occasions[occasion.id] = occasion
    return occasions


def occasions_of(lists: Sequence[NbestList]) -> dict[str, Occasion]:
    """The utterances of lists, by id; what lists do not know is empty, and ids are the order."""
    return {one.id: Occasion(one.id, one.speaker, "", "", one.part, 0.0, one.ref) for one in lists}


def _of_cut(record: Mapping[str, Any]) -> Occasion:
    [supervision] = record["supervisions"]
    recording = (record.get("recording") or {}).get("id") or supervision["recording_id"]
    speaker, text = (str(supervision.get(key) or "") for key in ("speaker", "text"))
    document = str((supervision.get("custom") or {}).get("document") or "")
    part, start = str((record.get("custom") or {}).get("part") or ""), float(record["start"])
    return Occasion(str(record["id"]), speaker, str(recording), document, part, start, text)


def _of_text(record: Mapping[str, Any]) -> Occasion:
    document, user = (str(record.get(key) or "") for key in ("document", "user"))
    return Occasion(str(record["id"]), user, document, document, "", 0.0, str(record["text"]))


def text_lists(occasions: Mapping[str, Occasion], role: str) -> list[NbestList]:
    """Text without audio as lists of one hypothesis each, the reference."""
    lists = []
    for occasion in occasions.values():
        words = " ".join(occasion.text.split())
        hyps = (Hypothesis(1, words, 0.0, {}),)
        part = occasion.part or role
        lists.append(NbestList(occasion.id, part, occasion.speaker, words, False, hyps))
    return lists


def timeline_of(
    lists: Sequence[NbestList], occasions: Mapping[str, Occasion], config: TimelineConfig
) -> list[Turn]:
    """The utterances of some lists, client by client, each client's in the order of time.

    Raises:
        DataError: an utterance without an occasion or a client.
    """
    if lost := [nbest.id for nbest in lists if nbest.id not in occasions]:
        found = f"{len(lost)} others: {' '.join(lost[:3])}"
        raise DataError("--in-nbest", "utterances of the cuts", found, "give those of one role")
    whose = {nbest.id: occasions[nbest.id].client(config.client) for nbest in lists}

    def order(nbest: NbestList) -> tuple[str, str, float, str]:
        when = occasions[nbest.id]
        clock = "" if config.client in _ONE_CLOCK else when.recording
        return whose[nbest.id], clock, when.start, nbest.id

    return [
        Turn(nbest.id, whose[nbest.id], nbest.speaker, config.client)
        for nbest in sorted(lists, key=order)
    ]


def table_1(timeline: Sequence[Turn], lists: Sequence[NbestList]) -> dict[str, int]:
    """Counts of a corpus as in table 1 of [liu2020]: clients, users, utterances, spoken words.

    >>> table_1([Turn("u", "c", "s", "part")], [NbestList("u", "test", "s", "hi there", True, ())])
    {'clients': 1, 'users': 1, 'utterances': 1, 'words': 2}
    """
    return {
        "clients": len({turn.client for turn in timeline}),
        "users": len({turn.user for turn in timeline}),
        "utterances": len(timeline),
        "words": sum(len(nbest.ref.split()) for nbest in lists),
    }


def write_timeline(path: Path, timeline: Sequence[Turn], lists: Sequence[NbestList]) -> None:
    """Write a timeline, with the number of words that were said."""
    words = {nbest.id: len(nbest.ref.split()) for nbest in lists}
    write_jsonl(path, ({**vars(turn), "ref_words": words[turn.id]} for turn in timeline))


def read_timeline(path: Path) -> list[Turn]:
    """Read a timeline.

    Raises:
        DataError: with its line: what ``prepare_fmp`` does not write; or several kinds of client.
    """
    turns = []
    for number, record in enumerate(read_jsonl(path), start=1):
        place, way_out = f"{path}:{number}", "make it again with prepare_fmp"
        if isinstance(record, dict) and "kind" not in record:
            expected = "the kind of the client"
            raise DataError(place, expected, "a timeline of an earlier version", way_out)
        *names, user = (record.get(name) for name in ("id", "client", "kind", "user"))
        if not all(isinstance(name, str) and name for name in names) or user is None:
            raise DataError(place, "id, client, kind and user", str(record)[:60], way_out)
        name, client, kind = names
        turns.append(Turn(name, client, str(user), kind))
    kind_of(turns, str(path))
    return turns
