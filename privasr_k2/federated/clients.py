"""The text of clients: first-pass transcripts of each device, a JSON object a line.

    {"client": "d1", "unit": "device", "speaker": "s1", "id": "u1", "words": "we went",
     "num_words": 2, "confidences": [0.9, 0.8]}

A client is the unit of a guarantee: a speaker, a speaker in a call, or a device to which utterances
were dealt by Zipf's law [liu2021, section 3.2]. The file says which, and who spoke.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from privasr_k2.constraints import Checked, Count, NotNegative, one_of
from privasr_k2.errors import DataError
from privasr_k2.fileio import parse_record, read_lines, write_jsonl
from privasr_k2.privacy.people import People
from privasr_k2.randomness import stream
from privasr_k2.scoring.hypotheses import Decoded
from privasr_k2.scoring.nbest_lists import NbestList

_REPAIR = "make the file again with make_clients, or correct the line"
#: What a client can be: units of guarantees that hold whole utterances.
CLIENT_UNITS = ("call", "document", "meeting", "device", "speaker", "user")
_PERSONS = ("speaker", "user")
#: ``DeviceConfig.client`` -> the unit.
_UNITS = {"speaker": "speaker", "zipf": "device", "devices": "device"}


@dataclass(frozen=True)
class Utterance:
    """One transcript: the best hypothesis, P(right) of each word where known, and who spoke."""

    id: str
    words: tuple[str, ...]
    confidences: tuple[float, ...] | None
    speaker: str


@dataclass(frozen=True)
class ClientText:
    """One client's utterances in the order of the file; of a file at least one has words.

    Attributes:
        unit: what a client is, one of :data:`CLIENT_UNITS`; the same for all clients of a file.
    """

    name: str
    utterances: tuple[Utterance, ...]
    unit: str

    @property
    def num_words(self) -> int:
        """Words of all utterances."""
        return sum(len(utterance.words) for utterance in self.utterances)


@dataclass(frozen=True)
class DeviceConfig(Checked):
    """How utterances become clients; see ``conf/fedlm.yaml#clients``."""

    client: Annotated[str, one_of(*_UNITS)]
    devices: Count
    exponent: NotNegative
    text: Annotated[str, one_of("hyp", "ref")]
    seed: int


def zipf_labels(names: Iterable[str], config: DeviceConfig) -> list[str]:
    """A device for each of some utterances or speakers, drawn by Zipf's law.

    Each draw depends on the seed and the name alone: without one name the others stay.

    >>> config = DeviceConfig(client="zipf", devices=9, exponent=1.0, text="hyp", seed=1)
    >>> zipf_labels(["u1", "u2"], config)[1:] == zipf_labels(["u2"], config)
    True
    """
    shares = np.arange(1, config.devices + 1, dtype=np.float64) ** -config.exponent
    bounds, width = np.cumsum(shares / shares.sum())[:-1], len(str(config.devices))
    drawn = [stream(config.seed, "devices", name).random() for name in names]
    return [f"device-{number + 1:0{width}}" for number in bounds.searchsorted(drawn, "right")]


def clients_of(lists: Sequence[NbestList], config: DeviceConfig) -> list[ClientText]:
    """The clients of N-best lists, sorted by name; utterances without words are left out.

    Raises:
        DataError: nothing is left.
    """
    ordered = sorted(lists, key=lambda utterance: utterance.id)
    names = [nbest.id if config.client == "zipf" else nbest.speaker for nbest in ordered]
    clients = names if config.client == "speaker" else zipf_labels(names, config)
    transcripts = (_transcript(utterance, config.text) for utterance in ordered)
    return group(zip(clients, transcripts), _UNITS[config.client])


def selected(lists: Iterable[NbestList], decoded: Decoded) -> list[NbestList]:
    """The lists with the hypothesis alone that rescoring chose.

    Raises:
        DataError: an utterance that was not rescored, or rescored in other lists; or hypotheses of
            several weights.
    """
    way_out = "select from the same lists with select_nbest"
    if len(decoded.grid) > 1:
        found = f"those of {len(decoded.grid)} weights"
        raise DataError(decoded.place, "one hypothesis an utterance", found, way_out)
    chosen = {said.id: " ".join(said.hyp(decoded.grid[0])) for said in decoded.utterances}
    found_lists = []
    for nbest in lists:
        if nbest.id not in chosen:
            raise DataError(decoded.place, f"utterance {nbest.id}", "none", way_out)
        hyps = tuple(hyp for hyp in nbest.hyps if hyp.words == chosen[nbest.id])
        if not hyps and chosen[nbest.id]:
            place = f"{decoded.place}, utterance {nbest.id}"
            raise DataError(place, "a hypothesis of its list", chosen[nbest.id][:60], way_out)
        found_lists.append(replace(nbest, hyps=hyps))
    return found_lists


