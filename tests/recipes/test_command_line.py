"""./run.sh: options, paths, layers and help, with a toy corpus and a toy recipe."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from privasr_k2.privacy.ledger import Ledger
from tests.support.private_tools import VERB
from tests.support.stage_tools import CORPUS, ROOT, clone, run, write_program

TOY = '''\
"""A recipe for tests: two stages."""

from dataclasses import dataclass

from privasr_k2.recipe.options import option

@dataclass(frozen=True)
class Options:
    number: int = option(3, "a number")
    scale: float = option(0.5, "another")
    several: tuple[int, ...] = option((1, 10), "several")
    flag: bool = option(False, "has its own word")
    word: str = option("some", "a word")

def stages(r, o):
    r.exp = "exp/toy_own" if o.flag else f"exp/toy_{o.word}"
    several = " ".join(map(str, o.several))
    value = f"number={o.number} scale={o.scale:g} several={several} flag={o.flag} {r.own['users']}"
    verb = str(r.root / "copy")
    r.stage(0, f"data of {r.corpus.conf_name}", verb, in_x=r.root / "x",
            raw_corpus=r.data.corpus_dir, out_data="data/d", set={"value": value})
    r.report_path = r.stage(1, "table", verb, in_data="data/d", config="toy", device=True,
                            out_report=f"{r.exp}/RESULTS.md", set={"value": r.command})
'''
PRIVATE = '''\
"""A private recipe for tests: noisy sums."""

from dataclasses import dataclass

@dataclass(frozen=True)
class Options:
    pass

def stages(r, o):
    r.stage(1, "sums", str(r.root / "noisy_sums"), in_private_data=r.root / "numbers", spends=True,
            out_dir="exp/sums", out_privacy="exp/privacy.json",
            set={"rounds": 6, "noise": 2.0, "rate": 0.5, "seconds": 0})
'''
CONF = {
    "common": "toy: {value: 1}\nsearch: {beam: 3}\n",
    "ctc": "overrides: {toy: {value: 2}}\n",
    "presets/tiny": "toy: {value: 4}\n",
    "presets/paper": "toy: {value: 4}\noverrides: {ctc: {toy: {value: 5}}}\n",
}
BASE = ["common.yaml#toy", "ctc.yaml#overrides.toy"]
PAPER = ["paper.yaml#toy", "paper.yaml#overrides.ctc.toy"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The entries of the repository, with one corpus and one recipe for tests."""
    checkout = clone(tmp_path / "clone", {"little": CORPUS})
    (checkout / "local/recipes/ctc.py").write_text(TOY)
    (checkout / "egs/little/corpus").mkdir()
    (checkout / "conf/presets").mkdir(parents=True)
    for name, text in CONF.items():
        (checkout / f"conf/{name}.yaml").write_text(text)
    return checkout


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
        ("--beam 3", ["a key of conf/common.yaml#search"]),
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


def add_private_recipe(root: Path) -> None:
    """Add the recipe ``private`` with its verb and data."""
    (root / "local/recipes/private.py").write_text(PRIVATE)
    write_program(root / "noisy_sums", VERB)
    (root / "numbers").write_text("1\n0\n1\n")


def test_ledger_and_limit_of_a_private_recipe(root: Path, tmp_path: Path) -> None:
    """--max-epsilon refuses to start; another ledger makes nothing run again, nor forget."""
    add_private_recipe(root)
    text = run(root, "little", "private", "--max-epsilon", "1", code=2)
    assert "3.07 at delta 1e-05" in text
    work = root / "egs/little"
    assert not (work / "exp/privacy.json").exists()
    assert Ledger(work / "privacy/ledger.json").entries() == ()

    run(root, "little", "private", "--max-epsilon", "4")
    assert (work / "privacy/ledger.json").exists()
    run(root, "little", "private", "--max-epsilon", "4", "--force", "true", "--stage", "1", code=2)
    (tmp_path / "a folder").mkdir()
    words = ("little", "private", "--ledger", "a folder/spent.json")
    text = run(root, *words, cwd=tmp_path)
    assert text.count("up to date") == 1 and not (tmp_path / "a folder/spent.json").exists()
    # Another ledger would count from zero: what was released in this folder is missing there.
    text = run(root, *words, "--force", "true", cwd=tmp_path, code=2)
    assert "1 that it lacks" in text and (work / "exp/privacy.json").exists()
    assert Ledger(tmp_path / "a folder/spent.json").entries() == ()


