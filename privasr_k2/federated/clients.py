"""The text of clients: first-pass transcripts of each device, a JSON object a line.

    {"client": "s1", "id": "u1", "words": "we went", "num_words": 2, "confidences": [0.9, 0.8]}

A client is the unit of a guarantee: a speaker, a speaker in a call, or a device to which utterances
were dealt by Zipf's law [liu2021, section 3.2].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from privasr_k2.constraints import Checked, Count, NotNegative, one_of
from privasr_k2.errors import DataError
from privasr_k2.fileio import parse_record, read_lines, write_jsonl
from privasr_k2.randomness import stream
from privasr_k2.scoring.nbest_lists import NbestList

_REPAIR = "make the file again with make_clients, or correct the line"


@dataclass(frozen=True)
class Utterance:
    """One transcript: the best hypothesis, and P(right) of each word where known."""

    id: str
    words: tuple[str, ...]
    confidences: tuple[float, ...] | None


@dataclass(frozen=True)
class ClientText:
    """One device's utterances in the order of the file; at least one has words."""

    name: str
    utterances: tuple[Utterance, ...]

    @property
    def num_words(self) -> int:
        """Words of all utterances."""
        return sum(len(utterance.words) for utterance in self.utterances)


@dataclass(frozen=True)
class DeviceConfig(Checked):
    """How utterances become clients; see ``conf/fedlm.yaml#clients``."""

    client: Annotated[str, one_of("speaker", "zipf")]
    devices: Count
    exponent: NotNegative
    text: Annotated[str, one_of("hyp", "ref")]
    seed: int


def zipf_labels(count: int, config: DeviceConfig) -> list[str]:
    """A device for each of ``count`` utterances, drawn by Zipf's law.

    >>> zipf_labels(3, DeviceConfig(client="zipf", devices=1, exponent=1.0, text="hyp", seed=1))
    ['device-1', 'device-1', 'device-1']
    """
    shares = np.arange(1, config.devices + 1, dtype=np.float64) ** -config.exponent
    generator, shares = stream(config.seed, "devices"), shares / shares.sum()
    drawn = generator.choice(config.devices, size=count, p=shares)
    width = len(str(config.devices))
    return [f"device-{number + 1:0{width}}" for number in drawn.tolist()]


def clients_of(lists: Sequence[NbestList], config: DeviceConfig) -> list[ClientText]:
    """The clients of N-best lists, sorted by name; utterances without words are left out.

    Raises:
        DataError: nothing is left.
    """
    ordered = sorted(lists, key=lambda utterance: utterance.id)
    speakers = [utterance.speaker for utterance in ordered]
    names = zipf_labels(len(ordered), config) if config.client == "zipf" else speakers
    return group(zip(names, (_transcript(utterance, config.text) for utterance in ordered)))


def group(utterances: Iterable[tuple[str, Utterance]]) -> list[ClientText]:
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
    return [ClientText(name, tuple(of_client[name])) for name in sorted(of_client)]


def write_clients(path: Path, clients: Iterable[ClientText]) -> None:
    """Write the text of clients, whole or not at all."""
    write_jsonl(
        path,
        (
            {
                "client": client.name,
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
            client without words; or no client.
    """
    by_client: dict[str, list[Utterance]] = {}
    places: dict[str, str] = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        client, utterance = _parsed(place, parse_record(line, place, way_out=_REPAIR))
        if utterance.id in places:
            found = f"{utterance.id} again, as in {places[utterance.id]}"
            raise DataError(place, "every utterance once", found, _REPAIR)
        places[utterance.id] = place
        by_client.setdefault(client, []).append(utterance)
    if not by_client:
        raise DataError(path, "an utterance a line", "none", _REPAIR)
    for client, utterances in by_client.items():
        if not any(utterance.words for utterance in utterances):
            place, found = places[utterances[0].id], f"{len(utterances)} transcripts without words"
            raise DataError(
                f"{place}: client {client!r}", "at least one word", found, "leave it out"
            )
    return group((name, utterance) for name in by_client for utterance in by_client[name])


def table(clients: Sequence[ClientText]) -> dict[str, Any]:
    """The figures of Table 1 [liu2021]: clients, utterances, words, and their spread."""
    words = np.array([client.num_words for client in clients])
    utterances = np.array([len(client.utterances) for client in clients])
    return {
        "clients": len(clients),
        "utterances": int(utterances.sum()),
        "words": int(words.sum()),
        "median_utterances": float(np.median(utterances)),
        "largest_utterances": int(utterances.max()),
        "median_words": float(np.median(words)),
        "largest_words": int(words.max()),
    }


def _transcript(nbest: NbestList, text: str) -> Utterance:
    if text == "ref":
        return Utterance(nbest.id, tuple(nbest.ref.split()), None)
    if not nbest.hyps:
        return Utterance(nbest.id, (), None)
    return Utterance(nbest.id, tuple(nbest.hyps[0].words.split()), nbest.hyps[0].confidences)


def _parsed(place: str, record: Mapping[str, Any]) -> tuple[str, Utterance]:
    for key in ("client", "id", "words"):
        if not isinstance(record.get(key), str):
            raise DataError(place, f"text for the key {key!r}", repr(record.get(key))[:60], _REPAIR)
    words = tuple(record["words"].split())
    if record.get("num_words") != len(words):
        raise DataError(
            place, f"num_words {len(words)}", str(record.get("num_words"))[:60], _REPAIR
        )
    values = record.get("confidences")
    if values is None:
        return record["client"], Utterance(record["id"], words, None)
    if not isinstance(values, list) or len(values) != len(words):
        found = f"{len(values)}" if isinstance(values, list) else repr(values)[:60]
        raise DataError(place, f"confidences for each of {len(words)} words", found, _REPAIR)
    for word, value in zip(words, values):
        inside = type(value) in (int, float) and 0 <= value <= 1
        if not inside:
            raise DataError(
                place, "confidences from 0 to 1", f"{value!r} of {word!r}"[:60], _REPAIR
            )
    return record["client"], Utterance(record["id"], words, tuple(float(value) for value in values))
