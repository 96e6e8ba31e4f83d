"""From annotated text to sanitized text and its report, verb by verb."""

from __future__ import annotations

import gzip
import json

import pytest

from privasr_k2.fileio import read_json, read_jsonl, write_json, write_jsonl, write_text
from privasr_k2.text.tag_gold import conll_files
from tests.support.conf import section
from tests.support.verbs import run

TAG = ("--config", str(section("tag_entities")))
SANITIZE = ("--config", str(section("sanitize")), "--set", "data=toy/train")
CONLL = (
    "Ann B-person\nLee I-person\nmet O\nAcme B-corporation\n. O\n\nAnn B-person\nRose"
    " B-person\nrose O\n"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Every file on the way."""
    folder = tmp_path_factory.mktemp("sanitize")
    write_text(folder / "a.conll", CONLL)
    gold = folder / "a.jsonl.gz"
    run(
        f"tag_entities --raw-conll {folder}/a.conll --out-text {gold}", *TAG, "--set taggers=[gold]"
    )
    run(
        f"make_name_lists --in-tagged {gold} --out-lists {folder}/lists"
        f" --config {section('name_lists')} --set dates=false"
    )
    write_text(folder / "lists/org.txt", "Acme\nBell\n")
    run(
        f"tag_entities --raw-conll {folder}/a.conll --out-text {folder}/found.jsonl",
        *TAG,
        f"--in-public-lists {folder}/lists --set taggers=[gazetteer] ignore_case=false",
    )
    release = ("--in-private-text", folder / "found.jsonl", "--in-public-lists", folder / "lists")
    release += ("--out-dir", folder / "out", "--out-privacy", folder / "privacy.json")
    release += ("--ledger", folder / "private/ledger.json", *SANITIZE)
    said = run("sanitize_text", *release)
    run(
        f"report_entities --in-text {folder}/found.jsonl --in-gold {gold}"
        f" --in-sanitized {folder}/out --in-privacy {folder}/privacy.json"
        f" --in-public-lists {folder}/lists --out-report {folder}/report.json"
    )
    return folder, release, said


def test_annotated_text_becomes_tagged_text_in_four_classes(made):
    folder, *_ = made
    first, second = read_jsonl(folder / "a.jsonl.gz")
    assert first == {
        "id": "a.conll:1",
        "text": "ann lee met acme",
        "cased": "Ann Lee met Acme .",
        "entities": [[0, 2, "PER"], [3, 4, "ORG"]],
    }
    assert second["entities"] == [[0, 1, "PER"], [1, 2, "PER"]]
    assert (folder / "lists/per.txt").read_text() == "ann\nann lee\nrose\n"


def test_sanitized_text_keeps_its_form(made):
    folder, _, said = made
    made_ids = [record["id"] for record in read_jsonl(folder / "out/sanitized.jsonl.gz")]
    assert made_ids == ["s000001", "s000002"]
    with gzip.open(folder / "out/class_text.txt.gz", "rt", encoding="utf-8") as file:
        assert len(file.readlines()) == 2
    assert "toy/train: epsilon" in said
    assert "does not cover: Mentions that the tagger missed" in said
    report = read_json(folder / "report.json")
    assert report["gold"]["all"]["residual_words"] >= 0 and "no epsilon covers" in report["note"]


def test_a_rerun_that_changed_nothing_spends_nothing_and_limits_hold(made):
    folder, release, _ = made
    before = (folder / "out/text.txt.gz").read_bytes()
    run("sanitize_text", *release)
    assert (folder / "out/text.txt.gz").read_bytes() == before
    assert len(read_json(folder / "private/ledger.json")["entries"]) == 1
    said = run("sanitize_text", *release, "keep_prob=0.3", "--max-epsilon", "1", code=2)
    assert "--max-epsilon" in said
    assert (folder / "out/text.txt.gz").read_bytes() == before
    assert "epsilon" in run(
        f"ledger --in-path {folder}/privacy.json --ledger {folder}/private/ledger.json"
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("keep_prob=1.5",), "keep_prob must be at most 1, got 1.5"),
        (("keep_prob=1",), "a number below 1"),
        (("data=''",), "--set data=mini/train"),
        (("method=tag", "delta=2"), "delta"),
    ],
)
def test_bad_settings_spend_nothing(made, tmp_path, values, message):
    folder, _, _ = made
    ledger = tmp_path / "ledger.json"
    said = run(
        f"sanitize_text --in-private-text {folder}/found.jsonl"
        f" --in-public-lists {folder}/lists --out-dir {tmp_path}/out"
        f" --out-privacy {tmp_path}/p.json --ledger {ledger}",
        *SANITIZE,
        *values,
        code=2,
    )
    assert message in said and not ledger.exists() and not (tmp_path / "out").exists()


def test_a_class_without_a_list_and_text_without_tags_spend_nothing(made, tmp_path):
    folder, _, _ = made
    write_jsonl(tmp_path / "t.jsonl", [{"id": "x", "text": "in bath", "entities": [[1, 2, "LOC"]]}])
    write_jsonl(tmp_path / "bare.jsonl", [{"id": "x", "text": "in bath"}])
    rest = ("--in-public-lists", folder / "lists", "--out-dir", tmp_path / "out", *SANITIZE)
    rest += ("--out-privacy", tmp_path / "p.json", "--ledger", tmp_path / "ledger.json")
    said = run("sanitize_text", "--in-private-text", tmp_path / "t.jsonl", *rest, code=2)
    assert "word 2 of x" in said and "found LOC" in said and "loc.txt" in said
    assert "bin.tag_entities" in run(
        f"sanitize_text --in-private-text {tmp_path}/bare.jsonl", *rest, code=2
    )
    text, over = tmp_path / "bare_user.jsonl", ("data=toy/train", "utterances_per_user=5")
    write_jsonl(text, [{"id": "x", "text": "in acme", "entities": [[1, 2, "ORG"]]}])
    said = run("sanitize_text", "--in-private-text", text, *rest, "--set", *over, code=2)
    assert "x: expected a user: utterances_per_user" in said
    assert not (tmp_path / "ledger.json").exists()


def test_of_users_no_trace_is_left_and_a_limit_of_utterances_covers_them(made, tmp_path):
    folder, _, _ = made
    shared = {"document": "d", "entities": [[1, 2, "PER"]]}
    texts = [
        {"id": f"tom-{n}", "user": f"tom{n % 2}", "text": f"ask ann {n}", **shared}
        for n in range(40)
    ]
    write_jsonl(tmp_path / "t.jsonl", texts)
    said = run(
        f"sanitize_text --in-private-text {tmp_path}/t.jsonl"
        f" --in-public-lists {folder}/lists --out-dir {tmp_path}/out"
        f" --out-privacy {tmp_path}/p.json --ledger {tmp_path}/ledger.json",
        *SANITIZE,
        "utterances_per_user=5",
    )
    assert "for each user" in said and "in more than 5 utterances (30 words)" in said
    for path in (tmp_path / "out").iterdir():
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert b"tom" not in content and b'"d"' not in content
    records = list(read_jsonl(tmp_path / "out/sanitized.jsonl.gz"))
    order = [int(record["text"].split()[2]) for record in records]
    assert sorted(order) == list(range(40)) != order
    run(
        f"report_entities --in-text {tmp_path}/t.jsonl --in-sanitized {tmp_path}/out"
        f" --in-privacy {tmp_path}/p.json --out-report {tmp_path}/r.json"
    )
    report = read_json(tmp_path / "r.json")
    changed = sum(record["text"].split()[1] != "ann" for record in records)
    assert report["classes"]["PER"]["changed_words_at_least"] == changed
    privacy = report["privacy"]
    assert privacy["epsilon_per_user"] == pytest.approx(5 * privacy["epsilon_per_utterance"])
    assert privacy["utterances_per_user"] == 5 and "epsilon_per_user_at_delta_1e-06" in privacy


def test_tags_need_no_lists_and_cost_nothing(made, tmp_path):
    folder, _, _ = made
    said = run(
        f"sanitize_text --in-private-text {folder}/a.jsonl.gz --out-dir {tmp_path}/out",
        *SANITIZE,
        "method=tag",
        f"--out-privacy {tmp_path}/p.json --ledger {tmp_path}/ledger.json",
    )
    assert "epsilon 0 at delta" in said
    with gzip.open(tmp_path / "out/text.txt.gz", "rt", encoding="utf-8") as file:
        assert sorted(file) == ["<PER> <PER> rose\n", "<PER> met <ORG>\n"]


def test_manifests_get_entities_of_their_written_text(made, tmp_path):
    folder, _, _ = made
    custom = {"cased": "Ask Rose, may I?", "entities": [[0, 1, "PER"]]}
    supervision = {"text": "ask rose may i", "speaker": "s", "custom": custom}
    cut = {"id": "c", "supervisions": [supervision]}
    write_jsonl(tmp_path / "manifests/cuts_dev.jsonl.gz", [cut])
    write_json(tmp_path / "manifests/corpus.json", {"name": "toy"})
    run(
        f"tag_entities --in-manifests {tmp_path}/manifests --out-manifests {tmp_path}/tagged",
        *TAG,
        f"--in-public-lists {folder}/lists --set taggers=[gazetteer]",
    )
    [found] = read_jsonl(tmp_path / "tagged/cuts_dev.jsonl.gz")
    assert found["supervisions"][0]["custom"] == {**custom, "entities": [[1, 2, "PER"]]}
    assert read_json(tmp_path / "tagged/corpus.json") == {"name": "toy", "entities": "gazetteer"}
    said = run(
        f"tag_entities --in-manifests {tmp_path}/manifests --out-manifests {tmp_path}/x/y",
        *TAG,
        f"--in-public-lists {folder}/lists --set taggers=[gazetteer]",
        code=2,
    )
    assert "a folder beside" in said


def test_json_lines_hold_no_more_than_is_said(made):
    folder, *_ = made
    with gzip.open(folder / "out/sanitized.jsonl.gz", "rt", encoding="utf-8") as file:
        assert {key for line in file for key in json.loads(line)} == {"id", "text", "entities"}


def test_a_folder_of_annotated_text_is_read_with_all_beneath(tmp_path):
    files = "b.conll deep/a.conll.txt deep/c.conll.gz deep/er/d.conll.txt.gz README.txt"
    for name in files.split():
        write_text(tmp_path / "in" / name, "Ann B-person\n")
    flags = ("tag_entities", f"--raw-conll {tmp_path}/in", *TAG, "--set taggers=[gold] --out-text")
    run(*flags, tmp_path / "out.jsonl.gz")
    ids = [record["id"] for record in read_jsonl(tmp_path / "out.jsonl.gz")]
    assert ids == ["a.conll.txt:1", "b.conll:1", "c.conll.gz:1", "d.conll.txt.gz:1"]
    write_text(tmp_path / "in/other/a.conll", CONLL)
    said = run(*flags, tmp_path / "new.jsonl.gz", code=2)
    assert "files of different names" in said and not (tmp_path / "new.jsonl.gz").exists()
    empty = tmp_path / "none"
    empty.mkdir()
    flags = ("tag_entities", "--raw-conll", empty, *TAG, "--set", "taggers=[gold]", "--out-text")
    assert "none beneath" in run(*flags, tmp_path / "new.jsonl.gz", code=2)


@pytest.mark.shared_data
def test_the_public_text_makes_lists(shared_data):
    found = conll_files([shared_data / "ner_text"])
    assert set(found) == {"emerging", "wikigold", "wnut17train"}


def test_unprotected_text_is_entered_once_and_no_limit_allows_it(made, tmp_path):
    folder, *_ = made
    ledger, out = tmp_path / "private/ledger.json", tmp_path / "adapt"
    flags = (
        f"--in-private-text {folder}/found.jsonl --out-dir {out} --ledger {ledger}"
        f" --out-privacy {tmp_path}/privacy.json --config {section('declare_unprotected')}"
    ).split()
    settings = ("--set", "data=toy/adapt", "purpose=adaptation of LMs")
    said = run("declare_unprotected", *flags, *settings, "--max-epsilon", "100", code=2)
    assert "found infinite" in said and "unprotected text" in said
    assert not out.exists() and not read_json(ledger)["entries"]
    for _ in range(2):
        said = run("declare_unprotected", *flags, *settings)
        assert "toy/adapt: epsilon infinite" in said and "unprotected: adaptation of LMs" in said
    assert (out / "found.jsonl").read_bytes() == (folder / "found.jsonl").read_bytes()
    [entry] = read_json(ledger)["entries"]
    assert entry["spending"]["event"] == {"mechanism": "unprotected"}
    assert not [p for p in (tmp_path / "private/ledger.json.keys").iterdir() if p.name != "seal"]
    said = run("ledger", "--in-path", tmp_path / "privacy.json", "--ledger", ledger)
    assert "infinite" in said
    assert "say it: --set purpose=" in run("declare_unprotected", *flags, *settings[:2], code=2)


def test_rates_have_intervals_where_they_are_asked_for(made, tmp_path):
    folder, *_ = made
    command = f"report_entities --in-text {folder}/found.jsonl --in-gold {folder}/a.jsonl.gz"
    run(command, f"--out-report {tmp_path}/r.json --config {section('report_entities')}")
    of_class = read_json(tmp_path / "r.json")["gold"]["ORG"]
    assert of_class["span_f1_percent"] == 100.0
    assert of_class["intervals"]["span_recall_percent"] is None  # one sentence is too few
    assert of_class["intervals"]["span_recall_documents"] == 1
    assert "intervals" not in read_json(folder / "report.json")["gold"]["ORG"]


def test_what_is_measured_is_left_out_of_public_names(tmp_path):
    write_text(tmp_path / "b.conll.txt", "-DOCSTART- O\n\nZoe B-person\n\n-DOCSTART- O\n\nGo O\n")
    write_text(tmp_path / "a.conll", CONLL)
    command = f"tag_entities --raw-conll {tmp_path} --out-text {tmp_path}/text.jsonl"
    run(command, *TAG, "--set taggers=[gold] leave_out=[a]")
    records = list(read_jsonl(tmp_path / "text.jsonl"))
    assert [record["text"] for record in records] == ["zoe", "go"]
    assert [record["document"] for record in records] == ["b.conll.txt:1", "b.conll.txt:5"]


def test_names_are_planted_tagged_and_looked_for(tmp_path):
    said = [
        {"id": f"t{n}-0", "text": f"{word} rita vogel now", "cased": f"{word} Rita Vogel now."}
        for n, word in enumerate(("ask", "call", "tell"))
    ]
    write_jsonl(tmp_path / "t.jsonl", [{**text, "entities": [[1, 3, "PER"]]} for text in said])
    write_text(tmp_path / "lists/per.txt", "Ann Abel\nBen Birk\nCleo Crane\nDora Dunn\n")
    planted, small = tmp_path / "planted", "canaries=2 candidates=4 repeats=2"
    source = f"--in-text {tmp_path}/t.jsonl --in-public-lists {tmp_path}/lists"
    run(
        f"plant_canaries {source} --out-dir {planted} --config {section('plant_names')}",
        f"--set {small}",
    )
    blind = [{**record, "entities": []} for record in read_jsonl(planted / "gold.jsonl.gz")]
    write_jsonl(tmp_path / "blind.jsonl.gz", blind)
    sections = " ".join(str(section(name)) for name in ("sanitize", "lm_ngram", "audit_names"))
    command = f"audit --in-planted {planted} --in-scored {tmp_path}/t.jsonl --device cpu"
    rest = f"--config {sections} --set keep_probs=[0.5] discounting=witten_bell"
    tagged = f"--in-tagged {tmp_path}/blind.jsonl.gz --out-audit {tmp_path}/audit.json"
    shown = run(command, tagged, rest)
    assert "blind_0.5: exposure in bits of 2" in shown
    models = read_json(tmp_path / "audit.json")["models"]
    assert list(models) == ["original", "unseen", "gold_0.5", "blind_0.5"]
    assert models["blind_0.5"]["kinds"] == models["original"]["kinds"]
    twice = f"--in-tagged {tmp_path}/blind.jsonl.gz {tmp_path}/blind.jsonl.gz"
    assert "blind twice" in run(command, twice, f"--out-audit {tmp_path}/x.json", rest, code=2)
    said = run(f"plant_canaries --in-text {tmp_path}/t.jsonl --out-dir {tmp_path}/x", code=2)
    assert "--in-text and --in-public-lists" in said
