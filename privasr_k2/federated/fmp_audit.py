"""A lower bound on epsilon from the released counts of a rare word that one unit has said.

The release is run many times with and without the unit's words. The attacker knows all other words
and uses the ratio of likelihoods (:mod:`privasr_k2.federated.release_audit`).
"""

from __future__ import annotations

import numpy as np

from privasr_k2.errors import PrivacyError
from privasr_k2.federated.fmp_release import FmpMechanism, increments_of, unit_numbers
from privasr_k2.federated.fmp_simulation import rounds_of
from privasr_k2.federated.fmp_spoken import Spoken
from privasr_k2.federated.marginals import utterance_counts
from privasr_k2.federated.release_audit import ReleaseAudit
from privasr_k2.privacy import checks
from privasr_k2.privacy.discrete import DiscreteGaussianNoise, DiscreteLaplaceNoise


def heaviest_unit(mechanism: FmpMechanism) -> np.ndarray:
    """(T,) int64 steps: a unit that says one word of its own, as much as the bound allows."""
    counts = np.zeros(mechanism.config.rounds, dtype=np.int64)
    # No more than the bound, which is rounded up for the accountant.
    counts[: mechanism.max_rounds] = int(mechanism.grid.steps(mechanism.config.bound))
    return counts


def rarest_word(spoken: Spoken, mechanism: FmpMechanism) -> tuple[int, np.ndarray]:
    """The word said by one unit alone, and most often, with its counts (T,) in steps. Private.

    Raises:
        PrivacyError: every word was said by several units, or after the last release.
    """
    config = mechanism.config
    counts = utterance_counts(spoken, config.kernel_bandwidth, normalized=True)
    units, _ = unit_numbers(spoken, config.unit)
    used = np.flatnonzero(rounds_of(spoken, config.rounds) < config.rounds)
    rows = np.repeat(np.arange(len(spoken)), np.diff(counts.indptr))
    inside = np.isin(rows, used)
    pairs = np.unique(np.stack([counts.indices[inside], units[rows[inside]]]), axis=1)
    sayers = np.bincount(pairs[0], minlength=spoken.numbers.size)
    increments = increments_of(spoken, mechanism)
    word_counts = np.where(sayers == 1, increments.sum(axis=0), 0)
    word = int(np.argmax(word_counts))
    if word_counts[word] == 0:
        raise PrivacyError(
            "the lists", f"a word of one {config.unit} alone", "none", "audit heaviest"
        )
    return word, increments[:, word]


def audit_release(
    mechanism: FmpMechanism, said: np.ndarray, *, trials: int, confidence: float
) -> ReleaseAudit:
    """Attack the release of one word's counts ``said``, (T,) int64 steps, all by the unit.

    There are ``trials`` runs with the unit, and as many without.

    Raises:
        PrivacyError: counts beyond the mechanism's bound, or fewer than 2 trials.
    """
    checks.whole("trials", trials, at_least=2)
    wrong_shape = said.shape != (mechanism.config.rounds,)
    if wrong_shape or not said.any() or (said > mechanism.bound_steps).any():
        raise PrivacyError("said", "counts of T rounds within the bound", "others", "clip")

    def scores(there: bool, share: float) -> np.ndarray:
        return _scores(mechanism, said, there, trials, share)

    limits = {"delta": mechanism.config.delta, "confidence": confidence}
    return ReleaseAudit.of(scores, mechanism.event, **limits)


def _scores(
    mechanism: FmpMechanism, said: np.ndarray, there: bool, trials: int, share: float
) -> np.ndarray:
    """(trials,) the log ratio of likelihoods, with against without the unit, up to a factor."""
    increments = np.repeat((said * there)[:, None], trials, axis=1)
    seen, noise = mechanism.measure(increments), mechanism.noise
    if share > 0:
        scale = noise.scale if isinstance(noise, DiscreteLaplaceNoise) else noise.sigma
        seen = type(noise)(scale * share).add(seen)
    moved = mechanism.measure(said[:, None])
    if isinstance(noise, DiscreteGaussianNoise):
        return (seen * moved.astype(np.float64)).sum(axis=0)
    return (np.abs(seen) - np.abs(seen - moved)).sum(axis=0).astype(np.float64)
