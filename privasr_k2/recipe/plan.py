"""The stages of a recipe: ``NUMBER TITLE [JOB=FIRST:LAST] [--cmd LAUNCHER] VERB FLAGS...``.

Flags declare what a verb does: ``--in-*`` and ``--config`` are read, ``--out-*`` are written,
``--raw-*`` is a corpus or a user's file, ``--set`` holds values; neutral flags change no result.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from privasr_k2.errors import ConfigError

NEUTRAL = (
    *("--device", "--num-jobs", "--log-level"),
    *("--ledger", "--ledger-copy", "--max-epsilon", "--public-from-private"),
)
"""Flags that change no result, so that no fingerprint holds them.

A raised ``--max-epsilon`` must not make a release anew, which would spend again; nor must
``--public-from-private``, which every release of a recipe gets.
"""

_KINDS = "--in-*, --out-*, --raw-*, --config, --set, " + ", ".join(NEUTRAL)
_MOST_JOBS = 10_000


@dataclass(frozen=True)
class Task:
    """One command: a stage without an array, or one job of a stage that is an array.

    Attributes:
        job: the job's number in the array; None where there is no array.
        argv: the verb and its flags, ``JOB`` replaced.
        inputs, configs, raws, outputs: paths of the flags, relative to the work folder or, outside
            of it, absolute; of ``configs`` maybe with ``#SECTION``.
    """

    job: int | None
    argv: tuple[str, ...]
    inputs: tuple[str, ...]
    configs: tuple[str, ...]
    raws: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Stage:
    """One numbered stage.

    Attributes:
        index: its place in the recipe, from 0.
        number: of ``--stage`` and ``--stop-stage``; several stages may share one.
        launcher: see :func:`privasr_k2.recipe.launch.split_launcher`.
        patterns: its outputs with ``JOB``; the first names stamps and logs.
        tasks: one, or one for each job of the array.
    """

    index: int
    number: int
    title: str
    launcher: tuple[str, ...]
    patterns: tuple[str, ...]
    tasks: tuple[Task, ...]

    @property
    def label(self) -> str:
        """``stage 3 (n-gram LM)``: how messages name it."""
        return f"stage {self.number} ({self.title})"

    @property
    def is_array(self) -> bool:
        """Whether it was declared with ``JOB=FIRST:LAST``."""
        return self.tasks[0].job is not None


def parse(records: Sequence[Sequence[str]], work_dir: str) -> tuple[Stage, ...]:
    """The stages of a recipe, from the words of each declaration; ``work_dir`` is absolute.

    Raises:
        ConfigError: a declaration that is not of the form above.

    >>> parse([["3", "LM", "train_ngram", "--out-lm", "data/lm.gz"]], "/w")[0].tasks[0].outputs
    ('data/lm.gz',)
    """
    stages: list[Stage] = []
    for words in records:
        stages.append(_stage(len(stages), words, work_dir))
        if len(stages) > 1 and stages[-1].number < stages[-2].number:
            before, stage = stages[-2:]
            expected = f"a number of {before.number} or more, as it follows {before.label}"
            way_out = "number the stages in the order in which they run"
            raise ConfigError(stage.label, expected, str(stage.number), way_out)
    if not stages:
        way_out = "declare one with recipe.stage"
        raise ConfigError("the recipe", "at least one stage", "none", way_out)
    return tuple(stages)


def values_of(argv: Sequence[str], *prefixes: str) -> list[str]:
    """The values of every flag that starts with one of ``prefixes``, in order.

    >>> values_of(["verb", "--in-a", "x", "y", "--out-b", "z"], "--in-")
    ['x', 'y']
    """
    return [
        value for flag, values in flags_of(argv) if flag.startswith(prefixes) for value in values
    ]


def without(argv: Sequence[str], *names: str) -> list[str]:
    """``argv`` with the flags of these names, and their values, taken out."""
    kept = [(flag, *values) for flag, values in flags_of(argv) if flag not in names]
    return [*argv[:1], *(word for words in kept for word in words)]


def normal_path(path: str, work_dir: str) -> str:
    """``path`` relative to ``work_dir`` if inside, else absolute; links are not followed.

    >>> normal_path("/w/data/../exp/", "/w"), normal_path("../x", "/w")
    ('exp', '/x')
    """
    full = os.path.normpath(os.path.join(work_dir, path))
    return full[len(work_dir) + 1 :] if full.startswith(work_dir.rstrip("/") + "/") else full


def flags_of(argv: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The flags of a verb, each with its values, in order."""
    flags: list[tuple[str, list[str]]] = []
    for word in argv[1:]:
        if word.startswith("--"):
            flags.append((word, []))
        elif flags:
            flags[-1][1].append(word)
    return flags


