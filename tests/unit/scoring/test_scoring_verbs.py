"""The three verbs one after the other, on a decoding made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from privasr_k2.fileio import read_jsonl, write_json, write_jsonl
from privasr_k2.recipe.systems import System, write_systems
from privasr_k2.scoring import results
from tests.support.conf import section
from tests.support.made_recipe import CONF
from tests.support.verbs import call, refused

GRID = [(0.5, 0.0), (1.0, 0.0), (2.0, 0.0)]


def _records(part: str, hyps: list[list[str]]) -> list[dict[str, Any]]:
    records = []
    for i, texts in enumerate(hyps):
        grid = [
            {"lm_weight": lm, "insertion_penalty": penalty, "words": words}
            for (lm, penalty), words in zip(GRID, texts, strict=True)
        ]
        reference = {"part": part, "speaker": f"s{i}", "ref": "a b c d"}
        records.append({"id": f"{part}-{i}", **reference, "no_path": False, "hyps": grid})
    return records


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe's folder after decoding: on test the first point is best, on dev the second."""
    monkeypatch.chdir(tmp_path)
    dev = _records("dev_x", [["a b", "a b c d", "a"], ["a b c d", "a b c x", "a"]])
    write_jsonl(tmp_path / "exp/ctc/decode_dev/1.jsonl", dev)
    test = _records("test_x", [["a b c d", "a x c d", "a"]] * 6) + _records(
        "test_y", [["a b c d"] * 3]
    )
    for job, record in enumerate(test, start=1):
        write_jsonl(tmp_path / f"exp/ctc/decode_test/{job}.jsonl", [record])
    for role, records in (("dev", dev), ("test", test)):
        write_jsonl(
            tmp_path / f"data/manifests/cuts_{role}.jsonl.gz", [{"id": r["id"]} for r in records]
        )
    _write_corpus(tmp_path)
    (tmp_path / "data/lang").mkdir()
    (tmp_path / "data/lang/words.txt").write_text("<eps> 0\na 1\nb 2\nc 3\n#0 4\n")
    return tmp_path


def _score(role: str, *more: str) -> None:
    call(
        f"wer --in-hyps exp/ctc/decode_{role} --in-lang data/lang --in-manifests data/manifests"
        f" --out-dir exp/ctc/score_{role} --config {section('wer')}"
        f" --set num_replicates=100 role={role}",
        *more,
    )


def test_tune_score_and_report(tree: Path, capsys: Any) -> None:
    weights = "exp/ctc/weights.json"
    call(
        "tune_weights --in-hyps exp/ctc/decode_dev --in-manifests data/manifests"
        f" --out-weights {weights}"
    )
    assert json.loads((tree / weights).read_text())["lm_weight"] == 1.0
    for role in ("dev", "test"):
        _score(role, "--in-weights", weights)

    test = json.loads((tree / "exp/ctc/score_test/wer.json").read_text())
    assert test["lm_weight"] == 1.0
    assert test["parts"]["test_x"]["wer_percent"] == 25.0  # not the 0 that another weight gives
    assert test["parts"]["test_x"]["oov"] == 6
    assert test["parts"]["test_x"]["interval"] == {"low": 0.25, "high": 0.25, "confidence": 0.95}
    assert test["parts"]["test_y"]["interval"] is None
    assert test["parts"]["test_y"]["interval_note"].endswith("1")

    paths = (tree / "exp/ctc").glob("score_*/wer-summary-*")
    summaries = {path.name: path.read_text().splitlines() for path in paths}
    assert summaries["wer-summary-dev_x.txt"][1] == "lm_weight_1.0_insertion_penalty_0.0\t12.50"
    assert len(summaries["wer-summary-dev_x.txt"]) == 1 + len(GRID)
    assert len(summaries["wer-summary-test_x.txt"]) == 2  # test is not for choosing
    options = (tree / "exp/ctc/score_test/config.yaml").read_text()
    assert options.startswith("role: test\nnum_replicates: 100")

    artifacts = {role: f"exp/ctc/{role}" for role in ("score_dev", "score_test")}
    artifacts["weights"] = weights
    system = System("ctc", "ctc", "ctc", "exp/ctc", artifacts=artifacts)
    write_systems(tree / "systems.jsonl", [system])
    call(
        "report --in-systems systems.jsonl --in-artifacts",
        *artifacts.values(),
        "--in-manifests data/manifests --out-report exp/ctc/RESULTS.md"
        f" --out-results exp/ctc/results.jsonl --config {section('report')}"
        f" {CONF}/reports/ctc.yaml --set",
        "command=./run.sh mini ctc",
    )
    text = (tree / "exp/ctc/RESULTS.md").read_text()
    assert capsys.readouterr().out.strip() == text.strip()
    parts = [line.split("|")[2].strip() for line in text.splitlines() if line.startswith("| ctc")]
    assert parts == ["dev_x", "test_x", "test_y", "1"]  # the last: the LM weight that was chosen


