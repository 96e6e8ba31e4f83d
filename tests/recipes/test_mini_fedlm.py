"""The recipe fedlm on the tiny corpus: all systems, resumed, and the ledger."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.federated.clients import read_clients
from privasr_k2.fileio import read_jsonl, read_lines
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.recipe.systems import read_systems
from tests.support.recipe_tools import error_counts, recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
EXP = "exp/fedlm_tdnn_phone_lstm"
TINY = "mini fedlm --preset tiny --nnlm lstm"
#: Each system with those that it is tested against.
SYSTEMS = {
    "ngram": ("no_nnlm",),
    "pretrained": ("no_nnlm",),
    "dev": ("pretrained",),
    "server_all": ("pretrained",),
    "server_token": ("pretrained", "server_all"),
    "fl_all": ("pretrained", "server_all"),
    "fl_token": ("pretrained", "fl_all"),
    "server_scratch_all": ("server_all",),
    "fl_scratch_all": ("server_scratch_all", "fl_all"),
    "fl_scratch_token": ("server_scratch_all", "fl_token"),
    "fl_all_noise_0.5": ("pretrained", "dev", "fl_all"),
}


@pytest.mark.timeout(1500)  # some hundred stages
def test_from_speech_to_results(copied: Path) -> None:
    command = f"{TINY} --confidence-use token --private-confidence-use all"
    command += " --noises 0.5 --private-client-fraction 0.5 --client zipf"
    command += " --client-text rescored"
    # The first pass is shared with recipe ctc.
    text = recipe(command, "--work-dir", copied)
    assert "acoustic model, tdnn ... up to date" in text
    declared = {system.name: system for system in read_systems(copied / EXP / "systems.jsonl")}
    systems = {name: system for name, system in declared.items() if system.method != "recipe"}
    no_nnlm = systems.pop("no_nnlm")
    assert {name: system.compare_with for name, system in systems.items()} == SYSTEMS
    private = declared["fl_all_noise_0.5"]
    assert (private.public, private.not_private) == ("pretrained", "fl_all")
    assert private.protects == "each device of mini/adapt/devices"
    perplexities = json.loads((copied / EXP / "perplexity_test.json").read_text())
    assert [Path(lm["lm"]).name for lm in perplexities["lms"]] == [*SYSTEMS][1:]
    assert perplexities["by"] == "client"
    table = (copied / EXP / "RESULTS.md").read_text()
    for system in (no_nnlm, *systems.values()):
        counts = error_counts(copied / system.artifacts["score_test"])
        assert counts["hits"] + counts["substitutions"] + counts["deletions"] > 50
        assert system.label in table

    # Clients have what the pre-trained LM chose of their lists, and its errors are shown.
    chosen_words = {
        record["id"]: record["hyps"][0]["words"].split()
        for record in read_jsonl(copied / EXP / "client_text/decode_adapt/1.jsonl")
    }
    clients = read_clients(copied / EXP / "clients.jsonl.gz")
    said = {one.id: list(one.words) for client in clients for one in client.utterances}
    assert said == {name: words for name, words in chosen_words.items() if words}
    for name in ("no_nnlm", "pretrained"):
        assert error_counts(copied / declared[name].artifacts["protected_score_adapt"], "adapt")

    # One LM weight and penalty for all rows: none gains by another.
    chosen = [
        json.loads((copied / system.artifacts["weights"]).read_text())
        for system in systems.values()
    ]
    kept = {(weights["lm_weight"], weights["insertion_penalty"]) for weights in chosen}
    assert len(kept) == 1
    alone = {name: len(choice["lms"]) for name, choice in zip(systems, chosen)}
    assert alone == {name: 1 if name == "ngram" else 2 for name in systems}

    [entry] = Ledger(copied / "privacy/ledger.json").entries()
    # Two speakers of eight utterances each, on a device each but for one that holds two.
    assert (entry.spending.unit, entry.spending.person_units) == ("device", 16)
    assert entry.spending.data == "mini/adapt/devices"
    assert entry.spending.sampling == "Poisson, rate 0.5"
    assert " ... done" not in recipe(command, "--work-dir", copied)
    assert len(Ledger(copied / "privacy/ledger.json").entries()) == 1


@pytest.mark.timeout(1500)  # some hundred stages
def test_default_options(copied: Path) -> None:
    command = "mini fedlm --preset tiny"
    assert "acoustic model, tdnn ... up to date" in recipe(command, "--work-dir", copied)
    exp = copied / "exp/fedlm_tdnn_phone_char_lstm"
    systems = {system.name: system for system in read_systems(exp / "systems.jsonl")}
    rated = {name for name, system in systems.items() if system.method != "recipe"}
    uses = ("all", "hard", "utterance", "token")
    private = {f"fl_{use}_noise_{n}" for use in ("all", "token") for n in ("0.2", "0.5", "1.5")}
    adapted = {f"{where}_{use}" for where in ("server", "fl") for use in uses}
    scratch = {"server_scratch_all", "fl_scratch_all", "fl_scratch_token"}
    assert rated == {"no_nnlm", "ngram", "pretrained", "dev"} | adapted | scratch | private
    rows = list(read_jsonl(exp / "results.jsonl"))
    for metric, missing in (("wer", set()), ("ppl", {"no_nnlm", "ngram"})):
        found = {row["system"] for row in rows if row["metric"] == metric and not row["item"]}
        assert rated - missing <= found
    # A release for each training with noise, with both speakers of adapt as units.
    entries = Ledger(copied / "privacy/ledger.json").entries()
    assert [entry.spending.person_units for entry in entries] == [1] * len(private)
    assert " ... done" not in recipe(command, "--work-dir", copied)


NOTHING_ELSE = "people whose words nothing else is made of"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--nnlm ngram", "--nnlm: expected one of lstm, char_lstm, transformer, found 'ngram'"),
        ("--confidence-use some", "one of all, hard, utterance, token, found 'some'"),
        ("--decode false --private-confidence-use token", "expected all: of what was said"),
        ("--private-sampling some", "one of poisson, ordered, found 'some'"),
        ("--adapt-role dev", f"--adapt-role: expected {NOTHING_ELSE}"),
        ("--adapt-role train", f"--adapt-role: expected {NOTHING_ELSE}"),
        ("--decode false --adapt-role train", NOTHING_ELSE),
        ("--noises inf", "--noises: expected a number"),
        # Options that would change nothing.
        ("--bands 3", "--bands"),
        ("--private-sampling ordered --strategy tree --bands 3", "--bands"),
        ("--tune true --client-lr 1", "--client-lr"),
        ("--noises '' --clip 1", "--clip"),
        ("--decode false --encoder blstm", "--encoder"),
        ("--recognizer kaldi_rev", "--recognizer"),
        # Old names.
        ("--rate 0.1", "--client-fraction"),
        ("--ways all", "--confidence-use"),
    ],
)
def test_what_cannot_be(options: str, message: str, tmp_path: Path) -> None:
    text = recipe(f"{TINY} {options} --dry-run true", "--work-dir", tmp_path, code=2)
    assert text.startswith("error: ") and message in text


def test_without_claims_and_scratch(tmp_path: Path) -> None:
    command = f"{TINY} --noises '' --scratch false --dry-run true"
    text = recipe(command, "--work-dir", tmp_path / "work")
    assert "exp/fedlm_tdnn_phone_lstm/RESULTS.md" in text
    # The recorded command of the run names the options themselves.
    stages = [line.partition(" 'command=")[0] for line in text.splitlines()]
    assert not any(part in line for line in stages for part in ("scratch", "noise", "audit"))


@pytest.mark.timeout(600)
def test_said_text_in_a_fixed_order_with_public_words(tmp_path: Path) -> None:
    """Text alone: clients ordered and sampled, rates chosen on dev, and only public words."""
    sentence = "the of and to in what is we you it that this was have"
    words = sentence.split()
    books, work = tmp_path / "books.txt", tmp_path / "work"
    books.write_text("".join(f"{' '.join(words[n:] + words[:n])}\n" for n in range(20)))
    command = f"{TINY} --decode false --scratch false --noises 0.5 --audit false --tune true"
    command += " --private-sampling 'poisson ordered' --private-cohort 10 --bands 2"
    command += " --private-init 'pretrained dev'"
    recipe(command, "--nnlm-text", books, "--work-dir", work)
    lines = (work / "data/lang_public/words.txt").read_text().splitlines()
    assert {line.split()[0] for line in lines} - {"<eps>", "#0"} == set(words)
    exp = work / "exp/fedlm_text_lstm"
    assert "all utts, noise 0.5, ordered" in (exp / "RESULTS.md").read_text()
    assert "square_root" in (exp / "fl_all_noise_0.5_ordered_privacy.json").read_text()
    entries = Ledger(work / "privacy/ledger.json").entries()
    samplings = [entry.spending.sampling.split()[0] for entry in entries]
    assert samplings == ["Poisson,", "Poisson,", "each", "each"]
    assert {entry.spending.data for entry in entries} == {"mini/adapt"}
    assert {entry.spending.unit for entry in entries} == {"speaker"}
    assert "noise 0.5, from half of dev" in (exp / "RESULTS.md").read_text()
    # What is begun with, and that the other half of dev chooses the round.
    texts = {
        name: {line for _, line in read_lines(exp / f"dev/{name}.txt.gz")}
        for name in ("text", "held_out")
    }
    assert texts["held_out"] and texts["held_out"] < texts["text"]
    for name, init in (("fl_all_noise_0.5", "pretrained"), ("fl_all_from_dev_noise_0.5", "dev")):
        log = (exp / f"lm/log/{name}.log").read_text()
        assert f"--in-public-init exp/fedlm_text_lstm/lm/{init} " in log
        assert ("dev/held_out.txt.gz" in log) == (init == "dev")
