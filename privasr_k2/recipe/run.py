"""Run a recipe: ``./run.sh CORPUS RECIPE --option value...`` ends here.

One process checks the wiring of the whole recipe, takes the lock of the work folder, and brings the
stages of ``--stage`` to ``--stop-stage`` up to date. It imports nothing that is slow.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from privasr_k2 import environment
from privasr_k2.errors import ConfigError, PrivasrError
from privasr_k2.recipe import layers, lock
from privasr_k2.recipe.corpus import find_corpus
from privasr_k2.recipe.declare import command_line
from privasr_k2.recipe.fingerprint import REPOSITORY, HashCache
from privasr_k2.recipe.front import Declaration, declare, load_file, overview, words_for
from privasr_k2.recipe.launch import split_launcher
from privasr_k2.recipe.plan import Stage
from privasr_k2.recipe.presets import check_preset, write_preset
from privasr_k2.recipe.runner import Runner
from privasr_k2.recipe.seal import KEY, Seal, make_seal
from privasr_k2.recipe.settings import check_keys, without_effect
from privasr_k2.recipe.stamps import remove_temporaries, seal_records
from privasr_k2.recipe.systems import write_systems
from privasr_k2.recipe.warm import die_with_parent
from privasr_k2.recipe.wiring import Wiring

#: The checkout: of path.sh, or of this file.
ROOT = Path(os.environ.get("PRIVASR_ROOT") or Path(__file__).resolve().parents[2])


#: There where the driver of NVIDIA's GPUs is loaded.
NVIDIA = Path("/dev/nvidiactl")


class _Ended(BaseException):
    """A signal asks this process to end."""


def run(words: Sequence[str], *, root: Path = ROOT, caller: Path | None = None) -> int:
    """Run what the words ask for; returns the exit status."""
    caller = caller or Path.cwd()
    if words and words[0] in ("-h", "--help"):
        print(overview(root))
        return 0
    if not words or words[0].startswith("--"):
        return load_file(root / "local/demo.py", root).demo(words, root, caller)
    corpus, *rest = words
    if not rest or rest[0].startswith("-"):
        if {"-h", "--help"} & set(rest):
            print(overview(root))
            return 0
        return _all_recipes(corpus, rest, root, caller)
    run_one(declare(corpus, rest[0], rest[1:], root, caller), root)
    return 0


def run_one(declared: Declaration, root: Path) -> None:
    """Check a recipe's wiring, then run or show it.

    Raises:
        PrivasrError: an error in the wiring, the inputs, or a stage.
    """
    chosen, work_dir = declared.run, declared.work_dir
    _enter(declared)
    for layer in declared.unused_layers:
        name = re.split("[#./]", layer.removesuffix(".yaml"))[-1]
        near = difflib.get_close_matches(name, layers.defaults(root), 1)
        meant = f": did you mean {near[0]}?" if near else ""
        note = f"note: {layer}: no stage reads it, as no section of conf/ has its name{meant}"
        print(note, file=sys.stderr)
    print(f"work folder: {work_dir}", flush=True)
    stages = declared.stages
    wiring = Wiring(stages, work_dir, written=(declared.systems_file,))
    defaults = root / "conf"
    check_keys(stages, work_dir, defaults)
    for sentence in without_effect(stages, work_dir, defaults):
        print(f"note: {sentence}", file=sys.stderr, flush=True)
    if not any(chosen.stage <= stage.number <= chosen.stop_stage for stage in stages):
        known = " ".join(dict.fromkeys(str(stage.number) for stage in stages))
        expected = f"a range that holds one of {known}"
        found = f"{chosen.stage} to {chosen.stop_stage}"
        raise ConfigError("--stage, --stop-stage", expected, found, "correct it")
    shorten = {f"{work_dir}/": "", f"{root}/": REPOSITORY}
    state_dir = work_dir / ".stages"

    def make(seal: Seal) -> tuple[HashCache, Runner]:
        cache = HashCache(state_dir / "hashes.json", work_dir, verify=chosen.verify, seal=seal)
        return cache, Runner(
            stages, wiring, cache, options=chosen, work_dir=work_dir, shorten=shorten
        )

    if declared.preset:
        check_preset(work_dir, declared.preset, given=declared.preset_given)
    if chosen.dry_run:
        make(Seal.of(work_dir))[1].show()
        return
    check_device(stages, declared)
    state_dir.mkdir(exist_ok=True)
    (state_dir / ".gitignore").write_text("*\n")
    with lock.hold(state_dir, wait=chosen.wait, say=lambda text: print(text, flush=True)) as held:
        for name in ("hashes.json", KEY):
            remove_temporaries(state_dir / name)
        if declared.systems_file:
            write_systems(work_dir / declared.systems_file, declared.systems)
        seal = make_seal(work_dir)
        cache, runner = make(seal)  # under the lock: another run may just have written the cache
        if not cache.is_of_seal:  # of an earlier version, or new
            seal_records(work_dir, seal)
        if declared.preset:
            write_preset(work_dir, declared.preset)
        try:
            runner.check()
            runner.run(held)
        finally:
            cache.save()
    # A run that stops earlier has not touched the table, which would be an old result.
    if chosen.show_report and declared.report and chosen.stop_stage >= stages[-1].number:
        print(f"\n{(work_dir / declared.report).read_text(encoding='utf-8')}")
        page = f"{work_dir}/exp/report.html"
        print(f"page of all results: {page}, made by {report_command(declared)}")
        print(f"these results: {work_dir / declared.report}")


def report_command(declared: Declaration) -> str:
    """The command that makes the page of all results of the same work folder."""
    given = {"work_dir": str(declared.work_dir)} if declared.run.work_dir else {}
    return command_line(declared.corpus.name, "report", given, ())


def check_device(stages: Sequence[Stage], declared: Declaration) -> None:
    """Refuse a GPU that torch has no kernels for, before anything runs.

    Without a GPU's driver on this machine, or where Slurm runs the stages, nothing is asked.

    Raises:
        ConfigError: the GPU, and what torch was built for.
    """
    chosen = declared.run
    asked = [stage for stage in stages if chosen.stage <= stage.number <= chosen.stop_stage]
    here = [stage for stage in asked if split_launcher(stage.launcher)[0] != "slurm"]
    if not NVIDIA.exists() or all("--device" not in stage.tasks[0].argv for stage in here):
        return
    for finding in environment.check_gpus(chosen.device):
        if not finding.ok:
            raise ConfigError("--device", finding.expected, finding.found or "", finding.way_out)


def _enter(declared: Declaration) -> None:
    """Make the work folder and go there; refuse one of another corpus of the user's."""
    work_dir, source = declared.work_dir, declared.corpus.source
    try:
        work_dir.mkdir(parents=True, exist_ok=True)
        os.chdir(work_dir)
    except OSError as error:
        found, way_out = error.strerror or str(error), "give another: --work-dir DIR"
        raise ConfigError(work_dir, "a folder to work in", found, way_out) from None
    if source is not None:
        marker = work_dir / ".corpus"
        if marker.is_file() and marker.read_text().strip() != str(source):
            found = f"that of {marker.read_text().strip()}"
            way_out = "give another --work-dir; if the corpus has moved, remove .corpus there"
            raise ConfigError(work_dir, f"the work of {source}", found, way_out)
        if not declared.run.dry_run:
            marker.write_text(f"{source}\n")


