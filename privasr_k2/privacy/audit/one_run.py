"""Auditing with one training run, by canaries that coins put in or leave out [steinke2023].

Each of ``canaries`` units of the guarantee enters the private data with probability 1/2, by
independent coins (:func:`inclusion_coins`) that the attack does not see. The attack looks at the
release and guesses for ``guesses`` of them whether they are in. Only the coins need be random: the
training may run once, and canaries may interact in it. If the release is (epsilon, delta)-private
for adding or removing one unit, the number of correct guesses W has

    P[W >= v] <= f(v) + canaries delta f(v) (1 - f(v)) / (v g(v)),

where f(v) = P[B >= v] and g(v) = P[B = v] for B ~ Binomial(guesses, e^epsilon / (1 + e^epsilon)):
exactly what the worst private mechanism attains. At delta = 0 this is [steinke2023, theorem 5.2].
The delta term there, 2 canaries delta max over i of (f(v - i) - f(v)) / i, is larger than this one
where f(v) <= 1/2, and too small where f(v) is near 1. (Three canaries, epsilon = 0: a release that
is uniform over the eight answers, but for 7/8 delta that it moves from the answer that is wrong
throughout to the seven others, is (0, delta)-private. It has W >= 1 with probability 7/8 + 7/8
delta, where the theorem allows 7/8 + 6/8 delta.)

Proof, for r = guesses and m = canaries. Let a(w) be the probability of one pattern of w right and
r - w wrong guesses, averaged over such patterns, and x(j) = max(0, a(j) - e^epsilon a(j - 1)).
Flipping a coin turns a right guess into a wrong one; privacy, summed over all coins, leaves

    r (sum over j of binom(r - 1, j - 1) x(j)) <= m delta.

a(w) <= e^epsilon a(w - 1) + x(w), unrolled from v - 1 upwards, bounds P[W >= v] from above by
a(v - 1) and the x(j); unrolled downwards, it bounds 1 - P[W >= v] from below. Of the two,
a(v - 1) eliminated,

    P[W >= v] - f(v) <= sum over j of r binom(r - 1, j - 1) x(j) h(j) / (j g(j)),

with h(j) = (1 - f(v)) f(j) for j >= v and f(v) (1 - f(j)) for j < v. As binomials are log-concave,
the quotient h(j) / (j g(j)) is largest at j = v.

[steinke2023] T. Steinke et al., Privacy auditing with one (1) training run, NeurIPS 2023.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from scipy.stats import binom

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks
from privasr_k2.privacy.audit import inputs
from privasr_k2.privacy.audit.bounds import AuditBound
from privasr_k2.privacy.audit.search import largest_rejected
from privasr_k2.randomness import NoiseStream


def inclusion_coins(source: NoiseStream, *, canaries: int) -> np.ndarray:
    """The canaries to insert: (canaries,) booleans, each with probability 1/2.

    >>> from privasr_k2.randomness import new_secret, noise_stream
    >>> inclusion_coins(noise_stream(new_secret(), "audit"), canaries=10).shape
    (10,)
    """
    checks.whole("canaries", canaries, at_least=1)
    drawn = np.frombuffer(source.random_bytes(-(-canaries // 8)), dtype=np.uint8)
    return np.unpackbits(drawn, count=canaries).astype(np.bool_)


def guesses_from_scores(scores: ArrayLike, *, guess_in: int, guess_out: int) -> np.ndarray:
    """The guesses of an attack that gives each canary a score.

    Args:
        scores: (M,) larger where the canary seems to be in; computed without the coins.
        guess_in: that many with the largest scores are guessed in; fixed before the coins are
            known.
        guess_out: that many with the smallest are guessed out, likewise.

    Returns:
        (M,) with 1 for in, -1 for out and 0 for no guess. Equal scores are taken in the order of
        the canaries, which must not depend on the coins.

    Raises:
        PrivacyError: more guesses than canaries, no guess, or NaN.

    >>> guesses_from_scores([0.3, 2.0, -1.0, 0.9], guess_in=2, guess_out=1)
    array([ 0,  1, -1,  1], dtype=int8)
    """
    checked = inputs.scores("scores", scores)
    checks.whole("guess_in", guess_in, at_least=0, at_most=checked.size)
    checks.whole("guess_out", guess_out, at_least=0, at_most=checked.size - guess_in)
    checks.whole("guess_in + guess_out", guess_in + guess_out, at_least=1)
    rising = np.argsort(checked, kind="stable")
    guesses = np.zeros(checked.size, dtype=np.int8)
    guesses[rising[checked.size - guess_in :]] = 1
    guesses[rising[:guess_out]] = -1
    return guesses


def one_run_bound(
    included: ArrayLike, guesses: ArrayLike, *, delta: float, confidence: float
) -> AuditBound:
    """The bound of one run.

    Args:
        included: (M,) booleans, the coins.
        guesses: (M,) of :func:`guesses_from_scores`.

    Raises:
        PrivacyError: no guess, other shapes, or values out of range.

    >>> coins = np.arange(1000) % 2 == 0
    >>> found = one_run_bound(coins, np.where(coins, 1, -1), delta=1e-5, confidence=0.95)
    >>> round(found.epsilon_lower, 2), found.epsilon_lower == found.largest_possible
    (5.81, True)
    """
    signs = np.asarray(guesses)
    if signs.dtype.kind not in "iu" or signs.ndim != 1 or not np.isin(signs, (-1, 0, 1)).all():
        raise PrivacyError(
            "guesses", "1, 0 or -1 for each canary", f"{signs!r:.60}", "correct them"
        )
    coins = inputs.flags("included", included, length=signs.size)
    correct = np.count_nonzero(signs[coins] == 1) + np.count_nonzero(signs[~coins] == -1)
    return bound_from_correct(
        int(correct),
        guesses=int(np.count_nonzero(signs)),
        canaries=signs.size,
        delta=delta,
        confidence=confidence,
    )


def bound_from_correct(
    correct: int, *, guesses: int, canaries: int, delta: float, confidence: float
) -> AuditBound:
    """The largest epsilon that so many right guesses reject: p_value(epsilon) <= 1 - confidence.

    Returns:
        a bound whose ``largest_possible`` is for as many guesses, all of them right.

    Raises:
        PrivacyError: more right ones than guesses, more guesses than canaries, or none.

    >>> found = bound_from_correct(75, guesses=100, canaries=1000, delta=1e-4, confidence=0.95)
    >>> round(found.epsilon_lower, 3)  # with the delta term of the paper: 0.673
    0.695
    """
    _check(correct, guesses, canaries)
    checks.whole("guesses", guesses, at_least=1)
    inputs.delta(delta)
    error = 1 - inputs.confidence(confidence)

    def rejected(right: int) -> float:
        given: dict[str, Any] = {"guesses": guesses, "canaries": canaries, "delta": delta}
        return largest_rejected(lambda e: p_value(right, epsilon=e, **given), error=error)

    return AuditBound(rejected(correct), confidence, delta, rejected(guesses), canaries, "one run")


def p_value(correct: int, *, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """The largest P[W >= correct] under (``epsilon``, ``delta``)-privacy, by the theorem above.

    It rises with epsilon, since fewer mechanisms are private at a smaller one.

    Raises:
        PrivacyError: counts that do not fit together, a negative epsilon, or delta out of range.

    >>> p_value(3, guesses=3, canaries=3, epsilon=0.0, delta=0.0)  # three fair coins
    0.125
    """
    _check(correct, guesses, canaries)
    right = float(expit(checks.number("epsilon", epsilon, at_least=0)))
    inputs.delta(delta)
    if correct == 0:
        return 1.0
    tail = float(binom.sf(correct - 1, guesses, right))
    mass = float(binom.pmf(correct, guesses, right))
    if mass > 0:
        quotient = tail / mass
    elif correct > guesses * right:
        # Both underflow: from here on every probability is at most this ratio times the one before.
        ratio = (guesses - correct) / (correct + 1) * right / (1 - right)
        quotient = 1 / (1 - ratio)
    else:
        return 1.0
    below = float(binom.cdf(correct - 1, guesses, right))
    return min(1.0, tail + canaries * delta * quotient * below / correct)


def _check(correct: int, guesses: int, canaries: int) -> None:
    checks.whole("canaries", canaries, at_least=1)
    checks.whole("guesses", guesses, at_least=0, at_most=canaries)
    checks.whole("correct", correct, at_least=0, at_most=guesses)
