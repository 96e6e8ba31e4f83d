"""Draws of the exponential mechanism against enumerated chances, noisy counts and its claim."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import chisquare

from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.audit.intervals import bound_from_counts
from privasr_k2.privacy.audit.two_histograms import event_counts
from privasr_k2.privacy.exponential import ExponentialMechanism
from privasr_k2.randomness import noise_stream

DRAWS = 200_000
COUNTS = [(5, 5, 5), (12, 3, 0, 0), (150, 40, 30, 30), (0, 1), (9, 8, 7, 6, 5, 4, 3, 2, 1, 0)]


def exact(counts: tuple[int, ...], scale: float) -> np.ndarray:
    """exp(n / scale) / sum, in 50 digits."""
    with mp.workdps(50):
        weights = [mp.exp(mp.mpf(n) / mp.mpf(scale)) for n in counts]
        return np.array([float(w / mp.fsum(weights)) for w in weights])


def drawn(counts: tuple[int, ...], scale: float, name: str) -> np.ndarray:
    """How often each class wins."""
    stream = noise_stream(bytes(range(32)), "oracle", name)
    sizes = np.full(DRAWS, len(counts))
    found = ExponentialMechanism(scale).choose(np.tile(counts, DRAWS), sizes, stream)
    return np.bincount(found, minlength=len(counts))


def differs(frequencies: np.ndarray, chances: np.ndarray) -> bool:
    """Whether a chi-square test tells them apart; classes of fewer than 5 wins are one class."""
    rare = chances * DRAWS < 5
    merged = [
        (np.append(values[~rare], values[rare].sum()) if rare.any() else values)
        for values in (frequencies, chances * DRAWS)
    ]
    kept = merged[1] > 1e-9
    return bool(chisquare(merged[0][kept], merged[1][kept]).pvalue < 1e-6)


@pytest.mark.parametrize("scale", [1.7, 14.083])
@pytest.mark.parametrize("counts", COUNTS)
def test_draws_come_as_often_as_enumerated(counts, scale):
    frequencies, name = drawn(counts, scale, f"{counts} {scale}"), "wins"
    chances = exact(counts, scale)
    assert ExponentialMechanism(scale).chances(counts) == pytest.approx(chances, rel=1e-12), name
    assert not differs(frequencies, chances)


@pytest.mark.parametrize("counts", COUNTS[1:])
def test_the_test_sees_a_wrong_sampler(counts):
    """Ten per cent less noise, and a class that is never chosen."""
    scale = 4.0 * max(counts) / 12
    chances = exact(counts, scale)
    assert differs(drawn(counts, 0.9 * scale, "less"), chances)
    assert not differs(drawn(counts, scale, "right"), chances)
    never = drawn(counts, scale, "right")
    never[0] += never[-1]
    never[-1] = 0
    assert differs(never, chances)


def test_gumbel_noise_on_the_counts_has_the_same_winners():
    """In floating point, which is no release: the definition of report-noisy-max."""
    counts, scale = (150, 40, 30, 30), 40.0
    noise = np.random.default_rng(6).gumbel(scale=scale, size=(DRAWS, len(counts)))
    winners = np.bincount((np.array(counts) + noise).argmax(axis=1), minlength=len(counts))
    assert not differs(winners, exact(counts, scale))


def test_numpys_exponential_is_right_to_four_units_in_the_last_place():
    rng = np.random.default_rng(7)
    points = -np.concatenate([rng.uniform(0, 1, 2000), rng.uniform(0, 700, 2000), [0.0, 1e-300]])
    with mp.workdps(50):
        true = [mp.exp(mp.mpf(x)) for x in points.tolist()]
        errors = [
            abs(mp.mpf(y) - t) / mp.mpf(np.spacing(y))
            for y, t in zip(np.exp(points).tolist(), true)
        ]
    assert max(errors) <= 4


@pytest.mark.parametrize(("pair", "spread"), [(((8, 7), (7, 7)), 1), (((8, 7), (7, 8)), 2)])
def test_an_audit_stays_below_the_claim_and_exceeds_it_with_less_noise(pair, spread):
    claimed = ExponentialMechanism(2.0).event(spread=spread)
    epsilon = account(claimed, Relation.ADD_OR_REMOVE_ONE, 1e-6).value

    def lower(scale: float) -> float:
        stream = noise_stream(bytes(range(32)), "audit", spread, str(scale))
        sizes = np.full(DRAWS, 2)
        first, second = (
            ExponentialMechanism(scale).choose(np.tile(row, DRAWS), sizes, stream) for row in pair
        )
        given = {"delta": 1e-6, "confidence": 0.95}
        true, false = event_counts(first, second, **given)
        half = DRAWS // 2
        bound = bound_from_counts(
            true_positives=true, positives=half, false_positives=false, negatives=half,
            method="two histograms", **given,
        )  # fmt: skip
        return bound.epsilon_lower

    assert 0.4 * epsilon < lower(2.0) < epsilon < lower(0.4)
    assert epsilon <= claimed.eta * (1 + 1e-12)
