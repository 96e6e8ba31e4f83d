"""Audits against exact probabilities: binomial sums, quadrature, and scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mpmath
import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import gammaln
from sklearn.metrics import roc_auc_score, roc_curve

from privasr_k2.privacy.audit.intervals import (
    bound_from_counts,
    epsilon_lower,
    lower_end,
    upper_end,
)
from privasr_k2.privacy.audit.membership import at_low_fpr, roc
from privasr_k2.privacy.audit.two_histograms import event_counts


def _binomial(n: int, p: float) -> np.ndarray:
    """P[k successes], k = 0 ... n, term by term."""
    return np.array([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])


@pytest.mark.parametrize(
    ("k", "n"), [(1, 1), (3, 20), (19, 20), (7, 1000), (999, 1000), (400_000, 1_000_000)]
)
@pytest.mark.parametrize("error", [0.05, 1e-9])
def test_ends_of_intervals_are_where_the_binomial_tail_is_the_error(
    k: int, n: int, error: float
) -> None:
    def chance(successes: np.ndarray, p: float) -> float:
        ways = gammaln(n + 1) - gammaln(successes + 1) - gammaln(n - successes + 1)
        return np.exp(ways + successes * math.log(p) + (n - successes) * math.log1p(-p)).sum()

    low, high = float(lower_end(k, n, error=error)), float(upper_end(k, n, error=error))
    assert chance(np.arange(k, n + 1), low) == pytest.approx(error, rel=1e-5)
    if k < n:
        assert chance(np.arange(0, k + 1), high) == pytest.approx(error, rel=1e-5)


@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_two_counts_overstate_epsilon_no_more_often_than_they_may(
    epsilon: float, delta: float
) -> None:
    # Every rule of the worst private mechanism: its tpr is as large as its fpr allows.
    n, confidence = 40, 0.8
    k = np.arange(n + 1)
    bounds = epsilon_lower(
        k[:, None], k[None, :], positives=n, negatives=n, delta=delta, confidence=confidence
    )
    overstated = []
    for fpr in np.linspace(0, 1, 41):
        tpr = min(math.exp(epsilon) * fpr + delta, 1 - math.exp(-epsilon) * (1 - delta - fpr), 1.0)
        chance = _binomial(n, tpr)[:, None] * _binomial(n, fpr)[None, :]
        overstated.append(chance[bounds > epsilon + 1e-12].sum())
    assert 0.01 < max(overstated) <= 1 - confidence


def _probabilities(votes: Sequence[int], noise: str, scale: float) -> np.ndarray:
    """P[label] of noisy max: the integral over the winner's x of P[all others are below x]."""

    def density(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.npdf(x) if noise == "normal" else mpmath.exp(-abs(x)) / 2

    def below(x: mpmath.mpf) -> mpmath.mpf:
        if noise == "normal":
            return mpmath.ncdf(x)
        return mpmath.exp(x) / 2 if x < 0 else 1 - mpmath.exp(-x) / 2

    def winner(label: int) -> float:
        def integrand(x: mpmath.mpf) -> mpmath.mpf:
            value = density((x - votes[label]) / scale) / scale
            for other, count in enumerate(votes):
                if other != label:
                    value *= below((x - count) / scale)
            return value

        reach = 12 if noise == "normal" else 60
        cuts = sorted(
            {*votes, *(v + s * scale * r for v in votes for s in (-1, 1) for r in (2, 6, reach))}
        )
        return float(mpmath.quad(integrand, cuts))

    return np.array([winner(label) for label in range(len(votes))])


def _exact_epsilon(p: np.ndarray, q: np.ndarray, delta: float) -> float:
    """The smallest epsilon with sum max(0, p - e^epsilon q) <= delta, both ways round."""

    def excess(epsilon: float) -> float:
        factor = math.exp(epsilon)
        return max(np.maximum(0, p - factor * q).sum(), np.maximum(0, q - factor * p).sum()) - delta

    return brentq(lambda e: excess(e) - 1e-15, 0, 50)


@pytest.mark.parametrize(
    ("noise", "scale", "delta"),
    [("normal", 1.5, 1e-5), ("normal", 1.5, 0.01), ("laplace", 2.0, 0.0), ("laplace", 2.0, 1e-3)],
)
@pytest.mark.parametrize(
    ("first", "second"), [([9, 8, 4], [8, 9, 4]), ([5, 5, 5, 5], [6, 5, 5, 4])]
)
def test_noisy_max_bound_below_the_exact_epsilon_below_the_claim(
    noise: str, scale: float, delta: float, first: list[int], second: list[int]
) -> None:
    exact_first, exact_second = (_probabilities(votes, noise, scale) for votes in (first, second))
    assert exact_first.sum() == pytest.approx(1, abs=1e-9)
    exact = _exact_epsilon(exact_first, exact_second, delta)
    claim = get_epsilon_gaussian(scale / math.sqrt(2), delta) if noise == "normal" else 2 / scale
    rng = np.random.default_rng(1)

    def mechanism(votes: np.ndarray, draws: int) -> np.ndarray:
        return np.argmax(votes + scale * getattr(rng, noise)(size=(draws, votes.size)), axis=1)

    shares = np.bincount(mechanism(np.array(first), 400_000), minlength=len(first)) / 400_000
    np.testing.assert_allclose(shares, exact_first, atol=5e-3)  # quadrature of this mechanism
    given = {"delta": delta, "confidence": 1 - 1e-7}
    labels = (mechanism(np.array(votes), 800_000) for votes in (first, second))
    true, false = event_counts(*labels, **given)
    found = bound_from_counts(
        true_positives=true, positives=400_000, false_positives=false, negatives=400_000,
        method="two histograms", **given,
    )  # fmt: skip
    assert 0.9 * exact - 0.02 < found.epsilon_lower < exact < claim


scores = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=30)


