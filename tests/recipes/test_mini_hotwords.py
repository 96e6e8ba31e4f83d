"""A user's hotwords on the tiny corpus: found with the list and not without."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile

from privasr_k2.decoding.recognizer import Recognizer
from privasr_k2.graph.lang import load_lang
from privasr_k2.text.hotwords import read_hotwords
from tests.support.conf import section
from tests.support.hotwords import write_list
from tests.support.recipe_tools import EXP, ROOT, assert_up_to_date, recipe, records
from tests.support.verbs import call

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
TINY = "mini ctc --preset tiny"
#: Said once in test, clearly, and in no lexicon.
NAME = "heater"


def sentences(folder: Path) -> dict[str, tuple[str, str]]:
    """What was said and what was found, of each utterance of a test set."""
    return {record["id"]: (record["ref"], record["hyps"][0]["words"]) for record in records(folder)}


def test_a_name_outside_the_lexicon_is_found_with_the_list_and_not_without(
    copied: Path, tmp_path: Path
) -> None:
    names = write_list(tmp_path / "contacts.txt", "Heater\t5", "Silver Garden", "")
    command = f"{TINY} --hotwords {names} --hotword-bonus 2"
    assert "2 hotwords of contacts | test" in recipe(command, "--work-dir", copied)
    exp = copied / f"{EXP}_hotwords_contacts_2"
    without, found = sentences(copied / EXP / "decode_test"), sentences(exp / "decode_test")
    [said] = [name for name, (ref, _) in without.items() if NAME in ref.split()]
    assert not any(NAME in words for _, words in without.values())
    assert [name for name, (_, words) in found.items() if NAME in words.split()] == [said]
    # Both stand beside each other, with one acoustic model.
    assert_up_to_date(TINY, "--work-dir", copied)
    assert not (exp / "am").exists()
    rows = [json.loads(line) for line in (exp / "results.jsonl").read_text().splitlines()]
    facts = {
        (row["fact_hotwords"], row["fact_hotword_entries"])
        for row in rows
        if row["system"] == "ctc"
    }
    assert facts == {("contacts", 2)}
    unknown = {e: json.loads((copied / e / "score_test/wer.json").read_text()) for e in (EXP, exp)}
    oov = [score["parts"]["test"]["oov"] for score in unknown.values()]
    assert oov[0] == oov[1] + 1
    # The same list for the recognizer that was trained without one.
    audio = copied / f"data/manifests/audio/{said}.flac"
    flags = ["--hotwords", names, "--hotword-bonus", "2", audio]
    command_line = [sys.executable, "-m", "privasr_k2.bin.transcribe", "--in-exp", copied / EXP]
    done = subprocess.run([*command_line, *flags], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == f"{audio}\t{found[said][1]}\n", done.stderr
    # And as a class of names, which the graph takes without being compiled again.
    for kept in (False, True):
        assert (copied / EXP / "contacts.safetensors").exists() == kept
        flags = ["--contacts", names, audio]
        done = subprocess.run([*command_line, *flags], capture_output=True, text=True, cwd=ROOT)
        assert NAME in done.stdout.split(), done.stderr
    # A running recognizer exchanges lists.
    others = write_list(tmp_path / "others.txt", "Silver Garden")
    recognizer = Recognizer.from_folder(copied / EXP, contacts=read_hotwords(others))
    samples, rate = soundfile.read(audio, dtype="float32")
    for listed, is_found in ((names, True), (others, False)):
        recognizer.use_contacts(read_hotwords(listed))
        assert (NAME in (recognizer.transcribe(samples, rate) or "").split()) == is_found


def test_contacts_in_the_graph_of_a_run(copied: Path, tmp_path: Path) -> None:
    """Beside the run without a list, with its acoustic model; transcribe has the same graph."""
    names = write_list(tmp_path / "contacts.txt", "Heater", "Silver Garden")
    assert "2 contacts of contacts | test" in recipe(
        f"{TINY} --contacts {names} --contact-log-prob=-3", "--work-dir", copied
    )
    exp = copied / f"{EXP}_contacts_contacts_-3"
    without, found = sentences(copied / EXP / "decode_test"), sentences(exp / "decode_test")
    [said] = [name for name, (ref, _) in without.items() if NAME in ref.split()]
    assert [name for name, (_, words) in found.items() if NAME in words.split()] == [said]
    assert not (exp / "am").exists()
    [row] = [
        row
        for row in map(json.loads, (exp / "results.jsonl").read_text().splitlines())
        if (row["system"], row["part"], row["metric"], row["item"]) == ("ctc", "test", "wer", "")
    ]
    facts = {name: row[f"fact_{name}"] for name in ("contacts", "contact_entries")}
    assert facts == {"contacts": "contacts", "contact_entries": 2}
    assert row["fact_contact_log_prob"] == -3
    # The folder of the graph is a language folder; its words have no marks.
    graph = copied / "data/graph_phone_contacts_contacts_-3"
    lang = load_lang(graph)
    assert set(lang.word_ids) - set(load_lang(copied / "data/lang_phone").word_ids) == {NAME}
    assert NAME in lang.first_pronunciations
    oov = [
        json.loads((copied / e / "score_test/wer.json").read_text())["parts"]["test"]["oov"]
        for e in (EXP, exp)
    ]
    assert oov[0] == oov[1] + 1
    audio = copied / f"data/manifests/audio/{said}.flac"
    command_line = [sys.executable, "-m", "privasr_k2.bin.transcribe", "--in-exp"]
    ours = [copied / EXP, "--contacts", names, "--contact-log-prob", "-3"]
    for flags in (ours, [exp]):
        given = [*command_line, *flags, audio]
        done = subprocess.run(given, capture_output=True, text=True, cwd=ROOT)
        assert done.stdout == f"{audio}\t{found[said][1]}\n", done.stderr


@pytest.mark.parametrize("backend", ["k2", "kaldi"])
def test_a_list_without_matches_changes_nothing(
    finished: Path, tmp_path: Path, backend: str
) -> None:
    """Though sentences begin as its phrases do: what was granted is taken back."""
    names = write_list(
        tmp_path / "others.txt",
        "go ahead and turn the ceiling lights in the living room and in the kitchen riverport\t1",
        "hey assistant is the lindqvist",
    )
    data, graph = finished / "data", tmp_path / "graph"
    call(
        "compile_graph --in-lang", data / "lang_phone", "--in-lm", data / "lm/phone.arpa.gz",
        "--in-hotwords", names, "--out-dir", graph,
        "--config", section("graph"), section("hotwords"), "--set", "hotword_bonus=1",
    )  # fmt: skip
    found = []
    for name in (data / "graph_phone", graph):
        out = tmp_path / f"{name.name}_decoded"
        call(
            "decode --in-model", finished / EXP / "am", "--in-graph", name,
            "--in-feats", data / "feats_fbank", "--in-weights", finished / EXP / "weights.json",
            "--out-hyps", out / "1.jsonl", "--config", section("decode"),
            "--set", "role=test", f"backend={backend}", "search_beam=40",
        )  # fmt: skip
        found.append(sentences(out))
    assert found[0] == found[1]
    assert sum("ceiling lights" in words for _, words in found[0].values()) > 0