def group(utterances: Iterable[tuple[str, Utterance]], unit: str) -> list[ClientText]:
    """Clients from utterances with their client's name, in order; those without words are left out.

    Raises:
        DataError: nothing is left.
    """
    of_client: dict[str, list[Utterance]] = {}
    for name, utterance in utterances:
        if utterance.words:
            of_client.setdefault(name, []).append(utterance)
    if not of_client:
        raise DataError("the clients", "utterances with words", "none", "decode them again")
    return [ClientText(name, tuple(of_client[name]), unit) for name in sorted(of_client)]


@dataclass(frozen=True)
class ListedClients:
    """Clients of a public list: one of whom there is no text is a client without utterances.

    Their number, by which sums are divided, then depends on no text.

    Args:
        clients: sorted by name; read anew by every loop.
        names: of all clients, sorted.

    >>> anna = ClientText("anna", (Utterance("u", ("hi",), None, "anna"),), "speaker")
    >>> [client.num_words for client in ListedClients([anna], ("anna", "bob"))]
    [1, 0]
    """

    clients: Iterable[ClientText]
    names: Sequence[str]

    def __iter__(self) -> Iterator[ClientText]:
        """All of them.

        Raises:
            DataError: a client that the list lacks.
        """
        left, unit = deque(self.names), ""
        for client in self.clients:
            unit = client.unit
            while left and left[0] < client.name:
                yield ClientText(left.popleft(), (), unit)
            if not left or left.popleft() != client.name:
                expected, way_out = f"every {unit} with text", "complete the roster"
                raise DataError("the roster", expected, f"no {client.name}", way_out)
            yield client
        for name in left:
            yield ClientText(name, (), unit)


def people_of(clients: Iterable[ClientText], source: Path | str) -> People:
    """The speakers behind clients; a listed person without text is one, too.

    Raises:
        DataError: an utterance without a speaker.
    """
    pairs = (
        (client.name, name)
        for client in clients
        for name in [said.speaker for said in client.utterances]
        or [client.name] * (client.unit in _PERSONS)
    )
    return People.of(pairs, source=source)


def write_clients(path: Path, clients: Iterable[ClientText]) -> None:
    """Write the text of clients, whole or not at all."""
    write_jsonl(
        path,
        (
            {
                "client": client.name,
                "unit": client.unit,
                "speaker": utterance.speaker,
                "id": utterance.id,
                "words": " ".join(utterance.words),
                "num_words": len(utterance.words),
                "confidences": utterance.confidences,
            }
            for client in clients
            for utterance in client.utterances
        ),
    )


def read_clients(path: Path) -> list[ClientText]:
    """The clients of a file, sorted by name: the order of its lines does not matter.

    Raises:
        DataError: with file and line: no JSON object, a missing or wrong key, a wrong number of
            words or confidences, a confidence outside [0, 1], a second utterance of one id, a
            second unit, a client without words; persons who are not clients of their own, though
            the unit says so; or no client.
    """
    return [*_checked(path, sorted(_lines(path), key=lambda line: line.client))]


@dataclass(frozen=True)
class ClientFile:
    """The clients of a file whose lines are sorted by client, read anew by every loop.

    A client at a time is in memory, and eight bytes for each utterance.
    """

    path: Path

    def __iter__(self) -> Iterator[ClientText]:
        """The clients.

        Raises:
            DataError: as :func:`read_clients`, a second utterance of one id after the last client;
                or lines in another order.
        """
        return _checked(self.path, _in_order(_lines(self.path)))


@dataclass(frozen=True)
class _Line:
    place: str
    client: str
    unit: str
    said: Utterance


def _lines(path: Path) -> Iterator[_Line]:
    """The lines of a file, each checked by itself, and their unit."""
    unit = ""
    for number, line in read_lines(path):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        record = parse_record(line, place, way_out=_REPAIR)
        client, said = _parsed(place, record)
        unit = _checked_unit(place, record["unit"], unit)
        yield _Line(place, client, unit, said)


def _in_order(lines: Iterable[_Line]) -> Iterator[_Line]:
    before = ""
    for line in lines:
        if line.client < before:
            found, way_out = f"{line.client!r} after {before!r}", "sort the lines by client"
            raise DataError(line.place, "clients in the order of their names", found, way_out)
        before = line.client
        yield line


