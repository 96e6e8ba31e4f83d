"""The output of a run: plain lines and, on a terminal, a live line."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.stage_tools import Tree, chain, environment

#: Is in the second of four epochs for a moment.
REPORTS = r"""
report() { echo "$1" > "$PRIVASR_PROGRESS.new"; mv "$PRIVASR_PROGRESS.new" "$PRIVASR_PROGRESS"; }
now=$(cut -d ' ' -f 1 /proc/uptime)
times='"begun": ['$now', 1.0], "written": '$now
report '{"done": 1.5, "total": 4, "unit": "epoch", "figures": {"loss": 0.8125}, '"$times"'}'
sleep 1.3
exec ./copy "$@"
"""


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path / "work")
    tree.program("reports", REPORTS)
    return chain(tree)


def on_terminal(tree: Tree, *options: str, term: str = "xterm", columns: int = 120) -> str:
    """All that a run writes to a terminal, with what moves the cursor."""
    controller, terminal = pty.openpty()
    variables = {**environment(), "TERM": term, "COLUMNS": str(columns)}
    process = subprocess.Popen(
        tree.command(*options), cwd=tree.path, env=variables, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    text = b""
    try:
        while data := os.read(controller, 65536):
            text += data
    except OSError:  # the end, on Linux
        pass
    finally:
        os.close(controller)
    process.wait()
    return text.decode().replace("\r\n", "\n").removeprefix(f"work folder: {tree.path}\n")


def lasting(text: str) -> list[str]:
    """The lines that stay on the terminal."""
    return [line.rpartition("\033[K")[2] for line in text.rstrip("\n").split("\n")]


def test_one_line_for_a_finished_stage(tree: Tree) -> None:
    lines = lasting(on_terminal(tree))
    heads = [
        f"[stage {number}, {number + 1}/4] {title} ... "
        for number, title in enumerate(["data", "features", "model", "table"])
    ]
    for head, line in zip(heads, lines, strict=True):
        assert line.startswith(f"{head}done in ") and line.endswith(" s")
    assert lasting(on_terminal(tree)) == [f"{head}up to date" for head in heads]
    tree.write("model.yaml", "lr: 2\n")
    lines = lasting(on_terminal(tree, "--stage", "2"))
    assert lines[0] == "[stage 2, 1/2] model ... model.yaml changed; log in exp/m/log/am.log"
    assert [line[: line.rindex("in ")] for line in lines[1::2]] == [
        "[stage 2, 1/2] model ... done ",
        "[stage 3, 2/2] table ... done ",
    ]


def test_plain_lines_where_there_is_no_terminal(tree: Tree) -> None:
    for text in (tree.run(), on_terminal(tree, "--force", "true", term="dumb")):
        assert "\r" not in text and "\033" not in text
        lines = text.splitlines()
        assert lines[0] == "[stage 0, 1/4] data ... log in data/log/d.txt.log"
        assert len(lines) == 8 and lines[1].startswith("[stage 0, 1/4] data ... done in ")


def test_the_live_line_shows_what_a_command_reports(tree: Tree) -> None:
    tree.stages[2][2] = "./reports"
    text = on_terminal(tree)
    assert "[stage 2, 3/4] model | epoch 2/4 | loss 0.812" in text
    assert not list((tree.path / ".stages/progress").iterdir())
    short = on_terminal(tree, "--force", "true", columns=30)
    assert "[stage 2, 3/4] model | epoch" in short and "loss" not in short


def test_the_live_line_counts_jobs_and_shows_the_log(tree: Tree) -> None:
    tree.program("says", 'echo begun\nsleep 1.3\nexec ./copy "$@"\n')
    parts = "JOB=1:3 --in-x corpus.txt --out-y exp/p/JOB --set pause_after=1.3"
    tree.stage(4, "parts", parts)
    tree.stage(5, "says", "./says --in-x corpus.txt --out-y exp/s")
    text = on_terminal(tree)
    assert "[stage 4, 5/6] parts | 1/3 jobs | ETA " in text
    assert re.search(r"\[stage 5, 6/6\] says \| \d+ s \| begun", text)


def test_an_error_stands_on_a_line_of_its_own(tree: Tree) -> None:
    tree.program("fails", "sleep 1\necho wrong\nexit 3\n")
    tree.stages[2][2] = "./fails"
    lines = lasting(on_terminal(tree))
    assert "wrong" in lines
    assert any(line.startswith("error: stage 2 (model): expected exit code 0") for line in lines)


def test_warnings_of_a_stage_are_shown_but_not_those_of_a_release(tree: Tree) -> None:
    lines = "\n".join(f"echo '2026-01-01 10:00:00,000 WARNING number {n % 6}'" for n in range(9))
    tree.program("warns", f'{lines}\nexec ./copy "$@"\n')
    tree.stages[1][2] = "./warns"
    shown = tree.run().splitlines()
    head = "[stage 1, 2/4] features ... done"
    place = next(n for n, line in enumerate(shown) if line.startswith(head))
    expected = [f"  warning: number {n}" for n in range(5)]
    assert shown[place + 1 : place + 6] == expected
    assert shown[place + 6] == "  ... and 1 more warnings in its log"
    tree.stages[1] += ["--out-privacy", "data/privacy.json"]
    assert "warning" not in tree.run("--force", "true")
