"""Checks of which stages are up to date, and of releases that must not be made again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from privasr_k2 import sections
from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.recipe import stamps
from privasr_k2.recipe.fingerprint import Fingerprint, HashCache, fingerprint
from privasr_k2.recipe.plan import Stage, Task
from privasr_k2.recipe.wiring import Wiring, ancestors

FORCED = "--force true"


@dataclass(frozen=True)
class Options:
    """Values of ``--stage``, ``--stop-stage``, ``--force``, ``--nj`` and ``--side-by-side``.

    Attributes:
        first, last: numbers of the stages to bring up to date, both included.
        force: run them although they are up to date.
        at_once: how many processes run at the same time on this machine.
        side_by_side: how many stages of one number are at work at the same time.
    """

    first: int
    last: int
    force: bool
    at_once: int
    side_by_side: int


class Freshness:
    """Freshness of the tasks of a work folder.

    Args:
        selected: the stages that are asked for.
        wiring: of all stages, checked.
        work_dir: absolute path of the folder in which they run.
        shorten: see :func:`privasr_k2.recipe.fingerprint.fingerprint`.
    """

    def __init__(
        self,
        selected: Sequence[Stage],
        wiring: Wiring,
        cache: HashCache,
        *,
        options: Options,
        work_dir: Path,
        shorten: dict[str, str],
    ) -> None:
        self._selected, self._wiring, self._cache = selected, wiring, cache
        self._options, self._work_dir, self._shorten = options, work_dir, shorten

    def check_earlier(self, say: Callable[[str], None]) -> None:
        """Refuse to run on what stages that are not asked for have left undone or out of date.

        Raises:
            DataError: naming the stage that is asked for, what it needs, and the stage to run
                again.
        """
        asked = {stage.index for stage in self._selected}
        for earlier in ancestors(self._wiring, self._selected):
            if earlier.index in asked:
                continue
            reasons, brought = self.why_not(earlier)
            if reasons and not brought:
                self._refuse(earlier, reasons[0])
            if brought:
                say(f"{earlier.label} ... no record of it: its outputs are used as they are")

    def check_releases(self) -> None:
        """Refuse to make a finished release again because its command or its configuration changed.

        Raises:
            PrivacyError: naming the stage and the change. ``--force true`` makes the second
                release.
        """
        for stage in self._selected:
            for task in stage.tasks:
                stamp = stamps.finished_release(self.places(stage, task), task, self._work_dir)
                if stamp is None or self._options.force or self.missing(task):
                    continue
                now = fingerprint(task, self._wiring, self._cache, self._shorten)
                if not stamps.is_same(stamp, now, with_inputs=False):
                    self.refuse_second(stage, self.why_not(stage)[0][0])

    def places(self, stage: Stage, task: Task) -> stamps.Places:
        """The files that belong to a task."""
        return stamps.places(stage, task, self._work_dir)

    def missing(self, task: Task) -> list[str]:
        """Return a task's missing inputs."""
        files = [path for path in (*task.inputs, *task.raws) if self._cache.digest(path) is None]
        return [
            *files,
            *(path for path in task.configs if not sections.exists(self._work_dir / path)),
        ]

    def refuse_second(self, stage: Stage, reason: str) -> None:
        """Refuse a second release of a stage.

        Raises:
            PrivacyError: always.
        """
        raise PrivacyError(
            stage.label,
            "the options and inputs that its finished release was made with",
            reason,
            f"undo the change, or spend a second time: --force true --stage {stage.number} "
            f"--stop-stage {stage.number}; --work-dir keeps both",
        )

    def stale(self, stage: Stage) -> list[tuple[Task, Fingerprint, tuple[str, ...]]]:
        """The tasks of a stage that have to run, with the reasons. What killed runs left is put
        right.
        """
        reasons = []
        for task in stage.tasks:
            now = fingerprint(task, self._wiring, self._cache, self._shorten)
            where = stamps.places(stage, task, self._work_dir)
            if not self._options.force:
                stamps.take_back(where, task, now, self._work_dir)
            state = stamps.state(where, task, now, self._cache)
            if self._options.force or not state.fresh:
                reasons.append((task, now, state.reasons or (FORCED,)))
            else:
                stamps.tidy(where, task, self._work_dir)
        return reasons

    def why_not(self, stage: Stage) -> tuple[tuple[str, ...], bool]:
        """Why a stage is not up to date, and whether somebody else put its outputs there; () where
        it is.
        """
        for task in stage.tasks:
            gone = self.missing(task)
            if gone:
                return (f"{gone[0]} is not there",), False
            now = fingerprint(task, self._wiring, self._cache, self._shorten)
            state = stamps.state(stamps.places(stage, task, self._work_dir), task, now, self._cache)
            complete = all(self._cache.digest(path) is not None for path in task.outputs)
            if not state.fresh:
                return state.reasons, state.brought and complete
        return (), False

    def _refuse(self, earlier: Stage, reason: str) -> None:
        absent = [
            (stage, path, writer)
            for stage in self._selected
            for path, writer in self._wiring.needs(stage)
            if writer.number < self._options.first and self._cache.digest(path) is None
        ]
        way_out = f"run from there: --stage {earlier.number}"
        if absent:
            stage, path, writer = absent[0]
            if writer is not earlier:
                way_out = (
                    f"run from --stage {earlier.number}, the first that is not up to date"
                    f" ({reason})"
                )
            raise DataError(
                stage.label, f"{path}, which {writer.label} writes", "nothing there", way_out
            )
        raise DataError(
            self._selected[0].label,
            f"the outputs of {earlier.label} up to date",
            f"that they are not: {reason}",
            f"{way_out}, or with the options and numbers that they were made with",
        )
