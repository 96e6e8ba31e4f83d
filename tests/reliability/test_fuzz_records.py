"""Damaged JSON: a value or a clear error, never a traceback, and nothing is written."""

from __future__ import annotations

import functools
import gzip
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privasr_k2.federated.clients import read_clients
from privasr_k2.federated.fmp_timeline import read_occasions, read_timeline
from privasr_k2.fileio import read_json
from privasr_k2.privacy.lineage import lineage
from privasr_k2.recipe import plan, stamps
from privasr_k2.recipe.fingerprint import Fingerprint, HashCache
from privasr_k2.recipe.history import stamps_below
from privasr_k2.recipe.lock import hold
from privasr_k2.scoring.corpus_info import read_corpus_info
from privasr_k2.scoring.hypotheses import read_cut_ids, read_decoded
from privasr_k2.scoring.nbest_formats import read_references
from privasr_k2.scoring.nbest_lists import read_nbest
from privasr_k2.text.tagged_files import read_tagged
from tests.support.fuzz_tools import (
    DAMAGE,
    Files,
    check,
    damaged,
    few,
    folder_of,
    is_refused,
    jsonl,
    outcome,
)

pytestmark = [pytest.mark.reliability, pytest.mark.timeout(300)]


def hyp(rank: int, words: str) -> dict[str, Any]:
    """A hypothesis with all that it may have."""
    number = len(words.split())
    return {
        "rank": rank,
        "words": words,
        "am_score": -12.5,
        "lm_scores": {"graph": -3.25, "lstm": -4.0},
        "confidences": [0.5] * number,
        "times": [[0.25 * n, 0.25 * n + 0.125] for n in range(number)],
        "classes": [[0, 1, "PER"]] if number else None,
        "depths": [1.5] * number,
    }


def nbest(name: str, hyps: list[dict[str, Any]]) -> dict[str, Any]:
    """An N-best list."""
    about = {"id": name, "part": "dev", "speaker": "s1", "ref": "call ann"}
    return {**about, "no_path": not hyps, "hyps": hyps}


def cut(name: str) -> dict[str, Any]:
    """A cut as it stands in a manifest."""
    times = {"start": 0.0, "duration": 1.5, "channel": 0}
    said = {"recording_id": "r1", **times, "text": "call ann", "speaker": "s1"}
    custom = {"cased": "Call Ann", "entities": [[1, 2, "PER"]]}
    audio = {"sources": [], "sampling_rate": 16000, "num_samples": 24000, "duration": 1.5}
    supervisions = [{"id": name, **said, "custom": custom}]
    more = {"recording": {"id": "r1", **audio}, "custom": {"part": "dev"}, "type": "MonoCut"}
    return {"id": name, **times, "supervisions": supervisions, **more}


NBEST = jsonl(
    nbest("u1", [hyp(1, "call ann"), hyp(2, "call an")]), nbest("u2", [hyp(1, "")]), nbest("u3", [])
)
_SCORES = {"insertion_penalty": 0.0, "words": "call ann", "am_score": -2.0, "lm_score": -1.0}
POINTS = [{"lm_weight": w, **_SCORES} for w in (0.25, 0.5)]
DECODED = jsonl(nbest("u1", POINTS), nbest("u2", []))
TAGGED = jsonl(
    {"id": "1", "user": "u", "document": "d", "text": "call ann hill", "cased": "Call Ann Hill",
     "entities": [[1, 3, "PER"]]},
    {"id": "2", "text": "hello"},
    cut("3"),
)  # fmt: skip
CUTS = jsonl(cut("u1"), cut("u2"))
TIMELINE = jsonl(
    *(
        {"id": f"u{n}", "client": "c", "kind": "prefix", "user": "s1", "ref_words": n}
        for n in range(3)
    )
)
_ABOUT = {"name": "mini", "synthetic": True, "scored_units": {"ax": "ah", "sil": ""}}
_ABOUT |= {"unit": "phone", "public_roles": ["dev"], "entities": "gold"}
CORPUS = json.dumps(_ABOUT, indent=2).encode()
_SAID = {"unit": "device", "speaker": "s"}
CLIENTS = jsonl(
    {"client": "a", **_SAID, "id": "1", "words": "oh ann", "num_words": 2, "confidences": [0.5, 1]},
    {"client": "b", **_SAID, "id": "2", "words": "hi", "num_words": 1, "confidences": None},
)

