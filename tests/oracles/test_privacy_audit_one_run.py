"""Audits of one run against the worst private mechanism there is, found by linear programming."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import brentq, linprog
from scipy.stats import binom

from privasr_k2.privacy.audit.exposure import bound_in_one_run
from privasr_k2.privacy.audit.one_run import bound_from_correct, p_value


def _binomial(n: int, p: float) -> np.ndarray:
    """P[k successes], k = 0 ... n, term by term."""
    return np.array([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])


def _worst(
    num_inputs: int,
    neighbours: Sequence[tuple[int, int]],
    gain: np.ndarray,
    *,
    epsilon: float,
    delta: float,
) -> float:
    """The largest sum of gain[x, y] P[y | x] over all (epsilon, delta)-private mechanisms P.

    A linear program: t[(x, x'), y] >= P[y | x] - e^epsilon P[y | x'], t >= 0, sum_y t <= delta.
    """
    num_outputs = gain.shape[1]
    ordered = [pair for a, b in neighbours for pair in ((a, b), (b, a))]
    size = num_inputs * num_outputs
    num_slacks = len(ordered) * num_outputs
    at = np.arange(num_slacks)
    x, other = (np.repeat([pair[i] for pair in ordered], num_outputs) for i in (0, 1))
    y = np.tile(np.arange(num_outputs), len(ordered))

    def matrix(values: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> sparse.coo_array:
        shape = (int(rows.max()) + 1, size + num_slacks)
        return sparse.coo_array((values, (rows, columns)), shape=shape)

    ones = np.ones(num_slacks)
    columns = np.concatenate([x * num_outputs + y, other * num_outputs + y, size + at])
    above = matrix(
        np.concatenate([ones, -math.exp(epsilon) * ones, -ones]), np.tile(at, 3), columns
    )
    mass = matrix(ones, at // num_outputs, size + at)
    sums = matrix(np.ones(size), np.arange(size) // num_outputs, np.arange(size))
    solved = linprog(
        -np.concatenate([gain.ravel(), np.zeros(num_slacks)]),
        A_ub=sparse.vstack([above, mass]).tocsr(),
        b_ub=np.concatenate([np.zeros(num_slacks), np.full(len(ordered), delta)]),
        A_eq=sums.tocsr(),
        b_eq=np.ones(num_inputs),
        method="highs",
    )
    assert solved.status == 0, solved.message
    return -solved.fun


def _worst_guesser(
    canaries: int, guesses: int, correct: int, *, epsilon: float, delta: float
) -> float:
    """P[at least ``correct`` right] of the worst private mechanism with ``guesses`` guesses."""
    coins = list(itertools.product((-1, 1), repeat=canaries))
    answers = [
        a for a in itertools.product((-1, 0, 1), repeat=canaries) if sum(map(abs, a)) == guesses
    ]
    right = (np.array(coins)[:, None] == np.array(answers)[None]).sum(axis=2)
    gain = (right >= correct) / len(coins)
    return _worst(len(coins), _one_apart(coins), gain, epsilon=epsilon, delta=delta)


def _one_apart(
    states: Sequence[tuple[int, ...]], absent: int | None = None
) -> list[tuple[int, int]]:
    """Pairs of states that differ at one place; one of the two is ``absent`` if that is given."""
    found = []
    for (i, a), (j, b) in itertools.combinations(enumerate(states), 2):
        places = [(u, v) for u, v in zip(a, b, strict=True) if u != v]
        if len(places) == 1 and (absent is None or absent in places[0]):
            found.append((i, j))
    return found


@pytest.mark.parametrize(("canaries", "guesses"), [(1, 1), (2, 2), (3, 3), (3, 1), (3, 2), (4, 3)])
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.02, 0.3])
def test_the_p_value_of_one_run_is_what_the_worst_private_mechanism_attains(
    canaries: int, guesses: int, epsilon: float, delta: float
) -> None:
    for correct in range(1, guesses + 1):
        worst = _worst_guesser(canaries, guesses, correct, epsilon=epsilon, delta=delta)
        found = p_value(correct, guesses=guesses, canaries=canaries, epsilon=epsilon, delta=delta)
        assert found == pytest.approx(worst, abs=1e-6)


def _theorem(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """[steinke2023, theorem 5.2] as it is printed, by finite sums."""
    chances = _binomial(guesses, 1 / (1 + math.exp(-epsilon)))

    def f(v: int) -> float:
        return float(chances[max(v, 0) :].sum())

    most = max(((f(correct - i) - f(correct)) / i for i in range(1, canaries + 1)), default=0.0)
    return f(correct) + 2 * canaries * delta * most


@given(
    counts=st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(1, 60)).map(sorted),
    epsilon=st.floats(0, 5),
    delta=st.floats(0, 0.1),
)
@settings(max_examples=200, deadline=None)
def test_the_p_value_stays_under_the_published_theorem(
    counts: list[int], epsilon: float, delta: float
) -> None:
    correct, guesses, canaries = counts
    found = p_value(correct, guesses=guesses, canaries=canaries, epsilon=epsilon, delta=delta)
    without_delta = _theorem(correct, guesses, canaries, epsilon, 0.0)
    assert found >= min(1.0, without_delta) - 1e-12
    if without_delta <= 0.5:
        assert found <= _theorem(correct, guesses, canaries, epsilon, delta) + 1e-12


@pytest.mark.parametrize(
    ("correct", "guesses", "canaries", "delta", "printed"),
    [(75, 100, 1000, 1e-4, 0.673), (1439, 1510, 100_000, 1e-5, 2.675)],
)
def test_bounds_printed_in_the_paper_are_reached_and_exceeded_a_little(
    correct: int, guesses: int, canaries: int, delta: float, printed: float
) -> None:
    def published(epsilon: float) -> float:
        right = 1 / (1 + math.exp(-epsilon))
        tails = binom.sf(correct - 1 - np.arange(correct + 1), guesses, right)
        most = np.max((tails[1:] - tails[0]) / np.arange(1, correct + 1))
        return float(tails[0] + 2 * canaries * delta * most)

    theirs = brentq(lambda epsilon: published(epsilon) - 0.05, 0, 5)
    assert theirs == pytest.approx(printed, abs=1e-3)
    ours = bound_from_correct(
        correct, guesses=guesses, canaries=canaries, delta=delta, confidence=0.95
    ).epsilon_lower
    assert theirs < ours < theirs + 0.15


def test_a_private_release_beats_the_published_theorem_where_nearly_all_do_as_well() -> None:
    delta = 0.01
    coins = list(itertools.product((-1, 1), repeat=3))
    wrong = (np.array(coins)[:, None] != np.array(coins)[None]).all(axis=2)
    release = np.where(wrong, 1 / 8 - 7 / 8 * delta, 1 / 8 + delta / 8)  # (coins, answers)
    np.testing.assert_allclose(release.sum(axis=1), 1)
    for i, j in _one_apart(coins):
        assert np.maximum(0, release[i] - release[j]).sum() <= delta + 1e-15
    one_right = 1 - release[wrong].mean()
    assert one_right > _theorem(1, 3, 3, 0.0, delta) + 1e-4
    assert one_right == pytest.approx(p_value(1, guesses=3, canaries=3, epsilon=0.0, delta=delta))


@pytest.mark.parametrize("delta", [0.0, 1e-4, 1e-3])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0])
def test_one_run_overstates_epsilon_no_more_often_than_it_may(epsilon: float, delta: float) -> None:
    # Randomized response that with chance canaries x delta / told gives ``told`` canaries away.
    canaries, confidence = 60, 0.9
    rate = math.exp(epsilon) / (1 + math.exp(epsilon))
    given = {"guesses": canaries, "canaries": canaries, "delta": delta, "confidence": confidence}
    found = [bound_from_correct(v, **given).epsilon_lower for v in range(canaries + 1)]
    bounds = np.array(found)
    for told in (1, 2, 5, 10, 30):
        caught = canaries * delta / told
        blatant = np.concatenate([np.zeros(told), _binomial(canaries - told, rate)])
        chances = (1 - caught) * _binomial(canaries, rate) + caught * blatant
        overstated = chances[bounds > epsilon].sum()
        assert overstated <= 1 - confidence
        assert delta > 0 or overstated > 0.02


@pytest.mark.parametrize(("space", "top"), [(2, 1), (3, 1), (3, 2)])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.02])
def test_no_private_mechanism_beats_the_bound_of_exposure_in_one_run(
    space: int, top: int, epsilon: float, delta: float
) -> None:
    canaries, absent = 2, space
    states = list(itertools.product(range(space + 1), repeat=canaries))
    firsts = list(itertools.product(itertools.combinations(range(space), top), repeat=canaries))
    pairs = _one_apart(states, absent)
    for successes in (1, 2):
        gain = np.zeros((len(states), len(firsts)))
        for i, secrets in enumerate(states):
            if absent not in secrets:
                for j, first in enumerate(firsts):
                    among = sum(r in f for r, f in zip(secrets, first, strict=True))
                    gain[i, j] = (among >= successes) / space**canaries
        worst = _worst(len(states), pairs, gain, epsilon=epsilon, delta=delta)
        if worst > 1 - 1e-6:
            continue
        # Whatever the worst mechanism does more often than the error, the true epsilon allows.
        found = bound_in_one_run(
            [1] * successes + [space] * (canaries - successes),
            space=space,
            top=top,
            delta=delta,
            confidence=1 - worst + 1e-7,
        )
        assert found.epsilon_lower <= epsilon
