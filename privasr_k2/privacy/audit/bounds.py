"""Result of an audit, and its comparison with a claim.

An attack that finds nothing proves nothing by itself: it may be weak, or have had too few trials.
So a bound always carries the largest bound that a perfect attack could have shown with as many
trials, and :func:`judge` asks for two more runs of the same attack: it must exceed the claim on a
release that is broken on purpose (noise divided by ten, or no clip), and show leakage on one
without noise.
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
        epsilon_lower: the bound, 0 or more.
        confidence: between 0 and 1.
        delta: the delta of the claim that is audited; 0 for pure privacy.
        largest_possible: the bound of a perfect attack with as many trials.
        trials: how many trials, draws or canaries the bound was computed from.
        method: which audit.

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
    >>> compare(bound, claimed_epsilon=8.0, claimed_delta=1e-5).value
    'too few trials to exceed the claim'
    """
    checks.number("claimed_epsilon", claimed_epsilon, at_least=0)
    inputs.delta(claimed_delta)
    if claimed_delta != bound.delta:
        raise PrivacyError(
            "claimed_delta",
            f"the delta of the audit, {bound.delta:g}",
            f"{claimed_delta:g}",
            "audit at it",
        )
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
    """The verdict on the release with the bound ``sound``, once the attack has been tried where it
    must work.

    Args:
        sound: the bound for the release as it is.
        broken: by the same attack on the same release, broken on purpose (noise divided by ten, or
            no clip).
        noise_free: by the same attack on the same release without noise.

    Returns:
        ``EXCEEDS`` wherever ``sound`` exceeds the claim, whatever the others show: that is
        evidence. Else ``TOO_FEW_TRIALS`` where no attack could have exceeded it, ``WEAK_ATTACK``
        where ``broken`` does not exceed it or ``noise_free`` is 0, and ``STANDS_UNDER`` only where
        the audit counts.

    Raises:
        PrivacyError: the three were not computed in the same way, or the claim is not as
            :func:`compare` asks.

    >>> def bound(epsilon):
    ...     return AuditBound(epsilon, 0.95, 1e-5, 5.0, 300, "one run")
    >>> claim = dict(claimed_epsilon=2.0, claimed_delta=1e-5)
    >>> judge(bound(0.1), broken=bound(3.0), noise_free=bound(5.0), **claim).value
    'stands under the claim'
    >>> judge(bound(0.1), broken=bound(0.2), noise_free=bound(5.0), **claim).value
    'does not count: the attack misses leakage that is there'
    """
    for name, other in (("broken", broken), ("noise_free", noise_free)):
        if _setting(other) != _setting(sound):
            raise PrivacyError(
                name,
                f"the same attack, {_setting(sound)}",
                _setting(other),
                "run the same audit on all three",
            )
    verdict = compare(sound, claimed_epsilon=claimed_epsilon, claimed_delta=claimed_delta)
    if verdict is not Verdict.STANDS_UNDER:
        return verdict
    if broken.epsilon_lower <= claimed_epsilon or noise_free.epsilon_lower == 0:
        return Verdict.WEAK_ATTACK
    return Verdict.STANDS_UNDER


def judged(
    found: Mapping[str, AuditBound], *, claimed_epsilon: float, claimed_delta: float
) -> dict[str, Any]:
    """An audit in plain values: the claim, the bounds beneath it, and what they say.

    Args:
        found: the bounds ``sound``, ``broken`` and ``noise_free`` of :func:`judge`.
        claimed_epsilon, claimed_delta: the claim.

    Raises:
        PrivacyError: as :func:`judge`.

    >>> bounds = {"sound": 0.1, "broken": 3.0, "noise_free": 5.0}
    >>> found = {name: AuditBound(low, 0.95, 1e-5, 5.0, 300, "one run") for name, low in bounds.items()}
    >>> told = judged(found, claimed_epsilon=2.0, claimed_delta=1e-5)
    >>> told["epsilon_lower"] == bounds, told["verdict"]
    (True, 'stands under the claim')
    """
    sound = found["sound"]
    verdict = judge(
        sound,
        broken=found["broken"],
        noise_free=found["noise_free"],
        claimed_epsilon=claimed_epsilon,
        claimed_delta=claimed_delta,
    )
    return {
        "claimed_epsilon": claimed_epsilon,
        "delta": claimed_delta,
        "confidence": sound.confidence,
        "epsilon_lower": {name: bound.epsilon_lower for name, bound in found.items()},
        "largest_possible": sound.largest_possible,
        "trials": sound.trials,
        "verdict": verdict.value,
    }


def _setting(bound: AuditBound) -> str:
    return (
        f"{bound.method}, {bound.trials} trials, confidence {bound.confidence!r}, delta"
        f" {bound.delta!r}"
    )