FORMATS: dict[str, tuple[Files, Callable[[Path], Any]]] = {
    "nbest": ({"1.jsonl": NBEST}, read_nbest),
    "decoded": ({"1.jsonl": DECODED}, read_decoded),
    "tagged": ({"x.jsonl": TAGGED}, lambda f: read_tagged([f / "x.jsonl"])),
    "nested": ({"x.jsonl": TAGGED}, lambda f: read_tagged([f / "x.jsonl"], nested=True)),
    "references": ({"x.jsonl": CUTS}, lambda f: read_references(f / "x.jsonl")),
    "cut_ids": ({"x.jsonl": CUTS}, lambda f: read_cut_ids(f / "x.jsonl")),
    "occasions": ({"x.jsonl": TAGGED}, lambda f: read_occasions([f / "x.jsonl"])),
    "timeline": ({"x.jsonl": TIMELINE}, lambda f: read_timeline(f / "x.jsonl")),
    "corpus_info": ({"corpus.json": CORPUS}, read_corpus_info),
    "json": ({"x.json": CORPUS}, lambda f: read_json(f / "x.json")),
    "clients": ({"x.jsonl": CLIENTS}, lambda f: read_clients(f / "x.jsonl")),
    "clients_gz": ({"x.gz": gzip.compress(CLIENTS, mtime=0)}, lambda f: read_clients(f / "x.gz")),
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_files_are_sound(name: str) -> None:
    files, read = FORMATS[name]
    assert not is_refused(check(files, [], read))


@pytest.mark.parametrize("name", FORMATS)
@given(damages=DAMAGE)
@few()
def test_damaged_records(name: str, damages: list[tuple[int, int, int]]) -> None:
    files, read = FORMATS[name]
    check(files, damages, read)


WORDS = ["0", "t", "./v", "--in-x", "data/x", "--out-x", "exp/am", "exp/am.json"]
NOW = Fingerprint(("./v",), (("conf.yaml", "0" * 64),), (("data/x", "1" * 64),))


@functools.cache
def stamped() -> dict[str, bytes]:
    """A work folder in which a task has ended well."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        texts = {"exp/am/weights": "w", "exp/am.json": "{}", "data/x": "x", ".stages/lock": ""}
        for path, text in texts.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(text)
            os.utime(work / path, (1e9, 1e9))
        stage, task = declared(work)
        cache = HashCache(work / ".stages/hashes.json", work)
        where = stamps.places(stage, task, work)
        stamps.end(where, stage, task, NOW, cache, 1.5)
        cache.save()
        paths = (path for path in work.rglob("*") if path.is_file())
        return {str(path.relative_to(work)): path.read_bytes() for path in paths}


def declared(work: Path) -> tuple[plan.Stage, plan.Task]:
    """The one stage."""
    (stage,) = plan.parse([WORDS], str(work))
    return stage, stage.tasks[0]


def state(work: Path) -> stamps.State:
    """Whether its outputs are up to date."""
    stage, task = declared(work)
    return stamps.state(stamps.places(stage, task, work), task, NOW, HashCache(work / "none", work))


STAMP = "exp/.stages/am.json"


def test_the_stamp_is_sound() -> None:
    assert check(stamped(), [], state).fresh


@given(damages=DAMAGE)
@few(300)
def test_a_damaged_stamp(damages: list[tuple[int, int, int]]) -> None:
    """It is a reason to run again, or says the same; other readers have an error or a value."""
    changed = {**stamped(), STAMP: damaged(stamped()[STAMP], damages)}
    with folder_of(changed) as work:
        assert isinstance(outcome(lambda: state(work)), stamps.State)
        outcome(lambda: stamps_below(work))
        outcome(lambda: list(lineage(work / "exp/am", work).lines()))


@given(damages=DAMAGE, which=st.sampled_from(("exp/am/weights", "exp/am.json")))
@few(300)
def test_no_damaged_stamp_hides_a_changed_output(
    damages: list[tuple[int, int, int]], which: str
) -> None:
    changed = {**stamped(), which: b"other", STAMP: damaged(stamped()[STAMP], damages)}
    with folder_of(changed) as work:
        found = state(work)
        assert not found.fresh and found.reasons


@given(damages=DAMAGE)
@few()
def test_damaged_attempts_and_hashes(damages: list[tuple[int, int, int]]) -> None:
    """The record of an attempt is nothing then, and what is not remembered is hashed again."""
    hashes = ".stages/hashes.json"
    about = {"fingerprint": NOW.digest, "launcher": "local", "begun": "x", "host": "h"}
    attempt = json.dumps(about).encode()
    files = {
        **stamped(),
        hashes: damaged(stamped()[hashes], damages),
        "exp/.stages/am.attempt.json": damaged(attempt, damages),
    }
    with folder_of(files) as work:
        stage, task = declared(work)
        where = stamps.places(stage, task, work)
        found = stamps.read_record(where.attempt)
        assert found is None or isinstance(found["fingerprint"], str)
        for path in ("exp/am/weights", "exp/am.json", "data/x"):
            os.utime(work / path, (1e9, 1e9))
        cache = HashCache(work / hashes, work)
        assert isinstance(stamps.state(where, task, NOW, cache), stamps.State)
        assert all(isinstance(cache.digest(path), str) for path in (*task.outputs, "data/x"))
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "hashes.json").write_bytes(files[hashes])
        (Path(name) / "x").write_bytes(b"x")
        cache = HashCache(Path(name) / "hashes.json", Path(name))
        cache.digest("x")
        cache.save()


@given(damages=DAMAGE)
@few(100)
def test_damaged_lock(damages: list[tuple[int, int, int]]) -> None:
    """Who holds a lock is said as far as it can be read."""
    me = damaged(b'{"pid": 12, "host": "h", "since": "2026-01-01T00:00:00"}', damages)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with hold(folder, wait=False, say=print):
            (folder / "lock").write_bytes(me)

            def second() -> None:
                with hold(folder, wait=False, say=print):
                    pass

            assert is_refused(outcome(second))
