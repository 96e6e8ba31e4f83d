"""Membership studies of several models: losses, perturbed losses, and what needs no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privasr_k2.attack.blind import Described, blind_scores, paired_difference
from privasr_k2.attack.membership import told
from privasr_k2.attack.settings import MembershipConfig
from privasr_k2.errors import DataError

Losses = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Side:
    """One side of a study: members, or others.

    Attributes:
        losses: unit -> (I,) losses, those of a reference model last where there is one.
        rises: the same of :func:`privasr_k2.attack.perturbed.loss_rise`; None: not asked for.
        described: what is seen of each unit without a model; None: no blind baseline.
    """

    losses: Losses
    rises: Losses | None
    described: Mapping[str, Described] | None

    @property
    def units(self) -> list[str]:
        """Units that all figures have."""
        return [u for u in self.losses if all(u in o for o in (self.rises, self.described) if o)]


def study(
    members: Side, others: Side, names: Sequence[str], config: MembershipConfig, *, reference: bool
) -> dict[str, Any]:
    """For each of several models what attacks tell, and what they tell beyond the blind baseline.

    Args:
        members, others: the models in the order of ``names``.
        reference: a public model's losses stand behind theirs. A rise in it is subtracted.

    Returns:
        ``models``: name -> of the attack by losses; of that by rises in ``perturbed``; each with
        ``beyond_blind``, AUC less that of the baseline, its interval (None where a side has too few
        speakers), and the speakers of the smaller side. ``blind``: of the baseline.

    Raises:
        DataError: a unit that is a member and another, or no unit of a kind.
    """
    sides = members, others
    units = [side.units for side in sides]
    both = sorted(set(units[0]) & set(units[1]))
    if both or not all(units):
        given = f"{len(units[0])} members, {len(units[1])} others, {len(both)} of them both"
        expected = f"{config.unit}s who are not in the training"
        raise DataError("--in-others", expected, f"{given} {' '.join(both[:3])}", "name others")
    blind = _blind(sides, units, config)
    found: dict[str, Any] = {"models": {}}
    if blind is not None:
        found["blind"] = told(*blind, config)
    for place, name in enumerate(names):
        scores = _scores([side.losses for side in sides], units, place, -1.0, reference)
        of_model = _beside(scores, blind, sides, units, config)
        if members.rises is not None and others.rises is not None:
            rises = _scores([members.rises, others.rises], units, place, 1.0, reference)
            of_model["perturbed"] = _beside(rises, blind, sides, units, config)
        found["models"][name] = of_model
    return found


Pair = tuple[np.ndarray, np.ndarray]


def _scores(
    losses: Sequence[Losses], units: Sequence[Sequence[str]], place: int, sign: float, ref: bool
) -> Pair:
    """Scores of members and others in the model at ``place``, less those in the reference."""
    values = [np.stack([of[unit] for unit in names]) for of, names in zip(losses, units)]
    ours, theirs = (sign * (v[:, place] - (v[:, -1] if ref else 0.0)) for v in values)
    return ours, theirs


def _blind(
    sides: Sequence[Side], units: Sequence[Sequence[str]], config: MembershipConfig
) -> Pair | None:
    if not config.folds:
        return None
    kept = [
        {unit: (side.described or {})[unit] for unit in names} for side, names in zip(sides, units)
    ]
    return blind_scores(*kept, folds=config.folds, seed=config.seed)


def _beside(
    scores: Pair,
    blind: Pair | None,
    sides: Sequence[Side],
    units: Sequence[Sequence[str]],
    config: MembershipConfig,
) -> dict[str, Any]:
    found = told(*scores, config)
    if blind is None:
        return found
    ours, theirs = (
        [(side.described or {})[unit].speaker for unit in names]
        for side, names in zip(sides, units)
    )
    draws = dict(replicates=config.replicates, confidence=config.confidence, seed=config.seed)
    paired = paired_difference(scores, blind, (ours, theirs), **draws)  # type: ignore[arg-type]
    return found | {
        "beyond_blind": paired.difference,
        "beyond_blind_interval": None if paired.low is None else [paired.low, paired.high],
        "beyond_blind_speakers": paired.speakers,
    }
