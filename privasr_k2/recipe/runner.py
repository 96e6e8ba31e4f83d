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
from privasr_k2.recipe.averaging import averages_anew, take_over
from privasr_k2.recipe.declare import RunOptions
from privasr_k2.recipe.fingerprint import Fingerprint, HashCache, check_role
from privasr_k2.recipe.freshness import FORCED, Freshness
from privasr_k2.recipe.plan import Stage, Task, values_of
from privasr_k2.recipe.progress import clock, read_progress
from privasr_k2.recipe.terminal import Terminal, duration
from privasr_k2.recipe.wiring import Wiring, reads_of

_TAIL_LINES = 30
_MOST_WARNINGS = 5
_TIME = re.compile(r"^[\d-]+ [\d:,]+ [A-Z]+ ")
_WARNING = re.compile(r"^[\d-]+ [\d:,]+ WARNING (.*)")


@dataclass(frozen=True, eq=False)
class _Begun:
    """A stage at work, with the task of each command."""

    stage: Stage
    tasks: Mapping[launch.Command, tuple[Task, Fingerprint]]
    started: float  # by the monotonic clock
    ended: list[launch.Ended] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return len(self.ended) == len(self.tasks)


class Runner:
    """All stages of one recipe in one work folder, whose path is absolute.

    Args:
        shorten: see :func:`privasr_k2.recipe.fingerprint.fingerprint`.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        wiring: Wiring,
        cache: HashCache,
        *,
        options: RunOptions,
        work_dir: Path,
        shorten: dict[str, str],
    ) -> None:
        self._stages, self._wiring, self._cache = stages, wiring, cache
        self._options, self._work_dir = options, work_dir
        numbers = range(options.stage, options.stop_stage + 1)
        self._selected = [stage for stage in stages if stage.number in numbers]
        self._fresh = Freshness(self._selected, wiring, cache, options, work_dir, shorten)
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
            DataError: a stage failed; the last lines of its log have been shown. Or the corpus
                lacks a role that a later stage reads.
        """
        at_once = self._options.nj
        with launch.Pool(at_once=at_once, work_dir=self._work_dir, lock=lock) as pool:
            try:
                for number, stages in groupby(self._selected, key=lambda stage: stage.number):
                    self._check_roles([s for s in self._selected if s.number >= number])
                    self._bring_up_to_date(list(stages), pool)
            finally:
                self._terminal.clear()

    def show(self) -> None:
        """Print what each stage reads and writes, and whether it would run; run nothing."""
        would_run: set[int] = set()
        for stage in self._stages:
            self._say(stage.label)
            reads = dict.fromkeys(path for task in stage.tasks for path in reads_of(task))
            writes = [path for task in stage.tasks for path in task.outputs]
            self._say(f"    reads  {' '.join(reads) or '-'}")
            self._say(f"    writes {' '.join(writes)}")
            program, *words = launch.argv_of(stage.tasks[0].argv, stage.launcher)
            program = "python3" if program == sys.executable else program
            self._say(f"    command {shlex.join([program, *words])}")
            writers = {writer.index: writer.label for _, writer in self._wiring.needs(stage)}
            before = [label for index, label in writers.items() if index in would_run]
            if before:
                status = f"runs after {', '.join(before)}"
            elif self._options.force and stage in self._selected:
                status = f"runs: {FORCED}"
            else:
                reasons, _ = self._fresh.why_not(stage)
                why = [reason for reason in reasons if reason != stamps.NEVER]
                status = f"runs: {'; '.join(why)}" if why else "runs" if reasons else "up to date"
            if status != "up to date":
                would_run.add(stage.index)
            self._say(f"    {status}" + ("" if stage in self._selected else " (not asked for)"))

    def _check_roles(self, waiting: Sequence[Stage]) -> None:
        """Refuse a role that the corpus lacks before the first training, not at its reader.

        A stage names it by the file of its cuts, or reads folders with ``--set role=NAME``.
        """
        undone = {stage.index for stage in waiting}
        for stage in waiting:
            needs = self._wiring.needs(stage)
            done = [path for path, writer in needs if writer.index not in undone]
            for path in done:
                check_role(self._work_dir, path)
            for word in values_of(stage.tasks[0].argv, "--set"):
                if word.startswith("role="):
                    check_role(self._work_dir, *done, role=word.removeprefix("role="))

    def _bring_up_to_date(self, waiting: list[Stage], pool: launch.Pool) -> None:
        """Stages of one number. After a failure no other begins, and those at work end."""
        at_work: list[_Begun] = []
        failed: list[DataError] = []
        while at_work or (waiting and not failed):
            stage = None if failed else self._next(waiting, at_work)
            if stage is not None:
                waiting.remove(stage)
                at_work += self._begin(stage, pool)
            else:
                tick = partial(self._terminal.show, partial(self._status, at_work))
                ended = pool.next_ended(tick)
                self._take(next(b for b in at_work if ended.command in b.tasks), ended)
            for begun in [begun for begun in at_work if begun.is_over]:
                at_work.remove(begun)
                failed += self._finish(begun)
        if failed:
            raise failed[0]

    def _next(self, waiting: Sequence[Stage], at_work: Sequence[_Begun]) -> Stage | None:
        """The first stage that has to wait for none of those that are not over."""
        if len(at_work) == self._options.side_by_side:
            return None
        open_stages = [*(begun.stage for begun in at_work), *waiting]
        for stage in waiting:
            needed = {writer.index for _, writer in self._wiring.needs(stage)}
            if _is_slurm(stage):  # this process waits for its end
                needed |= {begun.stage.index for begun in at_work}
            if _has_limit(stage):  # the stage that reaches it must not depend on chance
                limited = [other.index for other in open_stages if _has_limit(other)]
                needed |= {index for index in limited if index < stage.index}
            if not any(other.index in needed for other in open_stages):
                return stage
        return None

    def _begin(self, stage: Stage, pool: launch.Pool) -> list[_Begun]:
        """Let a stage run, unless it is up to date; one that Slurm runs has then ended."""
        surplus = stamps.remove_surplus(stage, self._work_dir)
        if surplus:
            self._tell(stage, f"removed {', '.join(surplus)}: the array has become smaller")
        stale = self._fresh.stale(stage)
        if not stale:
            self._tell(stage, "up to date")
            return []
        where = {task.job: self._fresh.places(stage, task) for task, _, _ in stale}
        force = self._options.force
        reason = stale[0][2][0]
        for task, _, reasons in stale:
            if not force and self._fresh.finished_release(stage, task) is not None:
                self._fresh.refuse_second(stage, reasons[0])
        if reason in (stamps.NEVER, FORCED):
            reason = ""
        if reason or not self._terminal.is_live:
            log = where[stale[0][0].job].log
            name = self._relative(log.parent if stage.is_array else log)
            jobs = f"{len(stale)} of {len(stage.tasks)} jobs" if stage.is_array else ""
            self._tell(stage, "; ".join(filter(None, (jobs, reason, f"log in {name}"))))
        seal = self._cache.seal
        attempts = [stamps.read_record(where[task.job].attempt, seal) or {} for task, _, _ in stale]
        if any(attempt.get("launcher") == "slurm" for attempt in attempts):
            launch.cancel_slurm(self._work_dir, self._say)
        commands: dict[launch.Command, tuple[Task, Fingerprint]] = {}
        launcher = stage.launcher[0]
        for (task, now, _), attempt in zip(stale, attempts, strict=True):
            places = where[task.job]
            stamp = None if force or attempt else stamps.read_stamp(places.stamp, seal)
            stamps.begin(places, now, launcher=launcher, forced=force)
            if averages_anew(stamp, now):
                take_over(places)
            continued = not force and attempt.get("fingerprint") == now.digest
            job = task.job if task.job is not None else 1
            argv = launch.argv_of(self._sharing(task.argv), stage.launcher)
            report = self._report_of(stage, job) if self._terminal.is_live else None
            commands[launch.Command(job, argv, places.log, continued, report)] = task, now
        begun = _Begun(stage, commands, time.monotonic())
        self._launch(begun, pool)
        return [begun]

    def _sharing(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """A verb's words with its share of the threads and jobs."""
        if self._options.side_by_side == 1 or "--num-jobs" not in argv:
            return argv
        place = argv.index("--num-jobs") + 1
        return (*argv[:place], str(min(int(argv[place]), self._share)), *argv[place + 1 :])

    @property
    def _share(self) -> int:
        return max(1, self._options.nj // self._options.side_by_side)

    def _launch(self, begun: _Begun, pool: launch.Pool) -> None:
        if _is_slurm(begun.stage):
            _, options, _ = launch.split_launcher(begun.stage.launcher)
            is_array, commands = begun.stage.is_array, list(begun.tasks)
            for ended in launch.run_slurm(
                commands, options, is_array=is_array, work_dir=self._work_dir, say=self._say
            ):
                self._take(begun, ended)
        elif len(begun.tasks) > 1 and self._options.nj > 1:
            pool.add(begun.tasks, threads=1)
        else:
            pool.add(begun.tasks, threads=None if self._options.side_by_side == 1 else self._share)

    def _take(self, begun: _Begun, ended: launch.Ended) -> None:
        task, now = begun.tasks[ended.command]
        where = self._fresh.places(begun.stage, task)
        if ended.code == 0:
            stamps.end(where, begun.stage, task, now, self._cache, ended.seconds)
            stamps.tidy(where)
        else:
            stamps.give_up(where)
        if ended.command.progress is not None:
            ended.command.progress.unlink(missing_ok=True)
        begun.ended.append(ended)

    def _finish(self, begun: _Begun) -> list[DataError]:
        """Say how a stage ended."""
        if failed := [ended for ended in begun.ended if ended.code != 0]:
            return [self._failure(begun.stage, failed)]
        self._tell(begun.stage, f"done in {duration(time.monotonic() - begun.started)}")
        self._show_warnings(begun)
        return []

    def _show_warnings(self, begun: _Begun) -> None:
        """Show what a stage warned of; of a release nothing, as that may tell of its data."""
        if any(values_of(task.argv, "--out-privacy") for task, _ in begun.tasks.values()):
            return
        warnings = [line for command in begun.tasks for line in _warnings_in(command.log)]
        different = list(dict.fromkeys(warnings))
        for line in different[:_MOST_WARNINGS]:
            self._say(f"  warning: {line}")
        if len(different) > _MOST_WARNINGS:
            self._say(f"  ... and {len(different) - _MOST_WARNINGS} more warnings in its log")

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
        way_out = f"read {logs}, put it right, and run again"
        return DataError(stage.label, "exit code 0", outcome, way_out)

    def _status(self, at_work: Sequence[_Begun]) -> str:
        """The live line: of the first stage at work, and how many others there are."""
        begun, *others = at_work
        ended = {result.command for result in begun.ended}
        running = [command for command in begun.tasks if command not in ended]
        files = [command.progress for command in running if command.progress]
        reports = [report for file in files if (report := read_progress(file)) is not None]
        seconds = time.monotonic() - begun.started
        parts = [self._head(begun.stage)]
        if len(begun.tasks) > 1:
            parts.append(f"{len(ended)}/{len(begun.tasks)} jobs")
            share = (len(ended) + sum(report.fraction for report in reports)) / len(begun.tasks)
            parts += [f"ETA {clock(seconds / share - seconds)}"] if share else []
        elif reports:
            parts += reports[0].parts()
        else:
            parts += [f"{seconds:.0f} s", _last_line(running[0].log)]
        plural = "s" if len(others) > 1 else ""
        parts += [f"{len(others)} more stage{plural}"] if others else []
        return " | ".join(filter(None, parts))

    def _report_of(self, stage: Stage, job: int) -> Path:
        """The file in which a command reports its progress; not there yet."""
        file = self._work_dir / ".stages" / "progress" / f"{stage.index}.{job}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        return file

    def _head(self, stage: Stage) -> str:
        """``[stage 3, 4/13] n-gram LM``: its number for ``--stage``, its place in this run."""
        place = self._selected.index(stage) + 1
        return f"[stage {stage.number}, {place}/{len(self._selected)}] {stage.title}"

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
    """A log's last line without the time; empty where it is the runner's."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - 500))
        lines = file.read().decode(errors="replace").replace("\r", "\n").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return "" if last.startswith("# ") else _TIME.sub("", last)


def _warnings_in(log: Path) -> list[str]:
    lines = log.read_text(errors="replace").splitlines()
    return [match[1] for line in lines if (match := _WARNING.match(line))]


def _is_slurm(stage: Stage) -> bool:
    return launch.split_launcher(stage.launcher)[0] == "slurm"


def _has_limit(stage: Stage) -> bool:
    """Whether what it spends is held against a limit."""
    return any("--max-epsilon" in task.argv for task in stage.tasks)
