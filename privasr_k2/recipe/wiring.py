"""Writers of each stage's inputs, checked for the whole recipe before anything runs."""

from __future__ import annotations

import difflib
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from privasr_k2.errors import ConfigError, DataError
from privasr_k2.recipe.plan import Stage, Task, normal_path, values_of
from privasr_k2.sections import split


class Wiring:
    """The writers of every path of a recipe.

    Args:
        written: paths that the runner itself writes before the first stage.

    Raises:
        ConfigError: outputs that overlap or lie outside the work folder; an input that the stage
            itself or a later one writes; an unknown verb.
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
        stages = {stage.index: stage for stage in (*above, *self._below[path].values())}
        return [stages[index] for index in sorted(stages)]

    def needs(self, stage: Stage) -> list[tuple[str, Stage]]:
        """The paths that ``stage`` reads and other stages write, each with its writer."""
        reads = dict.fromkeys(path for task in stage.tasks for path in reads_of(task))
        return [(path, writer) for path in reads for writer in self.writers_of(path)]

    def hashed_raws(self, task: Task) -> list[str]:
        """The ``--raw-*`` paths that count as inputs: single files, and outputs of stages."""
        raws, folder = task.raws, self._work_dir
        return [path for path in raws if self.writers_of(path) or not (folder / path).is_dir()]

    def listed_raws(self, task: Task) -> list[str]:
        """The others: folders of a user, whose files are listed."""
        hashed, folder = set(self.hashed_raws(task)), self._work_dir
        return [path for path in task.raws if path not in hashed and (folder / path).is_dir()]

    def _add_writer(self, stage: Stage, path: str) -> None:
        if os.path.isabs(path) or path == ".":
            way_out = "write below data/ or exp/"
            raise ConfigError(stage.label, "outputs inside the work folder", path, way_out)
        inside = next((p for p in _with_parents(path) if p in self._writers), None)
        clash = self._writers.get(inside or "") or next(iter(self._below[path].values()), None)
        if clash is not None:
            found = f"{path}, which {clash.label} writes as well"
            if inside != path:
                found = f"{path}, which overlaps with an output of {clash.label}"
            way_out = "give each stage a path of its own"
            raise ConfigError(stage.label, "outputs of its own", found, way_out)
        self._writers[path] = stage
        for parent in list(_with_parents(path))[1:]:
            self._below[parent][stage.index] = stage

    def _check_read(self, stage: Stage, path: str) -> None:
        writers = self.writers_of(path)
        late = next((writer for writer in writers if writer.index >= stage.index), None)
        if late is not None:
            whose = "itself" if late is stage else f"the later {late.label}"
            expected, found = "inputs that earlier stages write", f"{path}, which {whose} writes"
            raise ConfigError(stage.label, expected, found, "reorder the stages")
        is_there = path in self._written or (self._work_dir / split(path)[0]).exists()
        if not writers and not is_there:
            start = "" if os.path.isabs(path) else f" (it starts from {self._work_dir})"
            named = [p for task in stage.tasks for p in values_of(task.argv, "--raw-corpus")]
            if path in (normal_path(name, str(self._work_dir)) for name in named):
                way_out = f"give --{_option_of(stage)} DIR with the folder of your copy{start}"
                raise DataError(stage.label, f"the corpus at {path}", "nothing there", way_out)
            is_raw = any(path in task.raws for task in stage.tasks)
            other = "" if is_raw else ", or declare the stage that writes it"
            expected = f"{path}, which no earlier stage writes"
            way_out = f"correct the path{start}{other}"
            raise DataError(stage.label, expected, "nothing there", way_out)


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


def _option_of(stage: Stage) -> str:
    """The option of recipes that names the corpus of a stage: its own, or the public one."""
    is_public = any(path.startswith("data/public/") for path in stage.patterns)
    return "public-dir" if is_public else "corpus-dir"


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
