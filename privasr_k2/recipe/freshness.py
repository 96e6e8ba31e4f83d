"""Checks of which stages are up to date, and of releases that must not be made again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privasr_k2 import sections
from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.fileio import write_json
from privasr_k2.recipe import stamps
from privasr_k2.recipe.corpus_files import METADATA
from privasr_k2.recipe.declare import RunOptions
from privasr_k2.recipe.fingerprint import Fingerprint, HashCache, fingerprint
from privasr_k2.recipe.plan import Stage, Task
from privasr_k2.recipe.wiring import Wiring, ancestors

FORCED = "--force true"


@dataclass(frozen=True)
class Freshness:
    """Freshness of the tasks of a work folder; ``selected`` stages are asked for."""

    selected: Sequence[Stage]
    wiring: Wiring
    cache: HashCache
    options: RunOptions
    work_dir: Path
    shorten: dict[str, str]

    def check_earlier(self, say: Callable[[str], None]) -> None:
        """Refuse to run upon earlier stages that are not asked for and not up to date.

        Raises:
            DataError: naming the stage that is asked for, its need, and the stage to run again.
        """
        for earlier in ancestors(self.wiring, self.selected):
            if earlier in self.selected:
                continue
            reasons, brought = self.why_not(earlier)
            if reasons and not brought:
                self._refuse(earlier, reasons[0])
            if brought:
                say(f"{earlier.label} ... no record of it: its outputs are used as they are")

    def check_releases(self) -> None:
        """Refuse to make a finished release again after a change of command or configuration.

        Text of a corpus that was edited is such a change, too: everything up to the release would
        be made again before its own inputs could tell.

        Raises:
            PrivacyError: naming the stage and the change; ``--force true`` makes it.
        """
        for stage in self.selected:
            for task in stage.tasks:
                stamp = self.finished_release(stage, task)
                if stamp is None or self.options.force or self.missing(task):
                    continue
                now = fingerprint(task, self.wiring, self.cache, self.shorten)
                if not stamps.is_same(stamp, now, with_inputs=False):
                    self.refuse_second(stage, self.why_not(stage)[0][0])
                if edited := self._edited_corpus(stage):
                    before = f"--stop-stage {max(stage.number - 1, 0)}"
                    kept = f"; {before} runs what is before it: it stands if its inputs stay equal"
                    self.refuse_second(stage, f"that {edited} changed", kept)

    def places(self, stage: Stage, task: Task) -> stamps.Places:
        """The files that belong to a task."""
        return stamps.places(stage, task, self.work_dir)

    def finished_release(self, stage: Stage, task: Task) -> dict[str, Any] | None:
        """The stamp of a task's finished private release; None without one."""
        where = self.places(stage, task)
        return stamps.finished_release(where, task, self.work_dir, self.cache.seal)

    def missing(self, task: Task) -> list[str]:
        """The missing inputs of a task."""
        files = [path for path in task.inputs if self.cache.digest(path) is None]
        files += [path for path in task.raws if not (self.work_dir / path).exists()]
        return files + [p for p in task.configs if not sections.exists(self.work_dir / p)]

    def _edited_corpus(self, stage: Stage) -> str:
        """The corpus behind a stage whose text or lists have changed since it was read, or ''."""
        for earlier in ancestors(self.wiring, [stage]):
            for task in earlier.tasks:
                if not self.wiring.listed_raws(task) or self.missing(task):
                    continue
                stamp = stamps.read_stamp(self.places(earlier, task).stamp, self.cache.seal)
                before = dict(stamp["inputs"]) if stamp is not None else {}
                now = fingerprint(task, self.wiring, self.cache, self.shorten)
                for path, digest in now.record["inputs"]:
                    if path.endswith(METADATA) and before.get(path, digest) != digest:
                        return str(path)
        return ""

    def _record_listings(self, where: stamps.Places, now: Fingerprint) -> None:
        """Add the listing of a corpus to a stamp of an earlier version, which is up to date."""
        stamp = stamps.read_stamp(where.stamp, self.cache.seal)
        if stamp is not None and len(stamp["inputs"]) < len(now.inputs):
            write_json(where.stamp, {**stamp, **now.record})

    def refuse_second(self, stage: Stage, reason: str, more: str = "") -> None:
        """Refuse a second release of a stage.

        Raises:
            PrivacyError: always.
        """
        expected = "the options and inputs that its finished release was made with"
        again = f"--force true --stage {stage.number} --stop-stage {stage.number}"
        both = "--work-dir DIR with this folder's --ledger keeps both, and adds them up"
        way_out = f"undo the change, or spend a second time: {again}; {both}{more}"
        raise PrivacyError(stage.label, expected, reason, way_out)

    def stale(self, stage: Stage) -> list[tuple[Task, Fingerprint, tuple[str, ...]]]:
        """The tasks of a stage that have to run, with the reasons; repairs after killed runs."""
        reasons = []
        for task in stage.tasks:
            now = fingerprint(task, self.wiring, self.cache, self.shorten)
            where = self.places(stage, task)
            if not self.options.force:
                stamps.take_back(where, now)
            state = stamps.state(where, task, now, self.cache)
            if self.options.force or not state.fresh:
                reasons.append((task, now, state.reasons or (FORCED,)))
            else:
                self._record_listings(where, now)
                stamps.tidy(where)
        return reasons

    def why_not(self, stage: Stage) -> tuple[tuple[str, ...], bool]:
        """Why a stage is not up to date, and whether its outputs were put there by others."""
        for task in stage.tasks:
            gone = self.missing(task)
            if gone:
                return (f"{gone[0]} is not there",), False
            now = fingerprint(task, self.wiring, self.cache, self.shorten)
            state = stamps.state(self.places(stage, task), task, now, self.cache)
            complete = all(self.cache.digest(path) is not None for path in task.outputs)
            if not state.fresh:
                return state.reasons, state.brought and complete
        return (), False

    def _refuse(self, earlier: Stage, reason: str) -> None:
        absent = [
            (stage, path, writer)
            for stage in self.selected
            for path, writer in self.wiring.needs(stage)
            if writer.number < self.options.stage and self.cache.digest(path) is None
        ]
        way_out = f"run from there: --stage {earlier.number}"
        if absent:
            stage, path, writer = absent[0]
            if writer is not earlier:
                first = f"--stage {earlier.number}, the first that is not up to date"
                way_out = f"run from {first} ({reason})"
            expected = f"{path}, which {writer.label} writes"
            raise DataError(stage.label, expected, "nothing there", way_out)
        expected = f"the outputs of {earlier.label} up to date"
        found = f"that they are not: {reason}"
        way_out += ", or with the options and numbers that they were made with"
        raise DataError(self.selected[0].label, expected, found, way_out)
