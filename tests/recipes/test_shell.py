"""run.sh, egs/*/run.sh and local/*.sh: options, paths, layers and help, with a small recipe of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.recipes.private_tools import VERB
from tests.recipes.stage_tools import ROOT, shell_clone

TOY = """\
# A recipe for tests: two stages.
#
# Options: number, scale, several, flag, word.
number=3 scale=0.5 several='1 10' flag=false word=some
am_model='' place='' value='' line=''
. parse_options.sh
exp=exp/toy_$word
if [[ $flag == true ]]; then ignored "--flag true, which has its own" word; fi
if [[ $line == people ]]; then echo "people: $people"; fi
stage 0 "data of $corpus" "$PRIVASR_ROOT/copy" --in-x "$PRIVASR_ROOT/x" \\
  ${corpus_dir:+--raw-corpus "$corpus_dir"} --out-data data/d \\
  --set "value=number=$number scale=$scale several=$several flag=$flag $corpus_options"
report=$exp/RESULTS.md
stage 1 "table" "$PRIVASR_ROOT/copy" --in-data data/d $(layers toy) --out-report "$report" \\
  --set "value=$command_line" --device "$device"
"""
PRIVATE = """\
# A private recipe for tests: a plan, then noisy sums.
. parse_options.sh
stage 0 "budget" privacy_plan --set unit=user units=1000 rate=0.5 rounds=6 noise=2.0 delta=1e-5 \\
  ${max_epsilon:+--max-epsilon "$max_epsilon"} --out-plan exp/plan.json
stage 1 "sums" "$PRIVASR_ROOT/noisy_sums" --in-private-data "$PRIVASR_ROOT/numbers" $(budget) \\
  --out-dir exp/sums --out-privacy exp/privacy.json --set rounds=6 noise=2.0 rate=0.5 seconds=0