def _stage(index: int, words: Sequence[str], work_dir: str) -> Stage:
    if len(words) < 3 or not words[0].isdigit():
        place = f"the declaration 'stage {' '.join(words)}'"
        found = f"{len(words)} words" if len(words) < 3 else f"the number {words[0]!r}"
        way_out = 'write recipe.stage(3, "n-gram LM", "train_ngram", out_lm="data/lm.arpa.gz")'
        raise ConfigError(place, "NUMBER TITLE VERB FLAGS", found, way_out)
    number, title, rest = int(words[0]), words[1], list(words[2:])
    place = f"stage {number} ({title})"
    jobs: range | None = None
    launcher: tuple[str, ...] = ("local",)
    while rest and (rest[0].startswith("JOB=") or rest[0] == "--cmd"):
        if rest[0] == "--cmd":
            launcher, rest = _launcher(place, rest[1] if len(rest) > 1 else ""), rest[2:]
        else:
            jobs, rest = _jobs(place, rest[0]), rest[1:]
    _check_flags(place, rest)
    outputs = values_of(rest, "--out-")
    shared = [path for path in outputs if "JOB" not in path]
    if jobs is not None and shared:
        expected, way_out = "JOB in every output of an array", "write exp/decode/JOB.jsonl"
        raise ConfigError(place, expected, shared[0], way_out)
    patterns = tuple(normal_path(path, work_dir) for path in outputs)
    tasks = [_task(job, rest, work_dir) for job in (jobs if jobs is not None else [None])]
    return Stage(index, number, title, launcher, patterns, tuple(tasks))


def _jobs(place: str, word: str) -> range:
    match = re.fullmatch(r"JOB=(\d+):(\d+)", word)
    if match is None or not int(match[1]) <= int(match[2]) < int(match[1]) + _MOST_JOBS:
        expected = f"JOB=FIRST:LAST with 1 to {_MOST_JOBS} jobs"
        raise ConfigError(place, expected, word, "write for example JOB=1:8")
    return range(int(match[1]), int(match[2]) + 1)


def _launcher(place: str, text: str) -> tuple[str, ...]:
    words = tuple(text.split())
    known = words[:1] in (("local",), ("slurm",), ("torchrun",))
    if not known or (words[0] == "local" and len(words) > 1):
        expected = "'local', 'torchrun' with its options, or 'slurm' with those of sbatch"
        raise ConfigError(f"{place}: --cmd", expected, repr(text), "correct it, or local/cmd.sh")
    return words


def _check_flags(place: str, argv: Sequence[str]) -> None:
    if not argv or argv[0].startswith("-"):
        found = repr(argv[0]) if argv else "nothing"
        raise ConfigError(place, "a verb", found, "name the verb before its flags")
    if len(argv) > 1 and not argv[1].startswith("--"):
        way_out = "quote the title, and name what is read"
        raise ConfigError(place, "a flag after the verb", repr(argv[1]), way_out)
    for flag, values in flags_of(argv):
        is_path = flag.startswith(("--in-", "--out-", "--raw-"))
        if not is_path and flag not in ("--config", "--set", *NEUTRAL):
            way_out = f"write --set {flag[2:]}=VALUE"
            raise ConfigError(place, f"flags of these kinds: {_KINDS}", flag, way_out)
        if is_path and (not values or "" in values):
            found, way_out = "an empty path" if values else "none", "give it, or remove the flag"
            raise ConfigError(f"{place}: {flag}", "one path or more", found, way_out)
    if not values_of(argv, "--out-"):
        raise ConfigError(place, "an --out-* flag", "none", "name what the stage writes")


def _task(job: int | None, argv: Sequence[str], work_dir: str) -> Task:
    own = list(argv) if job is None else [word.replace("JOB", str(job)) for word in argv]
    inputs, configs, raws, outputs = (
        tuple(normal_path(path, work_dir) for path in values_of(own, prefix))
        for prefix in ("--in-", "--config", "--raw-", "--out-")
    )
    return Task(job, tuple(own), inputs, configs, raws, outputs)
