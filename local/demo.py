"""``./run.sh`` alone: seven recipes on the synthetic corpora in the preset demo, and one page.

Two chains run side by side, with half of the cores each: mini (ctc, rescore, classlm, fmp, fedlm)
and mini_pate (dpsgd, pate). Work goes to egs/demo/, the page to egs/mini/exp; with --work-dir both
go there.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from privasr_k2.recipe import options
from privasr_k2.recipe.declare import Presets
from privasr_k2.recipe.options import Count, option, path_option

CHAINS: dict[str, list[tuple[str, list[str]]]] = {
    "mini_pate": [
        ("dpsgd", ["--dpsgd-epsilons", "1 8 inf"]),
        ("pate", ["--vote", "utterance", "--self-trained", "false",
                  "--unlabeled-data", "none", "--dpsgd-epsilons", "1 8 inf",
                  "--words", "play turn"]),
    ],
    "mini": [
        ("ctc", []),
        ("rescore", []),
        ("classlm", ["--adapt-percent", "15"]),
        ("fmp", ["--rounds", "1 2 5", "--epsilons", "1 4 16"]),
        ("fedlm", ["--nnlm", "lstm", "--confidence-use", "all token",
                   "--private-confidence-use", "all", "--noises", "1 0.5 0.2",
                   "--private-trained", "lora", "--private-lr", "0.01", "--private-rounds", "40",
                   "--scratch", "false"]),
    ],
}


@dataclass(frozen=True)
class Options:
    """Options of the demonstration."""

    nj: Count = option(os.cpu_count() or 1, "jobs at once, of both chains together")
    preset: Presets = option("demo", "sizes")
    work_dir: Path | None = path_option("folder for all (default: egs/demo; page: egs/mini/exp)")
    dry_run: bool = option(False, "print what each stage would do")
    force: bool = option(False, "run stages although they are up to date")
    verify: bool = option(False, "read every file again")
    wait: bool = option(True, "wait while another run is at work in the same folder")
    device: str = option("auto", "auto, cpu, cuda or cuda:N")
    cmd: str = option("", "launcher of all stages")


@dataclass
class Chain:
    """One corpus's recipes, in order; output lines have a prefix beside another chain."""

    corpus: str
    words: list[str]
    caller: Path
    prefix: str = ""
    summary: list[str] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    process: "subprocess.Popen[str] | None" = None

    def run(self) -> None:
        """Run all recipes; one that has failed does not stop the next."""
        for recipe, own in CHAINS[self.corpus]:
            print(f"{self.prefix}=== {self.corpus} {recipe}", flush=True)
            started = time.monotonic()
            code = self._one([self.corpus, recipe, *self.words, *own])
            if code < 0 or code >= 128:  # interrupted
                self.codes.append(code)
                return
            self.codes.append(code)
            result = "FAILED" if code else "done"
            seconds = time.monotonic() - started
            self.summary.append(f"{self.corpus:10} {recipe:8} {result:6} {seconds:5.0f} s")

    def _one(self, words: Sequence[str]) -> int:
        argv = [sys.executable, "-m", "privasr_k2.recipe.run", *words]
        if not self.prefix:
            return subprocess.run(argv, cwd=self.caller).returncode
        self.process = subprocess.Popen(argv, cwd=self.caller, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            print(f"{self.prefix}{line}", end="", flush=True)
        return self.process.wait()


def demo(words: Sequence[str], root: Path, caller: Path) -> int:
    """Run both chains and make the page; returns the exit status."""
    parsed = options.parse([Options], words, renamed={"size": "--preset"},
                           caller=caller, prog="./run.sh", help=__doc__ or "")
    o = options.build(Options, parsed)
    work, page = o.work_dir or root / "egs/demo", o.work_dir or root / "egs/mini"
    jobs = str((o.nj + 1) // 2)
    shared = ["--preset", o.preset, "--nj", jobs, "--show-report", "false", "--device", o.device]
    for name in ("dry_run", "force", "verify", "wait", "cmd"):
        if name in parsed.given:
            shared += [f"--{name.replace('_', '-')}", parsed.given[name]]
    texts = Chain("mini", [*shared, "--work-dir", str(work / "mini")], caller)
    pate = Chain("mini_pate", [*shared, "--work-dir", str(work / "mini_pate")], caller,
                 "mini_pate | ")
    beside = threading.Thread(target=pate.run, daemon=True)
    beside.start()
    try:
        texts.run()
        beside.join()
    finally:
        if pate.process is not None and pate.process.poll() is None:
            pate.process.terminate()
    codes = [*texts.codes, *pate.codes]
    if any(code < 0 or code >= 128 for code in codes):
        return 130
    if not o.dry_run:
        # The page's own folder comes first: its full-size results stand above the demonstration's.
        argv = [sys.executable, "-m", "privasr_k2.recipe.run", "mini", "report",
                "--work-dir", str(page), "--also", f"{work / 'mini'} {work / 'mini_pate'}",
                "--show-report", "false"]
        codes.append(subprocess.run(argv, cwd=caller).returncode)
    print("\n".join(["", "=== demonstration", *texts.summary, *pate.summary]))
    if not o.dry_run and not codes[-1]:
        print(f"all results: {page}/exp/report.html")
    return int(any(codes))
