"""What an attack on a release of counts found: a lower bound on epsilon beside the claim.

An audit counts only where the same attack on a tenth of the noise exceeds the claim
(:mod:`privasr_k2.privacy.audit.bounds`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.audit.bounds import AuditBound, Verdict, judge
from privasr_k2.privacy.audit.threshold import split_bound
from privasr_k2.privacy.events import Event

#: The noise of the broken release, in parts of the right one.
BROKEN = 0.1


@dataclass(frozen=True)
class ReleaseAudit:
    """An attack on one release: its epsilon, bounds on it, and the verdict.

    ``broken`` is the bound with a tenth of the noise, ``noise_free`` that without any.
    """

    claimed: float
    sound: AuditBound
    broken: AuditBound
    noise_free: AuditBound
    verdict: Verdict

    @classmethod
    def of(
        cls,
        scores: Callable[[bool, float], np.ndarray],
        event: Event,
        *,
        delta: float,
        confidence: float,
    ) -> ReleaseAudit:
        """Attack a release with all of its noise, with a tenth, and with none.

        Args:
            scores: what the attacker sees of many runs, (trials,), larger where the unit is there;
                of whether it is, and of the share of the noise.
            event: of the release, for adding or removing one unit.
        """

        def bound(share: float) -> AuditBound:
            runs = [scores(there, share) for there in (True, False)]
            return split_bound(*runs, delta=delta, confidence=confidence)

        claimed = account(event, Relation.ADD_OR_REMOVE_ONE, delta).value
        sound, others = bound(1.0), {"broken": bound(BROKEN), "noise_free": bound(0.0)}
        verdict = judge(sound, **others, claimed_epsilon=claimed, claimed_delta=delta)
        return cls(claimed, sound, **others, verdict=verdict)

    def lines(self) -> list[str]:
        """The claim, the bounds beneath it, and the verdict."""
        return [
            f"claimed epsilon {self.claimed:.4g} at delta {self.sound.delta:g}",
            f"as it is: {self.sound}",
            f"a tenth of the noise: {self.broken}",
            f"no noise: {self.noise_free}",
            f"the audit {self.verdict.value}",
        ]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        bounds = {"sound": self.sound, "broken": self.broken, "noise_free": self.noise_free}
        names = ("delta", "confidence", "largest_possible", "trials")
        return {
            "claimed_epsilon": self.claimed,
            "epsilon_lower": {name: bound.epsilon_lower for name, bound in bounds.items()},
            **{name: getattr(self.sound, name) for name in names},
            "verdict": self.verdict.value,
        }
