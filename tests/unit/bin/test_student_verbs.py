"""train_student from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.am.checkpoints import load_recognizer
from privasr_k2.data.manifests import load_cuts
from privasr_k2.fileio import read_json, write_jsonl
from tests.support.conf import section
from tests.support.end_to_end import spelled_lang
from tests.support.small_am import write_corpus
from tests.support.verbs import call, refused

SHORT = ["epochs=1", "avg=1", "encoder.tdnn.dim=8", "encoder.tdnn.dilations=[1]", "max_duration=9"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    feats, lang = write_corpus(tmp_path / "data", utterances=6)
    spelled_lang(lang)
    records = [
        {"id": cut.id, "hyps": [{"text": "CA", "weight": 0.75}, {"text": "cab", "weight": 0.25}]}
        for cut in list(load_cuts(feats, "train"))[:2]
    ]
    write_jsonl(tmp_path / "labels.jsonl", records)
    hyps = [{"rank": 1, "words": "AB", "am_score": -0.5, "lm_scores": {}}]
    lists = [
        {"id": cut.id, "part": "", "speaker": "s", "ref": "", "no_path": False, "hyps": hyps}
        for cut in load_cuts(feats, "train")
    ]
    write_jsonl(tmp_path / "nbest" / "1.jsonl", lists)
    return tmp_path


def flags(folder: Path) -> list[object]:
    feats, lang = folder / "data" / "feats", folder / "data" / "lang"
    given = (
        f"--in-public-pool {feats} --in-labels {folder}/labels.jsonl --in-public-feats {feats}"
    ).split()
    out = ["--in-public-lang", lang, "--out-dir", folder / "out", "--device", "cpu", "--config"]
    files = [section("am_ctc"), section("am_ctc", "tiny"), section("student")]
    return [*given, *out, *files, "--set", *SHORT, "student.pool_role=train"]


def test_a_student(folder: Path) -> None:
    more = ["student.unlabeled_data=[none,self_training]", "student.unanswered.min_confidence=1.0"]
    call("train_student", *flags(folder), *more, "--in-public-nbest", folder / "nbest")
    about = read_json(folder / "out" / "student.json")
    assert about["candidates"]["self_training"]["utterances"] == {
        "pool": 6, "answered": 2, "answered_used": 2, "unanswered_used": 4, "labelled_used": 0,
    }  # fmt: skip
    assert load_recognizer(folder / "out").num_tokens == 5
    call("train_student", *flags(folder), "--in-public-init", folder / "out")
    assert read_json(folder / "out" / "student.json")["unlabeled_data"] == "none"


def test_guesses_alone(folder: Path) -> None:
    given = flags(folder)
    at = given.index("--in-labels")
    more = [
        "student.unlabeled_data=[self_training]",
        "student.unanswered.min_confidence=1.0",
        f"--in-public-nbest {folder}/nbest",
    ]
    call("train_student", *given[:at], *given[at + 2 :], *more)
    found = read_json(folder / "out" / "student.json")["candidates"]["self_training"]["utterances"]
    assert (found["answered"], found["unanswered_used"]) == (0, 6)


def test_a_student_that_cannot_be_trained(folder: Path) -> None:
    for more, message in (
        (["student.unlabeled_data=[self_training]"], "--in-public-nbest"),
        (["student.labeled_role=train"], "utterances that are not in the pool"),
        (["student.unlabeled_data=[some]"], "student.unlabeled_data must be"),
        (["student.pool_role=pool"], "the cuts of the role 'pool'"),
    ):
        with refused(message):
            call("train_student", *flags(folder), *more)
    (folder / "labels.jsonl").write_text(json.dumps({"id": "other", "hyps": []}) + "\n")
    with refused("different hypotheses"):
        call("train_student", *flags(folder))
    assert not (folder / "out").exists()
