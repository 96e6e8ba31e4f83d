"""Run the stages that a recipe has declared: ``python -m privasr_k2.recipe.run`` (by local/run_recipe.sh).

One process checks the wiring of the whole recipe, takes the lock of the work folder, and brings the stages
of ``--first`` to ``--last`` up to date. Like ``bin/cli.py`` it is a door, so it prints errors and sets exit
codes; unlike it, it imports nothing that is slow.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from privasr_k2.errors import ConfigError, PrivasrError
from privasr_k2.recipe import lock, plan
from privasr_k2.recipe.fingerprint import REPOSITORY, HashCache
from privasr_k2.recipe.launch import die_with_parent
from privasr_k2.recipe.runner import Options, Runner
from privasr_k2.recipe.settings import check_keys, without_effect
from privasr_k2.recipe.stamps import remove_temporaries
from privasr_k2.recipe.wiring import Wiring


class _Ended(BaseException):
    """A signal asks this process to end."""


def main() -> None:
    """Parse the command line, check the recipe, run it or show it."""
    args = _parser().parse_args()
    work_dir = Path.cwd()
    stages = plan.parse(args.plan.read_bytes(), str(work_dir))
    wiring = Wiring(stages, work_dir)
    defaults = args.root.resolve() / "conf"
    check_keys(stages, work_dir, defaults)
    for sentence in without_effect(stages, work_dir, defaults):
        print(f"note: {sentence}", file=sys.stderr, flush=True)
    options = Options(args.first, args.last, args.force == "true", args.nj, args.side_by_side)
    if not any(args.first <= stage.number <= args.last for stage in stages):
        known = " ".join(dict.fromkeys(str(stage.number) for stage in stages))
        raise ConfigError(
            "--stage, --stop-stage",
            f"a range that holds one of {known}",
            f"{args.first} to {args.last}",
            "correct it",
        )
    shorten = {f"{work_dir}/": "", f"{args.root.resolve()}/": REPOSITORY}
    state_dir = work_dir / ".stages"

    def make() -> tuple[HashCache, Runner]:
        cache = HashCache(state_dir / "hashes.json", work_dir, verify=args.verify == "true")
        return cache, Runner(stages, wiring, cache, options=options, work_dir=work_dir, shorten=shorten)

    if args.dry_run == "true":
        make()[1].show()
        return
    state_dir.mkdir(exist_ok=True)
    (state_dir / ".gitignore").write_text("*\n")
    with lock.hold(state_dir, wait=args.wait == "true", say=lambda text: print(text, flush=True)) as held:
        remove_temporaries(state_dir / "hashes.json")
        cache, runner = make()  # under the lock: another run may have written the cache a moment ago
        try:
            runner.check_earlier()
            runner.run(held)
        finally:
            cache.save()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "--plan", type=Path, required=True, help="the declared stages, as local/stage.sh collects them"
    )
    parser.add_argument("--root", type=Path, required=True, help="the repository")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=sys.maxsize)
    parser.add_argument("--nj", type=int, default=1, help="processes at once on this machine")
    parser.add_argument("--side-by-side", type=int, default=1, help="stages of one number at once")
    for name, default in (("dry-run", "false"), ("force", "false"), ("verify", "false"), ("wait", "true")):
        parser.add_argument(f"--{name}", choices=("true", "false"), default=default)
    return parser


def _end(number: int, _: FrameType | None) -> None:
    raise _Ended(number)


if __name__ == "__main__":
    for which in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(which, _end)
    die_with_parent(signal.SIGTERM)
    try:
        main()
    except PrivasrError as error:
        sys.stdout.flush()
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except BrokenPipeError:  # the reader of this output, such as head, has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(128 + signal.SIGPIPE) from None
    except OSError as error:
        if error.filename is None and error.errno is None:
            raise
        place, found = error.filename or os.getcwd(), error.strerror or str(error)
        message = PrivasrError(
            place, "a place to read and write", found, "free space or change its owner, or give --work-dir"
        )
        print(f"error: {message}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("interrupted: run again to continue", file=sys.stderr)
        raise SystemExit(130) from None
    except _Ended as error:
        raise SystemExit(128 + error.args[0]) from None
