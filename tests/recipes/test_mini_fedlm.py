"""The recipe fedlm on the tiny corpus: all systems, resumed, and what the ledger says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from privasr_k2.privacy.ledger import Ledger
from privasr_k2.recipe.systems import read_systems
from tests.support.recipe_tools import run_recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
EXP = "exp/fedlm_tdnn_phone_lstm"
TINY = ("mini", "fedlm", "--preset", "tiny", "--nnlm", "lstm")
OPTIONS = (*TINY, "--confidence-use", "token", "--private-confidence-use", "all")
#: Each system with those that it is tested against.
SYSTEMS = {
    "pretrained": ["no_nnlm"],
    "server_all": ["pretrained"],
    "server_token": ["pretrained", "server_all"],
    "fl_all": ["pretrained", "server_all"],
    "fl_token": ["pretrained", "fl_all"],
    "server_scratch_all": ["server_all"],
    "fl_scratch_all": ["server_scratch_all", "fl_all"],
    "fl_scratch_token": ["server_scratch_all", "fl_token"],
    "fl_all_noise_0.5": ["pretrained", "fl_all"],
}


@pytest.mark.timeout(1500)  # some hundred stages
def test_from_speech_to_results(copied: Path) -> None:
    options = (
        *OPTIONS,
        "--noises",
        "0.5",
        "--private-client-fraction",
        "0.5",
        "--work-dir",
        copied,
    )
    done = run_recipe(*options)
    assert done.returncode == 0, done.stdout
    # The first pass is shared with recipe ctc.
    assert "acoustic model, tdnn ... up to date" in done.stdout
    declared = {one.name: one for one in read_systems(copied / EXP / "systems.jsonl")}
    systems = {
        name: one for name, one in declared.items() if one.method != "recipe" and name != "no_nnlm"
    }
    assert {name: list(one.compare_with) for name, one in systems.items()} == SYSTEMS
    assert declared["fl_all_noise_0.5"].public == "pretrained"
    assert declared["fl_all_noise_0.5"].not_private == "fl_all"
    assert declared["fl_all_noise_0.5"].protects == "each device of mini/adapt/devices"
    perplexities = json.loads((copied / EXP / "perplexity_test.json").read_text())
    assert [Path(one["lm"]).name for one in perplexities["lms"]] == list(SYSTEMS)
    assert perplexities["by"] == "client"
    table = (copied / EXP / "RESULTS.md").read_text()
    for one in (declared["no_nnlm"], *systems.values()):
        wer = json.loads((copied / one.artifacts["score_test"] / "wer.json").read_text())
        counts = wer["parts"]["test"]["counts"]
        assert counts["hits"] + counts["substitutions"] + counts["deletions"] > 50
        assert one.label in table

    [entry] = Ledger(copied / "privacy/ledger.json").entries()
    assert (
        entry.spending.data == "mini/adapt/devices"
        and entry.spending.sampling == "Poisson, rate 0.5"
    )

    again = run_recipe(*options)
    assert again.returncode == 0 and " ... done" not in again.stdout, again.stdout
    assert len(Ledger(copied / "privacy/ledger.json").entries()) == 1


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (
            ("--nnlm", "ngram"),
            "--nnlm: expected one of lstm, char_lstm, transformer, found 'ngram'",
        ),
        (("--confidence-use", "some"), "one of all, hard, utterance, token, found 'some'"),
        (
            ("--decode", "false", "--private-confidence-use", "token"),
            "expected all: of what was said",
        ),
        (("--private-sampling", "some"), "one of poisson, ordered, found 'some'"),
        (
            ("--adapt-role", "dev"),
            "--adapt-role: expected people whose words nothing else is made of",
        ),
        (
            ("--adapt-role", "train"),
            "--adapt-role: expected people whose words nothing else is made of",
        ),
        (
            ("--decode", "false", "--adapt-role", "train"),
            "people whose words nothing else is made of",
        ),
        (("--noises", "inf"), "--noises: expected a number"),
        # Options that would change nothing.
        (("--bands", "3"), "--bands"),
        (("--private-sampling", "ordered", "--strategy", "tree", "--bands", "3"), "--bands"),
        (("--tune", "true", "--client-lr", "1"), "--client-lr"),
        (("--noises", "", "--clip", "1"), "--clip"),
        (("--decode", "false", "--encoder", "blstm"), "--encoder"),
        (("--recognizer", "kaldi_rev"), "--recognizer"),
        # Old names.
        (("--rate", "0.1"), "--client-fraction"),
        (("--ways", "all"), "--confidence-use"),
    ],
)
def test_what_cannot_be(words: tuple[str, ...], part: str, tmp_path: Path) -> None:
    done = run_recipe(*TINY, *words, "--dry-run", "true", "--work-dir", tmp_path)
    assert done.returncode == 2 and done.stdout.startswith("error: ") and part in done.stdout, (
        done.stdout
    )


def test_without_claims_and_scratch(tmp_path: Path) -> None:
    fewer = (
        "--noises",
        "",
        "--scratch",
        "false",
        "--dry-run",
        "true",
        "--work-dir",
        tmp_path / "work",
    )
    done = run_recipe(*TINY, *fewer)
    assert done.returncode == 0 and "exp/fedlm_tdnn_phone_lstm/RESULTS.md" in done.stdout, (
        done.stdout
    )
    # The recorded command of the run names the options themselves.
    stages = [line.partition(" --set 'command=")[0] for line in done.stdout.splitlines()]
    assert not any(part in line for line in stages for part in ("scratch", "noise", "audit"))


@pytest.mark.timeout(600)
def test_said_text_in_a_fixed_order_with_public_words(tmp_path: Path) -> None:
    """Text alone: clients in order and sampled, rates chosen on dev, and no word that is not
    public.
    """
    words = [
        "the",
        "of",
        "and",
        "to",
        "in",
        "what",
        "is",
        "we",
        "you",
        "it",
        "that",
        "this",
        "was",
        "have",
    ]
    (tmp_path / "books.txt").write_text(
        "".join(f"{' '.join(words[n:] + words[:n])}\n" for n in range(20))
    )
    few = ("--scratch", "false", "--noises", "0.5", "--audit", "false", "--tune", "true")
    order = ("--private-sampling", "poisson ordered", "--private-cohort", "10", "--bands", "2")
    work = tmp_path / "work"
    text = ("--decode", "false", "--nnlm-text", tmp_path / "books.txt", "--work-dir", work)
    done = run_recipe(*TINY, *text, *few, *order)
    assert done.returncode == 0, done.stdout
    known = {
        line.split()[0] for line in (work / "data/lang_public/words.txt").read_text().splitlines()
    }
    assert known - {"<eps>", "#0"} == set(words)
    table = (work / "exp/fedlm_text_lstm/RESULTS.md").read_text()
    assert "all utts, noise 0.5, ordered" in table
    about = json.loads(
        (work / "exp/fedlm_text_lstm/fl_all_noise_0.5_ordered_privacy.json").read_text()
    )
    assert "square_root" in json.dumps(about)
    entries = Ledger(work / "privacy/ledger.json").entries()
    assert [entry.spending.sampling.split()[0] for entry in entries] == ["Poisson,", "each"]
    assert {entry.spending.data for entry in entries} == {"mini/adapt/devices"}
