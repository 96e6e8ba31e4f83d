"""Run a recipe again and again under disturbances, and compare with an undisturbed run.

    python tests/reliability/soak.py --minutes 30

Each round copies a finished work folder of ``./run.sh mini ctc --preset tiny``, makes stages from a
random one on anew under one disturbance, and then brings everything up to date:

    kill    up to three SIGKILLs at random moments, to all processes or to the shell alone
    disk    a file system with little room (if it may be mounted), or a limit on the size of files
    twice   two runs in the folder at once; the second waits, or is refused
    clock   times of change of files that lie years back or ahead
    flip    a flipped byte in an output of the same size and times; the last run has --verify true

A round is well if no run shows a traceback, each ends well or is refused with exit code 2, and all
results are those of the undisturbed run, byte by byte. ``--seed`` repeats a soak as far as time
lets it. The exit code is 1 where a round was not well; its folder is then kept.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAST_STAGE = 11
# Seconds of each step of the compilation, and of a training's curves: no results.
_TIMED = ("graph.yaml", "tensorboard")
_TAIL = 1500


class Soak:
    """One work folder after the other, with counts of events, and problems in words."""

    def __init__(self, reference: Path, folder: Path, rng: random.Random, seconds: float) -> None:
        self.reference, self.folder, self.rng, self.seconds = reference, folder, rng, seconds
        self.expected = results(reference)
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []

    def round(self, name: str, disturb: Callable[[Soak, Path], list[str]]) -> None:
        """Disturb a copy of the finished folder, bring it up to date, and compare."""
        self.counts[f"rounds: {name}"] += 1
        before = len(self.problems)
        with self.work_folder(name) as work:
            options = disturb(self, work)
            code = self.ended(name, run(work, *options))
            if code != 0:
                self.problems.append(f"{name}: the last run ended with {code}")
            outputs = results(work)
            for path in sorted(self.expected.keys() | outputs.keys()):
                if self.expected.get(path) != outputs.get(path):
                    self.counts["differences"] += 1
                    self.problems.append(f"{name}: {path} is another")
            if len(self.problems) > before:
                kept = self.folder / f"kept_{sum(self.counts.values())}"
                shutil.copytree(work, kept, symlinks=True)
                print(f"  NOT WELL, kept as {kept}: {self.problems[before:]}", flush=True)

    @contextmanager
    def work_folder(self, name: str) -> Iterator[Path]:
        """A copy of the finished folder; of ``disk`` maybe on a file system of its own."""
        work = Path(tempfile.mkdtemp(dir=self.folder, prefix=f"{name}_"))
        mounted = name == "disk" and mount(work, size_of(self.reference) * 4)
        self.counts["mounted"] += mounted
        try:
            shutil.copytree(self.reference, work, symlinks=True, dirs_exist_ok=True)
            yield work
        finally:
            if mounted:
                subprocess.run(["umount", "-l", work], check=True)
            shutil.rmtree(work, ignore_errors=True)

    def ended(self, name: str, process: subprocess.Popen[str], *, killed: bool = False) -> int:
        """Wait for a run and note how it ended."""
        output, _ = process.communicate()
        self.counts["runs"] += 1
        self.counts["refusals"] += process.returncode == 2
        if "Traceback" in output or (process.returncode not in (0, 2) and not killed):
            self.problems.append(f"{name}: exit code {process.returncode}: {output[-_TAIL:]}")
        return process.returncode

    def forced(self) -> list[str]:
        """Options that make everything from a random stage on anew."""
        return ["--force", "true", "--stage", str(self.rng.randint(0, LAST_STAGE))]

    def moment(self) -> float:
        """Seconds until something happens: mostly soon, so that each part of a run has its turn."""
        return self.rng.uniform(0.3, self.seconds) * self.rng.choice((0.1, 0.3, 1.0))


def kill(soak: Soak, work: Path) -> list[str]:
    """SIGKILL to all processes of a run, or to its shell alone."""
    options = soak.forced()
    for _ in range(soak.rng.randint(1, 3)):
        process = run(work, *options)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(soak.moment())
        alive = process.poll() is None
        soak.counts["kills"] += alive
        if alive and soak.rng.random() < 0.7:
            os.killpg(process.pid, signal.SIGKILL)
        elif alive:
            os.kill(process.pid, signal.SIGKILL)
        soak.ended("kill", process, killed=alive)
        options = soak.rng.choice(([], [], soak.forced()))
    return []


def disk(soak: Soak, work: Path) -> list[str]:
    """A disk that becomes full, or a limit on the size of files; then there is room again."""
    if os.path.ismount(work):
        room = size_of(work) + soak.rng.choice((4_096, 100_000, 1_000_000))
        subprocess.run(["mount", "-o", f"remount,size={room}", work], check=True)
        code = soak.ended("disk", run(work, *soak.forced()))
        whole = size_of(soak.reference) * 4
        subprocess.run(["mount", "-o", f"remount,size={whole}", work], check=True)
    else:
        limit = soak.rng.choice((100, 4_096, 20_000, 100_000, 1_000_000))
        code = soak.ended("disk", run(work, *soak.forced(), file_size=limit))
    soak.counts["full disks that stopped a run"] += code != 0
    return []


def twice(soak: Soak, work: Path) -> list[str]:
    """Two runs at once."""
    first = run(work, *soak.forced())
    time.sleep(soak.rng.uniform(0, 2))
    second = run(work, *soak.rng.choice((["--wait", "false"], ["--wait", "true"], soak.forced())))
    for process in (second, first):
        soak.ended("twice", process)
    return []


def clock(soak: Soak, work: Path) -> list[str]:
    """Times of change years back or ahead, and a run between two such jumps."""
    for _ in range(2):
        now = time.time() + soak.rng.choice((-1, 1)) * soak.rng.uniform(0, 20 * 365 * 86400)
        for path in (path for path in work.rglob("*") if path.is_file()):
            if soak.rng.random() < 0.5:
                os.utime(path, (now, now + soak.rng.uniform(-60, 60)))
        soak.counts["jumps of the clock"] += 1
        soak.ended("clock", run(work, *soak.rng.choice(([], soak.forced()))))
    return []


def flip(soak: Soak, work: Path) -> list[str]:
    """A flipped byte in an output of the undisturbed run; neither size nor times tell of it."""
    path = work / soak.rng.choice(sorted(name for name in soak.expected if soak.expected[name]))
    content, stat = bytearray(path.read_bytes()), path.stat()
    content[soak.rng.randrange(len(content))] ^= 1 << soak.rng.randrange(8)
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    soak.counts["flipped bytes"] += 1
    return ["--verify", "true"]


DISTURBANCES = {"kill": kill, "disk": disk, "twice": twice, "clock": clock, "flip": flip}


def run(work: Path, *options: str, file_size: int | None = None) -> subprocess.Popen[str]:
    """Begin ``./run.sh mini ctc --preset tiny``, at the head of its own process group."""

    def limit() -> None:
        if file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))

    log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
    tiny = ("mini", "ctc", "--preset", "tiny", "--work-dir", str(work), *options)
    streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
    session = {"start_new_session": True, "preexec_fn": limit}
    process = _Logged([str(ROOT / "run.sh"), *tiny], text=True, **streams, **session)
    process.log = log
    return process


class _Logged(subprocess.Popen):
    """Its output goes to a file: children of a killed shell would keep a pipe open."""

    log: object

    def communicate(self, *args: object, **more: object) -> tuple[str, str]:  # type: ignore[override]
        self.wait()
        self.log.seek(0)  # type: ignore[attr-defined]
        return self.log.read(), ""  # type: ignore[attr-defined]


def results(work: Path) -> dict[str, bytes]:
    """All outputs of a work folder by name, but what holds times."""
    files = (path for top in ("data", "exp") for path in (work / top).rglob("*") if path.is_file())
    named = {path.relative_to(work): path for path in files}
    return {
        str(name): path.read_bytes()
        for name, path in named.items()
        if not any(part.startswith(".") or part in ("log", *_TIMED) for part in name.parts)
    }


def size_of(folder: Path) -> int:
    """Bytes of all files, in whole pages."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return sum(-(-size // 4096) * 4096 for size in sizes) + 4096 * len(sizes)


