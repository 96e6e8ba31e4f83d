"""Stamps: records beside the outputs of a task of how they were made (``docs/formats.md``).

All digests in them are keyed (:mod:`privasr_k2.recipe.seal`).

The stamp of ``exp/x/am`` is ``exp/x/.stages/am.json``, its log ``exp/x/log/am.log``; of job 3 of
``exp/x/decode/JOB.jsonl`` they are ``exp/x/{.stages,log}/decode.JOB.jsonl/3.{json,log}``.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from privasr_k2.environment import code_version
from privasr_k2.errors import DataError
from privasr_k2.fileio import remove_tree, write_json
from privasr_k2.recipe.corpus_files import recorded
from privasr_k2.recipe.fingerprint import REPOSITORY, Fingerprint, HashCache
from privasr_k2.recipe.plan import Stage, Task, values_of
from privasr_k2.recipe.renames import canonical
from privasr_k2.recipe.seal import KEY, PLAIN, Seal, record_files

NEVER = "never run"  # the reason of a stage that is new
_TEMPORARY = re.compile(r"\.[0-9a-f]{8}\.(tmp|old)\..+")
_KINDS: dict[str, tuple[type, ...]] = {  # of what is read of a stamp; the rest is for people
    **{"title": (str,), "number": (int, str), "code": (str,), "seconds": (int, float)},
    **{"command": (list,), "configs": (list,), "inputs": (list,), "outputs": (dict,)},
}


@dataclass(frozen=True)
class Places:
    """Paths of one task's stamp, record of the attempt, log, and outputs."""

    stamp: Path
    attempt: Path
    log: Path
    outputs: tuple[Path, ...]

    @property
    def before(self) -> Path:
        """The folder of earlier outputs during an attempt."""
        return self.stamp.with_suffix(".before")

    @property
    def partial(self) -> Path:
        """The folder of a failed attempt's outputs."""
        return self.stamp.with_suffix(".partial")


@dataclass(frozen=True)
class State:
    """State of a task's outputs before it runs.

    Attributes:
        fresh: they are whole, and from this command and these inputs.
        reasons: why not; empty where ``fresh``.
        brought: they are there, and no stage has written them.
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
        # A folder with the outputs of an array is read as a whole: stamps stand outside of it.
        depth = max(first - 1, 0) if first == len(parts) - 1 else first
        folder, name = work_dir.joinpath(*parts[:depth]), ".".join(parts[depth:])
        stem = folder / ".stages" / name / str(task.job)
        log = folder / "log" / name / f"{task.job}.log"
    attempt = stem.with_name(f"{stem.name}.attempt.json")
    outputs = tuple(work_dir / output for output in task.outputs)
    return Places(stem.with_name(f"{stem.name}.json"), attempt, log, outputs)


def read_record(path: Path, seal: Seal = PLAIN) -> dict[str, Any] | None:
    """An attempt, or a stamp of any form; None where it is absent or damaged.

    Args:
        seal: of the work folder; digests of earlier versions are put under its key.
    """
    record = _read(path)
    if record is None or KEY in record or not seal.key:
        return record
    return _checked(record, seal) or {
        **record,
        **seal.record({"fingerprint": record["fingerprint"]}),
    }


def _read(path: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    is_record = isinstance(record, dict) and isinstance(record.get("fingerprint"), str)
    return record if is_record else None


def read_stamp(path: Path, seal: Seal = PLAIN) -> dict[str, Any] | None:
    """A stamp with all that is read of it; None where it is absent or damaged.

    Args:
        seal: as of :func:`read_record`.
    """
    record = _read(path)
    return None if record is None else _checked(record, seal)


def _checked(record: dict[str, Any], seal: Seal) -> dict[str, Any] | None:
    """A record that has the form of a stamp, under a seal."""
    if not record.get("outputs") or "command" not in record:
        return None
    stamp = {"title": "", "number": "?", "configs": [], "inputs": [], **record}
    if not all(isinstance(stamp[name], kinds) for name, kinds in _KINDS.items() if name in stamp):
        return None
    pairs = [*stamp["configs"], *stamp["inputs"]]
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        return None
    words = [*stamp["outputs"].values(), *stamp["command"], *(w for pair in pairs for w in pair)]
    return seal.record(stamp) if all(isinstance(word, str) for word in words) else None


def seal_records(work_dir: Path, seal: Seal) -> None:
    """Put the records of earlier versions, which have plain digests, under the key."""
    for path in record_files(work_dir):
        record = _read(path)
        if record is not None and KEY not in record:
            write_json(path, read_record(path, seal))


def state(where: Places, task: Task, now: Fingerprint, cache: HashCache) -> State:
    """Whether the outputs of a task are up to date, and if not, why."""
    stamp = read_stamp(where.stamp, cache.seal)
    missing = [path for path in task.outputs if cache.digest(path) is None]
    if stamp is None:
        if where.attempt.exists():
            return State(False, ("was begun and did not end",))
        if where.stamp.exists():
            return State(False, (f"{where.stamp} is damaged",))
        brought = len(missing) < len(task.outputs)
        return State(False, ("there is no record of it",) if brought else (NEVER,), brought)
    if cache.seal.is_other(stamp):
        return State(False, (f"{where.stamp} was made with another key than .stages/{KEY}",))
    reasons = [f"{path} is not there" for path in missing]
    if not is_same(stamp, now):
        reasons += _differences(stamp, now) or ["its record has another format"]
    if set(stamp["outputs"]) != set(task.outputs):  # a change of an unnamed one would not show
        reasons.append("its record names other outputs")
    reasons += [
        f"{path} was changed after it was written"
        for path, digest in stamp["outputs"].items()
        if path not in missing and cache.digest(path) != digest
    ]
    return State(not reasons, tuple(reasons))


def is_same(record: Mapping[str, Any], now: Fingerprint, *, with_inputs: bool = True) -> bool:
    """Whether a stamp or an attempt is of ``now``, under whatever names.

    Args:
        record: as it was read with the seal of ``now``.
        with_inputs: compare the inputs, besides the command and the configuration.
    """
    if record["fingerprint"] == now.digest:
        return True
    if not {"command", "configs", "inputs"} <= record.keys():
        return False
    of_now = now.record
    return (
        canonical(record["command"]) == canonical(now.command)
        and [digest for _, digest in record["configs"]] == [d for _, d in of_now["configs"]]
        and (not with_inputs or sorted(record["inputs"]) == sorted(_inputs(record, now)))
    )


def finished_release(
    where: Places, task: Task, work_dir: Path, seal: Seal
) -> dict[str, Any] | None:
    """The stamp of a task's finished private release; None without one."""
    privacy = values_of(task.argv, "--out-privacy")
    if not privacy or not (work_dir / privacy[0]).exists() or where.attempt.exists():
        return None
    return read_stamp(where.stamp, seal)


