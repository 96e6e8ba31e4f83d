"""Names of dialogues that no text of train has."""

from __future__ import annotations

import gzip
import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from privasr_k2.corpora.base import CorpusInput
from privasr_k2.corpora.prepare import prepare
from privasr_k2.corpora.sgd_names import CORPUS
from privasr_k2.data.manifests import load_cuts
from privasr_k2.errors import DataError
from tests.support.conf import section

LAYERS = (section("sgd_names"),)
CITIES = [f"{first} {last}" for first, last in product(("Big", "Old", "San"), ("Sur", "Jose"))]


def said(text: str, *names: str) -> dict[str, Any]:
    places = [(text.index(name), text.index(name) + len(name)) for name in names]
    return {"text": text, "slots": [[start, end, "city"] for start, end in places]}


def write(folder: Path, **roles: list[list[dict[str, Any]]]) -> Path:
    folder.mkdir()
    for role, dialogues in roles.items():
        lines = (
            json.dumps({"dialogue": f"{number}", "services": [], "turns": turns})
            for number, turns in enumerate(dialogues)
        )
        (folder / f"{role}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return folder


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """In train every city has two users; one of them says it again without annotation."""
    train = [[said(f"Go to {city}.", city), said("Thanks.")] for city in CITIES]
    train += [[said(f"I like {city}'s sun.", f"{city}'s")] for city in CITIES]
    of_dev = [[said("In Lima?", "Lima")], [said("In Big Sur?", "Big Sur")]]
    of_test = [[said("To Oslo.", "Oslo"), said("Yes.")], [said("To San Jose.", "San Jose")]]
    return write(tmp_path / "sgd", train=train, dev=of_dev, test=of_test)


def texts(raw: Path, share: float, seed: int = 0) -> dict[str, dict[str, set[str]]]:
    """Role -> user -> texts."""
    options = {"held_out_names": f"{share}", "seed": f"{seed}"}
    out = raw.parent / f"{share}_{seed}"
    prepare(CORPUS, CorpusInput(raw, out, options, LAYERS, num_jobs=1))
    found: dict[str, dict[str, set[str]]] = {}
    for role in ("train", "dev", "test"):
        for cut in load_cuts(out, role):
            of = cut.supervisions[0]
            found.setdefault(role, {}).setdefault(of.speaker, set()).add(of.text)
    return found


def test_users_who_say_a_held_out_name_are_all_of_tests(raw: Path) -> None:
    before, after = texts(raw, 0.0), texts(raw, 0.5)
    # Eight names, of which four are held out; Lima and Oslo have no users in train.
    moved = before["train"].keys() - after["train"].keys()
    assert len(moved) in (4, 6, 8) and after["test"].keys() == before["test"].keys() | moved
    assert after["dev"] == before["dev"]
    for user in moved:
        assert after["test"][user] == before["train"][user]
    for city in map(str.lower, CITIES):
        says = [any(city in text for text in of) for of in after["train"].values()]
        assert sum(says) in (0, 2)  # both users of a name or none
    assert texts(raw, 0.5, seed=1) != after


def test_names_that_are_mostly_other_words_are_not_held_out(tmp_path: Path) -> None:
    say = [said("Is Up on?", "Up"), said("Get up and pick me up.")]
    folder = write(
        tmp_path / "sgd",
        train=[say, [said("Go to Rome.", "Rome")]],
        dev=[[said("Hello.")]],
        test=[[said("Hello.")]],
    )
    assert texts(folder, 0.9)["train"].keys() == {"train-0"}


def test_speech_is_about_names_that_train_lacks(raw: Path, monkeypatch: Any) -> None:
    asked: dict[str, list[str]] = {}

    def speak(self: Any, by_role: Any, out_dir: Path, num_jobs: int) -> Any:
        asked.update({role: [c.supervisions[0].text for c in of] for role, of in by_role.items()})
        return by_role

    monkeypatch.setattr("privasr_k2.corpora.spoken_part.SpokenPart.speak", speak)
    given = CorpusInput(raw, raw.parent / "out", {"speech": "synthetic", "held_out_names": "0"},
                        LAYERS, num_jobs=1)  # fmt: skip
    CORPUS.read(given)
    assert asked["dev"] == ["In Lima?"] and asked["test"] == ["To Oslo."]
    assert len(asked["train"]) == 3 * len(CITIES)


def test_no_name_that_train_lacks(tmp_path: Path) -> None:
    one = [[said("In Lima?", "Lima")]]
    raw = write(tmp_path / "sgd", train=one, dev=one, test=one)
    given = CorpusInput(raw, tmp_path / "out", {"speech": "synthetic", "held_out_names": "0"},
                        LAYERS, num_jobs=1)  # fmt: skip
    with pytest.raises(DataError, match="held_out_names"):
        CORPUS.read(given)
