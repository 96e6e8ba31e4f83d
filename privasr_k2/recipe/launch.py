"""Run the commands of a stage: as local processes, or as a Slurm job array.

Either way several processes of ``torchrun`` may share the work of one command.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from privasr_k2.errors import ConfigError
from privasr_k2.fileio import remove_tree, write_text
from privasr_k2.recipe import progress
from privasr_k2.recipe.warm import WarmProcess, WarmServer, is_exact, tie

_VERBS = "privasr_k2.bin."
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_GRACE_SECONDS = 10.0
#: Verbs whose processes share the work when torchrun starts several; any other runs as one.
SHARING = frozenset({"audit", "train_am", "train_fedlm", "train_lm", "train_student", "tune_fedlm"})
# torch 1.13 on Python 3.11 cannot read its own default, 0, of --redirects and --tee.
_TORCHRUN = ("-m", "torch.distributed.run", "--redirects", "1", "--tee", "1")
# --standalone of torch 1.13 has one port on a machine: the first training to end ends the others.
_ALONE = ("--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:0")
_SRUN = ("srun", "--ntasks-per-node=1")
_Process: TypeAlias = subprocess.Popen | WarmProcess
_SHARED_FILES_SECONDS = 10.0  # a network file system may hide another node's file for so long


@dataclass(frozen=True)
class Command:
    """One command to run.

    Attributes:
        job: number in the array; 1 where there is no array.
        argv: the program and its arguments.
        log: takes its output, between lines with the command and with its exit code and time.
        keep_log: add to the log of the attempt that is continued.
        progress: file in which a local command reports how far it is.
    """

    job: int
    argv: tuple[str, ...]
    log: Path
    keep_log: bool = False
    progress: Path | None = None


@dataclass(frozen=True)
class Ended:
    """Result of a command.

    Attributes:
        code: its exit code, or minus the number of the signal that killed it; None if unknown.
        seconds: wall time.
    """

    command: Command
    code: int | None
    seconds: float


def split_launcher(launcher: Sequence[str]) -> tuple[str, tuple[str, ...], tuple[str, ...] | None]:
    """Split a launcher into its kind, options of ``sbatch``, and options of ``torchrun`` or None.

    >>> split_launcher(["slurm", "--nodes", "2", "torchrun", "--nproc_per_node", "4"])
    ('slurm', ('--nodes', '2'), ('--nproc_per_node', '4'))
    >>> split_launcher(["torchrun", "--nproc_per_node", "2"])
    ('local', (), ('--nproc_per_node', '2'))
    >>> split_launcher(["local"])
    ('local', (), None)
    """
    words = list(launcher)
    place = words.index("torchrun") if "torchrun" in words else len(words)
    kind, *options = words[:place] or ["local"]
    return kind, tuple(options), tuple(words[place + 1 :]) if place < len(words) else None


def argv_of(argv: Sequence[str], launcher: Sequence[str] = ("local",)) -> tuple[str, ...]:
    """The command of a verb; a program with a slash is run as it is.

    torchrun starts verbs of :data:`SHARING` where the launcher says so; in Slurm once on each node.
    """
    verb, *rest = argv
    if "/" in verb:
        return tuple(argv)
    module = ("-m", f"{_VERBS}{verb}", *rest)
    kind, _, torchrun = split_launcher(launcher)
    if torchrun is None or verb not in SHARING:
        return (sys.executable, *module)
    if kind == "slurm":
        return (*_SRUN, sys.executable, *_TORCHRUN, *torchrun, *module)
    alone = () if any(word.startswith("--nnodes") for word in torchrun) else _ALONE
    return (sys.executable, *_TORCHRUN, *alone, *torchrun, *module)


class Pool:
    """Runs commands as processes of this machine, each in a session of its own.

    Verbs are forked from a warm process (:mod:`privasr_k2.recipe.warm`), all else is started anew.
    The kernel kills them when this process dies. At the end of the ``with`` block they get SIGTERM,
    and SIGKILL after ten seconds.

    Args:
        at_once: how many run at the same time.
        lock: a descriptor for them to inherit.
    """

    def __init__(self, *, at_once: int, work_dir: Path, lock: int | None = None) -> None:
        self._at_once, self._work_dir, self._lock = at_once, work_dir, lock
        self._waiting: deque[tuple[Command, int | None]] = deque()
        self._running: dict[_Process, tuple[Command, float]] = {}
        self._servers: dict[int | None, WarmServer] = {}

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        _stop(list(self._running))
        for server in self._servers.values():
            server.close()

    def add(self, commands: Iterable[Command], *, threads: int | None = None) -> None:
        """Let commands run after those that were added before.

        Args:
            threads: of each, unless the environment says; None leaves that to the libraries.
        """
        self._waiting.extend((command, threads) for command in commands)

    def next_ended(self, tick: Callable[[], None] = lambda: None) -> Ended:
        """Wait for the next command to end, and call ``tick`` now and then."""
        while self._waiting and len(self._running) < self._at_once:
            command, threads = self._waiting.popleft()
            self._running[self._start(command, threads)] = (command, time.monotonic())
        process = _next_ended(self._running, tick)
        command, started = self._running.pop(process)
        ended = Ended(command, process.returncode, time.monotonic() - started)
        _write_last_line(ended)
        return ended

    def _start(self, command: Command, threads: int | None) -> _Process:
        _first_lines(command)
        limits = {} if threads is None else dict.fromkeys(_THREADS, str(threads))
        environment = {**limits, **os.environ}
        own = {} if command.progress is None else {progress.VARIABLE: str(command.progress)}
        if _is_verb(command.argv) and is_exact():
            if threads not in self._servers:
                self._servers[threads] = WarmServer(environment, self._work_dir, self._lock)
            _, _, module, *arguments = command.argv
            process = self._servers[threads].start(module, arguments, command.log, own)
            if process is not None:
                return process
        with command.log.open("a") as log:
            return subprocess.Popen(
                command.argv,
                cwd=self._work_dir,
                env={**environment, **own},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=() if self._lock is None else (self._lock,),
                preexec_fn=tie(),
            )


def _is_verb(argv: Sequence[str]) -> bool:
    """Whether it is one process of a verb, on a system that kills children with their parent."""
    is_module = tuple(argv[:2]) == (sys.executable, "-m") and argv[2].startswith(_VERBS)
    return is_module and sys.platform.startswith("linux")


def run_slurm(
    commands: Sequence[Command],
    options: Sequence[str],
    *,
    is_array: bool,
    work_dir: Path,
    say: Callable[[str], None],
) -> list[Ended]:
    """Run commands as one Slurm job (an array where ``is_array``) and wait for its end.

    Each task writes its exit code beside the script; one that was killed leaves none.

    Args:
        options: further options of ``sbatch``.
        say: takes the message with the job's number.

    Raises:
        ConfigError: ``sbatch`` is not there or does not accept the job.
    """
    folder = work_dir / ".stages" / "slurm"
    remove_tree(folder)
    folder.mkdir(parents=True)
    script = folder / "script.sh"
    write_text(script, _script(commands, folder, work_dir))
    log = commands[0].log
    for command in commands:
        _first_lines(command)
    pattern = str(log.with_name(f"%a{log.suffix}") if is_array else log)
    array = [f"--array={','.join(str(command.job) for command in commands)}"] if is_array else []
    job = [f"--job-name={job_name(work_dir)}", f"--chdir={work_dir}"]
    job += [f"--output={_escape(pattern, is_array)}", *array, *options, str(script)]
    argv = ["sbatch", "--wait", "--parsable", "--open-mode=append", *job]
    started = time.monotonic()
    try:
        submitted = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=tie(),
            start_new_session=True,
        )
    except FileNotFoundError as error:
        expected, way_out = "Slurm on this machine", "use --cmd local"
        raise ConfigError("sbatch", expected, "no such program", way_out) from error
    number = ""
    try:
        assert submitted.stdout is not None
        number = submitted.stdout.readline().strip().split(";")[0]
        if number:
            say(f"Slurm job {number}")
        _, problem = submitted.communicate()
    finally:
        if submitted.returncode is None:  # interrupted
            if number:
                _ask_to_cancel(number)
            _stop([submitted])
    if not number:
        way_out = f"correct --cmd, or {script}"
        raise ConfigError("sbatch", "a job that Slurm accepts", problem.strip(), way_out)
    codes = _codes(folder, [command.job for command in commands])
    seconds = time.monotonic() - started
    ended = [Ended(command, code, seconds) for command, code in zip(commands, codes, strict=True)]
    for each in ended:
        _write_last_line(each)
    return ended


def _ask_to_cancel(number: str) -> None:
    """Start ``scancel``, which may try for minutes and goes on alone; the next run waits for it."""
    argv, null = ["scancel", number], subprocess.DEVNULL
    process = subprocess.Popen(argv, stdin=null, stdout=null, stderr=null, start_new_session=True)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_SECONDS)


def cancel_slurm(work_dir: Path, say: Callable[[str], None]) -> None:
    """Cancel the Slurm jobs of a killed run of this work folder, and wait until they are gone."""
    name = job_name(work_dir)
    say("cancelling the Slurm jobs that a killed run has left")

    def ask(*argv: str) -> str:
        done = subprocess.run([*argv, f"--name={name}"], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    try:
        ask("scancel")
        while ask("squeue", "--noheader"):
            time.sleep(0.5)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        expected = "Slurm, where a killed run may still have jobs"
        way_out = "run it where Slurm can be reached"
        raise ConfigError("scancel", expected, str(error), way_out) from error


def job_name(work_dir: Path) -> str:
    """The name of all Slurm jobs of one work folder."""
    return "privasr-" + hashlib.sha256(str(work_dir).encode()).hexdigest()[:10]


def _next_ended(running: Iterable[_Process], tick: Callable[[], None]) -> _Process:
    pause = 0.001
    while True:
        for process in running:
            if process.poll() is not None:
                return process
        tick()
        time.sleep(pause)
        pause = min(1.3 * pause, 0.2)


def _stop(processes: Sequence[_Process]) -> None:
    for process in processes:
        _signal(process, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
        _signal(process, signal.SIGKILL)  # the rest of its group, too
        process.wait()


def _signal(process: _Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _first_lines(command: Command) -> None:
    command.log.parent.mkdir(parents=True, exist_ok=True)
    now = datetime.now().isoformat(timespec="seconds")
    with command.log.open("a" if command.keep_log else "w") as log:
        log.write(f"# {now}\n# {shlex.join(command.argv)}\n")


def _write_last_line(ended: Ended) -> None:
    code = "no exit code: it was killed" if ended.code is None else f"code {ended.code}"
    with ended.command.log.open("a") as log:
        log.write(f"# ended with {code} after {ended.seconds:.1f} s\n")


def _script(commands: Sequence[Command], folder: Path, work_dir: Path) -> str:
    cases = "".join(f"  {command.job}) {shlex.join(command.argv)} ;;\n" for command in commands)
    only = commands[0].job
    names = _THREADS if len(commands) > 1 else ()
    one_thread = "".join(f"export {name}=${{{name}:-1}}\n" for name in names)
    # torchrun takes its options from these, too.
    meeting = (
        'head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)\n'
        "export PET_NNODES=$SLURM_JOB_NUM_NODES PET_RDZV_BACKEND=c10d PET_RDZV_ID=$SLURM_JOB_ID\n"
        "export PET_RDZV_ENDPOINT=$head:$((20000 + SLURM_JOB_ID % 20000))\n"
        if any(command.argv[: len(_SRUN)] == _SRUN for command in commands)
        else ""
    )
    return (
        "#!/usr/bin/env bash\n"
        f"job=${{SLURM_ARRAY_TASK_ID:-{only}}}\n{one_thread}{meeting}"
        f"cd {shlex.quote(str(work_dir))} || exit 1\n"
        f"case $job in\n{cases}esac\ncode=$?\n"
        f"codes={shlex.quote(str(folder))}\n"
        'echo $code > "$codes/$job.new" && mv "$codes/$job.new" "$codes/$job.code"\nexit $code\n'
    )


def _escape(pattern: str, is_array: bool) -> str:
    """Double every percent sign of a Slurm file name but the one of ``%a``."""
    if not is_array:
        return pattern.replace("%", "%%")
    folder, name = os.path.split(pattern)
    return os.path.join(folder.replace("%", "%%"), name)


def _codes(folder: Path, jobs: Sequence[int]) -> list[int | None]:
    files = [folder / f"{job}.code" for job in jobs]
    deadline = time.monotonic() + _SHARED_FILES_SECONDS
    while not all(file.exists() for file in files) and time.monotonic() < deadline:
        os.listdir(folder)  # makes a network file system look again
        time.sleep(0.2)
    return [int(file.read_text()) if file.exists() else None for file in files]