def begin(where: Places, now: Fingerprint, *, launcher: str, forced: bool) -> None:
    """Prepare the outputs of a task for a new attempt and record it.

    An attempt with the same fingerprint is continued. Other outputs are kept aside until this one
    has ended well; :func:`give_up` puts them back. The next run repairs a kill between any steps.

    Raises:
        DataError: without ``forced``: no stage wrote what stands in an output's place, or a record
            is of another key.
    """
    attempt = read_record(where.attempt, now.seal)
    if not forced:
        _refuse_other_key(where, now.seal)
    for path in (where.stamp, where.attempt, *where.outputs):
        remove_temporaries(path)
    if attempt is None:
        _unshelve(where, where.before)  # killed while they were being moved there
    if attempt is not None and attempt["fingerprint"] == now.digest and not forced:
        if where.partial.exists():
            _shelve(where, where.before)
            _unshelve(where, where.partial)
    else:
        if attempt is None and not where.stamp.exists() and not forced:
            _refuse_brought(where)
        if attempt is not None and (_holds_any(where.before) or not where.partial.exists()):
            for output in where.outputs:  # left by another attempt
                remove_tree(output)
        where.attempt.unlink(missing_ok=True)
        _unshelve(where, where.before)
        remove_tree(where.partial)
        _shelve(where, where.before)
    where.log.parent.mkdir(parents=True, exist_ok=True)
    where.outputs[0].parent.mkdir(parents=True, exist_ok=True)
    of_now = {name: now.record[name] for name in ("fingerprint", KEY) if name in now.record}
    about = {"launcher": launcher, "begun": _now(), "host": socket.gethostname()}
    write_json(where.attempt, {**of_now, **about})


def _refuse_other_key(where: Places, seal: Seal) -> None:
    for path in (where.attempt, where.stamp):
        if seal.is_other(_read(path) or {}):
            expected, found = f"a record made with the key .stages/{KEY}", "one of another key"
            way_out = "restore that key from a backup; to make the outputs again: --force true"
            raise DataError(path, expected, found, way_out)


def _refuse_brought(where: Places) -> None:
    expected, found = "what this stage wrote earlier", "something that no stage has written"
    for path in filter(os.path.lexists, where.outputs):
        raise DataError(path, expected, found, "move it away, or replace it with --force true")


def _holds_any(shelf: Path) -> bool:
    return shelf.exists() and any(shelf.iterdir())


def _shelve(where: Places, shelf: Path) -> None:
    for number, output in enumerate(where.outputs):
        # If its place is taken, a run was killed just after it had exchanged the two.
        if os.path.lexists(output) and not os.path.lexists(shelf / str(number)):
            shelf.mkdir(parents=True, exist_ok=True)
            output.rename(shelf / str(number))