def _all_recipes(corpus: str, words: Sequence[str], root: Path, caller: Path) -> int:
    """Run the recipes of a corpus one after the other; a failure does not stop the next."""
    summary, failed = [], False
    for recipe, own in words_for(find_corpus(corpus, root, caller, words), words, root).items():
        print(f"=== {corpus} {recipe}", flush=True)
        started = time.monotonic()
        argv = [sys.executable, "-m", "privasr_k2.recipe.run", corpus, recipe, *own]
        code = subprocess.run(argv, cwd=caller).returncode
        if code >= 128 or code < 0:
            return code if code > 0 else 128 - code
        failed |= code != 0
        summary.append(
            f"{recipe:8} {'FAILED' if code else 'done':6} {time.monotonic() - started:5.0f} s"
        )
    print("\n".join(["", f"=== {corpus}", *summary]))
    return int(failed)


def _end(number: int, _: FrameType | None) -> None:
    raise _Ended(number)


def door(words: Sequence[str]) -> int:
    """:func:`run` with errors as one message and the exit codes of a shell program."""
    for which in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(which, _end)
    die_with_parent(signal.SIGTERM)
    try:
        return run(words)
    except PrivasrError as error:
        sys.stdout.flush()
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of this output, such as head, has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.filename is None and error.errno is None:
            raise
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        place, found = error.filename or os.getcwd(), error.strerror or str(error)
        way_out = "free space or change its owner, or give --work-dir"
        message = PrivasrError(place, "a place to read and write", found, way_out)
        print(f"error: {message}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: run again to continue", file=sys.stderr)
        return 130
    except _Ended as error:
        return 128 + int(error.args[0])


if __name__ == "__main__":
    raise SystemExit(door(sys.argv[1:]))
