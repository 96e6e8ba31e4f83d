"""Time and memory of a piece of work, or of a verb, in a process of its own.

A process's peak never falls, and ``ru_maxrss`` of a child includes its parent's; Linux's ``VmHWM``
counts from the start of the program.
"""

from __future__ import annotations

import atexit
import json
import math
import multiprocessing
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Usage:
    """Wall seconds, processor seconds of all threads, and MiB before and at most."""

    seconds: float
    processor: float
    before: float
    peak: float

    @property
    def grown(self) -> float:
        """MiB that the work took at most."""
        return self.peak - self.before


def mebibytes(name: str = "VmHWM") -> float:
    """MiB of this process: ``VmRSS`` now, ``VmHWM`` at most."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"no {name} in /proc/self/status: this benchmark needs Linux")


def timed(work: Callable[[], T], clock: Callable[[], float] = time.perf_counter) -> tuple[float, T]:
    """Seconds, and what the work gives."""
    started = clock()
    found = work()
    return clock() - started, found


def best_seconds(
    work: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """The fastest of several runs."""
    return min(timed(work, clock)[0] for _ in range(repeats))


def least(
    functions: Mapping[str, Callable[[], T]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[dict[str, float], dict[str, T]]:
    """The least seconds of each function, run in turns, and what each gives."""
    times: dict[str, float] = dict.fromkeys(functions, math.inf)
    found: dict[str, T] = {}
    for _ in range(repeats):
        for name, function in functions.items():
            seconds, found[name] = timed(function, clock)
            times[name] = min(times[name], seconds)
    return times, found


def forget_peak() -> float:
    """Let ``VmHWM`` begin again; MiB of this process now, which is what it begins with.

    Raises:
        SystemExit: the system cannot.
    """
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError as error:
        message = f"/proc/self/clear_refs: {error.strerror}: this benchmark needs Linux"
        raise SystemExit(message) from error
    return mebibytes()


def measured(prepare: Callable[..., Callable[[], object]], *args: object) -> Usage:
    """Usage of ``prepare(*args)()`` in a new process, without ``prepare``; both are pickled."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_run, prepare, *args).result()


def _run(prepare: Callable[..., Callable[[], object]], *args: object) -> Usage:
    work = prepare(*args)
    before, clock, processor = forget_peak(), time.perf_counter(), time.process_time()
    work()
    return Usage(time.perf_counter() - clock, time.process_time() - processor, before, mebibytes())


def of_verb(verb: str, *words: object, env: Mapping[str, str] | None = None) -> Usage:
    """What a verb of ``privasr_k2.bin`` takes; the memory is that of its first process.

    Raises:
        SystemExit: it failed.
    """
    command = [sys.executable, "-m", "benchmarks.measuring", verb, *map(str, words)]
    clock = time.perf_counter()
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - clock
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    return Usage(seconds, **json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Run a verb and print its usage last, with the processor time of its children."""
    verb, *sys.argv[1:] = sys.argv[1:]

    def tell() -> None:
        processor = time.process_time() + sum(os.times()[2:4])
        print(json.dumps({"processor": processor, "before": 0.0, "peak": mebibytes()}), flush=True)

    atexit.register(tell)
    runpy.run_module(f"privasr_k2.bin.{verb}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
