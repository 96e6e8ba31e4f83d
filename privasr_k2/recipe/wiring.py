"""Writers of each stage's inputs, checked for the whole recipe before anything runs."""

from __future__ import annotations

import difflib
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from privasr_k2.errors import ConfigError, DataError
from privasr_k2.recipe.plan import Stage, Task
from privasr_k2.sections import split


class Wiring:
    """The writers of every path of a recipe.

    Args:
        written: paths that the runner itself writes before the first stage.

    Raises:
        ConfigError: two stages write one path or one inside the other; a stage writes outside the
            work folder, reads what it writes itself or what a later stage writes; a verb that does
            not exist.
        DataError: an input that does not exist and that no stage writes.
    """

    def __init__(
        self, stages: Sequence[Stage], work_dir: Path, *, written: Collection[str] = ()
    ) -> None:
        self.stages = stages
        self._written = written
        self._work_dir = work_dir
        self._writers: dict[str, Stage] = {}
        self._below: defaultdict[str, dict[int, Stage]] = defaultdict(dict)
        for stage in stages:
            _check_verb(stage)
            for path in (path for task in stage.tasks for path in task.outputs):
                self._add_writer(stage, path)
        for stage in stages:
            for task in stage.tasks:
                for path in (*task.inputs, *task.configs, *task.raws):
                    self._check_read(stage, path)

    def writers_of(self, path: str) -> list[Stage]:
        """The stages that write ``path``, a folder that holds it, or something in it; in order."""
        above = [self._writers[p] for p in _with_parents(path) if p in self._writers]
        return sorted(
            {s.index: s for s in (*above, *self._below[path].values())}.values(),
            key=lambda s: s.index,
        )

    def needs(self, stage: Stage) -> list[tuple[str, Stage]]:
        """The paths that ``stage`` reads and other stages write, each with its writer; no pair
        twice.
        """
        reads = dict.fromkeys(path for task in stage.tasks for path in reads_of(task))
        return [(path, writer) for path in reads for writer in self.writers_of(path)]

    def hashed_raws(self, task: Task) -> list[str]:
        """The ``--raw-*`` paths that count as inputs after all: single files, and what a stage
        writes.
        """
        return [
            path
            for path in task.raws
            if self.writers_of(path) or not (self._work_dir / path).is_dir()
        ]

    def _add_writer(self, stage: Stage, path: str) -> None:
        if os.path.isabs(path) or path == ".":
            raise ConfigError(
                stage.label, "outputs inside the work folder", path, "write below data/ or exp/"
            )
        inside = next((p for p in _with_parents(path) if p in self._writers), None)
        clash = (
            self._writers[inside]
            if inside is not None
            else next(iter(self._below[path].values()), None)
        )
        if clash is not None:
            what = f"{path}, which {clash.label} writes as well"
            if inside != path:
                what = (
                    f"{path}, where one of the two lies inside the other's output ({clash.label})"
                )
            raise ConfigError(
                stage.label, "outputs of its own", what, "give each stage a path of its own"
            )
        self._writers[path] = stage
        for parent in list(_with_parents(path))[1:]:
            self._below[parent][stage.index] = stage

    def _check_read(self, stage: Stage, path: str) -> None:
        writers = self.writers_of(path)
        late = next((writer for writer in writers if writer.index >= stage.index), None)
        if late is not None:
            whose = "itself" if late is stage else f"the later {late.label}"
            raise ConfigError(
                stage.label,
                "inputs that earlier stages write",
                f"{path}, which {whose} writes",
                "reorder the stages",
            )
        if (
            not writers
            and path not in self._written
            and not (self._work_dir / split(path)[0]).exists()
        ):
            way_out = "correct the path"
            if not os.path.isabs(path):
                way_out += f" (it starts from {self._work_dir})"
            if any(path in task.raws for task in stage.tasks):
                way_out += "; --corpus-dir names a corpus"
            else:
                way_out += ", or declare the stage that writes it"
            raise DataError(
                stage.label,
                f"{path}, which no earlier stage writes",
                "nothing there",
                way_out,
            )


def reads_of(task: Task) -> tuple[str, ...]:
    """Everything that a task reads."""
    return (*task.inputs, *task.configs, *task.raws)


def ancestors(wiring: Wiring, stages: Iterable[Stage]) -> list[Stage]:
    """``stages`` and all that they depend on, in the recipe's order."""
    before: dict[int, Stage] = {}
    waiting = list(stages)
    while waiting:
        stage = waiting.pop()
        if stage.index not in before:
            before[stage.index] = stage
            waiting.extend(writer for _, writer in wiring.needs(stage))
    return [before[index] for index in sorted(before)]


def _with_parents(path: str) -> Iterator[str]:
    while path not in ("", "/"):
        yield path
        path = os.path.dirname(path)


def _check_verb(stage: Stage) -> None:
    verb = stage.tasks[0].argv[0]
    if "/" in verb:
        return
    if find_spec(f"privasr_k2.bin.{verb}") is None:
        folder = Path(__file__).parent.parent / "bin"
        known = [file.stem for file in folder.glob("[a-z]*.py")]
        near = difflib.get_close_matches(verb, known, 1)
        way_out = f"did you mean {near[0]}?" if near else "correct the verb"
        raise ConfigError(stage.label, "a module of privasr_k2.bin", verb, way_out)