def test_how_jobs_were_cut_changes_nothing(tree: Path) -> None:
    more = ("--in-weights", "exp/ctc/weights.json")
    call("tune_weights", "--in-hyps", "exp/ctc/decode_dev", "--out-weights", more[1])
    _score("test", *more)
    before = {f.name: f.read_bytes() for f in (tree / "exp/ctc/score_test").iterdir()}
    jobs = sorted((tree / "exp/ctc/decode_test").iterdir())
    text = "".join(job.read_text() for job in reversed(jobs))
    for job in jobs:
        job.unlink()
    jobs[0].write_text(text)
    _score("test", *more)
    assert {f.name: f.read_bytes() for f in (tree / "exp/ctc/score_test").iterdir()} == before


def test_a_lost_job_is_refused_and_earlier_results_stay(tree: Path) -> None:
    more = ("--in-weights", "exp/ctc/weights.json")
    call("tune_weights", "--in-hyps", "exp/ctc/decode_dev", "--out-weights", more[1])
    _score("test", *more)
    before = (tree / "exp/ctc/score_test/wer.json").read_bytes()
    (tree / "exp/ctc/decode_test/2.jsonl").unlink()
    with refused("found 1 of 7 missing: test_x-1"):
        _score("test", *more)
    assert (tree / "exp/ctc/score_test/wer.json").read_bytes() == before


def test_lost_dev_utterances_stop_the_choice(tree: Path) -> None:
    write_jsonl(tree / "data/manifests/cuts_dev.jsonl.gz", [{"id": f"dev_x-{i}"} for i in range(3)])
    with refused("dev_x-2"):
        call(
            "tune_weights --in-hyps exp/ctc/decode_dev --in-manifests data/manifests"
            " --out-weights w.json"
        )
    assert not (tree / "w.json").exists()


def _write_corpus(tree: Path, **more: Any) -> None:
    content = {"name": "mini", "synthetic": True, "scored_units": {}, **more}
    write_json(tree / "data/manifests/corpus.json", content)


def test_characters_and_entities_are_counted(tree: Path) -> None:
    supervision = {"text": "a b c d", "custom": {"entities": [[1, 3, "PER"]]}}
    cuts = [{"id": f"test_x-{i}", "supervisions": [supervision]} for i in range(6)]
    write_jsonl(tree / "data/manifests/cuts_test.jsonl.gz", [*cuts, {"id": "test_y-0"}])
    call("tune_weights", "--in-hyps", "exp/ctc/decode_dev", "--out-weights", "w.json")
    _score("test", "--in-weights", "w.json")
    parts = json.loads((tree / "exp/ctc/score_test/wer.json").read_text())["parts"]
    speakers = [f"s{i}" for i in range(6)]
    # Six times "a x c d" for "a b c d".
    assert parts["test_x"]["characters"]["cer_percent"] == pytest.approx(100 / 7)
    assert parts["test_x"]["characters"]["counts"]["hits"] == 36
    assert set(parts["test_x"]["characters"]["speakers"]) == set(speakers)
    counts = {"hits": 6, "ref_words": 12, "hyp_words": 6}
    interval = {"low": 0.5, "high": 0.5, "confidence": 0.95}
    none = {**interval, "low": 0.0, "high": 0.0}
    assert parts["test_x"]["entities"] == {
        "utterances": 6,
        "classes": {"PER": {**counts, "recall_percent": 50.0, "precision_percent": 100.0}},
        "speakers": {name: {"all": [1, 2, 1], "PER": [1, 2, 1]} for name in speakers},
        "recall_intervals": {"all": interval, "PER": interval},
        "wer_percent": {"all": 50.0, "outside": 0.0, "PER": 50.0},
        "errors": {
            name: {"all": [1, 1, 0, 0], "outside": [2, 0, 0, 0], "PER": [1, 1, 0, 0]}
            for name in speakers
        },
        "wer_intervals": {"all": interval, "PER": interval, "outside": none},
        "false_alarm_intervals": {"all": none, "PER": none},
    }
    records = read_jsonl(tree / "exp/ctc/score_test/utterances.jsonl")
    marked = {record["id"]: record.get("entities") for record in records}
    assert marked["test_x-0"] == [[1, 3, "PER"]] and marked["test_y-0"] is None
    assert "entities" not in parts["test_y"]
    assert results.read_score(tree / "exp/ctc/score_test").to_dict()["parts"] == parts


