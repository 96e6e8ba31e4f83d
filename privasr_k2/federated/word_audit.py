"""A lower bound on epsilon from votes for words that one speaker alone says.

The attacker knows everybody else's votes and that this speaker, if there, votes for as many words
as allowed, all unheard of otherwise. The ratio of likelihoods grows with the sum of their noisy
counts. An audit counts only where the same attack on a tenth of the noise exceeds the claim.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privasr_k2.constraints import Checked, Count, Delta
from privasr_k2.federated.fmp_audit import BROKEN, FmpAudit
from privasr_k2.federated.word_votes import RELATION, WordVotes
from privasr_k2.privacy.accounting import account
from privasr_k2.privacy.audit.bounds import AuditBound, judge
from privasr_k2.privacy.audit.threshold import split_bound
from privasr_k2.privacy.discrete import DiscreteGaussianNoise


@dataclass(frozen=True)
class WordAuditConfig(Checked):
    """See ``conf/wordvotes.yaml#audit_votes``."""

    trials: Count
    confidence: Delta


def audit_votes(mechanism: WordVotes, config: WordAuditConfig) -> FmpAudit:
    """Attack the release of the words and bigrams of one speaker, all their own."""
    delta = mechanism.config.delta
    claimed = account(mechanism.event, RELATION, delta).value

    def bound(share: float) -> AuditBound:
        scores = [_sums(mechanism, there, config.trials, share) for there in (1, 0)]
        return split_bound(*scores, delta=delta, confidence=config.confidence)

    sound, others = bound(1.0), {"broken": bound(BROKEN), "noise_free": bound(0.0)}
    verdict = judge(sound, **others, claimed_epsilon=claimed, claimed_delta=delta)
    return FmpAudit(claimed, sound, **others, verdict=verdict)


def _sums(mechanism: WordVotes, there: int, trials: int, share: float) -> np.ndarray:
    """(trials,) sums of the noisy counts of the speaker's candidates."""
    counts = np.full((trials, mechanism.votes), there, dtype=np.int64)
    if share > 0:
        counts = DiscreteGaussianNoise(mechanism.noise.sigma * share).add(counts)
    return counts.sum(axis=1).astype(np.float64)
