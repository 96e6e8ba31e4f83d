"""Releases about the same people compose, whatever their units, deals and names are called."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from privasr_k2.federated.clients import DeviceConfig, clients_of, write_clients
from privasr_k2.fileio import read_json, read_jsonl, write_jsonl, write_text
from privasr_k2.privacy.accounting import account
from privasr_k2.privacy.ledger import Entry, entries_beside
from privasr_k2.privacy.spending import guarantees
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList, write_nbest
from tests.support.conf import section
from tests.support.fed_small import PRIVATE, VOCABULARY, saved_model
from tests.support.fedlm_verbs import FEDLM
from tests.support.verbs import call, refused

WORDS = VOCABULARY.words[2:]
SPEAKERS = [f"s{number}" for number in range(5)]
#: Three rounds in which each of the clients takes part with a chance of 1 in 5.
TRAINED = (
    "privacy.noise=1.1",
    "rounds=3",
    "client_fraction=0.2",
    "eval_every=0",
    "select_round=last",
)


def said(utterances: int) -> list[NbestList]:
    """Recognized utterances of five speakers."""
    return [
        NbestList(f"{speaker}-{n}", "test", speaker, words, False, (Hypothesis(1, words, -1, {}),))
        for place, speaker in enumerate(SPEAKERS)
        for n in range(utterances)
        for words in [" ".join(WORDS[place + n : place + n + 3])]
    ]


def only_entry(folder: Path) -> Entry:
    """The one release that was entered; its copy is in one folder."""
    [beside] = folder.glob("*/privacy.json")
    [entry] = entries_beside(beside)
    assert [of["release"] for of in read_json(folder / "ledger.json")["entries"]] == [entry.release]
    return entry


@pytest.fixture
def spoken(tmp_path: Path) -> Path:
    """N-best lists, a timeline for each kind of client, and a model."""
    pytest.importorskip("scipy")
    saved_model(tmp_path / "lm")
    lists = said(4)
    write_nbest(tmp_path / "nbest_test" / "1.jsonl", lists)
    for kind, clients in (("speaker", "{}"), ("prefix", "meeting-{}"), ("recording", "call-{}")):
        write_jsonl(
            tmp_path / f"{kind}.jsonl",
            [
                {"id": nbest.id, "client": clients.format(nbest.speaker), "kind": kind,
                 "user": nbest.speaker, "ref_words": 3}
                for nbest in lists
            ],
        )  # fmt: skip
    return tmp_path


def release_fmp(folder: Path, name: str, kind: str, *settings: str) -> None:
    files = f"--in-private-nbest {folder}/nbest_test --in-private-timeline {folder}/{kind}.jsonl"
    files += f" --in-public-lm {folder}/lm --out-release {folder}/{name}/m.safetensors"
    files += f" --out-privacy {folder}/{name}/privacy.json --ledger {folder}/ledger.json"
    config = f"--config {section('fmp_release')} --set data=mini/test rounds=2 epsilon=1"
    call("release_fmp", *files.split(), *config.split(), *settings, "--max-epsilon", 1.05)


ASKED = [("speaker", "user"), ("prefix", "client"), ("recording", "client"), ("speaker", "client")]


@pytest.mark.parametrize("first", range(len(ASKED)))
def test_one_limit_for_all_units_of_the_same_people(spoken: Path, first: int) -> None:
    order = [*ASKED[first:], *ASKED[:first], ("speaker", "utterance")]
    release_fmp(spoken, "first", order[0][0], f"unit={order[0][1]}")
    for number, (kind, unit) in enumerate(order[1:]):
        with refused("--max-epsilon"):
            release_fmp(spoken, f"other{number}", kind, f"unit={unit}")
        with refused("--max-epsilon"):  # the data under another name
            release_fmp(spoken, f"other{number}", kind, f"unit={unit}", "data=another/corpus")
    names = {"speaker": "speaker", "prefix": "meeting", "recording": "call"}
    kind, unit = order[0]
    spending = only_entry(spoken).spending
    assert spending.unit == (names[kind] if unit == "client" else unit)
    assert spending.person_units == 1


def test_a_speaker_in_a_meeting_has_no_guarantee_of_its_own(spoken: Path) -> None:
    """Releases of meetings and of speakers touch it, and neither lies within the other."""
    lines = read_jsonl(spoken / "prefix.jsonl")
    kind = "meeting_speaker"
    write_jsonl(spoken / f"{kind}.jsonl", [{**line, "kind": kind} for line in lines])
    with refused(f"utterance or user where a client is a {kind}"):
        release_fmp(spoken, "one", kind, "unit=client")
    assert not (spoken / "ledger.json").exists()
    release_fmp(spoken, "one", kind, "unit=user")
    assert only_entry(spoken).spending.unit == "user"


@pytest.mark.parametrize(("unit", "now"), [("meeting", "client"), ("speaker", "user")])
def test_units_of_earlier_versions_are_refused_by_name(spoken: Path, unit: str, now: str) -> None:
    with refused(f"unit must be {now} for {unit}"):
        release_fmp(spoken, "old", "speaker", f"unit={unit}")
    assert not (spoken / "ledger.json").exists()


def test_an_utterance_is_a_part_of_its_speaker(spoken: Path) -> None:
    """Four utterances a speaker: the limit is the person's."""
    with refused("--max-epsilon"):
        release_fmp(spoken, "utterance", "speaker", "unit=utterance")
    release_fmp(spoken, "utterance", "speaker", "unit=utterance", "epsilon=0.2")
    assert only_entry(spoken).spending.person_units == 4


