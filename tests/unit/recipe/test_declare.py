"""Stages and systems of a recipe, as it declares them."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from privasr_k2.errors import ConfigError, DataError
from privasr_k2.recipe.corpus import Corpus
from privasr_k2.recipe.declare import DataOptions, Launchers, Recipe, RunOptions, command_line
from privasr_k2.recipe.systems import System, read_systems, write_systems


def recipe(tmp_path: Path, **run: object) -> Recipe:
    corpus = Corpus("mini", people="mini", conf=tmp_path / "own")
    chosen = {"run": RunOptions(nj=2, **run), "data": DataOptions(preset="tiny"), "own": {}}  # type: ignore[arg-type]
    launchers = Launchers("local", "torchrun", "slurm")
    places = {"root": tmp_path, "command": "./run.sh mini toy"}
    declared = Recipe("toy", corpus=corpus, launchers=launchers, **chosen, **places)  # type: ignore[arg-type]
    declared.exp = "exp/toy"
    return declared


def test_a_stage_is_a_verb_with_flags(tmp_path: Path) -> None:
    r = recipe(tmp_path)
    settings = {"order": 3, "weights": (0.5, 1e-5), "epsilon": inf, "prune": None, "tied": True,
                "words": ("stop", "yes", "'tis", "a,b")}  # fmt: skip
    flags = {"in_lang": "data/lang", "raw_arpa": None, "in_text": ["a", "b"], "out_lm": "lm.gz"}
    out = r.stage(3, "LM", "train_ngram", set=settings, **flags)
    assert out == "lm.gz"
    assert r.records[-1] == [
        "3", "LM", "--cmd", "local", "train_ngram", "--in-lang", "data/lang", "--in-text", "a", "b",
        "--out-lm", "lm.gz", "--set", "order=3", "weights=[0.5,1e-05]", "epsilon=.inf", "tied=true",
        """words=[stop,"yes","'tis","a,b"]""",
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="text"):
        r.stage(3, "LM", "train_ngram", text="x")


def test_arrays_launchers_and_devices(tmp_path: Path) -> None:
    r = recipe(tmp_path, device="cpu")
    r.stage(1, "decode", "decode", jobs=2, device=True, out_hyps="h/JOB.jsonl")
    assert r.records[-1][2:5] == ["JOB=1:2", "--cmd", "slurm"]
    assert r.records[-1][-5:] == ["--set", "job=JOB", "num_jobs=2", "--device", "cpu"]
    r.stage(2, "train", "train_am", train=True, array=15, out_dir="am/JOB")
    assert r.records[-1][2:5] == ["JOB=1:15", "--cmd", "torchrun"]
    assert "job=JOB" not in r.records[-1]
    assert recipe(tmp_path, cmd="slurm --mem 1G").stage(1, "x", "v", out_a="a") == "a"


def test_releases_get_the_ledger_and_the_limit(tmp_path: Path) -> None:
    r = recipe(tmp_path, max_epsilon=1.5)
    r.stage(1, "release", "release_fmp", out_dir="d", spends=True)
    assert r.records[-1][-4:] == ["--ledger", "privacy/ledger.json", "--max-epsilon", "1.5"]
    r.stage(1, "results", "report", out_report="r", ledger=True)
    assert "--max-epsilon" not in r.records[-1]


def test_systems_are_written_and_read_back(tmp_path: Path) -> None:
    r = recipe(tmp_path)
    public = r.system("public", label="public only", method="public")
    facts = {"epsilon": inf, "teachers": 15}
    private = r.system("pate/8", label="PATE", method="pate", public=public, **facts)
    private.compare_with(public, None, public)
    assert private.path("privacy", "privacy.json") == "exp/toy/pate/8/privacy.json"
    private.add("perplexity", "exp/p.json#M4")
    write_systems(tmp_path / "systems.jsonl", [public.system, private.system])
    first, second = read_systems(tmp_path / "systems.jsonl")
    assert first == System("public", "public only", "public", "exp/toy/public")
    assert second.compare_with == ("public",) and second.facts == {"epsilon": "inf", "teachers": 15}
    artifacts = {"privacy": "exp/toy/pate/8/privacy.json", "perplexity": "exp/p.json#M4"}
    assert dict(second.artifacts) == artifacts
    with pytest.raises(ConfigError, match="twice"):
        r.system("public", label="again", method="public")


def test_a_file_of_systems_that_is_none(tmp_path: Path) -> None:
    path, system = tmp_path / "systems.jsonl", System("a", "a", "pate", "a")
    alone = System("a", "a", "pate", "a", compare_with=("b",))
    for systems, message in (([alone], "compare"), ([system, system], ":2")):
        write_systems(path, systems)
        with pytest.raises(DataError, match=message):
            read_systems(path)
    path.write_text("{}\n")
    with pytest.raises(DataError, match=":1"):
        read_systems(path)


def test_the_report_reads_every_artifact_once(tmp_path: Path) -> None:
    r = recipe(tmp_path)
    for name in ("a", "b"):
        r.system(name, label=name, method="ngram").add("perplexity", f"exp/p.json#{name}")
    r.report(9, manifests="data/manifests")
    words = r.records[-1]
    place = words.index("--in-artifacts")
    assert words[place + 1 : place + 3] == ["exp/p.json", "--in-manifests"]


def test_the_command_of_a_table_leaves_out_what_changes_no_result() -> None:
    given = {"nj": "2", "word": "it's", "token_type": "char"}
    command = """./run.sh mini ctc --word 'it'"'"'s' --token-type char"""
    assert command_line("mini", "ctc", given, ["nj"]) == command
