"""train_lm and perplexity on a handful of sentences, from the command line."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from privasr_k2.fileio import read_json, write_text
from privasr_k2.graph.lang import symbols_text
from tests.support.conf import section
from tests.support.lm_verbs import corpus as corpus  # a fixture
from tests.support.lm_verbs import train_flags
from tests.support.small_lm import GRAMMAR_WORDS, KINDS, grammar_sentences
from tests.support.verbs import call


def ngram(
    monkeypatch: pytest.MonkeyPatch, corpus: tuple[Path, Path], repo_root: Path, path: Path
) -> Path:
    flags = [
        "--in-manifests",
        corpus[0],
        "--in-lang",
        corpus[1],
        "--config",
        section("lm_ngram"),
    ]
    call(monkeypatch, "train_ngram", *flags, "--out-lm", path)
    return path


def test_one_table_of_all_kinds(
    monkeypatch: pytest.MonkeyPatch,
    corpus: tuple[Path, Path],
    repo_root: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lms = [ngram(monkeypatch, corpus, repo_root, tmp_path / "a.arpa.gz")]
    for kind in KINDS:
        lms.append(tmp_path / kind)
        call(monkeypatch, "train_lm", *train_flags(corpus, repo_root, kind, lms[-1]))
    out, dev = tmp_path / "perplexity.json", corpus[0] / "cuts_dev.jsonl.gz"
    flags = ["--in-lang", corpus[1], "--in-lm", *lms, "--out-perplexity", out]
    call(monkeypatch, "perplexity", "--in-cuts", dev, *flags)
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
    call(monkeypatch, "perplexity", "--in-text", text, *flags)
    assert read_json(out) == found


def test_text_of_the_users_own(
    monkeypatch: pytest.MonkeyPatch, corpus: tuple[Path, Path], repo_root: Path, tmp_path: Path
) -> None:
    text = tmp_path / "books.txt"
    write_text(text, "very very\n\nvery strange very\n")
    flags = train_flags(corpus, repo_root, "lstm", tmp_path / "lm")
    call(monkeypatch, "train_lm", *flags, "--raw-text", text)
    lines = (tmp_path / "lm" / "words.txt").read_text().splitlines()
    assert lines[:3] == ["</s> 0", "<unk> 1", "very 2"]
    assert len(lines) == len(GRAMMAR_WORDS) + 2


def test_text_of_files(
    monkeypatch: pytest.MonkeyPatch, corpus: tuple[Path, Path], repo_root: Path, tmp_path: Path
) -> None:
    """Without a corpus: several files to learn from, one to score on; then the softmax alone,
    further.
    """
    from privasr_k2.training.weights import load_tensors

    first, second, dev = tmp_path / "a.txt", tmp_path / "b.jsonl.gz", tmp_path / "dev.jsonl"
    write_text(first, "very very\n\nvery strange very\n")
    spoken = [" ".join(sentence) for sentence in grammar_sentences(30, seed=30)]
    for path in (second, dev):
        write_text(
            path,
            "".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(spoken)),
        )
    given = ["--in-text", first, second, "--in-dev", dev, "--in-lang", corpus[1]]
    call(
        monkeypatch, "train_ngram", *given, "--config", section("lm_ngram"),
        "--out-lm", tmp_path / "a.arpa",
    )  # fmt: skip
    assert "\tname3" in (tmp_path / "a.arpa").read_text()
    shared = train_flags(corpus, repo_root, "lstm", tmp_path / "lm")[4:]
    call(monkeypatch, "train_lm", *given, *shared)
    tuned = [
        *given,
        *shared,
        "trained=output",
        "output.tied=false",
        "epochs=1",
        "--in-init",
        tmp_path / "lm",
    ]
    call(monkeypatch, "train_lm", *tuned, "--out-dir", tmp_path / "tuned")
    before, after = (
        load_tensors(tmp_path / name / "model.safetensors") for name in ("lm", "tuned")
    )
    changed = {name for name in before if not before[name].equal(after[name])}
    assert changed == {name for name in before if name.startswith("output.")}
    # The corpus's own dev serves as well, and JSON Lines are a text to be scored.
    call(
        monkeypatch,
        "train_lm",
        "--in-text",
        second,
        "--in-manifests",
        corpus[0],
        *given[-2:],
        *shared,
    )
    flags = [
        "--in-lang",
        corpus[1],
        "--in-lm",
        tmp_path / "lm",
        "--out-perplexity",
        tmp_path / "p.json",
    ]
    found = []
    for text in (["--in-text", dev], ["--in-cuts", corpus[0] / "cuts_dev.jsonl.gz"]):
        call(monkeypatch, "perplexity", *text, *flags)
        found.append(read_json(tmp_path / "p.json"))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("verb", "flags", "named"),
    [
        (
            "train_lm",
            ["--in-text", "a.txt"],
            "--in-dev: expected dev text to score epochs on, found none",
        ),
        ("train_lm", ["--in-dev", "a.txt"], "--in-manifests: expected a corpus, or files of text"),
        ("train_lm", ["--in-text", "a", "--raw-text", "a"], "not allowed with argument"),
        (
            "train_lm",
            ["--in-text", "a", "--in-dev", "a", "--set", "text=both"],
            "text=auto with --in-text",
        ),
        ("train_lm", ["--set", "trained=output"], "output.tied=false"),
        (
            "train_lm",
            [
                "--set",
                "trained=output",
                "output.tied=false",
                "--in-text",
                "a.txt",
                "--in-dev",
                "a.txt",
            ],
            "--in-init",
        ),
        ("train_ngram", ["--in-text", "a", "--raw-arpa", "a"], "not allowed with argument"),
        (
            "train_ngram",
            ["--in-text", "nowhere.txt"],
            "nowhere.txt: expected text, found no such file",
        ),
        ("train_ngram", [], "--in-manifests: expected a corpus, or files of text"),
    ],
)
def test_text_that_is_refused(
    verb: str,
    flags: list[str],
    named: str,
    monkeypatch: pytest.MonkeyPatch,
    corpus: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_text(tmp_path / "a.txt", "very\n")
    out, name = ("--out-dir", "lm_lstm") if verb == "train_lm" else ("--out-lm", "lm_ngram")
    shared = ["--in-lang", corpus[1], out, "out", "--config", section(name)]
    with pytest.raises(SystemExit) as stopped:
        call(monkeypatch, verb, *shared, *flags)
    assert stopped.value.code == 2
    assert named in capsys.readouterr().err
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
    more: list[str],
    named: str,
    monkeypatch: pytest.MonkeyPatch,
    corpus: tuple[Path, Path],
    repo_root: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as stopped:
        call(
            monkeypatch, "train_lm", *train_flags(corpus, repo_root, "lstm", tmp_path / "lm"), *more
        )
    assert stopped.value.code == 2
    assert named in capsys.readouterr().err
    assert not (tmp_path / "lm").exists()


def test_a_model_of_other_words_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    corpus: tuple[Path, Path],
    repo_root: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arpa = ngram(monkeypatch, corpus, repo_root, tmp_path / "a.arpa")
    other = tmp_path / "lang"
    shutil.copytree(corpus[1], other)
    words = ["<eps>", *GRAMMAR_WORDS, "more", "#0"]
    write_text(other / "words.txt", symbols_text(words))
    text = tmp_path / "text.txt"
    write_text(text, "very\nvery more\n")
    flags = ["--in-lang", other, "--in-lm", arpa, "--out-perplexity", tmp_path / "p.json"]
    with pytest.raises(SystemExit) as stopped:
        call(monkeypatch, "perplexity", "--in-text", text, *flags)
    assert stopped.value.code == 2
    assert "a.arpa: expected the vocabulary of words.txt" in capsys.readouterr().err
    assert not (tmp_path / "p.json").exists()


@pytest.mark.slow
def test_two_processes(corpus: tuple[Path, Path], repo_root: Path, tmp_path: Path) -> None:
    """Under torchrun, with clusters that a process's batch may not touch."""
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--redirects",
        "1",
        "--tee",
        "1",
        "--standalone",
    ]
    command += ["--nproc_per_node", "2", "-m", "privasr_k2.bin.train_lm"]
    flags = train_flags(
        corpus, repo_root, "lstm", tmp_path / "lm", "output.cutoffs=[3,9]", "epochs=4"
    )
    environment = {**os.environ, "PYTHONPATH": str(repo_root), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, *map(str, flags)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    from privasr_k2.lm.mixtures import open_lm
    from privasr_k2.lm.perplexity import perplexity

    result = perplexity(open_lm(tmp_path / "lm"), grammar_sentences(30, seed=30), GRAMMAR_WORDS)
    assert result.ppl < 4
