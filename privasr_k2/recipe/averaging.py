"""Trainings that differ in which epochs are averaged alone: the checkpoints are there already."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

from privasr_k2.fileio import atomic_path
from privasr_k2.recipe.corpus_files import recorded
from privasr_k2.recipe.fingerprint import Fingerprint
from privasr_k2.recipe.plan import values_of
from privasr_k2.recipe.renames import canonical
from privasr_k2.recipe.stamps import Places

VERBS = ("train_am", "train_lm")
"""Their trainers go on from checkpoints of an equal training, and train anew upon any other."""
_KEYS = ("avg=", "average_over=")


def averages_anew(stamp: Mapping[str, Any] | None, now: Fingerprint) -> bool:
    """Whether a training asks for another average of what a stamp's outputs hold.

    Args:
        stamp: as it was read with the seal of ``now``; None where there is none.
    """
    if stamp is None or now.command[0] not in VERBS or values_of(now.command, "--out-privacy"):
        return False
    record = now.record
    configs = [[digest for _, digest in of["configs"]] for of in (stamp, record)]
    inputs = recorded(stamp["inputs"], record["inputs"])
    return (
        _without_average(stamp["command"]) == _without_average(now.command)
        and configs[0] == configs[1]
        and sorted(stamp["inputs"]) == sorted(inputs)
    )


def take_over(where: Places) -> None:
    """Begin an attempt with a copy of the earlier output, which is kept aside; all or nothing."""
    earlier = where.before / "0"
    if earlier.is_dir() and not where.outputs[0].exists():
        with atomic_path(where.outputs[0]) as temporary:
            shutil.copytree(earlier, temporary)


def _without_average(command: Any) -> list[str]:
    words = canonical(command)
    return [word for word in words if word != "--set" and not word.startswith(_KEYS)]