def _checked(path: Path, lines: Iterable[_Line]) -> Iterator[ClientText]:
    """The clients of sorted lines. Ids are compared as digests of eight bytes, at the end."""
    ids, client_of, unit = array("Q"), {}, ""
    for name, of_client in groupby(lines, key=lambda line: line.client):
        own = [*of_client]
        said, unit = tuple(line.said for line in own), own[0].unit
        if not any(one.words for one in said):
            place, found = own[0].place, f"{len(own)} transcripts without words"
            raise DataError(f"{place}: client {name!r}", "at least one word", found, "leave it out")
        ids.extend(_digest(one.id) for one in said)
        if unit in _PERSONS:
            _check_person(path, name, {one.speaker for one in said}, client_of, unit)
        yield ClientText(name, tuple(one for one in said if one.words), unit)
    if not unit:
        raise DataError(path, "an utterance a line", "none", _REPAIR)
    values, counts = np.unique(np.frombuffer(ids, dtype=np.uint64), return_counts=True)
    if len(values) < len(ids):
        again = set(values[counts > 1].tolist())
        line = [one for one in _lines(path) if _digest(one.said.id) in again][-1]
        found = f"{line.said.id} again"
        raise DataError(line.place, "every utterance once", found, _REPAIR)


def _digest(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def _checked_unit(place: str, unit: str, before: str) -> str:
    if unit not in CLIENT_UNITS:
        raise DataError(place, f"a unit, one of {', '.join(CLIENT_UNITS)}", repr(unit), _REPAIR)
    if before and unit != before:
        found = f"{unit} after {before}"
        raise DataError(place, "one unit in a file of clients", found, "make one file of each")
    return unit


def _check_person(
    path: Path, client: str, speakers: set[str], client_of: dict[str, str], unit: str
) -> None:
    """Else a guarantee for a client would be taken for one for a person."""
    others = [client_of.setdefault(speaker, client) for speaker in sorted(speakers)]
    if len(speakers) > 1 or others != [client]:
        found = f"client {client!r} of {' '.join(sorted(speakers)[:3])}"
        found += "" if others[0] == client else f", who is client {others[0]!r}, too"
        expected = f"a client for each {unit}, as the unit is {unit}"
        raise DataError(path, expected, found, "make the file again with make_clients")


def table(clients: Iterable[ClientText]) -> dict[str, Any]:
    """The figures of Table 1 [liu2021]: clients, utterances, words, and their spread."""
    sizes = np.array([(len(client.utterances), client.num_words) for client in clients])
    utterances, words = sizes.T
    return {
        "clients": len(sizes),
        "utterances": int(utterances.sum()),
        "words": int(words.sum()),
        "median_utterances": float(np.median(utterances)),
        "largest_utterances": int(utterances.max()),
        "median_words": float(np.median(words)),
        "largest_words": int(words.max()),
    }


def _transcript(nbest: NbestList, text: str) -> Utterance:
    if text == "ref":
        return Utterance(nbest.id, tuple(nbest.ref.split()), None, nbest.speaker)
    if not nbest.hyps:
        return Utterance(nbest.id, (), None, nbest.speaker)
    best = nbest.hyps[0]
    return Utterance(nbest.id, tuple(best.words.split()), best.confidences, nbest.speaker)


def _parsed(place: str, record: Mapping[str, Any]) -> tuple[str, Utterance]:
    if not {"unit", "speaker"} & record.keys():
        expected = "the unit and the speaker: what a client is, and who spoke"
        found, way_out = "a file of an earlier version", "make it again with make_clients"
        raise DataError(place, expected, found, way_out)
    for key in ("client", "unit", "speaker", "id", "words"):
        if not isinstance(record.get(key), str):
            raise DataError(place, f"text for the key {key!r}", repr(record.get(key))[:60], _REPAIR)
    words = tuple(record["words"].split())
    if record.get("num_words") != len(words):
        raise DataError(
            place, f"num_words {len(words)}", str(record.get("num_words"))[:60], _REPAIR
        )
    values = record.get("confidences")
    if values is None:
        return record["client"], Utterance(record["id"], words, None, record["speaker"])
    if not isinstance(values, list) or len(values) != len(words):
        found = f"{len(values)}" if isinstance(values, list) else repr(values)[:60]
        raise DataError(place, f"confidences for each of {len(words)} words", found, _REPAIR)
    for word, value in zip(words, values):
        inside = type(value) in (int, float) and 0 <= value <= 1
        if not inside:
            raise DataError(
                place, "confidences from 0 to 1", f"{value!r} of {word!r}"[:60], _REPAIR
            )
    confidences = tuple(float(value) for value in values)
    return record["client"], Utterance(record["id"], words, confidences, record["speaker"])
