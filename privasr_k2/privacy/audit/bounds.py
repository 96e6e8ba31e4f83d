"""Result of an audit, and its comparison with a claim.

An attack that finds nothing may be weak, or have had too few trials. So a bound carries the largest
bound that a perfect attack could have shown. :func:`judge` also asks for two more runs of the same
attack: on a release broken on purpose (noise divided, or no clip), and on one without noise.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks
from privasr_k2.privacy.audit import inputs


class Verdict(enum.Enum):
    """Comparison of an audit's bound with the claim."""

    STANDS_UNDER = "stands under the claim"
    EXCEEDS = "exceeds the claim"
    TOO_FEW_TRIALS = "too few trials to exceed the claim"
    WEAK_ATTACK = "does not count: the attack misses leakage that is there"


@dataclass(frozen=True)
class AuditBound:
    """A lower bound on epsilon.

    A release that is (``epsilon``, ``delta``)-private has a bound above its epsilon with
    probability at most 1 - ``confidence``.

    Attributes:
        delta: the delta of the claim that is audited; 0 for pure privacy.
        largest_possible: the bound of a perfect attack with as many trials.
        trials: number of trials, draws or canaries behind the bound.

    Raises:
        PrivacyError: values that no audit can have.

    >>> print(AuditBound(0.0, 0.95, 1e-5, 3.4, 100, "one run"))
    one run: epsilon at least 0 at delta 1e-05 (confidence 0.95; 100 trials could have shown 3.4)
    """

    epsilon_lower: float
    confidence: float
    delta: float
    largest_possible: float
    trials: int
    method: str

    def __post_init__(self) -> None:
        checks.number("largest_possible", self.largest_possible, at_least=0)
        checks.number(
            "epsilon_lower", self.epsilon_lower, at_least=0, at_most=self.largest_possible
        )
        inputs.confidence(self.confidence)
        inputs.delta(self.delta)
        checks.whole("trials", self.trials, at_least=1)

    def __str__(self) -> str:
        return (
            f"{self.method}: epsilon at least {self.epsilon_lower:.3g} at delta {self.delta:g} "
            f"(confidence {self.confidence:g}; {self.trials} trials could have shown "
            f"{self.largest_possible:.3g})"
        )


def compare(bound: AuditBound, *, claimed_epsilon: float, claimed_delta: float) -> Verdict:
    """Compare ``bound`` with a claim of (``claimed_epsilon``, ``claimed_delta``).

    Raises:
        PrivacyError: a negative claim, or one at another delta than the bound was computed for.

    >>> bound = AuditBound(0.3, 0.95, 1e-5, 3.4, 100, "one run")
    >>> compare(bound, claimed_epsilon=1.0, claimed_delta=1e-5)
    <Verdict.STANDS_UNDER: 'stands under the claim'>
    """
    checks.number("claimed_epsilon", claimed_epsilon, at_least=0)
    inputs.delta(claimed_delta)
    if claimed_delta != bound.delta:
        expected = f"the delta of the audit, {bound.delta:g}"
        raise PrivacyError("claimed_delta", expected, f"{claimed_delta:g}", "audit at it")
    if bound.epsilon_lower > claimed_epsilon:
        return Verdict.EXCEEDS
    if bound.largest_possible <= claimed_epsilon:
        return Verdict.TOO_FEW_TRIALS
    return Verdict.STANDS_UNDER


def judge(
    sound: AuditBound,
    *,
    broken: AuditBound,
    noise_free: AuditBound,
    claimed_epsilon: float,
    claimed_delta: float,
) -> Verdict:
    """The verdict on the release of ``sound``, given the same attack where it must succeed.

    Args:
        sound, broken, noise_free: of the release as it is, broken on purpose, without noise.

    Returns:
        ``EXCEEDS`` where ``sound`` exceeds the claim; else ``TOO_FEW_TRIALS`` where no attack could
        have, ``WEAK_ATTACK`` where ``broken`` does not exceed it or ``noise_free`` is 0; else
        ``STANDS_UNDER``.

    Raises:
        PrivacyError: the three were not computed alike, or a claim that :func:`compare` refuses.
    """
    for name, other in (("broken", broken), ("noise_free", noise_free)):
        if _setting(other) != _setting(sound):
            expected = f"the same attack, {_setting(sound)}"
            raise PrivacyError(name, expected, _setting(other), "run one audit on all three")
    verdict = compare(sound, claimed_epsilon=claimed_epsilon, claimed_delta=claimed_delta)
    weak = broken.epsilon_lower <= claimed_epsilon or noise_free.epsilon_lower == 0
    return Verdict.WEAK_ATTACK if verdict is Verdict.STANDS_UNDER and weak else verdict


def judged(
    bounds: Mapping[str, AuditBound], *, claimed_epsilon: float, claimed_delta: float
) -> dict[str, Any]:
    """:func:`judge` in plain values, for bounds ``sound``, ``broken`` and ``noise_free``.

    >>> lower = {"sound": 0.1, "broken": 3.0, "noise_free": 5.0}
    >>> bounds = {key: AuditBound(low, 0.95, 1e-5, 5.0, 9, "one run") for key, low in lower.items()}
    >>> judged(bounds, claimed_epsilon=2.0, claimed_delta=1e-5)["verdict"]
    'stands under the claim'
    """
    sound = bounds["sound"]
    claim = {"claimed_epsilon": claimed_epsilon, "claimed_delta": claimed_delta}
    verdict = judge(sound, broken=bounds["broken"], noise_free=bounds["noise_free"], **claim)
    return {
        "claimed_epsilon": claimed_epsilon,
        "delta": claimed_delta,
        "confidence": sound.confidence,
        "epsilon_lower": {name: bound.epsilon_lower for name, bound in bounds.items()},
        "largest_possible": sound.largest_possible,
        "trials": sound.trials,
        "verdict": verdict.value,
    }


def _setting(bound: AuditBound) -> str:
    setting = f"{bound.trials} trials, confidence {bound.confidence!r}, delta {bound.delta!r}"
    return f"{bound.method}, {setting}"
