"""Verbs in forked children of a process that has their libraries loaded.

Importing torch, k2 and lhotse takes a second. :class:`WarmServer` starts a process that forks a
child for each verb, after it has imported what earlier children had to import. It never computes,
as a fork is safe only where no thread pool is at work. Libraries read the number of threads when
they are loaded: each such setting has a server of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import importlib.metadata
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_VERBS = "privasr_k2.bin."
#: Slow libraries that the server may import: their import starts no thread and looks for no GPU.
LIBRARIES = (
    *("numpy", "omegaconf", "safetensors.numpy", "soundfile", "sentencepiece", "rapidfuzz"),
    *("scipy.special", "scipy.sparse", "scipy.signal", "scipy.optimize", "scipy.stats"),
    *("torch", "safetensors.torch", "torch.utils.tensorboard", "lhotse", "k2", "kaldifst"),
    *("dp_accounting", "opendp.prelude", "opacus", "matplotlib.figure"),
)


class WarmProcess:
    """A verb in a child of a server, with the part of ``subprocess.Popen`` that is used.

    Attributes:
        pid: of the child, which leads a session of its own.
        returncode: as Popen's; -9 where the server has died and the kernel has killed the child.
    """

    def __init__(self, server: WarmServer, pid: int) -> None:
        self._server, self.pid = server, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        if self.returncode is None:
            self.returncode = self._server.code_of(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end.

        Raises:
            subprocess.TimeoutExpired: it has not ended after ``timeout`` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            time.sleep(0.01)
        return code


class WarmServer:
    """The server process. The kernel kills it when this process dies, and its children with it.

    Args:
        environment: of the server and of all its children.
        lock: a descriptor for them to inherit.
    """

    def __init__(
        self, environment: dict[str, str], work_dir: Path, lock: int | None = None
    ) -> None:
        folder = work_dir / ".stages"
        folder.mkdir(exist_ok=True)
        with (folder / "warm.log").open("w") as log:
            self._process = subprocess.Popen(
                (sys.executable, "-m", "privasr_k2.recipe.warm"),
                cwd=work_dir,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                start_new_session=True,
                pass_fds=() if lock is None else (lock,),
                preexec_fn=tie(),
            )
        self._received = b""
        self._codes: dict[int, int] = {}
        self._started: list[int | None] = []
        self._gone = False

    def start(
        self, module: str, arguments: Sequence[str], log: Path, environment: Mapping[str, str]
    ) -> WarmProcess | None:
        """Run a module as ``python -m`` does, its output added to ``log``; None if it cannot.

        Args:
            environment: added to the server's.
        """
        request: dict[str, Any] = {"module": module, "arguments": list(arguments)}
        request |= {"log": str(log), "environment": dict(environment)}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            return None
        while not self._started and not self._gone:
            self._receive(None)
        pid = self._started.pop() if self._started else None
        return None if pid is None else WarmProcess(self, pid)

    def code_of(self, pid: int) -> int | None:
        """The exit code of a child, once; None while it runs."""
        self._receive(0.0)
        code = self._codes.pop(pid, None)
        return -signal.SIGKILL if code is None and self._gone else code

    def close(self) -> None:
        """End the server, and kill what it still runs."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _receive(self, timeout: float | None) -> None:
        stream = self._process.stdout
        assert stream is not None
        while not self._gone and select.select([stream], [], [], timeout)[0]:
            data = stream.read(65536)
            self._gone = not data
            *lines, self._received = (self._received + (data or b"")).split(b"\n")
            for pid, code in map(json.loads, lines):
                if code is None:
                    self._started.append(pid)
                else:
                    self._codes[pid] = code
            timeout = 0.0


def die_with_parent(number: int) -> None:
    """Let the kernel send this process the signal ``number`` when its parent dies (Linux only)."""
    _prctl(_PR_SET_PDEATHSIG, number)


def tie() -> Callable[[], None] | None:
    """Let the kernel kill a child when this process dies (Linux); made before a fork, run after."""
    if not sys.platform.startswith("linux"):
        return None
    prctl, parent = ctypes.CDLL(None, use_errno=True).prctl, os.getpid()

    def run() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return run


