"""The stages that a recipe file declares.

A record is ``NUMBER TITLE [JOB=FIRST:LAST] [--cmd LAUNCHER] VERB FLAGS...``. The flags of a verb
are its
declaration: ``--in-*`` and ``--config`` are read, ``--out-*`` written, ``--raw-*`` is a corpus or a
file brought along, ``--set`` holds values, and the neutral flags cannot change a result.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from privasr_k2.errors import ConfigError

NEUTRAL = ("--device", "--num-jobs", "--log-level", "--ledger", "--max-epsilon")
"""Flags that cannot change a result, so that no fingerprint holds them.

The last two are about what may be spent: a limit that is raised must not make a release anew, which
would spend again.
"""

_KINDS = "--in-*, --out-*, --raw-*, --config, --set, " + ", ".join(NEUTRAL)
_MOST_JOBS = 10_000


@dataclass(frozen=True)
class Task:
    """One command: a stage without an array, or one job of a stage that is an array.

    Attributes:
        job: the job's number in the array; None where there is no array.
        argv: the verb and its flags, ``JOB`` replaced.
        inputs, configs, raws, outputs: the paths that the flags name, in order, relative to the
            work folder where they stand in it and absolute elsewhere; of ``configs`` with
            ``#SECTION``, if one is named.
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
        number: what ``--stage`` and ``--stop-stage`` compare with; several stages may share one.
        launcher: the words that say where it runs, ``("local",)``, ``("slurm", "--mem", "4G")``;
            see :func:`privasr_k2.recipe.launch.split_launcher`.
        patterns: its outputs as they were declared, ``JOB`` not replaced: the first names stamps
            and logs.
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
    """The stages of a recipe, from the words of each declaration.

    Args:
        records: what :class:`privasr_k2.recipe.declare.Recipe` collected.
        work_dir: absolute path of the folder in which the recipe runs.

    Raises:
        ConfigError: a declaration that is not of the form above.

    >>> parse([["3", "LM", "train_ngram", "--out-lm", "data/lm.gz"]], "/w")[0].tasks[0].outputs
    ('data/lm.gz',)
    """
    stages: list[Stage] = []
    for words in records:
        stages.append(_stage(len(stages), words, work_dir))
        if len(stages) > 1 and stages[-1].number < stages[-2].number:
            raise ConfigError(
                stages[-1].label,
                f"a number of {stages[-2].number} or more, as it follows {stages[-2].label}",
                str(stages[-1].number),
                "number the stages in the order in which they run",
            )
    if not stages:
        raise ConfigError(
            "the recipe", "at least one stage", "none", "declare one with recipe.stage"
        )
    return tuple(stages)


def values_of(argv: Sequence[str], *prefixes: str) -> list[str]:
    """The values of every flag that starts with one of ``prefixes``, in order.

    >>> values_of(["verb", "--in-a", "x", "y", "--out-b", "z"], "--in-")
    ['x', 'y']
    """
    return [value for flag, values in _flags(argv) if flag.startswith(prefixes) for value in values]


def without(argv: Sequence[str], *names: str) -> list[str]:
    """``argv`` with the flags of these names, and their values, taken out."""
    return [
        *argv[:1],
        *(w for flag, values in _flags(argv) if flag not in names for w in (flag, *values)),
    ]


def normal_path(path: str, work_dir: str) -> str:
    """``path`` in one spelling: relative inside ``work_dir``, else absolute. Links are not
    followed.

    >>> normal_path("/w/data/../exp/", "/w"), normal_path("../x", "/w")
    ('exp', '/x')
    """
    full = os.path.normpath(os.path.join(work_dir, path))
    return full[len(work_dir) + 1 :] if full.startswith(work_dir.rstrip("/") + "/") else full


def _flags(argv: Sequence[str]) -> list[tuple[str, list[str]]]:
    flags: list[tuple[str, list[str]]] = []
    for word in argv[1:]:
        if word.startswith("--"):
            flags.append((word, []))
        elif flags:
            flags[-1][1].append(word)
    return flags


def _stage(index: int, words: Sequence[str], work_dir: str) -> Stage:
    if len(words) < 3 or not words[0].isdigit():
        raise ConfigError(
            f"the declaration 'stage {' '.join(words)}'",
            "NUMBER TITLE VERB FLAGS",
            f"{len(words)} words" if len(words) < 3 else f"the number {words[0]!r}",
            'write recipe.stage(3, "n-gram LM", "train_ngram", out_lm="data/lm.arpa.gz")',
        )
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
    if jobs is not None and any("JOB" not in path for path in outputs):
        output = next(path for path in outputs if "JOB" not in path)
        raise ConfigError(
            place,
            "JOB in every output of an array",
            output,
            "name the job, as in exp/decode/JOB.jsonl",
        )
    patterns = tuple(normal_path(path, work_dir) for path in outputs)
    tasks = [_task(job, rest, work_dir) for job in (jobs if jobs is not None else [None])]
    return Stage(index, number, title, launcher, patterns, tuple(tasks))


def _jobs(place: str, word: str) -> range:
    match = re.fullmatch(r"JOB=(\d+):(\d+)", word)
    if match is None or not int(match[1]) <= int(match[2]) < int(match[1]) + _MOST_JOBS:
        raise ConfigError(
            place, f"JOB=FIRST:LAST with 1 to {_MOST_JOBS} jobs", word, "write for example JOB=1:8"
        )
    return range(int(match[1]), int(match[2]) + 1)


def _launcher(place: str, text: str) -> tuple[str, ...]:
    words = tuple(text.split())
    known = words[:1] in (("local",), ("slurm",), ("torchrun",))
    if not known or (words[0] == "local" and len(words) > 1):
        raise ConfigError(
            f"{place}: --cmd",
            "'local', 'torchrun' with its options, or 'slurm' with those of sbatch (then"
            " torchrun's)",
            repr(text),
            "correct it, or local/cmd.sh",
        )
    return words


def _check_flags(place: str, argv: Sequence[str]) -> None:
    if not argv or argv[0].startswith("-"):
        raise ConfigError(
            place, "a verb", repr(argv[0]) if argv else "nothing", "name the verb before its flags"
        )
    if len(argv) > 1 and not argv[1].startswith("--"):
        raise ConfigError(
            place, "a flag after the verb", repr(argv[1]), "quote the title, and name what is read"
        )
    for flag, values in _flags(argv):
        if not (
            flag.startswith(("--in-", "--out-", "--raw-"))
            or flag in ("--config", "--set", *NEUTRAL)
        ):
            raise ConfigError(
                place, f"flags of these kinds: {_KINDS}", flag, f"write --set {flag[2:]}=VALUE"
            )
        if flag.startswith(("--in-", "--out-", "--raw-")) and (not values or "" in values):
            found = "an empty path" if values else "none"
            raise ConfigError(
                f"{place}: {flag}",
                "one path or more",
                found,
                "give the path, or leave out the flag",
            )
    if not values_of(argv, "--out-"):
        raise ConfigError(place, "an --out-* flag", "none", "name what the stage writes")


def _task(job: int | None, argv: Sequence[str], work_dir: str) -> Task:
    own = list(argv) if job is None else [word.replace("JOB", str(job)) for word in argv]

    def paths(*prefixes: str) -> tuple[str, ...]:
        return tuple(normal_path(path, work_dir) for path in values_of(own, *prefixes))

    return Task(
        job, tuple(own), paths("--in-"), paths("--config"), paths("--raw-"), paths("--out-")
    )
