"""A lower bound on epsilon from votes for words that one speaker alone says.

The attacker knows everybody else's votes and that this speaker, if there, votes for as many words
as allowed, all unheard of otherwise. The ratio of likelihoods grows with the sum of their noisy
counts. An audit counts only where the same attack on a tenth of the noise exceeds the claim.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privasr_k2.constraints import Checked, Count, Delta
from privasr_k2.federated.release_audit import ReleaseAudit
from privasr_k2.federated.word_votes import WordVotes
from privasr_k2.privacy.discrete import DiscreteGaussianNoise


@dataclass(frozen=True)
class WordAuditConfig(Checked):
    """See ``conf/wordvotes.yaml#audit_votes``."""

    trials: Count
    confidence: Delta


def audit_votes(mechanism: WordVotes, config: WordAuditConfig) -> ReleaseAudit:
    """Attack the release of the words and bigrams of one speaker, all their own."""

    def scores(there: bool, share: float) -> np.ndarray:
        return _sums(mechanism, there, config.trials, share)

    limits = {"delta": mechanism.config.delta, "confidence": config.confidence}
    return ReleaseAudit.of(scores, mechanism.event, **limits)


def _sums(mechanism: WordVotes, there: bool, trials: int, share: float) -> np.ndarray:
    """(trials,) sums of the noisy counts of the speaker's candidates."""
    counts = np.full((trials, mechanism.votes), int(there), dtype=np.int64)
    if share > 0:
        counts = DiscreteGaussianNoise(mechanism.noise.sigma * share).add(counts)
    return counts.sum(axis=1).astype(np.float64)