"""
CORPUS = """\
#!/usr/bin/env bash
# A corpus for tests.
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
. ../../path.sh
. settings.sh
corpus=little
corpus_dir=corpus users='' corpus_settings=users
. run_recipe.sh
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The shell files of the repository, with one corpus and one recipe for tests."""
    made = shell_clone(tmp_path / "clone", {"little": CORPUS})
    (made / "local/recipes/ctc.sh").write_text(TOY)
    (made / "egs/little/corpus").mkdir()
    for name in ("toy", "ctc/toy", "tiny/toy", "paper/toy", "paper/ctc/toy"):
        (made / f"conf/{name}.yaml").parent.mkdir(parents=True, exist_ok=True)
        (made / f"conf/{name}.yaml").write_text(f"value: {name}\n")
    (made / "conf/search.yaml").write_text("beam: 3\n")
    return made


def run(root: Path, *words: str, code: int = 0, cwd: Path | None = None) -> str:
    """Run ./run.sh; both outputs together."""
    done = subprocess.run(
        [root / "run.sh", *words],
        cwd=cwd or root,
        env={**os.environ, "PRIVASR_ENV": "current", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    text = done.stdout + done.stderr
    assert done.returncode == code, text
    return text


def data(root: Path, work: str = "egs/little") -> str:
    """What stage 0 has written."""
    return (root / work / "data/d").read_text()


def report(root: Path, work: str = "egs/little", word: str = "some") -> str:
    """What stage 1 has written."""
    return (root / work / f"exp/toy_{word}/RESULTS.md").read_text()


def layers(root: Path, work: str = "egs/little") -> list[str]:
    """The values of the YAML files that stage 1 has read, in order."""
    return [line.removeprefix("value: ") for line in report(root, work).splitlines()[2:-1]]


def test_runs_and_shows_the_report_at_the_end(root: Path) -> None:
    said = run(root, "little", "ctc")
    work = root / "egs/little"
    assert said.startswith(f"work folder: {work}\n")
    assert said.endswith(f"{report(root)}\nthese tables: {work}/exp/toy_some/RESULTS.md\n")
    assert "number=3 scale=0.5 several=1 10 flag=false" in data(root)
    assert run(root, "little", "ctc").count("up to date") == 2


def test_options_of_both_spellings(root: Path) -> None:
    words = [
        "--number",
        "-4",
        "--scale",
        "1e-5",
        "--several",
        "2 20 200",
        "--flag",
        "true",
        "--stop_stage",
        "0",
    ]
    said = run(root, "little", "ctc", *words, "--users", "300")
    assert "number=-4 scale=1e-5 several=2 20 200 flag=true  users=300" in data(root)
    assert "table" not in said
    run(root, "little", "ctc", "--stage", "1", "--stop-stage", "1", *words[:8], "--users", "300")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--nubmer", "3"], ["--nubmer", "did you mean --number?"]),
        (["--numb er", "3"], ["--numb er"]),
        (["--beam", "3"], ["it is a key of search.yaml in conf/", "in egs/little/conf/"]),
        (["--number"], ["--number: expected a value", "write --number VALUE"]),
        (["--flag"], ["write --flag true"]),
        (["--number", "--flag", "true"], ["--number: expected a value, found the option --flag"]),
        (["--number=3"], ["write --number '3'"]),
        (["number", "3"], ["--name value"]),
        (["--number", "3.5"], ["a whole number", "'3.5'"]),
        (["--number", "3 4"], ["a whole number", "'3 4'"]),
        (["--number", ""], ["a whole number"]),
        (["--scale", "fast"], ["a number", "'fast'"]),
        (["--several", "1 x"], ["'x'"]),
        (["--flag", "yes"], ["true or false", "'yes'"]),
        (["--stage", "two"], ["a whole number"]),
        (["--PATH", "/tmp"], ["an option that exists"]),
        (["--count", "3"], ["an option that exists"]),
        (["--word", "x", "--flag", "true"], ["--word: expected options that change", "leave it away"]),
        (["--corpus", "other"], ["an option that exists"]),
        (["--size", "huge"], ["tiny, demo, small or paper"]),
        (["--nj", "0"], ["--nj: expected a whole number above 0"]),
        (["--side-by-side", "0"], ["--side-by-side: expected a whole number above 0"]),
        (["--config", "no/such/file"], ["no/such/file"]),
        (["--config"], ["a value"]),
        (["--cmd", "qsub"], ["'local', 'torchrun' with its options, or 'slurm'"]),
        (["--corpus-dir", "no/such/corpus"], ["no/such/corpus", "nothing there"]),
    ],
)
def test_bad_options(root: Path, words: list[str], parts: list[str]) -> None:
    said = run(root, "little", "ctc", *words, code=2)
    for part in ["error: ", "way out: ", *parts]:
        assert part in said
    assert not (root / "egs/little/data").exists()


def test_only_options_are_proposed_and_taken(root: Path, tmp_path: Path) -> None:
    assert "--corpus?" not in run(root, "little", "ctc", "--corpu", "x", code=2)
    (tmp_path / "mine.py").write_text("")
    (root / "local/recipes/ctc.sh").write_text(TOY.replace(" word=some", "").replace("_$word", "_some"))
    assert "an option that exists" in run(root, f"{tmp_path}/mine.py", "ctc", "--word", "x", code=2)


def test_an_early_end_shows_no_old_table(root: Path) -> None:
    run(root, "little", "ctc")
    assert report(root) not in run(root, "little", "ctc", "--number", "4", "--stop-stage", "0")


def test_a_work_folder_that_cannot_be_made(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = run(root, "little", "ctc", "--work-dir", str(tmp_path / "file/work"), code=2)
    assert "expected a folder to work in" in said
    assert "--work-dir" in said


def test_config_file_comes_before_the_command_line(root: Path, tmp_path: Path) -> None:
    (tmp_path / "my.conf").write_text(
        "# a comment\n\nnumber = 7   # seven\n--several '5 6'\nscale=2\r\nflag=true"
    )
    run(root, "little", "ctc", "--number", "8", "--config", "my.conf", cwd=tmp_path)
    assert "number=8 scale=2 several=5 6 flag=true" in data(root)
    (tmp_path / "my.conf").write_text("number=7\nnubmer=8\n")
    assert "my.conf:2" in run(root, "little", "ctc", "--config", "my.conf", cwd=tmp_path, code=2)
    (tmp_path / "my.conf").write_text("number\n")
    assert "my.conf:1" in run(root, "little", "ctc", "--config", "my.conf", cwd=tmp_path, code=2)
    (tmp_path / "my.conf").write_text("word=$(touch hacked)\n")
    run(root, "little", "ctc", "--config", "my.conf", "--dry-run", "true", cwd=tmp_path)
    assert list(tmp_path.rglob("hacked")) == []


def test_relative_paths_mean_the_callers_folder(root: Path, tmp_path: Path) -> None:
    caller = tmp_path / "here"
    (caller / "my corpus").mkdir(parents=True)
    run(root, "little", "ctc", "--corpus-dir", "my corpus", "--work-dir", "my work", cwd=caller)
    assert (caller / "my work/exp/toy_some/RESULTS.md").exists()
    assert not (root / "egs/little/data").exists()
    assert list((caller / "my corpus").iterdir()) == []
    # Another spelling of the same folder is the same corpus.
    again = run(
        root, "little", "ctc", "--corpus-dir", str(caller / "my corpus"), "--work-dir", "my work", cwd=caller
    )
    assert "stage 0 (data of little) ... up to date" in again


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("small", ["toy", "ctc/toy", "corpus"]),
        ("tiny", ["toy", "ctc/toy", "corpus", "tiny/toy", "corpus tiny"]),
        ("paper", ["toy", "ctc/toy", "corpus", "paper/toy", "paper/ctc/toy", "corpus paper"]),
    ],
)
def test_layers(root: Path, size: str, expected: list[str]) -> None:
    for folder, text in (("", "corpus"), ("tiny", "corpus tiny"), ("paper", "corpus paper")):
        (root / "egs/little/conf" / folder).mkdir(parents=True, exist_ok=True)
        (root / "egs/little/conf" / folder / "toy.yaml").write_text(f"value: {text}\n")
    run(root, "little", "ctc", "--size", size)
    assert layers(root) == expected


def test_numbers_that_nothing_would_read(root: Path) -> None:
    own = root / "egs/little/conf"
    own.mkdir()
    (own / "toy.yaml").write_text("value: 1\n")
    (own / "little.yaml").write_text("users: 3\n")
    (own / "tyo.yaml").write_text("value: 2\n")
    said = run(root, "little", "ctc", "--dry-run", "true")
    assert said.count("note:") == 2
    assert "egs/little/conf/toy.yaml: value is not used: stage 1 (table) has ./run.sh little ctc" in said
    assert "egs/little/conf/tyo.yaml: no stage reads it, as no file of conf/ has its name" in said
    (own / "toy.yaml").write_text("vlaue: 1\n")
    said = run(root, "little", "ctc", "--dry-run", "true", code=2)
    assert "conf/toy.yaml: expected a key of conf/toy.yaml, found vlaue" in said
    assert "did you mean value?" in said


def test_the_command_in_the_table_has_what_changes_results(root: Path) -> None:
    run(root, "little", "ctc", "--nj", "3", "--word", "it's", "--device", "cpu", "--wait", "false")
    assert "value=./run.sh little ctc --word 'it'\\''s'" in report(root, word="it's")


def test_an_own_corpus_file(root: Path, tmp_path: Path) -> None:
    own = tmp_path / "my things"
    (own / "conf").mkdir(parents=True)
    (own / "mine.py").write_text("")
    (own / "conf/toy.yaml").write_text("value: mine\n")
    before = sorted(own.rglob("*"))
    assert "people: mine\n" in run(root, "my things/mine.py", "ctc", "--line", "people", cwd=tmp_path)
    assert layers(root, "egs/user/mine") == ["toy", "ctc/toy", "mine"]
    assert sorted(own.rglob("*")) == before  # nothing is written there
    assert "people: my_things\n" in run(
        root, "data:my things", "ctc", "--work-dir", "w", "--line", "people", cwd=tmp_path
    )
    assert (tmp_path / "w/data/d").exists()
    assert "expected data: and a folder, found a file" in run(
        root, "data:my things/mine.py", "ctc", code=2, cwd=tmp_path
    )
    assert "nothing" in run(root, "no/such.py", "ctc", code=2)
    assert "no folder" in run(root, "data:", "ctc", code=2)


def test_numbers_for_a_folder_that_is_not_to_be_written_to(root: Path, tmp_path: Path) -> None:
    for place, text in ((tmp_path / "mine", "theirs"), (root / "egs/user/mine", "ours")):
        (place / "conf").mkdir(parents=True, exist_ok=True)
        (place / "conf/toy.yaml").write_text(f"value: {text}\n")
        run(root, "data:mine", "ctc", cwd=tmp_path)
        assert layers(root, "egs/user/mine") == ["toy", "ctc/toy", text]


def test_two_own_corpora_of_one_name(root: Path, tmp_path: Path) -> None:
    for place in ("one", "two"):
        (tmp_path / place / "data").mkdir(parents=True)
    run(root, "data:two/data", "ctc", "--dry-run", "true", cwd=tmp_path)
    run(root, "data:one/data", "ctc", cwd=tmp_path)
    run(root, "data:one/data", "ctc", cwd=tmp_path)
    before = report(root, "egs/user/data")
    said = run(root, "data:two/data", "ctc", cwd=tmp_path, code=2)
    assert f"expected the work of {tmp_path}/two/data, found that of {tmp_path}/one/data" in said
    assert "--work-dir" in said and report(root, "egs/user/data") == before
    run(root, "data:two/data", "ctc", "--work-dir", "w", cwd=tmp_path)


def test_all_recipes_and_a_summary(root: Path) -> None:
    (root / "local/recipes/rescore.sh").write_text(TOY.replace("toy_", "rescore_") + "false\n")
    said = run(root, "little", "--size", "tiny", code=1)
    assert "=== little ctc" in said
    assert "=== little rescore" in said
    assert "ctc      done" in said
    assert "rescore  FAILED" in said


def test_help_and_usage(root: Path) -> None:
    said = run(root, "--help")
    assert "little: A corpus for tests." in said
    assert "ctc: A recipe for tests: two stages." in said
    assert "--stop-stage" in said
    assert run(root, "little", "-h") == said
    assert run(root, "little", "ctc", "--help") == "".join(line[2:] or "\n" for line in _comment())
    assert "a recipe: ctc" in run(root, "little", "ctcc", code=2)
    assert "little" in run(root, "litle", "ctc", code=2)
    assert not (root / "egs/little/data").exists()


def _comment() -> list[str]:
    return [line for line in TOY.splitlines(keepends=True) if line.startswith("#")]


def test_the_environment_sets_no_option(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("units", "char")
    monkeypatch.setenv("stage", "5")
    monkeypatch.setenv("report", "/etc/passwd")
    assert "root:" not in run(root, "little", "ctc")
    assert "number=3" in data(root)
    # Nor what a corpus may set before the recipe.
    (root / "local/recipes/ctc.sh").write_text(TOY.replace("word=some", "word=${vote:-some}"))
    monkeypatch.setenv("vote", "token")
    run(root, "little", "ctc")
    assert not (root / "egs/little/exp/toy_token").exists()


def test_every_corpus_has_a_short_run_file() -> None:
    files = sorted(ROOT.glob("egs/*/run.sh"))
    assert {file.parent.name for file in files} >= {"mini", "librispeech", "timit", "ami"}
    for file in files:
        assert os.access(file, os.X_OK)
        assert len(file.read_text().splitlines()) <= 18


@pytest.mark.parametrize("corpus", ["mini", "librispeech", "timit", "ami", "data:."])
def test_without_an_environment_nothing_more_is_tried(corpus: str) -> None:
    done = subprocess.run(
        [ROOT / "run.sh", corpus, "ctc", "--dry-run", "true"],
        env={**os.environ, "PRIVASR_ENV": "nonsense"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["path.sh: PRIVASR_ENV is 'current' or not set, found 'nonsense'"]


def test_ledger_and_limit_of_a_private_recipe(root: Path, tmp_path: Path) -> None:
    """--max-epsilon refuses to start; --ledger names the file, and is no part of what a result depends on."""
    (root / "local/recipes/private.sh").write_text(PRIVATE)
    (root / "noisy_sums").write_text(VERB)
    (root / "noisy_sums").chmod(0o755)
    (root / "numbers").write_text("1\n0\n1\n")
    text = run(root, "little", "private", "--max-epsilon", "1", code=2)
    assert "found 3.07 at delta 1e-05" in text
    work = root / "egs/little"
    assert not (work / "exp/privacy.json").exists() and not (work / "privacy").exists()

    run(root, "little", "private", "--max-epsilon", "4")
    assert (work / "privacy/ledger.json").exists()
    run(root, "little", "private", "--max-epsilon", "4", "--force", "true", "--stage", "1", code=2)
    (tmp_path / "a folder").mkdir()
    text = run(root, "little", "private", "--ledger", "a folder/spent.json", cwd=tmp_path)
    assert text.count("up to date") == 2 and not (tmp_path / "a folder/spent.json").exists()
    run(root, "little", "private", "--ledger", "a folder/spent.json", "--force", "true", cwd=tmp_path)
    assert (tmp_path / "a folder/spent.json").exists()
