"""The situations of docs/design.md: what the stage runner runs, leaves and refuses."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.stage_tools import Tree, chain, environment

ALL = ["data/d.txt", "data/feats", "exp/m/am", "exp/m/RESULTS.md"]
TAKEN = ["data/feats", "./data//feats/", "data/feats/inside", "data"]
OUTSIDE = ["/tmp/elsewhere", "../elsewhere", "."]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A work folder whose name has a blank."""
    return Tree(tmp_path / "work folder")


@pytest.fixture
def chained(tree: Tree) -> Tree:
    """The four stages, run once."""
    chain(tree).run()
    assert tree.ran() == ALL
    return tree


def test_run_again_is_up_to_date(chained: Tree) -> None:
    before = chained.contents()
    assert chained.run().count("up to date") == 4
    assert chained.ran() == [] and chained.contents() == before


def test_a_config_edited_reruns_what_depends_on_it(chained: Tree) -> None:
    chained.write("model.yaml", "lr: 2\n")
    assert "model.yaml changed" in chained.run()
    assert chained.ran() == ALL[2:]
    text = chained.read("exp/m/am/first")
    assert "lr: 2" in text and "lr: 1" not in text


def test_an_input_edited_with_the_same_size_and_time(chained: Tree) -> None:
    time.sleep(1.1)  # let the hash be remembered
    chained.run()
    chained.write("corpus.txt", "sword\n")
    chained.run()
    assert chained.ran() == ALL
    stat = (chained.path / "corpus.txt").stat()
    time.sleep(1.1)
    chained.run()
    with (chained.path / "corpus.txt").open("r+") as file:  # the same inode
        file.write("drows\n")
    os.utime(chained.path / "corpus.txt", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert chained.run().count("up to date") == 4  # size, time and inode lie: only --verify sees it
    chained.run("--verify", "true")
    assert chained.ran() == ALL


def test_content_counts_not_time(chained: Tree) -> None:
    os.utime(chained.path / "model.yaml", (1, 1))
    os.utime(chained.path / "data/d.txt", (1, 1))
    assert chained.run().count("up to date") == 4


def test_early_end_when_an_output_comes_out_the_same(tree: Tree) -> None:
    tree.write("a", "a")
    tree.stage(0, "one", "--in-a a --out-b data/b --set value=1")
    tree.stage(1, "two", "--in-b data/b --out-c data/c")
    tree.run()
    tree.stages[0][-1] = "value=1 "
    tree.ran()
    tree.stages[0] += ["other=1"]
    tree.stages[0][-2] = "value=1"
    tree.run()
    assert tree.ran() == ["data/b"]


def test_later_stages_refused_after_an_edit(chained: Tree) -> None:
    before = chained.contents()
    chained.write("model.yaml", "lr: 2\n")
    text = chained.run("--stage", "3", code=2)
    assert "stage 2 (model)" in text and "model.yaml changed" in text and "--stage 2" in text
    assert chained.ran() == [] and chained.contents() == before


def test_an_edit_that_the_asked_stage_does_not_depend_on(chained: Tree) -> None:
    chained.write("other.yaml", "x: 1\n")
    other = "1 other ./copy --config other.yaml --out-x exp/other"
    chained.stages.insert(2, other.split())
    chained.run("--stage", "1", "--stop-stage", "1")
    chained.write("other.yaml", "x: 2\n")
    chained.ran()
    assert "up to date" in chained.run("--stage", "3")


def test_an_edited_output_is_refused_and_made_again(chained: Tree) -> None:
    chained.write("data/feats/content", "damaged\n")
    text = chained.run("--stage", "2", code=2)
    assert "data/feats was changed after it was written" in text and "--stage 1" in text
    chained.run()
    assert chained.ran() == ["data/feats"]
    assert "words" in chained.read("data/feats/content")


def test_from_the_middle_on_an_empty_tree(tree: Tree) -> None:
    chain(tree)
    text = tree.run("--stage", "3", code=2)
    expected = "stage 3 (table): expected exp/m/am, which stage 2 (model) writes"
    assert f"{expected}, found nothing there" in text
    assert "--stage 0" in text  # the first that has not run
    tree.run("--stop-stage", "1")
    text = tree.run("--stage", "3", code=2)
    assert "run from there: --stage 2" in text


def test_another_value_of_a_choice_keeps_what_is_shared(chained: Tree) -> None:
    for stage in chained.stages[2:]:
        stage[:] = [word.replace("exp/m", "exp/n") for word in stage]
    chained.run()
    assert chained.ran() == ["exp/n/am", "exp/n/RESULTS.md"]
    assert (chained.path / "exp/m/am").exists()


def test_neutral_flags_and_titles_do_not_count(chained: Tree) -> None:
    chained.stages[2] += ["--device", "cuda", "--num-jobs", "8", "--log-level", "DEBUG"]
    chained.stages[3][1] = "another title"
    assert chained.run("--nj", "4").count("up to date") == 4


def test_force(chained: Tree) -> None:
    chained.run("--stage", "2", "--stop-stage", "2", "--force", "true")
    assert chained.ran() == ["exp/m/am"]


def test_another_clone_of_the_tree_is_up_to_date(chained: Tree, tmp_path: Path) -> None:
    chained.path.rename(tmp_path / "moved")
    chained.path = tmp_path / "moved"
    assert chained.run().count("up to date") == 4


LAST = "4 last --in-x data/d.txt --out-y"


@pytest.mark.parametrize("dry_run", ["true", "false"])
@pytest.mark.parametrize(
    ("stages", "parts"),
    [
        (["4 last --in-x exp/m/none --out-y exp/y"], ["exp/m/none", "no earlier stage writes"]),
        (["4 last --raw-corpus /no/such --out-y data/y"], ["/no/such", "nothing", "--corpus-dir"]),
        *(([f"{LAST} {path}"], ["stage 4 (last)", "outputs of its own"]) for path in TAKEN),
        ([f"{LAST} exp/y --out-z exp/y/z"], ["stage 4 (last)", "exp/y/z"]),
        *(([f"{LAST} {path}"], ["inside the work folder"]) for path in OUTSIDE),
        (
            ["4 early --in-x exp/late --out-y exp/early", "5 late --in-x copy --out-y exp/late"],
            ["stage 4 (early)", "the later stage 5 (late)"],
        ),
        (["4 loop --in-x exp/y --out-y exp/y"], ["which itself writes"]),
        (["4 verb scores --in-x copy --out-y exp/y"], ["scores", "did you mean lm_scores?"]),
        (["4 last --config none.yaml --out-y exp/y"], ["stage 4 (last)", "none.yaml"]),
    ],
)
def test_wrong_wiring(tree: Tree, dry_run: str, stages: list[str], parts: list[str]) -> None:
    """Found before anything runs, and by --dry-run."""
    chain(tree)
    for line in stages:
        number, title, words = line.split(maxsplit=2)
        tree.stage(int(number), title, words)
    text = tree.run("--dry-run", dry_run, code=2)
    assert all(part in text for part in (*parts, "way out:"))
    assert tree.ran() == [] and tree.contents() == {}


def test_dry_run_says_what_would_run_and_runs_nothing(chained: Tree) -> None:
    chained.write("model.yaml", "lr: 2\n")
    text = chained.run("--dry-run", "true")
    assert "reads  data/feats model.yaml" in text and "writes exp/m/am" in text
    assert "runs: model.yaml changed" in text and "runs after stage 2 (model)" in text
    assert text.count("up to date") == 2
    assert chained.ran() == []


def test_a_failure_shows_the_log_and_keeps_the_rest(chained: Tree) -> None:
    before = chained.contents()
    chained.stages[3] += ["--set", "fail=1"]
    text = chained.run(code=2)
    parts = ("this went wrong", "exp/m/log/RESULTS.md.log", "exit code 3")
    assert all(part in text for part in parts)
    assert chained.contents() == before  # what was there before the failure
    log = chained.read("exp/m/log/RESULTS.md.log")
    assert "./copy --in-model exp/m/am" in log and "# ended with code 3 after" in log
    del chained.stages[3][-2:]
    assert chained.run().count("up to date") == 4  # the old table is still the right one


def test_a_verb_that_a_signal_has_killed(tree: Tree) -> None:
    tree.program("die", "kill -KILL $$\n")
    tree.stage(0, "short of memory", "./die --in-x copy --out-y data/y")
    assert "killed by signal 9 (Killed)" in tree.run(code=2)


def test_ended_well_without_its_output(tree: Tree) -> None:
    tree.stage(0, "nothing", "--in-x copy --out-y exp/y --set write_nothing=1")
    assert "the output exp/y" in tree.run(code=2)
    tree.run(code=2)


def test_nothing_that_no_stage_wrote_is_replaced(tree: Tree) -> None:
    chain(tree)
    tree.write("exp/m/am/precious", "mine")
    assert "something that no stage has written" in tree.run(code=2)
    assert tree.read("exp/m/am/precious") == "mine"
    assert "no record of it" in tree.run("--stage", "3")  # but it may be used
    assert tree.read("exp/m/RESULTS.md").startswith("mine")
    tree.run("--force", "true")
    assert not (tree.path / "exp/m/am/precious").exists()


def test_a_begun_stage_continues_only_with_the_same_fingerprint(tree: Tree) -> None:
    chain(tree)
    tree.stages[2] += ["fail=1"]
    tree.run(code=2)
    first = tree.path / "exp/m/am/first"
    inode = first.stat().st_ino
    tree.run(code=2)
    assert first.stat().st_ino == inode  # continued
    tree.write("model.yaml", "lr: 3\n")
    tree.run(code=2)
    assert "lr: 3" in first.read_text()  # begun anew


def test_stale_temporaries_are_removed(chained: Tree) -> None:
    chained.write("exp/m/.deadbeef.tmp.RESULTS.md", "half")
    chained.write("exp/m/am/.deadbeef.tmp.1.safetensors", "half")
    chained.write("exp/m/.deadbeef.tmp.OTHER.md", "not of this stage")
    assert chained.run().count("up to date") == 4  # they count for nothing
    chained.run("--stage", "2", "--force", "true")
    assert [p.name for p in chained.path.rglob(".deadbeef.*")] == [".deadbeef.tmp.OTHER.md"]


def test_the_stamp_tells_how_it_was_made(chained: Tree) -> None:
    stamp = json.loads(chained.read("exp/m/.stages/am.json"))
    assert stamp["code"] and stamp["outputs"].keys() == {"exp/m/am"} and stamp["seconds"] >= 0
    assert [path for path, _ in stamp["inputs"]] == ["data/feats"]
    assert [path for path, _ in stamp["configs"]] == ["model.yaml"]
    chained.write("exp/m/.stages/am.json", "{ damaged")
    assert "damaged" in chained.run()
    assert chained.ran() == ["exp/m/am"]


def test_a_change_of_a_corpus_is_seen(tree: Tree) -> None:
    tree.write("corpus/text", "a")
    tree.write("corpus/a.wav", "a")
    tree.write("words.txt", "a")
    tree.stage(0, "data", "--raw-corpus corpus --raw-words words.txt --out-data data/d")
    tree.run()
    assert "up to date" in tree.run("--verify", "true")
    tree.write("words.txt", "b")
    assert "words.txt changed" in tree.run()
    tree.write("corpus/text", "b")
    assert "corpus (text and lists) changed" in tree.run("--verify", "true")
    tree.write("corpus/a.wav", "louder")
    assert "corpus (sizes and times of audio) changed" in tree.run()
    tree.write("corpus/text", "c")
    assert "runs: corpus (text and lists) changed" in tree.run("--dry-run", "true")
    tree.stage(1, "next", "--in-data data/d --out-data data/e")
    assert "that they are not: corpus (text and lists)" in tree.run("--stage", "1", code=2)


def test_a_stamp_of_an_earlier_version_takes_the_corpus_as_it_is(tree: Tree) -> None:
    tree.write("corpus/text", "a")
    tree.stage(0, "data", "--raw-corpus corpus --out-data data/d")
    tree.run()
    stamp = json.loads(tree.read("data/.stages/d.json"))
    inputs = stamp.pop("inputs")
    assert [path for path, _ in inputs] == [
        "corpus (text and lists)", "corpus (sizes and times of audio)"
    ]  # fmt: skip
    tree.write("data/.stages/d.json", json.dumps({**stamp, "inputs": [], "fingerprint": "0"}))
    assert "up to date" in tree.run()
    assert json.loads(tree.read("data/.stages/d.json"))["inputs"] == inputs
    tree.write("corpus/text", "b")
    assert "corpus (text and lists) changed" in tree.run()


def test_a_stage_range_that_holds_nothing(chained: Tree) -> None:
    assert "0 1 2 3" in chained.run("--stage", "7", code=2)


def test_two_runs_at_once(tree: Tree) -> None:
    chain(tree)
    tree.stages[2] += ["gate=go"]
    first = tree.start()
    while "exp/m/am" not in tree.read("runs.txt"):
        time.sleep(0.02)
    assert "no other run in this folder" in tree.run("--wait", "false", code=2)
    second = tree.start()
    assert second.stdout is not None
    assert "work folder" in second.stdout.readline()
    assert "waiting for another run" in second.stdout.readline()
    tree.write("go", "")
    text, again = first.communicate()[0], second.communicate()[0]
    assert first.returncode == second.returncode == 0, text + again
    assert again.count("up to date") == 4
    assert tree.ran() == ALL


def test_children_hold_the_lock(tree: Tree) -> None:
    tree.program("look", "ls -l /proc/self/fd > data_fds; mkdir -p data; touch data/x\n")
    tree.stage(0, "look", "./look --in-x copy --out-x data/x")
    tree.run()
    assert ".stages/lock.children" in tree.read("data_fds")


def test_a_read_only_work_folder(tree: Tree) -> None:
    command = chain(tree).command()
    if os.geteuid() == 0:  # nothing is read-only to root, unless it lacks this capability
        if shutil.which("setpriv") is None:
            pytest.skip("root without setpriv")
        command = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", *command]
    tree.path.chmod(0o555)
    done = subprocess.run(command, cwd=tree.path, env=environment(), capture_output=True, text=True)
    tree.path.chmod(0o755)
    assert done.returncode == 2, done.stderr
    assert "Permission denied" in done.stderr and "way out:" in done.stderr
    assert not (tree.path / "data").exists()


def test_a_full_disk(chained: Tree) -> None:
    """No file may grow beyond a limit: the stage fails, and what was there stays."""
    before = chained.contents()
    chained.write("corpus.txt", "w" * 20_000 + "\n")
    command = ["bash", "-c", 'ulimit -f 8; exec "$@"', "bash", *chained.command()]
    shared = {"cwd": chained.path, "env": environment(), "capture_output": True, "text": True}
    done = subprocess.run(command, **shared)
    assert done.returncode == 2, done.stderr
    assert "stage 0 (data)" in done.stderr and "Traceback" not in done.stderr
    assert chained.contents() == before


def test_interrupted_by_a_signal(tree: Tree) -> None:
    chain(tree)
    tree.stages[2][-1] = "slowly=30"
    process = tree.start()
    while not (tree.path / "exp/m/am/first").exists():
        time.sleep(0.02)
    process.terminate()
    process.communicate(timeout=15)
    assert process.returncode == 143
    with (tree.path / ".stages/lock.children").open("r+") as lock:  # no child is left that holds it
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    tree.stages[2][-1] = "slowly=0"
    tree.run()


def test_killed_after_the_stamp_and_before_the_end(chained: Tree) -> None:
    """The folder that was moved aside, and the record of the attempt, go with the next run."""
    chained.write("exp/m/.stages/am.attempt.json", '{"fingerprint": "of a later moment"}')
    chained.write("exp/m/.0badcafe.old.am/first", "large")
    assert chained.run().count("up to date") == 4
    assert not (chained.path / "exp/m/.0badcafe.old.am").exists()
    assert not (chained.path / "exp/m/.stages/am.attempt.json").exists()


def test_a_failure_halfway_keeps_the_earlier_output_and_is_continued(chained: Tree) -> None:
    before = chained.contents()
    chained.write("model.yaml", "lr: 2\n")
    chained.write("break", "")
    assert "this broke" in chained.run(code=2)
    (chained.path / "break").unlink()
    left = next((chained.path / "exp/m/.stages").glob("am.partial/*/first"))
    assert "lr: 2" in left.read_text() and left.parent.joinpath("second").exists() is False
    assert chained.contents() == before
    inode = left.stat().st_ino
    chained.run()
    assert (chained.path / "exp/m/am/first").stat().st_ino == inode  # it was not begun again
    assert "lr: 2" in chained.read("exp/m/am/second")
    assert not list(chained.path.rglob("*.partial")) and not list(chained.path.rglob("*.before"))


def test_a_failure_halfway_and_the_earlier_configuration_again(chained: Tree) -> None:
    before = chained.contents()
    chained.write("model.yaml", "lr: 2\n")
    chained.write("break", "")
    chained.run(code=2)
    (chained.path / "break").unlink()
    chained.write("model.yaml", "lr: 1\n")
    assert chained.run().count("up to date") == 4
    assert chained.contents() == before
    assert not list(chained.path.rglob("*.partial"))
