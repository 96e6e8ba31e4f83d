"""PATE's bounds against exact probabilities of all neighbours of all small histograms."""

from __future__ import annotations

import itertools
import math
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import minimize

from privasr_k2.privacy.pate.lnmax import lnmax_rdp, theorem3_rdp
from privasr_k2.privacy.pate.log_q import gnmax_log_q, lnmax_log_q, threshold_log_q
from privasr_k2.privacy.pate.theorem6 import theorem6

Histogram = tuple[int, ...]
ORDERS = (1.1, 1.5, 2.0, 4.0, 8.0, 20.0)


def histograms(teachers: int, classes: int) -> list[Histogram]:
    """All of them."""
    return [h for h in itertools.product(range(teachers + 1), repeat=classes) if sum(h) == teachers]


def neighbours(histogram: Histogram) -> list[Histogram]:
    """One vote moved from one class to another."""
    found = []
    for source, target in itertools.permutations(range(len(histogram)), 2):
        if histogram[source] > 0:
            moved = list(histogram)
            moved[source] -= 1
            moved[target] += 1
            found.append(tuple(moved))
    return found


def argmax_log_probs(histogram: Histogram, noise: float, kind: str) -> list[mp.mpf]:
    """Log probabilities of the classes, by quadrature over the winner's noisy count.

    P[i] = integral density(x - n_i) prod_{j != i} cdf(x - n_j) dx
    """
    with mp.workdps(20):
        if kind == "gaussian":
            edges = sorted({n + k * noise for n in histogram for k in (-12, -4, 0, 4, 12)})
            density = lambda x: mp.npdf(x, 0, noise)  # noqa: E731
            cdf = lambda x: mp.ncdf(x, 0, noise)  # noqa: E731
        else:
            edges = sorted({n + k * noise for n in histogram for k in (-40, -8, 0, 8, 40)})
            density = lambda x: mp.exp(-abs(x) / noise) / (2 * noise)  # noqa: E731
            cdf = lambda x: mp.exp(x / noise) / 2 if x < 0 else 1 - mp.exp(-x / noise) / 2  # noqa: E731
        probs = []
        for i, own in enumerate(histogram):
            others = [n for j, n in enumerate(histogram) if j != i]
            probs.append(
                mp.quad(lambda x: density(x - own) * mp.fprod(cdf(x - n) for n in others), edges)  # noqa: B023
            )
        assert abs(sum(probs) - 1) < 1e-12
        return [mp.log(p) for p in probs]


@cache
def cached_log_probs(histogram: Histogram, noise: float, kind: str) -> tuple[mp.mpf, ...]:
    """As the two above; of continuous noise permuted histograms have permuted probabilities."""
    if "discrete" in kind:
        return discrete_log_probs(histogram, noise, kind)
    order = sorted(range(len(histogram)), key=lambda i: -histogram[i])
    ordered = tuple(histogram[i] for i in order)
    if ordered == histogram:
        return tuple(argmax_log_probs(histogram, noise, kind))
    permuted = cached_log_probs(ordered, noise, kind)
    return tuple(permuted[order.index(i)] for i in range(len(histogram)))


def renyi(p: tuple[mp.mpf, ...], q: tuple[mp.mpf, ...], order: float) -> float:
    """D_order(p || q) of log probabilities."""
    with mp.workdps(20):
        total = mp.fsum(mp.exp(order * a - (order - 1) * b) for a, b in zip(p, q, strict=True))
        return float(mp.log(total) / (order - 1))


def discrete_log_probs(histogram: Histogram, noise: float, kind: str) -> tuple[float, ...]:
    """As :func:`argmax_log_probs`, by finite sums; the first of equals wins."""
    teachers = sum(histogram)
    values = np.arange(-60 * teachers, 60 * teachers + 1)
    with np.errstate(under="ignore"):
        square, size = -(values**2) / (2 * noise**2), -np.abs(values) / noise
        weights = np.exp(square if "gaussian" in kind else size)
    pmf = weights / weights.sum()
    middle = np.arange(40 * teachers, 80 * teachers)  # noisy counts looked at
    up_to = np.cumsum(pmf)
    found = []
    for i, own in enumerate(histogram):
        terms = pmf[middle - own]
        for j, other in enumerate(histogram):
            if j != i:
                terms = terms * up_to[middle - other - (1 if j < i else 0)]
        found.append(math.log(math.fsum(terms)))
    assert abs(sum(map(math.exp, found)) - 1) < 1e-12
    return tuple(found)


CASES = [
    ("gaussian", 4, 0.6),
    ("gaussian", 8, 1.0),
    ("gaussian", 10, 2.0),
    ("laplace", 5, 0.8),
    ("laplace", 10, 2.0),
    ("discrete gaussian", 8, 1.0),
    ("discrete gaussian", 10, 2.0),
    ("discrete laplace", 8, 1.0),
    ("discrete laplace", 10, 2.0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "teachers", "noise"), CASES)