def _prctl(option: int, value: Any) -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _serve() -> NoReturn:
    """Fork a child for each request, a line of JSON; reply [pid, null], then [pid, exit code].

    The reply is [null, null] if no child can be forked.
    """
    requests, replies = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)  # the output of libraries is no reply
    wake, woken = os.pipe()  # written to when a child ends
    learned, learn = os.pipe()  # names of modules, from children
    for descriptor in (wake, woken, learned, learn):
        os.set_blocking(descriptor, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    children: set[int] = set()
    received = b""
    parent = os.getpid()
    while True:
        ready, _, _ = select.select([requests, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            for pid in [*children]:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    children.remove(pid)
                    _reply(replies, pid, os.waitstatus_to_exitcode(status))
        if requests in ready:
            data = os.read(requests, 65536)
            if not data:
                os._exit(0)
            *lines, received = (received + data).split(b"\n")
            for line in lines:
                _import(_names(learned))
                if holds_gpu():
                    _reply(replies, None, None)
                    continue
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for descriptor in (requests, replies, wake, woken, learned):
                        os.close(descriptor)
                    _run(json.loads(line), parent, learn)
                children.add(pid)
                _reply(replies, pid, None)


def _reply(replies: int, pid: int | None, code: int | None) -> None:
    os.write(replies, json.dumps([pid, code]).encode() + b"\n")


def _names(learned: int) -> list[str]:
    with contextlib.suppress(BlockingIOError):
        return list(dict.fromkeys(os.read(learned, 1 << 16).decode().split()))
    return []


def _import(names: Sequence[str]) -> None:
    """Import the modules that can be; a child that needs another says so in its log."""
    for name in names:
        if name not in sys.modules:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    gc.collect()
    gc.freeze()  # children neither trace these objects nor copy their pages


def holds_gpu(descriptors: Path = Path("/proc/self/fd")) -> bool:
    """Whether this process has opened a GPU, which CUDA then refuses to its forked children."""
    for entry in descriptors.iterdir():
        with contextlib.suppress(OSError):
            if os.readlink(entry).startswith("/dev/nvidia"):
                return True
    return False


def _run(request: Mapping[str, Any], parent: int, learn: int) -> NoReturn:
    """Be a process of its own, and run a module in it."""
    os.setsid()
    die_with_parent(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    log = os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    _prctl(_PR_SET_NAME, request["module"].rpartition(".")[2][:15].encode())
    os.environ.update(request["environment"])
    _seed()
    before = set(sys.modules)
    sys.argv = [request["module"], *request["arguments"]]
    code = 0
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit as error:
        code = _exit_code(error.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    _teach(before, learn)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()  # closes files that only a circle of references holds
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120  # as Python's own
    ctypes.CDLL(None).fflush(None)
    os._exit(code)  # tearing the libraries down would take 0.4 s


def _seed() -> None:
    """Seed the global generators anew, as a new process does; Python's own does it at a fork."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()


def _exit_code(value: object) -> int:
    """The exit code of ``sys.exit(value)``.

    >>> _exit_code(None), _exit_code(2), _exit_code(-1)
    (0, 2, 255)
    """
    if value is None or isinstance(value, int):
        return (value or 0) & 0xFF
    print(value, file=sys.stderr)
    return 1


def is_taught(name: str) -> bool:
    """Whether the server may import it; a verb is left to runpy."""
    is_verb = name.startswith(_VERBS) and name != f"{_VERBS}cli"
    return name in LIBRARIES or (name.startswith("privasr_k2.") and not is_verb)


def _teach(before: set[str], learn: int) -> None:
    """Tell the server what this child had to import, in one write, which a pipe keeps whole."""
    names = [name for name in sys.modules if name not in before and is_taught(name)]
    text = "".join(name + "\n" for name in names)[: select.PIPE_BUF]
    with contextlib.suppress(BlockingIOError):
        os.write(learn, text[: text.rfind("\n") + 1].encode())


def is_exact() -> bool:
    """Whether a forked child computes bit for bit what a new process does: not with torch 2.13."""
    try:
        return importlib.metadata.version("torch").startswith("1.")
    except importlib.metadata.PackageNotFoundError:
        return True


if __name__ == "__main__":
    _serve()
