"""Stamps: what is written beside the outputs of a task about how they were made.

For an output ``exp/x/am`` the stamp is ``exp/x/.stages/am.json`` and the log ``exp/x/log/am.log``;
for an array with the output ``exp/x/decode/JOB.jsonl`` they are
``exp/x/.stages/decode.JOB.jsonl/3.json`` and ``exp/x/log/decode.JOB.jsonl/3.log``. The format
stands in ``docs/formats.md``.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from privasr_k2.environment import code_version
from privasr_k2.errors import DataError
from privasr_k2.fileio import remove_tree, write_json
from privasr_k2.recipe.fingerprint import REPOSITORY, Fingerprint, HashCache
from privasr_k2.recipe.plan import Stage, Task, values_of
from privasr_k2.recipe.renames import canonical

NEVER = "never run"  # the reason of a stage that is new
_TEMPORARY = re.compile(r"\.[0-9a-f]{8}\.(tmp|old)\..+")


_KINDS: dict[str, tuple[type, ...]] = {
    **{"title": (str,), "number": (int, str), "code": (str,), "seconds": (int, float)},
    **{"command": (list,), "configs": (list,), "inputs": (list,), "outputs": (dict,)},
}
"""What stands in a stamp, by its type; the rest is for people."""


@dataclass(frozen=True)
class Places:
    """Paths of one task's stamp, record of the attempt, and log."""

    stamp: Path
    attempt: Path
    log: Path


@dataclass(frozen=True)
class State:
    """State of a task's outputs before it runs.

    Attributes:
        fresh: they are there, whole, and what the command and the inputs of now would give.
        reasons: why not; empty where ``fresh``.
        brought: they are there, but no stage has written them: somebody put them there.
    """

    fresh: bool
    reasons: tuple[str, ...] = ()
    brought: bool = False


def places(stage: Stage, task: Task, work_dir: Path) -> Places:
    """The files that belong to a task."""
    parts = Path(stage.patterns[0]).parts
    if task.job is None:
        folder, name = work_dir.joinpath(*parts[:-1]), parts[-1]
        stem = folder / ".stages" / name
        log = folder / "log" / f"{name}.log"
    else:
        first = next(i for i, part in enumerate(parts) if "JOB" in part)
        # A folder that holds the outputs of an array is read as a whole: stamps stand outside of
        # it.
        depth = max(first - 1, 0) if first == len(parts) - 1 else first
        folder, name = work_dir.joinpath(*parts[:depth]), ".".join(parts[depth:])
        stem = folder / ".stages" / name / str(task.job)
        log = folder / "log" / name / f"{task.job}.log"
    return Places(
        stem.with_name(stem.name + ".json"), stem.with_name(stem.name + ".attempt.json"), log
    )