def test_no_neighbour_of_any_small_histogram_diverges_more(
    kind: str, teachers: int, noise: float
) -> None:
    used, discrete = 0, "discrete" in kind
    for histogram in histograms(teachers, 3):
        if list(histogram) != sorted(histogram, reverse=True):
            continue
        exact = cached_log_probs(histogram, noise, kind)
        if "gaussian" in kind:
            log_q = gnmax_log_q([histogram], sigma=noise, discrete=discrete)
        else:
            log_q = lnmax_log_q([histogram], scale=noise, discrete=discrete)
        with mp.workdps(20):
            assert float(mp.log(mp.fsum(map(mp.exp, exact[1:])))) <= log_q[0] + 1e-10
        for order in ORDERS:
            if "gaussian" in kind:
                independent = order / noise**2  # [papernot2018, proposition 8]
                bound = theorem6(log_q, sigma=noise).rdp(order)[0]
            else:
                independent = lnmax_rdp([order], scale=noise, answers=1, discrete=discrete)[0]
                bound = min(theorem3_rdp(log_q, order, scale=noise)[0], independent)
            used += bound < 0.99 * independent
            for neighbour in neighbours(histogram):
                true = renyi(exact, cached_log_probs(neighbour, noise, kind), order)
                assert true <= bound + 1e-9
                backwards = renyi(cached_log_probs(neighbour, noise, kind), exact, order)
                assert backwards <= independent + 1e-9
    assert used > 5  # the data-dependent bound was the smaller one


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_two_classes_have_exact_probabilities(kind: str) -> None:
    for votes, noise in itertools.product(((6, 5), (9, 1), (12, 0)), (2.0, 4.0, 9.0)):
        if kind == "gaussian":
            log_q = gnmax_log_q([votes], sigma=noise, discrete=False)[0]
        else:
            log_q = lnmax_log_q([votes], scale=noise, discrete=False)[0]
        exact = argmax_log_probs(votes, noise, kind)[1]
        assert log_q == pytest.approx(float(exact), rel=1e-8)


@pytest.mark.parametrize("noise", [0.3, 1.0, 2.5, 7.0])
def test_discrete_noise_of_two_counts_against_all_pairs(noise: float) -> None:
    with mp.workdps(40):
        for kind in ("gaussian", "laplace"):
            values = range(-150, 151)
            weights = [mp.exp(-(mp.mpf(x) ** 2) / (2 * mp.mpf(noise) ** 2)) for x in values]
            if kind == "laplace":
                weights = [mp.exp(-abs(mp.mpf(x)) / noise) for x in values]
            pmf = [weight / mp.fsum(weights) for weight in weights]
            above = list(itertools.accumulate(reversed(pmf)))[::-1]  # P[noise >= x]
            for gap in (0, 1, 2, 7, 30):
                pairs = mp.fsum(p * above[i + gap] for i, p in enumerate(pmf) if i + gap < len(pmf))
                made = [gap + 50, 50]
                if kind == "gaussian":
                    found = gnmax_log_q([made], sigma=noise, discrete=True)[0]
                    check = {"threshold": 50 + gap, "sigma": noise, "discrete": True}
                    alone = threshold_log_q(np.array([50]), **check)[0]
                    reached = above[150 + gap]
                    exact = float(mp.log(min(reached, 1 - reached)))
                    assert alone == pytest.approx(exact, rel=1e-9)
                else:
                    found = lnmax_log_q([made], scale=noise, discrete=True)[0]
                assert found == pytest.approx(min(float(mp.log(pairs)), math.log(0.5)), rel=1e-7)


def test_tiny_probabilities_against_mpmath() -> None:
    votes = (200, 60, 60, 20, 0)
    for sigma in (2.0, 5.0, 20.0, 100.0):
        with mp.workdps(50):
            q = mp.fsum(mp.erfc(mp.mpf(200 - n) / (2 * sigma)) / 2 for n in votes[1:])
            found = gnmax_log_q([votes], sigma=sigma, discrete=False)[0]
            assert found == pytest.approx(float(mp.log(q)), rel=1e-12)
    for scale in (0.1, 1.0, 20.0):
        with mp.workdps(50):
            gaps = [mp.mpf(200 - n) / mp.mpf(scale) for n in votes[1:]]
            q = mp.fsum((2 + gap) / (4 * mp.exp(gap)) for gap in gaps)
            found = lnmax_log_q([votes], scale=scale, discrete=False)[0]
            assert found == pytest.approx(float(mp.log(q)), rel=1e-12)


