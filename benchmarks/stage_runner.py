"""How long a recipe takes that has nothing to do: the stage runner against GNU make.

    . ./path.sh; python benchmarks/stage_runner.py [--files 20000] [--stages 40] [--jobs 200]
    [--repeat 3]

Makes a work folder with a chain of stages, the first of which reads a folder of many small files,
and an array; runs it once; then measures runs that find everything up to date. make compares times
of the same files where the runner compares contents. Prints the best of ``--repeat`` in seconds.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks.measuring import best_seconds
from benchmarks.rows import Row, append_rows, flags

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Make the folder, run it once, measure."""
    args = flags(__doc__, files=20_000, stages=40, jobs=200, repeat=3).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        make_inputs(work, args.files)
        recipe = work / "recipe.py"
        recipe.write_text(declarations(args.stages, args.jobs))
        command = [sys.executable, "-m", "privasr_k2.recipe.run", "mini", str(recipe)]
        command += ["--work-dir", str(work)]
        print(f"{args.files} files, {args.stages} stages, an array of {args.jobs} jobs")
        print(f"first run            {seconds(command, work, 1):8.2f} s")
        time.sleep(1.5)
        print(f"hashes remembered    {seconds(command, work, 1):8.2f} s")
        ours = seconds(command, work, args.repeat)
        print(f"up to date           {ours:8.2f} s")
        for name, words in {
            "up to date, --verify": [*command, "--verify", "true"],
            "--dry-run": [*command, "--dry-run", "true"],
            "python alone": [sys.executable, "-c", ""],
        }.items():
            print(f"{name:20} {seconds(words, work, args.repeat):8.2f} s")
        if shutil.which("make"):
            (work / "Makefile").write_text(makefile(args.stages, args.jobs))
            subprocess.run(["make", "-rs"], cwd=work, check=True, stdout=subprocess.DEVNULL)
            theirs = seconds(["make", "-rs"], work, args.repeat)
            print(f"make, up to date     {theirs:8.2f} s")
            version = subprocess.check_output(["make", "--version"], text=True).splitlines()[0]
            what = f"nothing to do: {args.files} files, {args.stages} stages"
            what += f", an array of {args.jobs} jobs"
            against = f"{version}, which compares times of files, not contents"
            append_rows(args.out_rows, [Row(what, ours, theirs, "s", against, "less")])


def make_inputs(work: Path, count: int) -> None:
    """Small files in folders of a thousand, and the verb that all stages run."""
    for number in range(count):
        file = work / f"corpus/{number // 1000}/{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"utterance {number}\n")
    verb = work / "verb"
    verb.write_text(
        '#!/bin/sh\nfor last; do :; done\nmkdir -p "${last%/*}" && echo done > "$last"\n'
    )
    verb.chmod(0o755)


RECIPE = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Options:
    pass

def stages(r, o):
    r.records += {records!r}
"""


def declarations(stages: int, jobs: int) -> str:
    """A recipe of one file that declares the stages."""
    lines = ["0 first ./verb --in-corpus corpus --out-x exp/0"]
    lines += [f"{n} chain ./verb --in-x exp/{n - 1} --out-x exp/{n}" for n in range(1, stages)]
    lines += [f"{stages} array JOB=1:{jobs} ./verb --in-x exp/0 --out-x exp/array/JOB"]
    return RECIPE.format(records=[line.split() for line in lines])


def makefile(stages: int, jobs: int) -> str:
    """The same dependencies, by time of change."""
    last = f"exp/{stages - 1}"
    array = " ".join(f"exp/array/{job}" for job in range(1, jobs + 1))
    rules = [f"all: {last} {array}", "exp/0: $(wildcard corpus/*/*)\n\t./verb $@"]
    rules += [f"exp/{n}: exp/{n - 1}\n\t./verb $@" for n in range(1, stages)]
    rules += [f"{array}: exp/0\n\t./verb $@"]
    return "\n".join(rules) + "\n"


def seconds(command: list[str], work: Path, repeat: int) -> float:
    """The shortest wall time of ``repeat`` runs."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = partial(subprocess.run, command, cwd=work, check=True, env=environment)
    return best_seconds(partial(run, stdout=subprocess.DEVNULL), repeat, time.monotonic)


if __name__ == "__main__":
    main()
