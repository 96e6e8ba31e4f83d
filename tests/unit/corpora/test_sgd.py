"""Dialogues with an assistant: a user each, slots that are names as gold entities."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from privasr_k2.corpora.base import CorpusInput
from privasr_k2.corpora.prepare import prepare
from privasr_k2.corpora.sgd import CORPUS, entities, read
from privasr_k2.data.manifests import load_cuts
from privasr_k2.errors import DataError
from tests.support.conf import section

LAYERS = (section("sgd"),)
TEXT = "Is  there one in San Jose, at 17:30?"


def given(raw: Path, **options: str) -> CorpusInput:
    return CorpusInput(raw, raw.parent / "data" / "manifests", options, LAYERS, num_jobs=1)


def dialogue(name: str, *turns: tuple[str, list[Any]]) -> dict[str, Any]:
    return {
        "dialogue": name,
        "services": ["Hotels_1"],
        "turns": [{"text": text, "slots": slots} for text, slots in turns],
    }


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "sgd"
    folder.mkdir()
    slots = [[TEXT.index("San"), TEXT.index(","), "city"], [30, 35, "time"]]
    write(folder / "train.jsonl.gz", [dialogue("1_0", (TEXT, slots), ("Thanks", []))])
    for role in ("dev", "test"):
        write(
            folder / f"{role}.jsonl.gz", [dialogue("1_0", ("Call Ann", [[5, 8, "contact_name"]]))]
        )
    return folder


def write(path: Path, dialogues: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(one) + "\n" for one in dialogues)
    path.write_bytes(gzip.compress(text.encode()))


def test_users_and_names(raw: Path) -> None:
    about = prepare(CORPUS, given(raw))
    assert {role: of["speakers"] for role, of in about["roles"].items()} == {
        "train": 1,
        "dev": 1,
        "test": 1,
    }
    first, second = (
        cut.supervisions[0] for cut in load_cuts(raw.parent / "data/manifests", "train")
    )
    assert first.text == "is there one in san jose at seventeen thirty"
    assert first.custom["entities"] == [[4, 6, "LOC"]] and second.custom["entities"] == []
    [of_test] = load_cuts(raw.parent / "data/manifests", "test")
    assert of_test.supervisions[0].custom["entities"] == [[1, 2, "PER"]]
    # One dialogue's id stands in three parts: three users.
    assert first.speaker != of_test.supervisions[0].speaker


def test_characters_become_tokens() -> None:
    text = "a (Big  Sur)"
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            touched = [
                number
                for number, token in enumerate(("a", "(Big", "Sur)"))
                if start < text.index(token) + len(token) and end > text.index(token)
            ]
            expected = [[touched[0], touched[-1] + 1, "LOC"]] if touched else []
            assert entities(text, [(start, end, "LOC")]) == expected
    assert entities(text, [(2, 12, "LOC"), (8, 11, "PER")]) == [[1, 3, "LOC"]]


def test_bad_lines(raw: Path) -> None:
    outside = dialogue("1_1", ("Yes", [[0, 9, "city"]]))
    write(raw / "dev.jsonl.gz", [outside, {"dialogue": "1_2"}])
    with pytest.raises(DataError, match=r"2 x malformed line(.|\n)*dev.jsonl.gz:1(.|\n)*:2"):
        read(given(raw))
    (raw / "dev.jsonl.gz").unlink()
    with pytest.raises(DataError, match="no dev"):
        read(given(raw))