def _unshelve(where: Places, shelf: Path) -> None:
    if shelf.exists():
        for number, output in enumerate(where.outputs):
            if os.path.lexists(shelf / str(number)):
                (shelf / str(number)).rename(output)
        remove_tree(shelf)  # outputs that the task no longer has


def end(
    where: Places, stage: Stage, task: Task, now: Fingerprint, cache: HashCache, seconds: float
) -> None:
    """Write the stamp of a task that ended well, last of all.

    Raises:
        DataError: it did not write all of its outputs.
    """
    outputs = {path: cache.digest(path) for path in task.outputs}
    if absent := [path for path, digest in outputs.items() if digest is None]:
        found = "nothing, though it ended well"
        raise DataError(stage.label, f"the output {absent[0]}", found, f"see {where.log}")
    record = {
        **now.record,
        "code": code_version(),
        "title": stage.title,
        "number": stage.number,
        "outputs": outputs,
        "host": socket.gethostname(),
    }
    if not values_of(task.argv, "--out-privacy"):  # how long a release took tells of its data
        record |= {"seconds": round(seconds, 3), "ended": _now()}
    write_json(where.stamp, record)


def give_up(where: Places) -> None:
    """After a failure: put earlier outputs back, and keep the attempt's to continue it."""
    left_something = any(map(os.path.lexists, where.outputs))
    if where.before.exists():
        _shelve(where, where.partial)
        _unshelve(where, where.before)
    if not left_something:
        where.attempt.unlink(missing_ok=True)


def take_back(where: Places, now: Fingerprint) -> None:
    """Put back the outputs of ``now`` that a killed attempt at others had moved aside.

    The attempt's are kept, as after a failure. One of Slurm may still be at work: it is left alone.
    """
    stamp, attempt = read_stamp(where.stamp, now.seal), read_record(where.attempt, now.seal)
    if stamp is None or not is_same(stamp, now) or not _holds_any(where.before):
        return
    if attempt is None:  # killed while they were being moved there
        _unshelve(where, where.before)
    elif attempt["fingerprint"] != now.digest and attempt.get("launcher") != "slurm":
        give_up(where)


def tidy(where: Places) -> None:
    """After a stamp was written: remove what was moved aside, and last the attempt's record."""
    if where.attempt.exists():
        for output in where.outputs:
            remove_temporaries(output)
        for shelf in (where.before, where.partial):
            remove_tree(shelf)
        where.attempt.unlink()


def remove_surplus(stage: Stage, work_dir: Path) -> list[str]:
    """Remove the outputs of jobs beyond the array's size, which has shrunk, and return their paths.

    A later stage that reads the whole folder would read them too.
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
    """Remove temporaries of ``fileio.atomic_path`` that kills left, beside and inside an output."""
    if output.parent.is_dir():
        for path in output.parent.glob(f".*.{output.name}"):
            if _TEMPORARY.fullmatch(path.name) and path.name[14:] == output.name:
                remove_tree(path)
    if output.is_dir() and not output.is_symlink():
        for path in [*output.rglob(".*")]:
            if _TEMPORARY.fullmatch(path.name):
                remove_tree(path)


def _differences(stamp: dict[str, Any], now: Fingerprint) -> list[str]:
    differences: list[str] = []
    old, new = canonical(stamp.get("command") or [""]), canonical(now.command)
    if old != new:
        gone, come = [w for w in old if w not in new], [w for w in new if w not in old]
        changed = (" ".join(words) or "(nothing)" for words in (gone, come))
        differences.append(f"the command changed: {' -> '.join(changed)}")
    before, after = dict(stamp.get("configs", [])), dict(now.record["configs"])
    digests = [[digest for _, digest in of.get("configs", [])] for of in (stamp, now.record)]
    if digests[0] != digests[1]:
        differences += [
            f"{path} changed"
            if path in before and path in after
            else f"{path} is {'now' if path in after else 'no longer'} among its --config files"
            for path in {**before, **after}
            if before.get(path) != after.get(path)
        ] or ["the order of its --config files changed"]
    before, after = dict(stamp.get("inputs", [])), dict(_inputs(stamp, now))
    both = [path for path in after if path in before]
    differences += [f"{path} changed" for path in both if before[path] != after[path]]
    differences += [f"{path} is now read" for path in after if path not in before]
    differences += [f"{path} is no longer read" for path in before if path not in after]
    return [reason.replace(REPOSITORY, "") for reason in differences]


def _inputs(record: Mapping[str, Any], now: Fingerprint) -> list[Any]:
    return recorded(record.get("inputs", []), now.record["inputs"])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
