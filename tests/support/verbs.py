"""Run verbs in this process, or in one of their own."""

from __future__ import annotations

import contextlib
import importlib
import io
import subprocess
import sys
from collections.abc import Iterator
from unittest import mock

import pytest

from privasr_k2.bin import cli


def words_of(command: str, *more: object) -> list[str]:
    """The command and whatever begins with a flag, split at blanks; other arguments as they are."""
    words = command.split()
    for word in map(str, more):
        words += word.split() if word.startswith("--") else [word]
    return words


def call(command: str, *more: object) -> None:
    """Run ``VERB --FLAG VALUE ...`` in this process."""
    verb, *words = words_of(command, *more)
    with mock.patch.object(sys, "argv", [verb, *words]):
        cli.run(importlib.import_module(f"privasr_k2.bin.{verb}").main)


@contextlib.contextmanager
def refused(message: str) -> Iterator[None]:
    """A verb inside ends with 2 and this message."""
    shown = io.StringIO()
    with pytest.raises(SystemExit) as ended, contextlib.redirect_stderr(shown):
        yield
    assert ended.value.code == 2
    assert message in shown.getvalue()


def run(command: str, *more: object, code: int = 0) -> str:
    """Run a verb, and return both its outputs, in a process of its own."""
    verb, *words = words_of(command, *more)
    argv = [sys.executable, "-m", f"privasr_k2.bin.{verb}", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr
