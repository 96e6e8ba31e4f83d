"""One run at a time in a work folder, and no process there of a run that was killed."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from privasr_k2.errors import ConfigError


@contextmanager
def hold(folder: Path, *, wait: bool, say: Callable[[str], None]) -> Iterator[int]:
    """Hold the two locks of a work folder, and yield the descriptor that children inherit.

    The run holds ``lock``, its child processes hold ``lock.children``, too. After a kill, a new run
    ends whatever still has ``lock.children`` open.

    Args:
        folder: the folder ``.stages`` of the work folder; the lock files stay there.
        wait: wait for another run to end; else raise.
        say: takes messages.

    Raises:
        ConfigError: another run holds the lock and ``wait`` is not set.
    """
    with _locked(folder / "lock") as (descriptor, is_free):
        if not is_free:
            holder = _holder(folder / "lock")
            if not wait:
                way_out = "wait for it, or give another --work-dir"
                raise ConfigError(folder.parent, "no other run in this folder", holder, way_out)
            other = f"another run in {folder.parent}: {holder}"
            say(f"waiting for {other} (--wait false fails instead)")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        me = {"pid": os.getpid(), "host": socket.gethostname()}
        me["since"] = datetime.now().isoformat(timespec="seconds")
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(me).encode(), 0)
        with _locked(folder / "lock.children") as (inherited, is_free):
            if not is_free:
                left = _processes_with(folder / "lock.children")
                numbers = ", ".join(map(str, left)) or "on another machine: it is waited for"
                say(f"ending what a killed run has left at work here (process {numbers})")
                for number in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(number, signal.SIGKILL)
                fcntl.flock(inherited, fcntl.LOCK_EX)
            yield inherited


@contextmanager
def _locked(file: Path) -> Iterator[tuple[int, bool]]:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        is_free = True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            is_free = False
        yield descriptor, is_free
    finally:
        os.close(descriptor)


def _holder(file: Path) -> str:
    try:
        other = json.loads(file.read_text())
        return f"process {other['pid']} on {other['host']} since {other['since']}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "one that has only begun"


def _processes_with(file: Path) -> list[int]:
    """The other processes of this machine that have ``file`` open, by ``/proc``."""
    wanted = file.stat()
    processes = []
    for entry in Path("/proc").glob("[0-9]*"):
        if entry.name == str(os.getpid()):
            continue
        with contextlib.suppress(OSError):  # it has ended, or belongs to somebody else
            for descriptor in (entry / "fd").iterdir():
                opened = descriptor.stat()
                if (opened.st_dev, opened.st_ino) == (wanted.st_dev, wanted.st_ino):
                    processes.append(int(entry.name))
                    break
    return processes