def test_a_finished_release_is_not_made_again_by_a_change(root: Path) -> None:
    add_private_recipe(root)
    run(root, "little", "private")
    work = root / "egs/little"
    released = (work / "exp/sums/0.json").read_bytes()
    (root / "local/recipes/private.py").write_text(PRIVATE.replace('"rounds": 6', '"rounds": 5'))
    text = run(root, "little", "private", code=2)
    assert "stage 1 (sums)" in text and "rounds=5" in text and "--force true" in text
    (root / "local/recipes/private.py").write_text(PRIVATE)
    (root / "numbers").write_text("1\n1\n1\n")
    assert "numbers changed" in run(root, "little", "private", code=2)
    assert (work / "exp/sums/0.json").read_bytes() == released
    assert len(Ledger(work / "privacy/ledger.json").entries()) == 1
    run(root, "little", "private", "--force", "true")
    assert len(Ledger(work / "privacy/ledger.json").entries()) == 2


def test_a_folder_has_one_preset(root: Path) -> None:
    run(root, "little", "ctc", "--preset", "tiny")
    text = run(root, "little", "ctc", code=2)
    assert "--preset tiny" in text and "--preset small, the default" in text
    assert run(root, "little", "ctc", "--preset", "tiny").count("up to date") == 2
    assert "--preset tiny" in run(root, "little", "ctc", "--dry-run", "true", code=2)
    run(root, "little", "ctc", "--work-dir", "other", cwd=root)
    (root / "egs/little/.stages/preset").unlink()  # as an earlier version left it
    assert "--preset tiny" in run(root, "little", "ctc", code=2)


TAKES = PRIVATE.replace(
    "def stages(r, o):\n",
    "def stages(r, o):\n"
    '    r.stage(0, "numbers", str(r.root / "take"), raw_corpus=r.root / "raw",\n'
    '            out_data="data/numbers")\n',
).replace('r.root / "numbers", spends', '"data/numbers", spends')


def test_an_edited_corpus_is_refused_before_anything_behind_a_release_runs(root: Path) -> None:
    add_private_recipe(root)
    (root / "local/recipes/private.py").write_text(TAKES)
    write_program(root / "take", 'cp "$2/numbers" "$4"\n')
    (root / "raw").mkdir()
    (root / "raw/numbers").write_text("1\n0\n1\n")
    (root / "raw/a.wav").write_text("sound")
    run(root, "little", "private")
    work = root / "egs/little"
    released = (work / "exp/sums/0.json").read_bytes()
    # Audio that was touched: stage 0 runs, and the release stands.
    os.utime(root / "raw/a.wav", ns=(0, 0))
    text = run(root, "little", "private")
    assert "sizes and times of audio) changed" in text and text.count("up to date") == 1
    (root / "raw/numbers").write_text("1\n1\n1\n")
    text = run(root, "little", "private", code=2)
    assert "stage 1 (sums)" in text and "raw (text and lists) changed" in text
    assert "--stop-stage 0" in text and "--force true" in text and "--work-dir" in text
    assert (work / "data/numbers").read_text() == "1\n0\n1\n"  # nothing ran
    # The way out that spends nothing tells whether the release's own inputs changed.
    run(root, "little", "private", "--stop-stage", "0")
    assert "data/numbers changed" in run(root, "little", "private", code=2)
    (root / "raw/numbers").write_text("1\n0\n1\n")
    run(root, "little", "private", "--stop-stage", "0")
    assert run(root, "little", "private").count("up to date") == 2
    (root / "raw/readme.txt").write_text("nobody reads it\n")
    assert "that" in run(root, "little", "private", code=2)
    run(root, "little", "private", "--stop-stage", "0")
    assert run(root, "little", "private").count("up to date") == 2
    assert (work / "exp/sums/0.json").read_bytes() == released
    assert len(Ledger(work / "privacy/ledger.json").entries()) == 1


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