def mount(folder: Path, size: int) -> bool:
    """Mount a small file system in memory, where the system lets us."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def main() -> None:
    """Soak, and print what happened."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5.0, help="no round begins after so long")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", choices=DISTURBANCES, nargs="+", default=list(DISTURBANCES))
    parser.add_argument("--reference", type=Path, help="a finished work folder, to begin at once")
    args = parser.parse_args()
    # What is run uses the interpreter that runs this, and installs nothing.
    os.environ["PRIVASR_ENV"] = "current"
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    folder = Path(tempfile.mkdtemp(prefix="soak_"))
    began = time.monotonic()
    reference = args.reference
    if reference is None:
        reference = folder / "undisturbed"
        done = run(reference)
        output, _ = done.communicate()
        if done.returncode != 0:
            sys.exit(f"the undisturbed run failed:\n{output[-_TAIL:]}")
    whole = time.monotonic() - began if args.reference is None else 60.0
    print(f"seed {args.seed}, undisturbed run {whole:.0f} s, in {folder}", flush=True)
    soak = Soak(reference.resolve(), folder, random.Random(args.seed), whole)
    end = time.monotonic() + 60 * args.minutes
    names: list[str] = []
    while time.monotonic() < end:
        if not names:
            names = soak.rng.sample(args.only, len(args.only))
        name = names.pop()
        started = time.monotonic()
        soak.round(name, DISTURBANCES[name])
        counts = dict(sorted(soak.counts.items()))
        print(f"{name}: {time.monotonic() - started:.0f} s, {counts}", flush=True)
    print(f"{(time.monotonic() - end) / 60 + args.minutes:.1f} minutes")
    for name, count in sorted(soak.counts.items()):
        print(f"{name:30} {count}")
    print(f"{'problems':30} {len(soak.problems)}")
    if soak.problems:
        sys.exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
