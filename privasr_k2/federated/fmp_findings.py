"""Which of the findings of liu2020 a run of recipe fmp has, in plain words, and the paper's own figures.

A finding holds by error rate where the figures have it and every difference is significant (MAPSSWE, below
0.05 after Holm); perplexities are not tested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

PUBLISHED = {
    "baseline": 32.83,
    "T1": 31.44,
    "T2": 31.34,
    "T5": 31.27,
    "T10": 31.24,
    "grid_sigma_0.1": 31.02,
    "grid_sigma_1": 30.96,
    "grid_sigma_10": 31.38,
    "grid_sigma_100": 31.42,
    "grid_beta_only": 31.56,
    "grid_alpha_only": 31.31,
    "eps_none": 31.02,
    "eps_published_2": 31.09,
    "eps_published_1": 31.17,
    "eps_published_0.5": 31.26,
    "eps_published_0.1": 31.59,
}
"""WER in per cent on AMI of the systems of [liu2020, tables 2-4]."""
ALPHA = 0.05
PAIRS = ("grid_alpha_only", "grid_beta_only")
"""What the full method is tested against besides the baseline."""


class Measured(NamedTuple):
    """A system's figure, of which less is better: error rate in per cent, or perplexity.

    Attributes:
        value: the figure.
        p: MAPSSWE against the baseline, after Holm; None: not tested.
        rounds: T.
        epsilon: what its release is called; None: no release.
    """

    value: float
    p: float | None
    rounds: int
    epsilon: float | None


def findings(
    measured: Mapping[str, Measured], baseline: float, pairs: Mapping[str, float | None], *, tested: bool
) -> list[str]:
    """A sentence for each finding that was measured.

    Args:
        measured: systems by name, without the baseline.
        baseline: the figure without adaptation.
        pairs: for each of :data:`PAIRS` that was run the p-value of its difference from the full method.
        tested: whether differences are tested: they are for error rates.
    """
    by_rounds = sorted(
        (one for name, one in measured.items() if name[:1] == "T" and name[1:].isdigit()),
        key=lambda one: one.rounds,
    )
    said: list[str] = []
    if by_rounds:
        gains = ", ".join(f"T = {one.rounds}: {_change(one.value, baseline)}" for one in by_rounds)
        verdict = _verdict([(one.value, baseline, one.p) for one in by_rounds], tested)
        said.append(f"Marginals improve on the baseline at every T: {verdict} ({gains}).")
    if len(by_rounds) > 1:
        values = [one.value for one in by_rounds]
        grows = all(later < earlier for earlier, later in pairwise(values))
        said.append(f"The gain grows with T: {'holds' if grows else 'does not hold'} (not tested).")
    said += _parts(measured, by_rounds, pairs, tested)
    said += _bandwidth(measured)
    said += _remaining(measured, baseline)
    return said


def _change(value: float, before: float) -> str:
    return f"{100 * (value / before - 1):+.1f} %"


def _verdict(cases: Sequence[tuple[float, float, float | None]], tested: bool) -> str:
    if not all(value < other for value, other, _ in cases):
        return "does not hold"
    if tested and not all(p is not None and p < ALPHA for _, _, p in cases):
        return "has these figures, but not all differences are significant"
    return "holds"


def _parts(
    measured: Mapping[str, Measured],
    by_rounds: Sequence[Measured],
    pairs: Mapping[str, float | None],
    tested: bool,
) -> list[str]:
    alone = [name for name in PAIRS if name in measured]
    if not by_rounds or not alone:
        return []
    both = by_rounds[-1].value
    verdict = _verdict([(both, measured[name].value, pairs.get(name)) for name in alone], tested)
    told = ", ".join(
        f"{name.removeprefix('grid_').replace('_', ' ')} {measured[name].value:.2f}" for name in alone
    )
    return [f"alpha and beta together are better than either alone: {verdict} (both {both:.2f}, {told})."]


def _bandwidth(measured: Mapping[str, Measured]) -> list[str]:
    tried = {
        float(name.removeprefix("grid_sigma_")): one.value
        for name, one in measured.items()
        if name.startswith("grid_sigma_")
    }
    if len(tried) < 2:
        return []
    best = min(tried, key=lambda sigma: tried[sigma])
    told = ", ".join(f"{sigma:g}: {value:.2f}" for sigma, value in sorted(tried.items()))
    verdict = "holds" if best == 1 else "does not hold"
    return [f"Of the bandwidths sigma = 1 is the best one: {verdict} ({told}; not tested)."]


def _remaining(measured: Mapping[str, Measured], baseline: float) -> list[str]:
    """What is left of the gain with each kind of release."""
    exact = measured.get("eps_none")
    released: dict[str, list[Measured]] = {}
    for name, one in measured.items():
        if one.epsilon is not None:
            released.setdefault(name.removeprefix("eps_").rpartition("_")[0], []).append(one)
    if exact is None or not released:
        return []
    gain = baseline - exact.value
    if gain <= 0:
        return ["Without noise there is no gain that a release could keep."]
    said = []
    for unit, of_unit in released.items():
        of_unit = sorted(of_unit, key=lambda one: one.epsilon or 0.0)
        told = ", ".join(f"{one.epsilon:g}: {100 * (baseline - one.value) / gain:.0f} %" for one in of_unit)
        what = "for each " + unit if unit != "published" else "as published (called epsilon)"
        said.append(
            f"Of the gain without noise ({_change(exact.value, baseline)}) there remain, "
            f"epsilon {what}: {told}."
        )
        if unit == "published":
            loss = max(
                (one.value / exact.value - 1 for one in of_unit if (one.epsilon or 0) >= 0.5), default=0.0
            )
            said.append(
                "As published, the loss by noise is below 1 % at called epsilons of 0.5 and more: "
                f"{'holds' if loss < 0.01 else 'does not hold'} (largest {100 * loss:+.1f} %)."
            )
    return said