def train(folder: Path, name: str, *settings: str, limit: Sequence[object] = ()) -> None:
    files = f"--in-private-clients {folder}/{name}.jsonl.gz --in-public-init {folder}/init"
    files += f" --out-dir {folder}/lm/{name} --out-privacy {folder}/{name}/privacy.json"
    files += f" --ledger {folder}/ledger.json --device cpu --config {FEDLM} --set"
    call("train_fedlm", *files.split(), *PRIVATE, *TRAINED, *settings, *limit)


def deal(folder: Path, name: str, lists: Sequence[NbestList], config: DeviceConfig) -> None:
    write_clients(folder / f"{name}.jsonl.gz", clients_of(lists, config))


ZIPF = DeviceConfig(client="zipf", devices=40, exponent=0.0, text="hyp", seed=3)


def test_deals_of_the_same_people_compose(tmp_path: Path) -> None:
    """Whatever the deal and the data are called."""
    saved_model(tmp_path / "init")
    deal(tmp_path, "devices_40", said(1), ZIPF)
    deal(tmp_path, "devices_41", said(1), replace(ZIPF, devices=41))
    limit = ("--max-epsilon", 3)
    train(tmp_path, "devices_40", "data=mini/adapt/devices_40", limit=limit)
    spending = only_entry(tmp_path).spending
    spent = account(spending.event, spending.relation, spending.delta).value
    assert spending.unit == "device" and 1.5 < spent < 3
    with refused("--max-epsilon"):
        train(tmp_path, "devices_41", "data=mini/adapt/devices_41", limit=limit)
    with refused("--max-epsilon"):
        train(tmp_path, "devices_41", "data=elsewhere", limit=limit)
    assert not (tmp_path / "lm/devices_41").exists()
    only_entry(tmp_path)


def test_a_person_on_many_devices_has_an_epsilon_of_its_own(tmp_path: Path) -> None:
    saved_model(tmp_path / "init")
    deal(tmp_path, "zipf", said(6), ZIPF)
    deal(tmp_path, "speakers", said(6), replace(ZIPF, client="speaker"))
    with refused("--max-epsilon"):
        train(tmp_path, "zipf", limit=("--max-epsilon", 3))
    for name, at_least in (("zipf", 8), ("speakers", 1)):
        train(tmp_path, name)
        [entry] = entries_beside(tmp_path / name / "privacy.json")
        [found] = guarantees([entry.spending])
        assert entry.spending.person_units is not None
        assert entry.spending.person_units >= at_least
        factor = found.person.value / found.epsilon.value
        assert factor == 1 if name == "speakers" else 4 < factor < math.inf


def test_whole_speakers_on_devices() -> None:
    [device] = clients_of(said(2), replace(ZIPF, client="devices", devices=1))
    assert (device.unit, len(device.utterances)) == ("device", 10)
    clients = clients_of(said(2), replace(ZIPF, client="devices"))
    of_speaker = {u.speaker: c.name for c in clients for u in c.utterances}
    assert all(of_speaker[u.speaker] == c.name for c in clients for u in c.utterances)


def test_names_of_mentions_and_of_documents_compose(tmp_path: Path) -> None:
    text = {"text": "call ann", "entities": [[1, 2, "PER"]]}
    said_by = [{"id": name, "user": name, "document": name, **text} for name in SPEAKERS]
    write_jsonl(tmp_path / "text.jsonl", said_by)
    for label in ("per", "loc", "org", "misc"):
        write_text(tmp_path / f"lists/{label}.txt", "ann\nbob\neve\n")

    def sanitize(consistency: str) -> None:
        files = f"--in-private-text {tmp_path}/text.jsonl --in-public-lists {tmp_path}/lists"
        files += f" --out-dir {tmp_path}/{consistency} --ledger {tmp_path}/ledger.json"
        files += f" --out-privacy {tmp_path}/{consistency}_private/privacy.json"
        files += f" --config {section('sanitize')} --set data=mini/train keep_prob=0.3 mentions=1"
        more = f"words_per_mention=1 consistency={consistency} --max-epsilon 1"
        call("sanitize_text", *files.split(), *more.split())

    sanitize("mention")
    spending = only_entry(tmp_path).spending
    spent = account(spending.event, spending.relation, spending.delta).value
    assert 0.5 < spent <= 1 and (spending.unit, spending.person_units) == ("utterance", 1)
    with refused("--max-epsilon"):
        sanitize("document")
    assert not (tmp_path / "document").exists()


def test_unprotected_text_counts_for_its_speakers(tmp_path: Path) -> None:
    """Whatever its data are called; other people are not concerned."""
    saved_model(tmp_path / "init")
    deal(tmp_path, "speakers", said(1), replace(ZIPF, client="speaker"))
    write_jsonl(tmp_path / "others.jsonl", [{"id": "u", "user": "somebody else", "text": "hi"}])
    write_jsonl(tmp_path / "text.jsonl", [{"id": "u", "user": SPEAKERS[0], "text": "hi"}])

    def declare(name: str) -> None:
        files = f"--in-private-text {tmp_path}/{name}.jsonl --ledger {tmp_path}/ledger.json"
        files += f" --out-privacy {tmp_path}/{name}_private/privacy.json"
        files += f" --config {section('declare_unprotected')} --set data=some/name purpose=lm"
        call("declare_unprotected", *files.split())

    declare("others")
    train(tmp_path, "speakers", limit=("--max-epsilon", 3))
    declare("text")
    with refused("--max-epsilon"):
        train(tmp_path, "speakers", "seed=2", limit=("--max-epsilon", 3))
