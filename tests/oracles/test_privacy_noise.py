"""Noise against exact distributions and losses, 60-digit arithmetic, an attack on low bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import mpmath
import numpy as np
import pytest
from dp_accounting import pld
from scipy import stats

from privasr_k2.privacy import noise, renyi
from privasr_k2.privacy.discrete import DiscreteGaussianNoise, DiscreteLaplaceNoise
from privasr_k2.privacy.noise import GaussianNoise, LaplaceNoise
from privasr_k2.randomness import NoiseStream, new_secret, noise_stream

# OpenDP's samplers and the attack draw afresh at every run. Each comparison of a distribution below
# raises a false alarm less than once in ten million runs.
ALARM = 1e-7
Mechanism = GaussianNoise | LaplaceNoise


def _laplace_pmf(scale: float, k: np.ndarray) -> np.ndarray:
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** np.abs(k)


def _gaussian_pmf(sigma: float, k: np.ndarray) -> np.ndarray:
    reach = np.arange(-int(40 * sigma) - 40, int(40 * sigma) + 41)
    return np.exp(-(k**2) / (2 * sigma**2)) / np.exp(-(reach**2) / (2 * sigma**2)).sum()


PMFS = {DiscreteLaplaceNoise: _laplace_pmf, DiscreteGaussianNoise: _gaussian_pmf}
DISCRETE = pytest.mark.parametrize("kind", list(PMFS))


def _alarm(observed: np.ndarray, expected: np.ndarray) -> float:
    """The chi-square test's probability of counts as far off, with cells of few joined."""
    order = np.argsort(-expected)
    observed, expected = observed[order], expected[order]
    few = expected < 30
    cells = [np.append(c[~few], c[few].sum()) for c in (observed, expected)]
    return float(stats.chisquare(*cells, sum_check=False).pvalue) if few.any() else 1.0


@DISCRETE
@pytest.mark.parametrize("scale", [0.4, 1.0, 2.5, 9.0])
def test_discrete_draws_have_the_exact_distribution(kind: type, scale: float) -> None:
    n = 40_000
    draws = kind(scale).add(np.full(n, 17)) - 17
    reach = int(60 * scale) + 20
    assert np.abs(draws).max() <= reach
    support = np.arange(-reach, reach + 1)
    expected = n * PMFS[kind](scale, support)
    assert expected.sum() == pytest.approx(n)
    observed = np.bincount(draws + reach, minlength=len(support))
    assert _alarm(observed, expected) > ALARM
    # The test sees noise whose scale is off by a tenth.
    assert _alarm(observed, n * PMFS[kind](scale * 1.1, support)) < ALARM


@DISCRETE
def test_discrete_draws_of_one_call_are_independent(kind: type) -> None:
    draws = kind(1.0).add(np.zeros((40_000, 2), int)).clip(-3, 3) + 3
    pmf = PMFS[kind](1.0, np.arange(-60, 61))
    one = np.array([pmf[:58].sum(), *pmf[58:63], pmf[63:].sum()])
    observed = np.bincount(draws[:, 0] * 7 + draws[:, 1], minlength=49)
    assert _alarm(observed, 40_000 * np.outer(one, one).ravel()) > ALARM


# What the events claim, against sums over the exact distributions.


def _mp_pmf(kind: type, scale: float, reach: int) -> dict[int, mpmath.mpf]:
    support = range(-reach, reach + 1)
    exact = mpmath.mpf(scale)
    if kind is DiscreteLaplaceNoise:
        weights = {k: mpmath.exp(-abs(k) / exact) for k in support}
    else:
        weights = {k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * exact**2)) for k in support}
    total = mpmath.fsum(weights.values())
    return {k: w / total for k, w in weights.items()}