def read_record(path: Path) -> dict[str, Any] | None:
    """An attempt, or what is there of a stamp; None where there is none, or one that is damaged."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return (
        record if isinstance(record, dict) and isinstance(record.get("fingerprint"), str) else None
    )


def read_stamp(path: Path) -> dict[str, Any] | None:
    """A stamp with all that is read of it; None where there is none, or one that is damaged."""
    record = read_record(path)
    if record is None or not record.get("outputs") or "command" not in record:
        return None
    stamp = {"title": "", "number": "?", "configs": [], "inputs": [], **record}
    if not all(isinstance(stamp[name], kinds) for name, kinds in _KINDS.items() if name in stamp):
        return None
    pairs = [*stamp["configs"], *stamp["inputs"]]
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        return None
    words = [
        *stamp["outputs"].values(),
        *stamp["command"],
        *(word for pair in pairs for word in pair),
    ]
    return stamp if all(isinstance(word, str) for word in words) else None


def state(where: Places, task: Task, now: Fingerprint, cache: HashCache) -> State:
    """Whether the outputs of a task are up to date, and if not, why."""
    stamp = read_stamp(where.stamp)
    missing = [path for path in task.outputs if cache.digest(path) is None]
    if stamp is None:
        if where.attempt.exists():
            return State(False, ("was begun and did not end",))
        if where.stamp.exists():
            return State(False, (f"{where.stamp} is damaged",))
        brought = len(missing) < len(task.outputs)
        return State(False, ("there is no record of it",) if brought else (NEVER,), brought)
    reasons = [f"{path} is not there" for path in missing]
    if not is_same(stamp, now):
        reasons += _differences(stamp, now) or ["its record has another format"]
    if set(stamp["outputs"]) != set(task.outputs):  # of one that is not named no change would show
        reasons.append("its record names other outputs")
    for path, digest in stamp["outputs"].items():
        if path not in missing and cache.digest(path) != digest:
            reasons.append(f"{path} was changed after it was written")
    return State(not reasons, tuple(reasons))


def is_same(record: Mapping[str, Any], now: Fingerprint, *, with_inputs: bool = True) -> bool:
    """Whether a stamp, or an attempt, was made from what ``now`` says, under whatever names.

    Args:
        with_inputs: compare what was read, besides the command and the configuration.
    """
    if record["fingerprint"] == now.digest:
        return True
    if not {"command", "configs", "inputs"} <= record.keys():
        return False
    return (
        canonical(record["command"]) == canonical(now.command)
        and [digest for _, digest in record["configs"]] == [digest for _, digest in now.configs]
        and (not with_inputs or sorted(map(tuple, record["inputs"])) == sorted(now.inputs))
    )


def finished_release(where: Places, task: Task, work_dir: Path) -> dict[str, Any] | None:
    """The stamp of a private release that has ended well and stands in a task's place; None without
    one.

    What it spent is spent: making it again needs the user's word.
    """
    privacy = values_of(task.argv, "--out-privacy")
    if not privacy or not (work_dir / privacy[0]).exists() or where.attempt.exists():
        return None
    return read_stamp(where.stamp)


def begin(
    where: Places, task: Task, now: Fingerprint, *, launcher: str, forced: bool, work_dir: Path
) -> None:
    """Make the outputs of a task ready for a new attempt and record it.

    An attempt with the same fingerprint is continued from whatever it has left. Outputs of any
    other are kept aside until this one has ended well: :func:`give_up` puts them back. A kill
    between any two steps of this is made good by the next run.

    Raises:
        DataError: something stands in an output's place that no stage wrote, and ``forced`` is not
            set.
    """
    attempt = read_record(where.attempt)
    remove_temporaries(where.stamp)
    remove_temporaries(where.attempt)
    outputs = [work_dir / output for output in task.outputs]
    for output in outputs:
        remove_temporaries(output)
    before, partial = _shelves(where)
    if attempt is None:
        _unshelve(outputs, before)  # killed while they were being moved there
    if attempt is not None and attempt["fingerprint"] == now.digest and not forced:
        if partial.exists():
            _shelve(outputs, before)
            _unshelve(outputs, partial)
    else:
        if attempt is None and not where.stamp.exists() and not forced:
            _refuse_brought(outputs)
        if attempt is not None and (_holds_any(before) or not partial.exists()):
            for output in outputs:  # what another attempt has left
                remove_tree(output)
        where.attempt.unlink(missing_ok=True)
        _unshelve(outputs, before)
        remove_tree(partial)
        _shelve(outputs, before)
    where.log.parent.mkdir(parents=True, exist_ok=True)
    outputs[0].parent.mkdir(parents=True, exist_ok=True)
    write_json(
        where.attempt,
        {
            "fingerprint": now.digest,
            "launcher": launcher,
            "begun": _now(),
            "host": socket.gethostname(),
        },
    )


def _refuse_brought(outputs: Sequence[Path]) -> None:
    for path in outputs:
        if os.path.lexists(path):
            raise DataError(
                path,
                "nothing, or what this stage wrote earlier",
                "something that no stage has written",
                "move it away, or replace it with --force true",
            )


def _shelves(where: Places) -> tuple[Path, Path]:
    """Return the folders of earlier outputs during an attempt, and of a failed attempt's
    outputs.
    """
    return where.stamp.with_suffix(".before"), where.stamp.with_suffix(".partial")


def _holds_any(shelf: Path) -> bool:
    return shelf.exists() and any(shelf.iterdir())


def _shelve(outputs: Sequence[Path], shelf: Path) -> None:
    for number, output in enumerate(outputs):
        # Where its place is taken, a run was killed when it had just exchanged the two.
        if os.path.lexists(output) and not os.path.lexists(shelf / str(number)):
            shelf.mkdir(parents=True, exist_ok=True)
            output.rename(shelf / str(number))


def _unshelve(outputs: Sequence[Path], shelf: Path) -> None:
    if shelf.exists():
        for number, output in enumerate(outputs):
            if os.path.lexists(shelf / str(number)):
                (shelf / str(number)).rename(output)
        remove_tree(shelf)  # what is left is no output of the task any more


def end(
    where: Places, stage: Stage, task: Task, now: Fingerprint, cache: HashCache, seconds: float
) -> None:
    """Write the stamp of a task that ended well, last of all.

    Raises:
        DataError: it did not write all of its outputs.
    """
    outputs = {path: cache.digest(path) for path in task.outputs}
    for path, digest in outputs.items():
        if digest is None:
            raise DataError(
                f"{stage.label}",
                f"the output {path}",
                "nothing, though it ended well",
                f"see {where.log}",
            )
    record = {
        "fingerprint": now.digest,
        "code": code_version(),
        "title": stage.title,
        "number": stage.number,
        "command": now.command,
        "configs": now.configs,
        "inputs": now.inputs,
        "outputs": outputs,
        "seconds": round(seconds, 3),
        "ended": _now(),
        "host": socket.gethostname(),
    }
    write_json(where.stamp, record)


def give_up(where: Places, task: Task, work_dir: Path) -> None:
    """After a failure: put earlier outputs back; what the attempt has left waits to be
    continued.
    """
    outputs = [work_dir / output for output in task.outputs]
    before, partial = _shelves(where)
    left_something = any(os.path.lexists(output) for output in outputs)
    if before.exists():
        _shelve(outputs, partial)
        _unshelve(outputs, before)
    if not left_something:
        where.attempt.unlink(missing_ok=True)


def take_back(where: Places, task: Task, now: Fingerprint, work_dir: Path) -> None:
    """Put back what a killed attempt at something else had moved aside, where just that is asked
    for now.

    What the attempt has left waits, as after a failure. One of Slurm may still be at work: it is
    left alone.
    """
    stamp, attempt = read_stamp(where.stamp), read_record(where.attempt)
    before, _ = _shelves(where)
    if stamp is None or not is_same(stamp, now) or not _holds_any(before):
        return
    if attempt is None:
        # Killed while they were being moved there.
        _unshelve([work_dir / output for output in task.outputs], before)
    elif attempt["fingerprint"] != now.digest and attempt.get("launcher") != "slurm":
        give_up(where, task, work_dir)


def tidy(where: Places, task: Task, work_dir: Path) -> None:
    """After a stamp was written: remove what was moved aside, and last the record of the attempt.

    A run that is killed before the end of this is made good by the next one.
    """
    if where.attempt.exists():
        for output in task.outputs:
            remove_temporaries(work_dir / output)
        for shelf in _shelves(where):
            remove_tree(shelf)
        where.attempt.unlink()


def remove_surplus(stage: Stage, work_dir: Path) -> list[str]:
    """Remove what jobs beyond the array of now have left (an array of eight that has become one of
    four).

    A later stage that reads the whole folder would read them too. Only outputs that a stamp names
    go.

    Returns:
        The outputs that were removed.
    """
    if not stage.is_array:
        return []
    wanted = {str(task.job) for task in stage.tasks}
    removed: list[str] = []
    for file in sorted(places(stage, stage.tasks[0], work_dir).stamp.parent.glob("*.json")):
        job = file.name.split(".")[0]
        if job in wanted:
            continue
        for path in (pattern.replace("JOB", job) for pattern in stage.patterns):
            remove_tree(work_dir / path)
            removed.append(path)
        for shelf in (file.with_name(f"{job}.before"), file.with_name(f"{job}.partial")):
            remove_tree(shelf)
        file.unlink()
    return removed


def remove_temporaries(output: Path) -> None:
    """Remove what killed verbs have left of ``fileio.atomic_path``, beside and inside an output."""
    if output.parent.is_dir():
        for path in output.parent.glob(f".*.{output.name}"):
            if _TEMPORARY.fullmatch(path.name) and path.name[14:] == output.name:
                remove_tree(path)
    if output.is_dir() and not output.is_symlink():
        for path in [path for path in output.rglob(".*") if _TEMPORARY.fullmatch(path.name)]:
            remove_tree(path)


def _differences(stamp: dict[str, Any], now: Fingerprint) -> list[str]:
    differences: list[str] = []
    old, new = canonical(stamp.get("command") or [""]), canonical(now.command)
    if old != new:
        gone, come = [w for w in old if w not in new], [w for w in new if w not in old]
        differences.append(
            f"the command changed: {' '.join(gone) or '(nothing)'} ->"
            f" {' '.join(come) or '(nothing)'}"
        )
    before = {path: digest for path, digest in stamp.get("configs", [])}
    after = dict(now.configs)
    if [digest for _, digest in stamp.get("configs", [])] != [digest for _, digest in now.configs]:
        names = [path for path in {**before, **after} if before.get(path) != after.get(path)]
        differences += [
            (
                f"{path} {'is no longer' if path not in after else 'is now'} among its --config"
                " files"
                if (path in before) != (path in after)
                else f"{path} changed"
            )
            for path in names
        ] or ["the order of its --config files changed"]
    before = {path: digest for path, digest in stamp.get("inputs", [])}
    differences += [
        f"{path} changed"
        for path, digest in now.inputs
        if path in before and before[path] != digest
    ]
    differences += [f"{path} is now read" for path, _ in now.inputs if path not in before]
    differences += [f"{path} is no longer read" for path in before if path not in dict(now.inputs)]
    return [reason.replace(REPOSITORY, "") for reason in differences]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
