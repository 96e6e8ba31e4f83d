"""The command line of verbs: strict options, one message on an error, exit codes."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import runpy
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from privasr_k2 import bin as verbs
from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError, DataError


@dataclass(frozen=True)
class Options:
    lr: float
    epochs: int


def verb(words: str) -> argparse.Namespace:
    with mock.patch("sys.argv", ["train_am.py", *words.split()]):
        return cli.arguments("Train.", device=True, in_cuts="FILE")


def test_flags_and_layers(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("lr: 1e-3\nepochs: 1\n")
    args = verb(f"--in-cuts x --config {tmp_path}/a.yaml --set lr=2")
    assert cli.load(Options, args) == Options(2.0, 1)
    assert (args.in_cuts, args.device, args.num_jobs) == (Path("x"), "auto", 1)


def test_repeated_flags_add_up(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("lr: 1\nepochs: 5\n")
    (tmp_path / "b.yaml").write_text("lr: 3\n")
    flags = f"--in-cuts x --config {tmp_path}/a.yaml --set epochs=6 --config {tmp_path}/b.yaml"
    assert cli.load(Options, verb(f"{flags} --set lr=4")) == Options(4.0, 6)
    assert cli.load(Options, verb(flags)) == Options(3.0, 6)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("--in-cuts", "expected one argument"),
        ("", "--in-cuts"),
        ("--in-cut x", "--in-cut"),
        ("--in-cuts x --speed 9", "--speed"),
        ("--in-cuts x --num-jobs two", "two"),
        ("--in-cuts x --num-jobs 0", "--num-jobs"),
        ("--in-cuts x --log-level LOUD", "LOUD"),
    ],
)
def test_wrong_options(words: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        verb(words)
    assert part in str(caught.value)
    assert "privasr verb train_am --help" in caught.value.way_out


def _exit(error: BaseException) -> tuple[object, str]:
    def main() -> None:
        raise error

    shown = io.StringIO()
    with pytest.raises(SystemExit) as caught, contextlib.redirect_stderr(shown):
        cli.run(main)
    return caught.value.code, shown.getvalue()


def test_a_users_error_is_one_message_and_2() -> None:
    code, shown = _exit(DataError("text:2", "words", "nothing", "add them"))
    assert code == 2
    assert shown == "error: text:2: expected words, found nothing\n  way out: add them\n"


@pytest.mark.parametrize(
    "number",
    [
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EROFS,
        errno.EACCES,
        errno.ENOENT,
        errno.ENOTDIR,
    ],
)
def test_an_error_of_the_system_is_one_message_and_2(number: int) -> None:
    code, shown = _exit(OSError(number, "text", "exp/model"))
    assert code == 2
    assert shown.startswith("error: exp/model: expected ")
    assert "way out: " in shown


def test_a_defect_keeps_its_traceback() -> None:
    def main() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cli.run(main)


def test_an_unknown_system_error_keeps_its_traceback() -> None:
    def main() -> None:
        raise OSError(errno.EIO, "input/output error")

    with pytest.raises(OSError, match="input/output"):
        cli.run(main)


def test_interrupted() -> None:
    assert _exit(KeyboardInterrupt()) == (130, "")


VERBS = sorted(
    path.stem
    for path in Path(verbs.__path__[0]).glob("*.py")
    if path.stem not in ("__init__", "cli", "doctor")
)


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_shows_errors_without_a_traceback(name: str) -> None:
    shown = io.StringIO()
    with (
        mock.patch("sys.argv", [f"{name}.py", "--no-such-flag"]),
        pytest.raises(SystemExit) as caught,
        contextlib.redirect_stderr(shown),
    ):
        runpy.run_module(f"privasr_k2.bin.{name}", run_name="__main__")
    assert caught.value.code == 2
    assert shown.getvalue().startswith(f"error: privasr verb {name}: expected")