@pytest.mark.parametrize(("scale", "sensitivity"), [(0.7, 1), (2.0, 1), (3.0, 2), (5.0, 7)])
def test_the_largest_ratio_of_discrete_laplace_is_what_its_event_claims(
    scale: float, sensitivity: int
) -> None:
    with mpmath.workdps(40):
        pmf = _mp_pmf(DiscreteLaplaceNoise, scale, 200)
        ratio = max(pmf[k] / pmf[k - sensitivity] for k in range(-190, 190))
        exact = float(mpmath.log(ratio))
    vector = DiscreteLaplaceNoise(scale).vector_event(l1_sensitivity=sensitivity)
    assert renyi.pure_epsilon(vector) == pytest.approx(exact)
    # One number: dp-accounting's distribution of the privacy loss of the event's own parameters.
    event = DiscreteLaplaceNoise(scale).event(sensitivity)
    claimed = pld.privacy_loss_distribution.from_discrete_laplace_mechanism(
        event.noise_parameter, event.sensitivity, value_discretization_interval=1e-4
    )
    for epsilon in (0.0, exact / 3, exact * 0.9, exact * 1.001):
        delta = _hockey_stick(pmf, sensitivity, epsilon)
        assert delta <= claimed.get_delta_for_epsilon(epsilon) + 1e-12
        assert claimed.get_delta_for_epsilon(epsilon) == pytest.approx(delta, abs=2e-4)
    assert _hockey_stick(pmf, sensitivity, exact * 0.9) > 0


def _hockey_stick(pmf: dict[int, mpmath.mpf], shift: int, epsilon: float) -> float:
    with mpmath.workdps(40):
        factor = mpmath.exp(epsilon)
        excess = (max(p - factor * pmf.get(k - shift, 0), 0) for k, p in pmf.items())
        return float(mpmath.fsum(excess))


@pytest.mark.parametrize(("sigma", "sensitivity"), [(0.6, 1), (2.0, 1), (3.0, 2), (8.0, 3)])
def test_hockey_sticks_of_discrete_gaussian_are_what_its_event_claims(
    sigma: float, sensitivity: int
) -> None:
    with mpmath.workdps(40):
        pmf = _mp_pmf(DiscreteGaussianNoise, sigma, int(30 * sigma) + 20)
    event = DiscreteGaussianNoise(sigma).event(sensitivity)
    claimed = pld.privacy_loss_distribution.from_discrete_gaussian_mechanism(
        event.sigma, event.sensitivity, value_discretization_interval=1e-4
    )
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        delta = _hockey_stick(pmf, sensitivity, epsilon)
        assert delta <= claimed.get_delta_for_epsilon(epsilon) + 1e-12
        assert claimed.get_delta_for_epsilon(epsilon) == pytest.approx(delta, abs=2e-4)


@pytest.mark.parametrize("alpha", [1.2, 2.0, 7.5])
@pytest.mark.parametrize("shift", [(1,), (2,), (1, 1), (2, -1), (1, 1, 1)])
@pytest.mark.parametrize("sigma", [0.5, 1.7])
def test_the_events_of_vectors_bound_their_renyi_divergence(
    alpha: float, shift: tuple[int, ...], sigma: float
) -> None:
    """By enumerating the vectors of up to two numbers, and term by term beyond."""
    with mpmath.workdps(30):
        reach = int(12 * sigma) + 6
        for kind in PMFS:
            pmf = _mp_pmf(kind, sigma, reach + 4)
            if len(shift) <= 2:
                total = mpmath.mpf(0)
                for cell in product(range(-reach, reach + 1), repeat=len(shift)):
                    p = mpmath.fprod(pmf[k] for k in cell)
                    q = mpmath.fprod(pmf[k - s] for k, s in zip(cell, shift, strict=True))
                    total += p**alpha * q ** (1 - alpha)
            else:
                total = mpmath.mpf(1)
                for s in shift:
                    terms = (
                        pmf[k] ** alpha * pmf[k - s] ** (1 - alpha)
                        for k in range(-reach, reach + 1)
                    )
                    total *= mpmath.fsum(terms)
            divergence = float(mpmath.log(total) / (alpha - 1))
            if kind is DiscreteLaplaceNoise:
                made = DiscreteLaplaceNoise(sigma).vector_event(l1_sensitivity=sum(map(abs, shift)))
                assert 0 < divergence <= renyi.pure_epsilon(made) * (1 + 1e-9)
            else:
                made = DiscreteGaussianNoise(sigma).vector_event(l2_sensitivity=math.hypot(*shift))
                # Shifts by whole numbers reach it at whole orders, less the tails cut off.
                assert divergence <= made.rho * alpha * (1 + 1e-9)
                assert divergence == pytest.approx(made.rho * alpha, rel=1e-3) or alpha % 1


