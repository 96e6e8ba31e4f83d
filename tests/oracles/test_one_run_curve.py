"""Right guesses under a curve: against binomials, and against the worst of all mechanisms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.audit.one_run_curve import Lines, largest_tail, lines_of
from privasr_k2.privacy.events import gaussian, pure

AOR = Relation.ADD_OR_REMOVE_ONE


def worst_mechanism(correct: int, guesses: int, canaries: int, lines: Lines) -> float:
    """The largest P[W >= correct] of all mechanisms whose output is who is guessed to be in.

    Values are P[output | coins], and for each pair of neighbours and each line what the one
    exceeds the other's multiple by.
    """
    coins = [*itertools.product((0, 1), repeat=canaries)]
    outputs = [*itertools.combinations(range(canaries), guesses)]
    chances = len(coins) * len(outputs)
    place = {(c, o): i for i, (c, o) in enumerate(itertools.product(coins, outputs))}
    pairs = []
    for c in coins:
        for j in range(canaries):
            if not c[j]:
                with_j = (*c[:j], 1, *c[j + 1 :])
                pairs += [(with_j, c), (c, with_j)]
    blocks = [(a, b, k) for a, b in pairs for k in range(len(lines[0]))]
    values = chances + len(blocks) * len(outputs)
    limits, upper = [], []
    for number, (a, b, k) in enumerate(blocks):
        first = chances + number * len(outputs)
        total = np.zeros(values)
        for i, o in enumerate(outputs):
            row = np.zeros(values)
            row[place[a, o]], row[place[b, o]], row[first + i] = 1.0, -lines[0][k], -1.0
            limits.append(row)
            upper.append(0.0)
            total[first + i] = 1.0
        limits.append(total)
        upper.append(lines[1][k])
    equal = np.zeros((len(coins), values))
    for number, c in enumerate(coins):
        for o in outputs:
            equal[number, place[c, o]] = 1.0
    objective = np.zeros(values)
    for c, o in place:
        objective[place[c, o]] = -float(sum(c[j] for j in o) >= correct) / len(coins)
    given = dict(A_ub=np.array(limits), b_ub=upper, A_eq=equal, b_eq=np.ones(len(coins)))
    found = linprog(objective, **given, bounds=(0, None), method="highs")
    assert found.success
    return float(-found.fun)


def curve(delta_of: dict[float, float]) -> Lines:
    """Lines of a claim for events and their complements, as the module makes them."""
    epsilons, deltas = np.array([*delta_of]), np.array([*delta_of.values()])
    slopes = np.exp(epsilons)
    return np.r_[slopes, 1 / slopes], np.r_[deltas, 1 - (1 - deltas) / slopes]


@pytest.mark.parametrize("delta_of", [{0.5: 0.0}, {0.0: 0.2, 0.7: 0.05}, {0.0: 0.3, 1.0: 0.1}])
@pytest.mark.parametrize("guesses", [1, 2, 3])
def test_no_mechanism_exceeds_the_bound(delta_of: dict[float, float], guesses: int) -> None:
    lines, gaps = curve(delta_of), []
    for correct in range(1, guesses + 1):
        worst = worst_mechanism(correct, guesses, 3, lines)
        bound = largest_tail(correct, guesses=guesses, canaries=3, lines=lines)
        assert worst <= bound + 1e-7
        gaps.append(bound - worst)
    if guesses == 3:  # everybody is guessed, so that the best mechanism has a choice left alone
        assert min(gaps) < 0.1


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_pure_privacy_allows_what_randomized_response_does(epsilon: float) -> None:
    lines = lines_of(pure(epsilon), AOR) if epsilon else curve({0.0: 0.0})
    for guesses, correct in ((5, 3), (40, 33), (100, 71)):
        right = math.exp(epsilon) / (1 + math.exp(epsilon))
        exact = binom.sf(correct - 1, guesses, right)
        found = largest_tail(correct, guesses=guesses, canaries=2 * guesses, lines=lines)
        assert found == pytest.approx(exact, rel=2e-3, abs=1e-7)


def test_gaussian_noise_on_single_coins_is_allowed() -> None:
    """Each canary has a sum of its own: the two of four that are largest are guessed to be in."""
    rng, noise = np.random.default_rng(4), 0.9
    coins = rng.random((200_000, 4)) < 0.5
    order = np.argsort(-(coins + noise * rng.normal(size=coins.shape)), axis=1)[:, :2]
    right = np.take_along_axis(coins, order, axis=1).sum(axis=1)
    lines = lines_of(gaussian(noise), AOR)
    for correct in (1, 2):
        bound = largest_tail(correct, guesses=2, canaries=4, lines=lines)
        assert (right >= correct).mean() <= bound + 0.005


def test_lines_are_those_of_the_gaussian_curve() -> None:
    """P[A | in] of the best events, thresholds, touches the lines and stays below them."""
    from scipy.special import ndtr, ndtri

    slopes, intercepts = lines_of(gaussian(1.3), AOR)
    x = np.linspace(0.001, 0.999, 300)
    best = ndtr(ndtri(x) + 1 / 1.3)
    above = (np.outer(slopes, x) + intercepts[:, None]).min(axis=0)
    assert (best <= above + 1e-9).all() and (above - best).max() < 0.01