def test_groups_of_the_corpus_are_counted(tree: Path) -> None:
    said = [(f"test_x-{i}", {"age": "adult" if i % 2 else "child"}) for i in range(6)]
    said.append(("test_y-0", {}))
    cuts = [{"id": name, "supervisions": [{"custom": custom}]} for name, custom in said]
    write_jsonl(tree / "data/manifests/cuts_test.jsonl.gz", cuts)
    _write_corpus(tree, groups=["age", "gender"])
    call("tune_weights", "--in-hyps", "exp/ctc/decode_dev", "--out-weights", "w.json")
    _score("test", "--in-weights", "w.json")
    parts = json.loads((tree / "exp/ctc/score_test/wer.json").read_text())["parts"]
    assert {value: of["wer_percent"] for value, of in parts["test_x"]["groups"]["age"].items()} == {
        "adult": 25.0,
        "child": 25.0,
    }
    assert [*parts["test_x"]["groups"]] == ["age"]
    assert [*parts["test_y"]["groups"]["age"]] == ["not known"]
    records = read_jsonl(tree / "exp/ctc/score_test/utterances.jsonl")
    assert {record["id"]: record["groups"]["age"] for record in records} == {
        name: of.get("age", "not known") for name, of in said
    }


def test_lists_of_others_are_scored_by_their_first_hypotheses(tree: Path) -> None:
    supervision = {"text": "a b c d", "custom": {"entities": [[1, 3, "PER"]]}}
    cuts = [{"id": f"u{i}", "supervisions": [supervision]} for i in range(3)]
    write_jsonl(tree / "data/manifests/cuts_test.jsonl.gz", cuts)
    hyps = [{"rank": n, "words": w, "am_score": 0.0, "lm_scores": {}}
            for n, w in enumerate(("a b x d", "a b c d"), start=1)]  # fmt: skip
    lists = [{"id": f"u{i}", "part": "test", "speaker": "s", "ref": "a b c d",
              "no_path": i == 2, "hyps": [] if i == 2 else hyps} for i in range(3)]  # fmt: skip
    write_jsonl(tree / "theirs/nbest_test/1.jsonl", lists)
    given = "--in-manifests data/manifests --out-dir theirs/score_test --set num_replicates=100"
    call(f"wer --in-nbest theirs/nbest_test {given} --config {section('wer')}")
    part = json.loads((tree / "theirs/score_test/wer.json").read_text())["parts"]["test"]
    assert part["counts"] == {"hits": 6, "substitutions": 2, "insertions": 0, "deletions": 4}
    assert part["no_path"] == ["u2"]
    assert results.read_score(tree / "theirs/score_test").options.role == "test"
    # Of b and c in each: b right twice, c wrong twice, both lost in u2.
    assert part["entities"]["errors"]["s"]["all"] == [2, 2, 0, 2]
    score = f"wer --in-nbest theirs/nbest_test {given} --config {section('wer')}"
    with refused("--in-hyps or --in-nbest"):
        call(score, "--in-hyps", "exp/ctc/decode_test")
    with refused("--in-weights with --in-nbest"):
        call(score, "--in-weights", "w.json")
    write_jsonl(tree / "theirs/nbest_test/1.jsonl", [{**one, "ref": ""} for one in lists])
    with refused("--in-cuts"):
        call(score)


def test_phones_have_no_characters(tree: Path) -> None:
    _write_corpus(tree, unit="phone")
    call("tune_weights", "--in-hyps", "exp/ctc/decode_dev", "--out-weights", "w.json")
    _score("test", "--in-weights", "w.json")
    content = json.loads((tree / "exp/ctc/score_test/wer.json").read_text())
    assert content["unit"] == "phone"
    assert "characters" not in content["parts"]["test_x"]


def test_words_left_out_count_neither_when_weights_are_chosen_nor_when_they_are_scored(
    tree: Path,
) -> None:
    _write_corpus(tree, scored_units={"x": "", "b": ""})
    weights = ("--in-manifests", "data/manifests", "--out-weights", "w.json")
    call("tune_weights", "--in-hyps", "exp/ctc/decode_dev", *weights)
    # At the second weight only "a b c x" for "a b c d" is wrong: d, of 6 words without b.
    assert json.loads((tree / "w.json").read_text())["wer_percent"] == pytest.approx(100 / 6)
    _score("test", "--in-weights", "w.json")
    part = json.loads((tree / "exp/ctc/score_test/wer.json").read_text())["parts"]["test_x"]
    assert part["counts"] == {"hits": 18, "substitutions": 0, "insertions": 0, "deletions": 0}