# Float noise.


@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (GaussianNoise(noise_multiplier=0.75, l2_sensitivity=2.0), stats.norm(scale=1.5)),
        (LaplaceNoise(scale=1.5, l1_sensitivity=1.0), stats.laplace(scale=1.5)),
    ],
    ids=["gaussian", "laplace"],
)
@pytest.mark.parametrize("at", [0.0, 0.3, -1234.56])
def test_float_noise_has_its_distribution_on_the_grid(
    mechanism: Mechanism, law: stats.rv_frozen, at: float
) -> None:
    n = 1_000_000
    noisy = mechanism.add(np.full(n, at), noise_stream(new_secret(), "oracle"))
    steps, counts = np.unique(noisy / mechanism.grid, return_counts=True)
    # A result of k grids is a real value below (k + 1/2) grids.
    off = np.abs(np.cumsum(counts) / n - law.cdf((steps + 0.5) * mechanism.grid - at)).max()
    # The bound of Dvoretzky, Kiefer and Wolfowitz holds for every distribution.
    bound = math.sqrt(math.log(2 / ALARM) / (2 * n))
    assert off < bound
    # It sees a twentieth of the scale.
    wider = law.cdf(((steps + 0.5) * mechanism.grid - at) / 1.05)
    assert np.abs(np.cumsum(counts) / n - wider).max() > bound
    # Neighbours in one vector are independent, whichever pairs they were drawn in.
    for lag in (1, n // 2):
        pairs = stats.norm.ppf(np.clip(law.cdf(noisy - at), 1e-9, 1 - 1e-9))
        assert abs(np.mean(pairs[lag:] * pairs[:-lag])) < 5.5 / math.sqrt(n - lag)
        squares = abs(np.mean(pairs[lag:] ** 2 * pairs[:-lag] ** 2) - 1)
        assert squares < 5.5 * 3 / math.sqrt(n - lag) * 2


class _Scripted(NoiseStream):
    """A stream whose uniforms are given: for saying what the noise must be."""

    def __init__(self, *uniforms: np.ndarray) -> None:
        self._given = list(uniforms)

    def uniform(self, shape: int | tuple[int, ...]) -> np.ndarray:
        return self._given.pop(0).reshape(shape)


def _extreme_uniforms(count: int, seed: int) -> np.ndarray:
    """Multiples of 2^-53 in [0, 1): ordinary ones, and ones near both ends."""
    rng = np.random.default_rng(seed)
    small = np.floor(2.0 ** rng.uniform(0, 53, count)) * 2.0**-53
    ends = np.minimum(small, 1 - 2.0**-53), 1 - np.maximum(small, 2.0**-53)
    made = np.stack([rng.random(count), *ends])
    return made[rng.integers(0, 3, count), np.arange(count)]


def test_evaluating_in_floats_errs_as_little_as_is_stated_and_rounds_alike() -> None:
    count = 4000
    high, middle, low, turn = (_extreme_uniforms(count, seed) for seed in range(4))
    high[::4] = 0.0  # the far tail
    uniforms = np.stack([high, middle, low])
    normal = noise.standard_normal(_Scripted(uniforms, turn), 2 * count)
    laplace = noise._standard_laplace(_Scripted(uniforms, turn), count)
    gaussian = GaussianNoise(noise_multiplier=1.0, l2_sensitivity=1.3)
    start = np.random.default_rng(9).normal(size=2 * count) * 1e6
    noisy = gaussian.add(start, _Scripted(uniforms, turn))
    changed = 0
    with mpmath.workdps(60):
        unit = mpmath.mpf(2) ** -53
        for at in range(count):
            h, m, w, t = (mpmath.mpf(float(v[at])) for v in (high, middle, low, turn))
            u = h + (m + (1 - w) * unit) * unit
            r = mpmath.sqrt(-2 * mpmath.log(u))
            pair = (r * mpmath.cos(2 * mpmath.pi * t), r * mpmath.sin(2 * mpmath.pi * t))
            for place, exact in zip((at, at + count), pair, strict=True):
                assert abs(normal[place] - exact) <= mpmath.mpf(2) ** -47 * max(r, 1 / max(r, unit))
                real = mpmath.mpf(float(start[place])) + mpmath.mpf(1.3) * exact
                grid = mpmath.mpf(gaussian.grid)
                changed += mpmath.floor(real / grid + 0.5) * grid != mpmath.mpf(float(noisy[place]))
            size = -mpmath.log(u)
            exact = -size if t < 0.5 else size
            assert abs(laplace[at] - exact) <= mpmath.mpf(2) ** -50 * (1 + size)
    assert changed == 0
    # The stated end of the tail: it is reached, and not passed.
    ends = noise._positive_uniform(_Scripted(np.array([0.0, 0.0, 1 - 2.0**-53])), 1)
    assert ends[0] == 2.0**-159
    assert math.sqrt(-2 * math.log(ends[0])) == pytest.approx(14.8, abs=0.05)


# The attack of Mironov: which of two counts can have given this output, bit for bit?

CANDIDATES = (0.0, 1.0)
DRAWS = 20_000
# Around the uniform that reals say: more than the errors of the logarithm and of the sum.
WINDOW = np.arange(-9, 10)
Forward = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def _textbook_laplace(x: np.ndarray, sign: np.ndarray, u: np.ndarray) -> np.ndarray:
    return x + sign * np.log(u)


def _ours(mechanism: Mechanism) -> Forward:
    """Our mechanism with the attacker's uniforms; u is a multiple of 2^-53 in (0, 1]."""

    def forward(x: np.ndarray, sign: np.ndarray, u: np.ndarray) -> np.ndarray:
        x, sign, u = (a.ravel() for a in np.broadcast_arrays(x, sign, u))
        add_up_to_u = u - 2.0**-53, np.full(u.shape, 1 - 2.0**-53), np.zeros(u.shape)
        parts = np.stack(add_up_to_u)
        if isinstance(mechanism, LaplaceNoise):
            # size = -ln(u): a sign of -1 here is the larger value, as in the textbook's.
            return mechanism.add(x, _Scripted(parts, np.where(sign < 0, 0.75, 0.25)))
        turn = np.where(sign < 0, 0.0, 0.5)  # cosine 1 and -1; the sines' half is not looked at
        twice = np.concatenate([x, x])
        return mechanism.add(twice, _Scripted(parts, turn))[: len(x)]

    return forward


def _possible(
    noisy: np.ndarray, candidate: float, forward: Forward, gaussian_scale: float | None
) -> np.ndarray:
    """(n,) Whether some random number of the generator leads from ``candidate`` to ``noisy``."""
    distance = noisy - candidate
    sign = np.where(distance < 0, 1.0, -1.0)[:, None]
    if gaussian_scale is None:
        guess = np.exp(-np.abs(distance))
    else:
        guess = np.exp(-((distance / gaussian_scale) ** 2) / 2)
    k = np.clip(np.rint(guess * 2.0**53)[:, None] + WINDOW, 1, 2.0**53)  # (n, window)
    tried = forward(np.full(k.shape, candidate), np.broadcast_to(sign, k.shape), k * 2.0**-53)
    return (tried.reshape(k.shape) == noisy[:, None]).any(axis=1)


def _verdicts(
    noisy: np.ndarray, forward: Forward, gaussian_scale: float | None = None
) -> np.ndarray:
    """The candidate (0 or 1) that alone is possible, or -1 where both or none are; (n,)."""
    zero, one = (_possible(noisy, c, forward, gaussian_scale) for c in CANDIDATES)
    return np.where(zero & ~one, 0, np.where(one & ~zero, 1, -1))


def _shares(verdicts: list[np.ndarray]) -> tuple[float, float]:
    """How many draws were identified rightly and wrongly."""
    right = np.mean([(v == c).mean() for c, v in enumerate(verdicts)])
    wrong = np.mean([(v == 1 - c).mean() for c, v in enumerate(verdicts)])
    return float(right), float(wrong)


def _textbook_draws() -> list[np.ndarray]:
    rng = np.random.default_rng()
    return [
        _textbook_laplace(np.full(DRAWS, c), rng.choice([-1.0, 1.0], DRAWS), 1 - rng.random(DRAWS))
        for c in CANDIDATES
    ]


def _our_draws(mechanism: Mechanism) -> list[np.ndarray]:
    stream = noise_stream(new_secret(), "attack")
    return [mechanism.add(np.full(DRAWS, c), stream) for c in CANDIDATES]


def test_the_attack_identifies_textbook_noise_and_not_ours() -> None:
    textbook = [_verdicts(noisy, _textbook_laplace) for noisy in _textbook_draws()]
    right, wrong = _shares(textbook)
    assert right > 0.5 and wrong == 0.0
    laplace = LaplaceNoise(scale=1.0, l1_sensitivity=1.0)
    ours = [_verdicts(noisy, _ours(laplace)) for noisy in _our_draws(laplace)]
    assert _shares(ours) == (0.0, 0.0)
    gaussian = GaussianNoise(noise_multiplier=1.0, l2_sensitivity=1.0)
    ours = [_verdicts(noisy, _ours(gaussian), gaussian_scale=1.0) for noisy in _our_draws(gaussian)]
    assert _shares(ours) == (0.0, 0.0)
    discrete = DiscreteLaplaceNoise(1.0)  # gives every integer to every integer
    for count in (0, 1):
        noisy_counts = discrete.add(np.full(DRAWS, count))
        assert noisy_counts.dtype == np.int64 and set(range(-5, 6)) < set(noisy_counts.tolist())
    # And both candidates are possible, instead of neither.
    for mechanism, sigma in ((laplace, None), (gaussian, 1.0)):
        for noisy in _our_draws(mechanism):
            for candidate in CANDIDATES:
                assert _possible(noisy, candidate, _ours(mechanism), sigma).all()


@pytest.mark.parametrize("which", ["textbook", "float", "discrete"])
def test_no_verdict_of_the_attack_on_ours_exceeds_the_claim(which: str) -> None:
    """The textbook's attack on each: epsilon is 1, so no verdict is more than e times as likely."""
    if which == "textbook":
        draws = _textbook_draws()
    elif which == "float":
        draws = _our_draws(LaplaceNoise(scale=1.0, l1_sensitivity=1.0))
    else:
        discrete = DiscreteLaplaceNoise(1.0)
        draws = [discrete.add(np.full(DRAWS, int(c))).astype(float) for c in CANDIDATES]
    verdicts = [_verdicts(noisy, _textbook_laplace) for noisy in draws]
    exceeded = 0
    for verdict in (0, 1, -1):
        counts = [int((v == verdict).sum()) for v in verdicts]
        for one, other in (counts, counts[::-1]):
            least = stats.beta.ppf(ALARM, one, DRAWS - one + 1) if one else 0.0
            most = stats.beta.ppf(1 - ALARM, other + 1, DRAWS - other) if other < DRAWS else 1.0
            exceeded += least > math.e * most
    assert exceeded == 0 if which != "textbook" else exceeded > 0
