"""The command ``privasr``: light until a subcommand runs, and verbs as ``python -m`` runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from privasr_k2 import __main__ as command
from tests.support.conf import section
from tests.support.hotwords import write_list
from tests.support.verbs import call, refused

HEAVY = ("torch", "lhotse", "k2", "numpy", "scipy", "omegaconf", "yaml")


def privasr(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "privasr_k2", *words]
    return subprocess.run(
        argv, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


@pytest.mark.parametrize("words", [["--help"], ["verb", "--list"], ["verb", "--help"], ["nothing"]])
def test_nothing_heavy_is_imported(words: list[str]) -> None:
    code = (
        "import json, sys\n"
        "from privasr_k2.__main__ import main\n"
        "status = 0\n"
        "try: main(sys.argv[2:], prog_name='privasr')\n"
        "except SystemExit as end: status = end.code\n"
        "print(json.dumps([status, sorted(set(json.loads(sys.argv[1])) & set(sys.modules))]))"
    )
    argv = [sys.executable, "-c", code, json.dumps(HEAVY), *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    status, imported = json.loads(done.stdout.splitlines()[-1])
    assert (status, imported) == (2 if words == ["nothing"] else 0, [])


def test_every_verb_is_listed_with_a_sentence() -> None:
    shown = CliRunner().invoke(command.main, ["verb", "--list"]).output.splitlines()
    listed = dict(line.split(maxsplit=1) for line in shown)
    assert list(listed) == command.verb_names()
    assert {"train_am", "wer", "aggregate_votes"} <= set(listed)
    assert [verb for verb, text in listed.items() if not text.endswith((".", "?"))] == []


def test_there_are_at_most_58_verbs() -> None:
    assert len(command.verb_names()) <= 58


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("decode --out-lattices x", "--out-lattices"),
        ("decode --in-graph g --out-hyps x --out-nbest y", "--out-hyps --out-nbest"),
        ("decode --in-graph g --out-nbest y", "with --in-weights"),
        ("decode --in-graph g --out-hyps x --in-lang l", "maybe --in-lang"),
        ("audit", "--in-labels; or "),
        ("audit --in-labels l --in-clients c --in-init m", "found --in-labels"),
        ("audit --in-labels l --in-init m", "found --in-labels --in-init"),
        ("audit --in-timeline t --in-nbest n", "--in-timeline --in-nbest --in-lm"),
        ("export --in-model m --out-trn t", "--in-nbest for --out-trn"),
        ("export --in-model m --out-recognizer r", "--in-graph --in-feats --in-weights"),
        ("export --in-lang l --in-model m --out-recognizer r", "--in-lang --in-model"),
        ("transcribe --in-exp e --hotword-bonus 2 f.wav", "--hotwords with it"),
        ("transcribe --in-exp e --contact-log-prob -3 f.wav", "--contacts with it"),
        ("decode --in-contacts c --in-graph g --out-hyps x", "--in-contact-graph, --in-contacts"),
        (
            "decode --in-contact-graph c --in-lang l --out-hyps x",
            "--in-contact-graph, --in-contacts",
        ),
        ("compile_graph --in-lang l --in-lm m", "one of the arguments"),
        ("compile_graph --in-lang l --in-lm . --out-contact-graph o", "replace_names"),
        ("transcribe --in-exp e --hotwords LIST --contacts LIST f.wav", "one list"),
        ("compile_graph --in-lang l --in-lm . --in-hotwords LIST --out-dir o", "replace_names"),
        ("compile_graph --in-lang l --in-lm . --in-contacts LIST --out-dir o", "replace_names"),
        (
            "compile_graph --in-lang l --in-lm m --in-hotwords LIST --in-contacts LIST --out-dir o",
            "one list",
        ),
        ("import_external --raw-model m --out-nbest n", "--raw-tokens --out-dir"),
        ("train_ngram --in-text t --in-public-lists l --out-lm m", "--out-class-lm"),
        ("train_ngram --in-lm l --in-text t --out-class-lm m", "--in-lm for --out-lm"),
        ("personalize --out-scores s --out-run r --out-choice c", "or --out-choice"),
        ("personalize --out-scores s --out-run r --in-weights w", "that group"),
        ("prepare_fmp --out-background u --in-lm l", "with --in-lm and text"),
        ("privacy_plan --kind queries --num-units 7", "found --num-units"),
        ("tune_weights --in-nbest n --out-weights w", "--in-nbest with --in-scores"),
        ("export --in-nbest n", "an --out flag"),
        ("import_external --raw-lattices l --out-nbest x", "--raw-words"),
        ("import_external --raw-trn t --raw-words w --out-nbest x", "--raw-words"),
        ("import_external --raw-scores s --in-graph g --raw-words w --out-nbest x", "--in-graph"),
        ("export --in-class-lm l --out-kaldi-g G.fst", "--in-class-lm --raw-words for"),
        ("compile_graph --in-lm m --out-dir o", "or --raw-kaldi-lang"),
        ("export --out-words w", "--in-lattices for --out-words"),
        ("export --in-recognizer r", "an --out flag"),
        ("export --in-recognizer r --in-feats f --sherpa d", "--in-recognizer for --out-sherpa"),
        ("import_external --out-nbest x", "one of the arguments"),
        ("import_external --out-nbest x --raw-trn a --raw-ctm b", "not allowed with"),
        ("tag_entities", "--raw-conll or --in-manifests"),
        ("tag_entities --in-text t.jsonl", "an --out- for each --in-"),
        ("report_entities --in-text t --out-report r --in-privacy p", "give both"),
    ],
)
def test_flags_of_one_verb_that_do_not_go_together(words: str, part: str, tmp_path: Path) -> None:
    words = words.replace("LIST", str(write_list(tmp_path / "names.txt", "ann")))
    required = {
        "decode": "--in-model m --in-feats f",
        "audit": "--out-audit a",
        "train_ngram": "--in-lang l",
        "tag_entities": f"--config {section('tag_entities')}",
        "personalize": "--in-nbest n --in-timeline t --in-lm l --in-background u",
    }
    with refused(part):
        call(f"{words} {required.get(words.split()[0], '')}")


def test_subcommands_of_people_are_verbs() -> None:
    assert set(command.PEOPLE.values()) <= set(command.verb_names())


def test_a_verb_gets_its_flags_and_its_help(tmp_path: Path) -> None:
    flags = ["--privacy-unit", "speaker", "--num-units", "74", "--delta", "1e-5", "--rounds", "10"]
    flags += ["--client-fraction", "0.1"]
    plan, verb = tmp_path / "plan.json", tmp_path / "verb.json"
    first = privasr("plan", *flags, "--noise", "1", "--out-plan", str(plan))
    again = privasr("verb", "privacy_plan", *flags, "--noise", "1", "--out-plan", str(verb))
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert plan.read_text() == verb.read_text()
    assert "--threshold-noise" in privasr("plan", "--help").stdout


def test_wrong_words_are_one_message_and_2() -> None:
    for words, part in (
        (["verb", "selct_nbest"], "'select_nbest'"),
        (["plna"], "'plan'"),
        (["verb", "wer", "--speed"], "privasr verb wer --help"),
        (["run", "mini", "cct"], "ctc"),
    ):
        done = privasr(*words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert part in done.stderr
        assert "Traceback" not in done.stderr


def test_recipes_need_a_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "ROOT", tmp_path)
    done = CliRunner().invoke(command.main, ["run", "mini", "ctc"])
    assert done.exit_code == 2
    assert "way out: clone the repository" in done.stderr


def test_a_package_that_is_not_installed_is_named() -> None:
    blocked = "import sys; sys.modules['omegaconf'] = None; from privasr_k2.__main__ import main; "
    argv = [sys.executable, "-c", f"{blocked} main(['compare', 'a', 'b'], prog_name='privasr')"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "expected the package omegaconf" in done.stderr


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("privasr pri", {"privacy"}),
        ("privasr verb train_d", {"train_dpsgd"}),
        ("privasr run min", {"mini", "mini_pate"}),
        ("privasr run mini ct", {"ctc"}),
    ],
)
def test_completion(typed: str, expected: set[str]) -> None:
    environment = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    done = privasr(_PRIVASR_COMPLETE="bash_complete", **environment)
    assert {line.partition(",")[2] for line in done.stdout.split()} == expected
