"""The text of clients: files, bad lines, devices by Zipf's law, and what confidences weigh."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privasr_k2.errors import DataError
from privasr_k2.federated.clients import (
    ClientFile,
    ClientText,
    DeviceConfig,
    Utterance,
    clients_of,
    read_clients,
    table,
    write_clients,
    zipf_labels,
)
from privasr_k2.federated.weighting import Weighting, prepare, symbol_weights
from privasr_k2.fileio import write_jsonl
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList
from tests.support.fed_small import VOCABULARY, made_clients

GOOD = {"client": "a", "unit": "speaker", "speaker": "s-a", "id": "u", "words": "w1 w2"}
GOOD |= {"num_words": 2, "confidences": [0.5, 1]}
DEVICES = DeviceConfig(client="zipf", devices=50, exponent=1.0, text="hyp", seed=1)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    clients = made_clients(5)
    write_clients(tmp_path / "clients.jsonl.gz", reversed(clients))
    assert read_clients(tmp_path / "clients.jsonl.gz") == clients


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"confidences": [0.5]}, "each of 2 words"),
        ({"confidences": [0.5, 1.5]}, "from 0 to 1"),
        ({"confidences": [0.5, float("nan")]}, "from 0 to 1"),
        ({"confidences": [0.5, True]}, "from 0 to 1"),
        ({"num_words": 3}, "num_words 2"),
        ({"words": None}, "'words'"),
        ({"client": 3}, "'client'"),
        ({"speaker": None}, "'speaker'"),
        ({"unit": "device"}, "one unit in a file"),
        ({"unit": "utterance"}, "a unit, one of"),
        ({"words": "", "num_words": 0, "confidences": None}, "client 'a'"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    other = {**GOOD, "client": "b", "speaker": "s-b", "id": "v"}
    path = tmp_path / "clients.jsonl"
    write_jsonl(path, [other, {**GOOD, **change}])
    with pytest.raises(DataError, match=message) as caught:
        read_clients(path)
    assert caught.value.place.startswith(f"{path}:2")


def test_a_file_of_an_earlier_version_is_made_again(tmp_path: Path) -> None:
    old = {key: GOOD[key] for key in ("client", "id", "words", "num_words", "confidences")}
    write_jsonl(tmp_path / "clients.jsonl", [old])
    with pytest.raises(DataError, match="make it again with make_clients"):
        read_clients(tmp_path / "clients.jsonl")


@pytest.mark.parametrize(
    "other",
    [
        {"client": "b"},  # one person, two clients
        {"speaker": "s-b"},  # two persons, one client
    ],
)
def test_where_the_unit_is_a_person_every_client_is_one(
    tmp_path: Path, other: dict[str, str]
) -> None:
    path = tmp_path / "clients.jsonl"
    write_jsonl(path, [GOOD, {**GOOD, "id": "v", **other}])
    with pytest.raises(DataError, match="a client for each speaker"):
        read_clients(path)
    write_jsonl(path, [{**line, "unit": "device"} for line in (GOOD, {**GOOD, "id": "v", **other})])
    assert {client.unit for client in read_clients(path)} == {"device"}


@pytest.mark.parametrize(
    "text", ["", "3\n", "{\n", json.dumps(GOOD) + "\n" + json.dumps(GOOD) + "\n"]
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "clients.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError):
        read_clients(path)


def test_a_sorted_file_is_read_a_client_at_a_time(tmp_path: Path) -> None:
    """What read_clients says of it, and its refusals; a loop begins anew."""
    path, clients = tmp_path / "clients.jsonl.gz", made_clients(7)
    write_clients(path, clients)
    file = ClientFile(path)
    assert [*file] == read_clients(path) == [*file] == clients
    assert next(iter(file)) == clients[0] and table(file) == table(clients)
    write_clients(path, reversed(clients))
    with pytest.raises(DataError, match="the order of their names"):
        list(file)
    lines = [{**GOOD, "client": name, "speaker": name, "id": name} for name in "abc"]
    write_jsonl(path, [*lines, {**lines[2], "id": "a"}])
    for read in (lambda: [*file], lambda: read_clients(path)):
        with pytest.raises(DataError, match=r"every utterance once, found a again") as caught:
            read()
        assert caught.value.place == f"{path}:4"


def test_devices_follow_zipf() -> None:
    names = [f"u{number}" for number in range(20_000)]
    labels = zipf_labels(names, DEVICES)
    counts = np.array([labels.count(f"device-{n:02}") for n in (1, 2, 10)])
    shares = np.array([1, 1 / 2, 1 / 10]) / np.sum(1 / np.arange(1, 51))
    assert np.abs(counts / 20_000 - shares).max() < 0.01
    assert labels[5:] == zipf_labels(names[5:], DEVICES)  # nobody else is dealt again
    assert labels != zipf_labels(names, replace(DEVICES, seed=2))


def test_clients_of_lists() -> None:
    lists = [
        NbestList(name, "dev", speaker, "w1", not words, hyps)
        for name, speaker, words in (("u2", "s", "w2 w3"), ("u1", "s", "w1"), ("u3", "t", ""))
        for hyps in [(Hypothesis(1, words, 0.0, {}, (0.5,) * len(words.split())),) if words else ()]
    ]
    config = replace(DEVICES, client="speaker")
    [client] = clients_of(lists, config)
    first = Utterance("u1", ("w1",), (0.5,), "s")
    expected = first, Utterance("u2", ("w2", "w3"), (0.5, 0.5), "s")
    assert client.utterances == expected
    assert [c.num_words for c in clients_of(lists, replace(config, text="ref"))] == [2, 1]
    assert table([client])["words"] == 3
    with pytest.raises(DataError):
        clients_of(lists[2:], config)


def test_weights_of_symbols() -> None:
    utterance = Utterance("u", ("a", "b"), (0.25, 0.75), "s")
    weights = {"all": [1] * 3, "hard": [1] * 3, "utterance": [0.5] * 3, "token": [0.25, 0.75, 0.5]}
    assert {use: symbol_weights(utterance, use).tolist() for use in weights} == weights


def test_hard_threshold_leaves_sentences_out() -> None:
    clients = made_clients(6)
    found = prepare(clients, VOCABULARY, Weighting("hard", 0.5))
    for client, data in zip(clients, found, strict=True):
        means = [np.mean(utterance.confidences) for utterance in client.utterances]
        assert len(data.text) == sum(mean >= 0.5 for mean in means)
        assert data.num_words == len(data.text.words)
    assert len(prepare(clients, VOCABULARY, Weighting("hard", 1.0))[0].text) == 0


def test_ways_need_confidences() -> None:
    bare = [ClientText("c", (Utterance("u", ("w1",), None, "s"),), "device")]
    prepare(bare, VOCABULARY, Weighting("all", 0.5))
    for way in ("hard", "utterance", "token"):
        with pytest.raises(DataError, match="confidences"):
            prepare(bare, VOCABULARY, Weighting(way, 0.5))