def theorem_6(q: mp.mpf, order: float, sigma: float, mu1: mp.mpf, mu2: mp.mpf) -> mp.mpf | None:
    """As the paper writes it, at any two orders; None where its conditions do not hold."""
    eps1, eps2 = mu1 / sigma**2, mu2 / sigma**2
    if order > mu1 or mu1 <= 1 or mu2 <= 1 or q * mp.exp(eps2) >= 1:
        return None
    if q > mp.exp((mu2 - 1) * eps2) / (mu1 / (mu1 - 1) * mu2 / (mu2 - 1)) ** mu2:
        return None
    a = (1 - q) / (1 - (q * mp.exp(eps2)) ** ((mu2 - 1) / mu2))
    b = mp.exp(eps1) / q ** (1 / (mu1 - 1))
    return mp.log((1 - q) * a ** (order - 1) + q * b ** (order - 1)) / (order - 1)


# log_q, sigma, order
SETTINGS = [
    (-3.0, 2.0, 1.5),
    (-8.0, 3.0, 2.0),
    (-8.0, 40.0, 20.0),
    (-60.0, 10.0, 30.0),
    (-700.0, 40.0, 200.0),
    (-5000.0, 1.5, 30.0),
]


@pytest.mark.parametrize(("log_q", "sigma", "order"), SETTINGS)
def test_theorem_6_against_mpmath(log_q: float, sigma: float, order: float) -> None:
    with mp.workdps(3000 if log_q < -1000 else 600):
        q = mp.exp(mp.mpf(log_q))
        mu2 = sigma * mp.sqrt(-mp.mpf(log_q))
        direct = theorem_6(q, order, sigma, mu2 + 1, mu2)
        assert direct is not None
        ours = theorem6(np.array([log_q]), sigma=sigma).rdp(order)[0]
        assert ours == pytest.approx(min(float(direct), order / sigma**2), rel=1e-9, abs=1e-16)


@pytest.mark.parametrize(("log_q", "sigma", "order"), SETTINGS[:4])
def test_no_other_orders_are_better_than_those_of_proposition_10(
    log_q: float, sigma: float, order: float
) -> None:
    def found(excess: np.ndarray) -> float:
        mu1, mu2 = (1 + mp.exp(mp.mpf(float(e))) for e in excess)
        value = theorem_6(mp.exp(log_q), order, sigma, mu1, mu2)
        return math.inf if value is None else float(mp.log(value))

    with mp.workdps(60):
        mu2 = sigma * math.sqrt(-log_q)
        at_proposition_10 = np.log([mu2, mu2 - 1])
        best = found(at_proposition_10)
        starts = at_proposition_10 + np.array([(0.3, 0.3), (-0.3, 0.3), (0.3, -0.3), (1.0, 0.0)])
        simplex = {"method": "Nelder-Mead", "options": {"xatol": 1e-6}}
        least = min(minimize(found, start, **simplex).fun for start in starts)
    assert least >= best - 1e-9
    assert least == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize(("log_q", "sigma", "order"), SETTINGS[:4])
def test_an_upper_bound_on_q_is_enough(log_q: float, sigma: float, order: float) -> None:
    # At the orders of the bound, theorem 6 for any smaller true q stays below it.
    with mp.workdps(60):
        mu2 = sigma * mp.sqrt(-mp.mpf(log_q))
        at_bound = theorem_6(mp.exp(log_q), order, sigma, mu2 + 1, mu2)
        for share in (0.999, 0.9, 0.5, 0.1, 1e-3, 1e-9):
            smaller = theorem_6(share * mp.exp(log_q), order, sigma, mu2 + 1, mu2)
            assert smaller is not None and at_bound is not None and smaller <= at_bound


def test_the_check_of_a_threshold_against_its_two_exact_probabilities() -> None:
    threshold, sigma, teachers = 12.0, 2.5, 20

    def log_probs(largest: int) -> tuple[mp.mpf, mp.mpf]:
        with mp.workdps(30):
            z = (mp.mpf(largest) - threshold) / sigma
            return mp.log(mp.ncdf(z)), mp.log(mp.ncdf(-z))

    for largest in range(teachers + 1):
        check = {"threshold": threshold, "sigma": sigma, "discrete": False}
        log_q = threshold_log_q(np.array([largest]), **check)
        assert log_q[0] == pytest.approx(float(min(log_probs(largest))), rel=1e-10)
        for order in ORDERS:
            bound = theorem6(log_q, sigma=2**0.5 * sigma).rdp(order)[0]
            for moved in (largest - 1, largest + 1):
                assert renyi(log_probs(largest), log_probs(moved), order) <= bound + 1e-12
                assert bound <= order / (2 * sigma**2) * (1 + 1e-12)
