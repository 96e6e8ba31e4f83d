"""./run.sh: options, paths, layers and help, with a toy corpus and a toy recipe."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support.stage_tools import CORPUS, ROOT, run
from tests.support.toy_recipe import TOY, toy_checkout

BASE = ["common.yaml#toy", "ctc.yaml#overrides.toy"]
PAPER = ["paper.yaml#toy", "paper.yaml#overrides.ctc.toy"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return toy_checkout(tmp_path / "clone")


def data(root: Path, work: str = "egs/little") -> str:
    """What stage 0 has written."""
    return (root / work / "data/d").read_text()


def report(root: Path, work: str = "egs/little", word: str = "some") -> str:
    """What stage 1 has written."""
    return (root / work / f"exp/toy_{word}/RESULTS.md").read_text()


def layers(root: Path, work: str = "egs/little") -> list[str]:
    """The values of the YAML files that stage 1 has read, in order."""
    lines = report(root, work).splitlines()
    return [line.removeprefix("value: ") for line in lines if line.startswith("value: ")]


def test_runs_and_shows_the_report_at_the_end(root: Path) -> None:
    text = run(root, "little", "ctc")
    work = root / "egs/little"
    assert text.startswith(f"work folder: {work}\n")
    assert report(root) in text and f"{work}/exp/toy_some/RESULTS.md" in text.splitlines()[-1]
    assert "number=3 scale=0.5 several=1 10 flag=False" in data(root)
    assert run(root, "little", "ctc").count("up to date") == 2


def test_options_of_both_spellings(root: Path) -> None:
    options = "--number=-4 --scale 1e-5 --several '2 20 200' --flag=true --users 300"
    words = ["little", "ctc", *shlex.split(options)]
    text = run(root, *words, "--stop_stage", "0")
    assert "number=-4 scale=1e-05 several=2 20 200 flag=True 300" in data(root)
    assert "table" not in text
    run(root, *words, "--stage", "1", "--stop-stage", "1")


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ("--nubmer 3", ["--nubmer", "did you mean --number?"]),
        ("'--numb er' 3", ["--numb er"]),
        ("--beam 3", ["a key of the section search of conf/", "egs/little/corpus.yaml"]),
        ("--number", ["--number: expected a value", "write --number VALUE"]),
        ("--number --flag true", ["--number: expected a value, found the option --flag"]),
        ("number 3", ["--name value"]),
        ("--number 3.5", ["a whole number", "'3.5'"]),
        ("--number '3 4'", ["a whole number", "'3 4'"]),
        ("--number ''", ["a whole number"]),
        ("--scale fast", ["a number", "'fast'"]),
        ("--several '1 x'", ["'1 x'"]),
        ("--flag yes", ["true or false", "'yes'"]),
        ("--stage two", ["a whole number"]),
        ("--PATH /tmp", ["an option that exists"]),
        ("--word x --flag true", ["--word", "does not read"]),
        ("--size tiny", ["--preset"]),
        ("--units char", ["--token-type"]),
        ("--token-type word", ["phone, char, tokenizer or bpe_N", "'word'"]),
        ("--preset huge", ["tiny, demo, small, paper"]),
        ("--nj 0", ["--nj", "a whole number of at least 1"]),
        ("--side-by-side 0", ["--side-by-side", "a whole number of at least 1"]),
        ("--config no/such/file", ["no/such/file"]),
        ("--config", ["a value"]),
        ("--cmd qsub", ["'local', 'torchrun' with its options, or 'slurm'"]),
        ("--corpus-dir no/such/corpus", ["no/such/corpus", "nothing there"]),
    ],
)
def test_bad_options(root: Path, options: str, parts: list[str]) -> None:
    text = run(root, "little", "ctc", *shlex.split(options), code=2)
    assert all(part in text for part in ["error: ", "way out: ", *parts])
    assert not (root / "egs/little/data").exists()


def test_an_early_end_shows_no_old_table(root: Path) -> None:
    run(root, "little", "ctc")
    assert report(root) not in run(root, "little", "ctc", "--number", "4", "--stop-stage", "0")


def test_a_work_folder_that_cannot_be_made(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    text = run(root, "little", "ctc", "--work-dir", str(tmp_path / "file/work"), code=2)
    assert "a folder to work in" in text and "--work-dir" in text


def test_config_file_comes_before_the_command_line(root: Path, tmp_path: Path) -> None:
    file, words = tmp_path / "my.conf", ("little", "ctc", "--config", "my.conf")
    file.write_text("# a comment\n\nnumber = 7   # seven\n--several '5 6'\nscale=2\r\nflag=true")
    run(root, *words, "--number", "8", cwd=tmp_path)
    assert "number=8 scale=2 several=5 6 flag=True" in data(root)
    for text, message in (("number=7\nnubmer=8\n", "--nubmer"), ("number\n", "my.conf:1")):
        file.write_text(text)
        assert message in run(root, *words, cwd=tmp_path, code=2)
    file.write_text("word=$(touch hacked)\n")
    run(root, *words, "--dry-run", "true", cwd=tmp_path)
    assert list(tmp_path.rglob("hacked")) == []


def test_relative_paths_mean_the_callers_folder(root: Path, tmp_path: Path) -> None:
    caller = tmp_path / "here"
    (caller / "my corpus").mkdir(parents=True)
    run(root, "little", "ctc", "--corpus-dir", "my corpus", "--work-dir", "my work", cwd=caller)
    assert (caller / "my work/exp/toy_some/RESULTS.md").exists()
    assert not (root / "egs/little/data").exists()
    assert list((caller / "my corpus").iterdir()) == []
    # Another spelling of the same folder is the same corpus.
    options = ("--corpus-dir", str(caller / "my corpus"), "--work-dir", "my work")
    again = run(root, "little", "ctc", *options, cwd=caller)
    assert "data of little ... up to date" in again.replace(")", "")


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("small", []),
        ("tiny", ["tiny.yaml#toy", "corpus.yaml#conf.presets.tiny.toy"]),
        ("paper", [*PAPER, "corpus.yaml#conf.presets.paper.toy"]),
    ],
)
def test_layers(root: Path, preset: str, expected: list[str]) -> None:
    own = "conf: {toy: {value: 3}, presets: {tiny: {toy: {value: 6}}, paper: {toy: {value: 6}}}}\n"
    (root / "egs/little/corpus.yaml").write_text(CORPUS + own)
    run(root, "little", "ctc", "--preset", preset)
    assert layers(root) == [*BASE, "corpus.yaml#conf.toy", *expected]


def test_numbers_that_nothing_would_read(root: Path) -> None:
    own = root / "egs/little/corpus.yaml"
    own.write_text(CORPUS + "conf: {toy: {value: 1}, little: {users: 3}, tyo: {value: 2}}\n")
    text = run(root, "little", "ctc", "--dry-run", "true")
    assert text.count("note:") == 2
    assert "egs/little/corpus.yaml#conf.toy: value is not used" in text
    assert "egs/little/corpus.yaml#conf.tyo: no stage reads it" in text
    assert "did you mean toy?" in text
    own.write_text(CORPUS + "conf: {toy: {vlaue: 1}}\n")
    text = run(root, "little", "ctc", "--dry-run", "true", code=2)
    assert "corpus.yaml#conf.toy: expected a key of conf/common.yaml#toy, found vlaue" in text
    assert "did you mean value?" in text


def test_the_command_in_the_table_has_what_changes_results(root: Path) -> None:
    run(root, "little", "ctc", "--nj", "3", "--word", "it's", "--device", "cpu", "--wait", "false")
    assert """value=./run.sh little ctc --word 'it'"'"'s'""" in report(root, word="it's")


def test_an_own_corpus_file(root: Path, tmp_path: Path) -> None:
    own = tmp_path / "my things"
    (own / "conf").mkdir(parents=True)
    (own / "mine.py").write_text("")
    (own / "conf/toy.yaml").write_text("value: mine\n")
    toy = TOY.replace("{r.own['users']}", "people={r.people}")
    (root / "local/recipes/ctc.py").write_text(toy)
    before = sorted(own.rglob("*"))
    run(root, "my things/mine.py", "ctc", cwd=tmp_path)
    assert "people=mine" in data(root, "egs/user/mine")
    assert layers(root, "egs/user/mine") == [*BASE, "mine"]
    assert sorted(own.rglob("*")) == before  # nothing is written there
    run(root, "data:my things", "ctc", "--work-dir", "w", cwd=tmp_path)
    assert "people=my_things" in (tmp_path / "w/data/d").read_text()
    assert "data: and a folder" in run(root, "data:my things/mine.py", "ctc", code=2, cwd=tmp_path)
    assert "nothing" in run(root, "no/such.py", "ctc", code=2)
    assert "no folder" in run(root, "data:", "ctc", code=2)


def test_numbers_for_a_folder_that_is_not_to_be_written_to(root: Path, tmp_path: Path) -> None:
    (root / "local/recipes/ctc.py").write_text(TOY.replace("{r.own['users']}", ""))
    for place, text in ((tmp_path / "mine", "theirs"), (root / "egs/user/mine", "ours")):
        (place / "conf").mkdir(parents=True, exist_ok=True)
        (place / "conf/toy.yaml").write_text(f"value: {text}\n")
        run(root, "data:mine", "ctc", cwd=tmp_path)
        assert layers(root, "egs/user/mine") == [*BASE, text]
    (root / "egs/user/mine/conf.yaml").write_text("toy: {value: 7}\n")
    assert "conf.yaml or the folder conf" in run(root, "data:mine", "ctc", cwd=tmp_path, code=2)
    (root / "egs/user/mine/conf/toy.yaml").unlink()
    (root / "egs/user/mine/conf").rmdir()
    run(root, "data:mine", "ctc", cwd=tmp_path)
    assert layers(root, "egs/user/mine") == [*BASE, "conf.yaml#toy"]


def test_two_own_corpora_of_one_name(root: Path, tmp_path: Path) -> None:
    (root / "local/recipes/ctc.py").write_text(TOY.replace("{r.own['users']}", ""))
    for place in ("one", "two"):
        (tmp_path / place / "data").mkdir(parents=True)
    run(root, "data:two/data", "ctc", "--dry-run", "true", cwd=tmp_path)
    run(root, "data:one/data", "ctc", cwd=tmp_path)
    run(root, "data:one/data", "ctc", cwd=tmp_path)
    before = report(root, "egs/user/data")
    text = run(root, "data:two/data", "ctc", cwd=tmp_path, code=2)
    assert f"the work of {tmp_path}/two/data, found that of {tmp_path}/one/data" in text
    assert "--work-dir" in text and report(root, "egs/user/data") == before
    run(root, "data:two/data", "ctc", "--work-dir", "w", cwd=tmp_path)


def test_all_recipes_and_a_summary(root: Path) -> None:
    start = "def stages(r, o):"
    broken = TOY.replace(start, f"{start}\n    r.refuse('it', 'one', 'none', 'stop')")
    (root / "local/recipes/rescore.py").write_text(broken)
    text = run(root, "little", "--preset", "tiny", code=1)
    assert "=== little ctc" in text and "=== little rescore" in text
    assert "ctc      done" in text and "rescore  FAILED" in text


def test_help_and_usage(root: Path) -> None:
    text = run(root, "--help")
    assert "a corpus for tests" in text and "A recipe for tests: two stages." in text
    assert run(root, "little", "-h") == text
    lines = run(root, "little", "ctc", "--help").splitlines()
    [line] = [line for line in lines if line.strip().startswith("--several")]  # one option a line
    assert line.endswith("several  [1 10]")
    assert sum(line.strip().startswith("--") for line in lines) > 25
    assert "a recipe: ctc" in run(root, "little", "ctcc", code=2)
    assert "little" in run(root, "litle", "ctc", code=2)
    assert not (root / "egs/little/data").exists()


def test_a_recipe_of_ones_own(root: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TOY.replace("toy_", "mine_"))
    run(root, "little", "mine.py", cwd=tmp_path)
    assert (root / "egs/little/exp/mine_some/RESULTS.md").exists()
    (tmp_path / "mine.py").write_text('"""No recipe."""\n')
    assert "Options" in run(root, "little", "mine.py", code=2, cwd=tmp_path)


def test_the_environment_sets_no_option(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"number": "4", "stage": "5", "report": "/etc/passwd", "word": "token"}
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    assert "root:" not in run(root, "little", "ctc")
    assert "number=3" in data(root)


def test_every_corpus_has_a_short_run_file() -> None:
    files = sorted(ROOT.glob("egs/*/run.sh"))
    assert {file.parent.name for file in files} >= {"mini", "librispeech", "timit", "ami"}
    corpora = {file.parent for file in ROOT.glob("egs/*/corpus.yaml")}
    assert {file.parent for file in files} == corpora
    for file in files:
        assert os.access(file, os.X_OK)
        assert len(file.read_text().splitlines()) <= 5


@pytest.mark.parametrize("corpus", ["mini", "librispeech", "timit", "ami", "data:."])
def test_without_an_environment_nothing_more_is_tried(corpus: str) -> None:
    command = [ROOT / "run.sh", corpus, "ctc", "--dry-run", "true"]
    variables = {**os.environ, "PRIVASR_ENV": "nonsense"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    message = "path.sh: PRIVASR_ENV is 'current' or not set, found 'nonsense'"
    assert (done.returncode, done.stderr.splitlines()) == (2, [message])


def test_a_dry_run_prints_commands_that_run_alone(root: Path) -> None:
    text = run(root, "little", "ctc", "--dry-run", "true")
    lines = [line for line in text.splitlines() if line.startswith("    command ")]
    commands = [line.split(maxsplit=1)[1] for line in lines]
    assert len(commands) == 2
    work = root / "egs/little"
    for command in commands:
        subprocess.run(["bash", "-c", command], cwd=work, check=True)
    alone = data(root), report(root)
    assert run(root, "little", "ctc", "--force", "true") and (data(root), report(root)) == alone