@given(members=scores, others=scores)
@settings(max_examples=200, deadline=None)
def test_roc_is_sklearns(members: list[float], others: list[float]) -> None:
    is_member = [1] * len(members) + [0] * len(others)
    fpr, tpr, thresholds = roc_curve(is_member, members + others, drop_intermediate=False)
    curve = roc(members, others)
    np.testing.assert_allclose(curve.fpr, fpr, rtol=1e-12)
    np.testing.assert_allclose(curve.tpr, tpr, rtol=1e-12)
    np.testing.assert_array_equal(curve.thresholds, thresholds)
    assert curve.auc == pytest.approx(roc_auc_score(is_member, members + others), abs=1e-12)


@given(members=scores, others=scores, fpr=st.floats(0.01, 0.99))
@settings(max_examples=200, deadline=None)
def test_low_points_lie_on_sklearns_curve(
    members: list[float], others: list[float], fpr: float
) -> None:
    is_member = [1] * len(members) + [0] * len(others)
    point = at_low_fpr(members, others, fpr=fpr, confidence=0.9)
    if len(others) * fpr < 1 - 1e-9:
        assert point is None
        return
    assert point is not None
    low, high, _ = roc_curve(is_member, members + others, drop_intermediate=False)
    best = high[low <= fpr + 1e-9].max()
    assert point.true_positives / len(members) == pytest.approx(best)
    assert point.false_positives / len(others) <= fpr + 1e-9


def test_the_upper_end_of_a_chosen_false_positive_rate_holds_as_often_as_it_says() -> None:
    # Uniform scores: the true rate above a threshold t is 1 - t.
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(4000):
        point = at_low_fpr([0.0], rng.random(200), fpr=0.02, confidence=0.9)
        assert point is not None
        missed += 1 - point.threshold > point.fpr_high
    # 400 are expected, with a standard deviation of 19.
    assert abs(missed - 400) < 6 * 19
