"""train_lm and perplexity on a handful of sentences, from the command line."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from privasr_k2.fileio import read_json, write_jsonl, write_text
from privasr_k2.graph.lang import symbols_text
from privasr_k2.recipe.launch import argv_of
from tests.support.conf import section
from tests.support.lm_verbs import corpus as corpus  # a fixture
from tests.support.lm_verbs import train_flags
from tests.support.small_lm import GRAMMAR_WORDS, KINDS, grammar_sentences
from tests.support.verbs import call, refused


def ngram(corpus: tuple[Path, Path], path: Path) -> Path:
    call(
        f"train_ngram --in-manifests {corpus[0]} --in-lang {corpus[1]} --out-lm {path}"
        f" --config {section('lm_ngram')}"
    )
    return path


def test_one_table_of_all_kinds(
    corpus: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lms = [ngram(corpus, tmp_path / "a.arpa.gz")]
    for kind in KINDS:
        lms.append(tmp_path / kind)
        call("train_lm", *train_flags(corpus, kind, lms[-1]))
    out, dev = tmp_path / "perplexity.json", corpus[0] / "cuts_dev.jsonl.gz"
    flags = ["--in-lang", corpus[1], "--in-lm", *lms, "--out-perplexity", out]
    call("perplexity", "--in-cuts", dev, *flags)
    found = read_json(out)
    assert [one["lm"] for one in found["lms"]] == [str(path) for path in lms]
    assert {(one["sentences"], one["words"], one["oov"]) for one in found["lms"]} == {
        (30, sum(map(len, grammar_sentences(30, seed=30))), 0)
    }
    assert all(1 < one["ppl"] < len(GRAMMAR_WORDS) for one in found["lms"])
    assert found["treatment"] in capsys.readouterr().out
    text = tmp_path / "text.txt.gz"
    with gzip.open(text, "wt") as file:
        file.writelines(" ".join(sentence) + "\n\n" for sentence in grammar_sentences(30, seed=30))
    call("perplexity", "--in-text", text, *flags)
    assert read_json(out) == found


def test_text_of_the_users_own(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    text = tmp_path / "books.txt"
    write_text(text, "very very\n\nvery strange very\n")
    flags = train_flags(corpus, "lstm", tmp_path / "lm")
    call("train_lm", *flags, "--raw-text", text)
    lines = (tmp_path / "lm" / "words.txt").read_text().splitlines()
    assert lines[:3] == ["</s> 0", "<unk> 1", "very 2"]
    assert len(lines) == len(GRAMMAR_WORDS) + 2


def test_text_of_files(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    """Without a corpus: several files to learn from, then the softmax alone is trained further."""
    from privasr_k2.training.weights import load_tensors

    first, second, dev = tmp_path / "a.txt", tmp_path / "b.jsonl.gz", tmp_path / "dev.jsonl"
    write_text(first, "very very\n\nvery strange very\n")
    sentences = enumerate(grammar_sentences(30, seed=30))
    records = [{"id": n, "text": " ".join(sentence)} for n, sentence in sentences]
    for path in (second, dev):
        write_jsonl(path, records)
    given = ["--in-text", first, second, "--in-dev", dev, "--in-lang", corpus[1]]
    call("train_ngram", *given, f"--config {section('lm_ngram')} --out-lm {tmp_path}/a.arpa")
    assert "\tname3" in (tmp_path / "a.arpa").read_text()
    shared = train_flags(corpus, "lstm", tmp_path / "lm")[4:]
    call("train_lm", *given, *shared)
    settings = ("trained=output", "output.tied=false", "epochs=1")
    tuned = f"--in-init {tmp_path}/lm --out-dir {tmp_path}/tuned"
    call("train_lm", *given, *shared, *settings, tuned)
    before, after = (
        load_tensors(tmp_path / name / "model.safetensors") for name in ("lm", "tuned")
    )
    changed = {name for name in before if not before[name].equal(after[name])}
    assert changed == {name for name in before if name.startswith("output.")}
    # The corpus's own dev serves as well, and JSON Lines are a text to be scored.
    call(f"train_lm --in-text {second} --in-manifests {corpus[0]}", *given[-2:], *shared)
    flags = (
        f"--in-lang {corpus[1]} --in-lm {tmp_path}/lm --out-perplexity {tmp_path}/p.json".split()
    )
    found = []
    for text in (["--in-text", dev], ["--in-cuts", corpus[0] / "cuts_dev.jsonl.gz"]):
        call("perplexity", *text, *flags)
        found.append(read_json(tmp_path / "p.json"))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("train_lm --in-text a.txt", "--in-dev: expected dev text to score epochs on, found none"),
        ("train_lm --in-dev a.txt", "--in-manifests: expected a corpus, or files of text"),
        ("train_lm --in-text a --raw-text a", "not allowed with argument"),
        ("train_lm --in-text a --in-dev a --set text=both", "text=auto with --in-text"),
        ("train_lm --set trained=output", "output.tied=false"),
        (
            "train_lm --in-text a.txt --in-dev a.txt --set trained=output output.tied=false",
            "--in-init",
        ),
        ("train_ngram --in-text a --raw-arpa a", "not allowed with argument"),
        ("train_ngram --in-text no.txt", "no.txt: expected text, found no such file"),
        ("train_ngram", "--in-manifests: expected a corpus, or files of text"),
    ],
)
def test_text_that_is_refused(
    command: str,
    named: str,
    monkeypatch: pytest.MonkeyPatch,
    corpus: tuple[Path, Path],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path / "a.txt", "very\n")
    neural = command.startswith("train_lm")
    out, name = ("--out-dir", "lm_lstm") if neural else ("--out-lm", "lm_ngram")
    with refused(named):
        call(f"{command} --in-lang {corpus[1]} {out} out --config {section(name)}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["--set", "text=lm_text"], "expected text for text=lm_text, found no such file"),
        (["--set", "network.layers=0"], "network.layers must be at least 1"),
        (["--set", "kind=transformer"], "kind must be that of the configuration's file"),
        (["--in-lang", "nowhere"], "nowhere/"),
    ],
)
def test_what_is_refused(
    more: list[str], named: str, corpus: tuple[Path, Path], tmp_path: Path
) -> None:
    with refused(named):
        call("train_lm", *train_flags(corpus, "lstm", tmp_path / "lm"), *more)
    assert not (tmp_path / "lm").exists()


def test_a_model_of_other_words_is_refused(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    arpa = ngram(corpus, tmp_path / "a.arpa")
    other = tmp_path / "lang"
    shutil.copytree(corpus[1], other)
    words = ["<eps>", *GRAMMAR_WORDS, "more", "#0"]
    write_text(other / "words.txt", symbols_text(words))
    text = tmp_path / "text.txt"
    write_text(text, "very\nvery more\n")
    flags = ["--in-lang", other, "--in-lm", arpa, "--out-perplexity", tmp_path / "p.json"]
    with refused("a.arpa: expected the vocabulary of words.txt"):
        call("perplexity", "--in-text", text, *flags)
    assert not (tmp_path / "p.json").exists()


@pytest.mark.slow
def test_two_processes(corpus: tuple[Path, Path], repo_root: Path, tmp_path: Path) -> None:
    """Under torchrun, with clusters that a process's batch may not touch."""
    more = ("output.cutoffs=[3,9]", "epochs=4")
    flags = map(str, train_flags(corpus, "lstm", tmp_path / "lm", *more))
    command = argv_of(["train_lm", *flags], ("torchrun", "--nproc_per_node", "2"))
    environment = {**os.environ, "PYTHONPATH": str(repo_root), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    from privasr_k2.lm.mixtures import open_lm
    from privasr_k2.lm.perplexity import perplexity

    result = perplexity(open_lm(tmp_path / "lm"), grammar_sentences(30, seed=30), GRAMMAR_WORDS)
    assert result.ppl < 4
