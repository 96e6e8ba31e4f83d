"""Bring the stages of a recipe up to date: in order, or several of one number side by side."""

from __future__ import annotations

import re
import shlex
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path

from privasr_k2.errors import DataError
from privasr_k2.recipe import launch, stamps
from privasr_k2.recipe.fingerprint import Fingerprint, HashCache
from privasr_k2.recipe.freshness import FORCED, Freshness, Options
from privasr_k2.recipe.plan import Stage, Task
from privasr_k2.recipe.progress import clock, read_progress
from privasr_k2.recipe.terminal import Terminal, duration
from privasr_k2.recipe.wiring import Wiring, reads_of

_TAIL_LINES = 15
_TIME = re.compile(r"^[\d-]+ [\d:,]+ [A-Z]+ ")


@dataclass(frozen=True, eq=False)
class _Begun:
    """A stage at work.

    Attributes:
        tasks: what each of its commands brings up to date.
        started: when it began, by the monotonic clock.
        ended: those commands that have.
    """

    stage: Stage
    tasks: Mapping[launch.Command, tuple[Task, Fingerprint]]
    started: float
    ended: list[launch.Ended] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return len(self.ended) == len(self.tasks)


class Runner:
    """The stages of one recipe in one work folder.

    Args:
        stages: all stages, in order, also those that are not asked for.
        wiring: theirs, checked.
        work_dir: absolute path of the folder in which they run.
        shorten: see :func:`privasr_k2.recipe.fingerprint.fingerprint`.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        wiring: Wiring,
        cache: HashCache,
        *,
        options: Options,
        work_dir: Path,
        shorten: dict[str, str],
    ) -> None:
        self._stages, self._wiring, self._cache = stages, wiring, cache
        self._options, self._work_dir = options, work_dir
        self._selected = [
            stage for stage in stages if options.first <= stage.number <= options.last
        ]
        self._fresh = Freshness(
            self._selected, wiring, cache, options=options, work_dir=work_dir, shorten=shorten
        )
        self._terminal = Terminal()

    def check(self) -> None:
        """Refuse what must not run, before anything does.

        Raises:
            DataError: a stage that is not asked for is undone or out of date.
            PrivacyError: a finished release would be made again.
        """
        self._fresh.check_earlier(self._say)
        self._fresh.check_releases()

    def run(self, lock: int | None) -> None:
        """Run what is asked for and not up to date.

        Args:
            lock: the descriptor of the work folder's lock, for local processes to hold too.

        Raises:
            DataError: a stage failed; the last lines of its log have been shown.
        """
        at_once, work_dir = self._options.at_once, self._work_dir
        with launch.Pool(at_once=at_once, work_dir=work_dir, lock=lock) as pool:
            try:
                for _, stages in groupby(self._selected, key=lambda stage: stage.number):
                    self._bring_up_to_date(list(stages), pool)
            finally:
                self._terminal.clear()

    def show(self) -> None:
        """Print what each stage reads and writes, and whether it would run; run nothing."""
        would_run: dict[int, Stage] = {}
        for stage in self._stages:
            self._say(stage.label)
            reads = dict.fromkeys(path for task in stage.tasks for path in reads_of(task))
            writes = [path for task in stage.tasks for path in task.outputs]
            self._say(f"    reads  {' '.join(reads) or '-'}")
            self._say(f"    writes {' '.join(writes)}")
            alone = launch.argv_of(stage.tasks[0].argv, stage.launcher)
            self._say(
                "    command"
                f" {shlex.join(('python3', *alone[1:]) if alone[0] == sys.executable else alone)}"
            )
            before = [
                w
                for w in {w.index: w for _, w in self._wiring.needs(stage)}.values()
                if w.index in would_run
            ]
            if before:
                would_run[stage.index] = stage
                status = f"runs after {', '.join(writer.label for writer in before)}"
            elif self._options.force and stage in self._selected:
                would_run[stage.index] = stage
                status = f"runs: {FORCED}"
            else:
                reasons, _ = self._fresh.why_not(stage)
                why = [reason for reason in reasons if reason != stamps.NEVER]
                status = f"runs: {'; '.join(why)}" if why else "runs" if reasons else "up to date"
                if reasons:
                    would_run[stage.index] = stage
            self._say(f"    {status}" + ("" if stage in self._selected else " (not asked for)"))

    def _bring_up_to_date(self, waiting: list[Stage], pool: launch.Pool) -> None:
        """Stages of one number. When one has failed no other begins, and those at work come to
        their end.
        """
        begun: list[_Begun] = []
        failed: list[DataError] = []
        while begun or (waiting and not failed):
            stage = None if failed else self._next(waiting, begun)
            if stage is not None:
                waiting.remove(stage)
                begun += self._begin(stage, pool)
            else:
                ended = pool.next_ended(partial(self._terminal.show, partial(self._status, begun)))
                self._take(next(one for one in begun if ended.command in one.tasks), ended)
            for one in [one for one in begun if one.is_over]:
                begun.remove(one)
                failed += self._finish(one)
        if failed:
            raise failed[0]

    def _next(self, waiting: Sequence[Stage], begun: Sequence[_Begun]) -> Stage | None:
        """The first stage that has to wait for none of those that are not over."""
        if len(begun) == self._options.side_by_side:
            return None
        open_stages = [*(one.stage for one in begun), *waiting]
        for stage in waiting:
            needed = {writer.index for _, writer in self._wiring.needs(stage)}
            if _is_slurm(stage):  # of which this process waits for the end
                needed |= {one.stage.index for one in begun}
            if _has_limit(stage):  # which of them reaches it must not be a matter of chance
                needed |= {
                    other.index
                    for other in open_stages
                    if other.index < stage.index and _has_limit(other)
                }
            if not any(other.index in needed for other in open_stages):
                return stage
        return None

    def _begin(self, stage: Stage, pool: launch.Pool) -> list[_Begun]:
        """Let a stage run, unless it is up to date. Where Slurm runs it, it has ended."""
        surplus = stamps.remove_surplus(stage, self._work_dir)
        if surplus:
            self._tell(stage, f"removed {', '.join(surplus)}: the array has become smaller")
        stale = self._fresh.stale(stage)
        if not stale:
            self._tell(stage, "up to date")
            return []
        where = {task.job: self._fresh.places(stage, task) for task, _, _ in stale}
        reason = stale[0][2][0]
        for task, _, reasons in stale:
            second = stamps.finished_release(where[task.job], task, self._work_dir) is not None
            if second and not self._options.force:
                self._fresh.refuse_second(stage, reasons[0])
        if reason in (stamps.NEVER, FORCED):
            reason = ""
        if reason or not self._terminal.is_live:
            log = where[stale[0][0].job].log
            name = self._relative(log.parent if stage.is_array else log)
            jobs = f"{len(stale)} of {len(stage.tasks)} jobs" if stage.is_array else ""
            self._tell(stage, "; ".join(filter(None, (jobs, reason, f"log in {name}"))))
        attempts = [stamps.read_record(where[task.job].attempt) for task, _, _ in stale]
        if any(attempt is not None and attempt.get("launcher") == "slurm" for attempt in attempts):
            launch.cancel_slurm(self._work_dir, self._say)
        commands: dict[launch.Command, tuple[Task, Fingerprint]] = {}
        for (task, now, _), attempt in zip(stale, attempts, strict=True):
            continued = (
                not self._options.force
                and attempt is not None
                and attempt["fingerprint"] == now.digest
            )
            stamps.begin(
                where[task.job],
                task,
                now,
                launcher=stage.launcher[0],
                forced=self._options.force,
                work_dir=self._work_dir,
            )
            job = task.job if task.job is not None else 1
            argv = launch.argv_of(self._sharing(task.argv), stage.launcher)
            report = self._report_of(stage, job) if self._terminal.is_live else None
            commands[launch.Command(job, argv, where[task.job].log, continued, report)] = task, now
        one = _Begun(stage, commands, time.monotonic())
        self._launch(one, pool)
        return [one]

    def _sharing(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """A verb's words with no more threads or jobs than are left to one of several stages."""
        if self._options.side_by_side == 1 or "--num-jobs" not in argv:
            return argv
        place = argv.index("--num-jobs") + 1
        return (*argv[:place], str(min(int(argv[place]), self._share)), *argv[place + 1 :])

    @property
    def _share(self) -> int:
        return max(1, self._options.at_once // self._options.side_by_side)

    def _launch(self, one: _Begun, pool: launch.Pool) -> None:
        if _is_slurm(one.stage):
            _, options, _ = launch.split_launcher(one.stage.launcher)
            is_array = one.stage.is_array
            for ended in launch.run_slurm(
                list(one.tasks), options, is_array=is_array, work_dir=self._work_dir, say=self._say
            ):
                self._take(one, ended)
        elif len(one.tasks) > 1 and self._options.at_once > 1:
            pool.add(one.tasks, threads=1)
        else:
            pool.add(one.tasks, threads=None if self._options.side_by_side == 1 else self._share)

    def _take(self, one: _Begun, ended: launch.Ended) -> None:
        task, now = one.tasks[ended.command]
        where = stamps.places(one.stage, task, self._work_dir)
        if ended.code == 0:
            stamps.end(where, one.stage, task, now, self._cache, ended.seconds)
            stamps.tidy(where, task, self._work_dir)
        else:
            stamps.give_up(where, task, self._work_dir)
        if ended.command.progress is not None:
            ended.command.progress.unlink(missing_ok=True)
        one.ended.append(ended)

    def _finish(self, one: _Begun) -> list[DataError]:
        """Say how a stage ended."""
        failed = [ended for ended in one.ended if ended.code != 0]
        if failed:
            return [self._failure(one.stage, failed)]
        self._tell(one.stage, f"done in {duration(time.monotonic() - one.started)}")
        return []

    def _failure(self, stage: Stage, failed: Sequence[launch.Ended]) -> DataError:
        """Show the end of the log, and make the error."""
        self._terminal.clear()
        first = failed[0]
        lines = first.command.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        print("\n".join(lines), file=sys.stderr)
        logs = ", ".join(self._relative(ended.command.log) for ended in failed)
        outcome = _how(first.code)
        if stage.is_array:
            jobs = ", ".join(str(ended.command.job) for ended in failed)
            plural = "job" if len(failed) == 1 else "jobs"
            outcome = f"{plural} {jobs} of {len(stage.tasks)} failed ({outcome})"
        return DataError(
            stage.label, "exit code 0", outcome, f"read {logs}, put it right, and run again"
        )

    def _status(self, begun: Sequence[_Begun]) -> str:
        """The live line: of the first stage at work, and how many others there are."""
        one = begun[0]
        ended = {each.command for each in one.ended}
        running = [command for command in one.tasks if command not in ended]
        found = [read_progress(command.progress) for command in running if command.progress]
        reports = [report for report in found if report is not None]
        seconds = time.monotonic() - one.started
        parts = [self._head(one.stage)]
        if len(one.tasks) > 1:
            parts.append(f"{len(ended)}/{len(one.tasks)} jobs")
            share = (len(ended) + sum(report.fraction for report in reports)) / len(one.tasks)
            parts += [f"ETA {clock(seconds / share - seconds)}"] if share else []
        elif reports:
            parts += reports[0].parts()
        else:
            parts += [f"{seconds:.0f} s", _last_line(running[0].log)]
        others = len(begun) - 1
        parts += [f"{others} more stage{'s' if others > 1 else ''}"] if others else []
        return " | ".join(filter(None, parts))

    def _report_of(self, stage: Stage, job: int) -> Path:
        """The file in which a command reports its progress; not there yet."""
        file = self._work_dir / ".stages" / "progress" / f"{stage.index}.{job}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        return file

    def _head(self, stage: Stage) -> str:
        """``[3/11] n-gram LM``: how lines about a stage of this run begin."""
        place = [each.index for each in self._selected].index(stage.index) + 1
        return f"[{place}/{len(self._selected)}] {stage.title}"

    def _tell(self, stage: Stage, text: str) -> None:
        self._say(f"{self._head(stage)} ... {text}")

    def _say(self, text: str) -> None:
        self._terminal.say(text)

    def _relative(self, path: Path) -> str:
        return str(path.relative_to(self._work_dir))


def _how(code: int | None) -> str:
    if code is None:
        return "killed before it could tell"
    if code < 0:
        return f"killed by signal {-code} ({signal.strsignal(-code)})"
    return f"exit code {code}"


def _last_line(log: Path) -> str:
    """Return a log's last line without the time, or nothing where all lines are the runner's."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - 500))
        lines = file.read().decode(errors="replace").replace("\r", "\n").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return "" if last.startswith("# ") else _TIME.sub("", last)


def _is_slurm(stage: Stage) -> bool:
    return launch.split_launcher(stage.launcher)[0] == "slurm"


def _has_limit(stage: Stage) -> bool:
    """Whether what it spends is held against a limit."""
    return any("--max-epsilon" in task.argv for task in stage.tasks)
