"""Correlated noise against all turns one by one, against least squares, and attacked."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from privasr_k2.privacy.correlated import RoundNoise, correlated_event
from privasr_k2.privacy.noise import standard_normal_vector
from privasr_k2.privacy.strategies import STRATEGIES, Strategy, Turns
from privasr_k2.randomness import new_secret, noise_stream


def kinds(rounds: int, decay: float = 1.0) -> list[Strategy]:
    """All strategies, and square roots of other widths."""
    whole = [Strategy(name, rounds, decay) for name in STRATEGIES]
    widths = range(1, rounds) if rounds < 8 else (2, 5)
    return [*whole, *(Strategy("square_root", rounds, decay, bands) for bands in widths)]


def sets_of_rounds(rounds: int, turns: Turns) -> list[tuple[int, ...]]:
    """Every set of rounds that a unit can be in, one by one."""
    return [
        taken
        for size in range(1, min(turns.most, rounds) + 1)
        for taken in itertools.combinations(range(rounds), size)
        if all(b - a >= turns.apart for a, b in itertools.pairwise(taken))
    ]


def length(values: np.ndarray, norm: str) -> float:
    whole = [int(value) for value in values]
    return float(sum(whole)) if norm == "l1" else float(sum(v * v for v in whole)) ** 0.5


@pytest.mark.parametrize("decay", [1.0, 0.7])
@pytest.mark.parametrize("rounds", [1, 2, 3, 5, 6, 8, 10])
def test_sensitivity_over_all_sets_of_rounds(rounds: int, decay: float) -> None:
    for apart in range(1, rounds + 1):
        for most in range(1, -(-rounds // apart) + 1):
            turns = Turns(most, apart)
            sets = [list(taken) for taken in sets_of_rounds(rounds, turns)]
            for strategy in kinds(rounds, decay):
                if strategy.name == "tree" and apart & (apart - 1):
                    continue
                moved = [5 * strategy.encode[:, taken].sum(axis=1) for taken in sets]
                for norm in ("l1", "l2"):
                    worst = max(length(one, norm) for one in moved)
                    claimed = strategy.sensitivity(5, turns, norm)
                    assert worst <= claimed <= worst * (1 + 1e-6), (strategy, turns, norm)


@pytest.mark.parametrize("rounds", [5, 11, 14])
def test_trees_over_all_sets_of_rounds_exactly_apart(rounds: int) -> None:
    """With any distance: some or all of the rounds of each first."""
    tree = Strategy("tree", rounds)
    for apart in range(1, rounds + 1):
        turns = Turns(-(-rounds // apart), apart)
        worst = 0.0
        for first in range(apart):
            places = range(first, rounds, apart)
            for size in range(1, len(places) + 1):
                for taken in itertools.combinations(places, size):
                    worst = max(worst, length(tree.encode[:, list(taken)].sum(axis=1), "l2"))
        assert worst <= tree.sensitivity(1, turns, "l2") <= worst * (1 + 1e-6)


def test_trees_and_other_distances_need_their_order() -> None:
    """Why a distance of 7 is for units that keep it: with a longer break one moves more."""
    tree, broken = Strategy("tree", 32), [0, 7, 14, 24, 31]
    moved = length(tree.encode[:, broken].sum(axis=1), "l2")
    assert moved > 1.01 * tree.sensitivity(1, Turns(5, 7), "l2")
    assert moved < tree.sensitivity(1, Turns(5, 4), "l2")


def test_vectors_move_no_more_than_one_and_the_same() -> None:
    """Contributions of any direction, which may turn against each other, as the proof has them."""
    generator = np.random.default_rng(1)
    for strategy in kinds(8):
        turns = Turns(3, 2)
        claimed = strategy.sensitivity(1, turns, "l2")
        for taken in sets_of_rounds(8, turns):
            moved = np.zeros((8, 3))
            sent = generator.normal(size=(len(taken), 3)) + generator.normal(size=3) * 2
            moved[list(taken)] = sent / np.linalg.norm(sent, axis=1, keepdims=True)
            assert np.linalg.norm(strategy.encode @ moved) <= claimed


@pytest.mark.parametrize("rounds", [1, 2, 3, 5, 7, 8, 12, 16, 21])
@pytest.mark.parametrize("decay", [1.0, 0.8])
def test_decoding_is_least_squares_of_what_is_there(rounds: int, decay: float) -> None:
    for strategy in kinds(rounds, decay):
        last = [max(np.flatnonzero(row)) for row in strategy.encode]
        for number in range(rounds):
            there = [row for row, end in enumerate(last) if end <= number]
            wanted = decay ** np.arange(number, -1, -1.0)
            expected = np.zeros(len(last))
            measured = strategy.encode[there, : number + 1].astype(float) / strategy.scale
            expected[there] = wanted @ np.linalg.pinv(measured)
            found = strategy.decode[number] * strategy.scale
            np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize(("name", "bands"), [("square_root", 4), ("blt", None), ("tree", None)])
def test_the_privacy_loss_of_an_adaptive_unit(name: str, bands: int | None) -> None:
    """Each contribution depends on what was released; the loss is that of one Gaussian mechanism.

    20,000 games are played side by side, a value a game. The loss is computed from the densities of
    the measurements, with nothing of the proof.
    """
    rounds, games, sigma = 8, 20_000, 3.0
    strategy, turns = Strategy(name, rounds, bands=bands), Turns(2, 4)
    secret = new_secret()
    ours = RoundNoise(strategy, sigma, "sum", lambda *names: noise_stream(secret, *names))
    matrix = strategy.encode / strategy.scale
    last = np.array([max(np.flatnonzero(row)) for row in matrix])
    sent, released = np.zeros((rounds, games)), np.zeros((rounds, games))
    for number in range(rounds):
        if number % 4 == 0:  # its turn: the sign follows what it sees
            sent[number] = np.where(released[:number].sum(axis=0) >= 0, 1.0, -1.0)
        released[number] = ours.add(number, sent[number], bound=1.0)
    # What was measured, as a tree's blocks give it: its sum of rounds would not tell all.
    if name == "tree":
        levels = np.log2(matrix.sum(axis=1)).astype(int)
        rows = [noise_stream(secret, int(t), "sum", int(n)) for t, n in zip(last, levels)]
        normal = np.array([standard_normal_vector(row, games) for row in rows])
        measured = matrix @ sent + sigma * normal
    else:
        measured = matrix @ released
    loss = (measured**2 - (measured - matrix @ sent) ** 2).sum(axis=0) / (2 * sigma**2)
    multiplier = correlated_event(sigma, strategy, turns).noise_multiplier
    largest = stats.norm(1 / (2 * multiplier**2), 1 / multiplier)
    if name == "square_root":  # 4 bands and 4 rounds apart: every choice of signs moves as much
        assert stats.kstest(loss, largest.cdf).pvalue > 1e-7
    # Nothing of the loss is beyond that of the claim.
    for point in largest.ppf([0.5, 0.9, 0.99]):
        assert (loss > point).mean() < largest.sf(point) + 6 * (largest.sf(point) / games) ** 0.5


@pytest.mark.parametrize(
    ("name", "bands"),
    [("increments", None), ("square_root", 5), ("blt", None), ("tree", None)],
)
def test_the_best_attack_sees_what_is_claimed(name: str, bands: int | None) -> None:
    """Released sums, whitened, along the unit's direction: noise by motion is the multiplier."""
    rounds, values, turns = 20, 4000, Turns(4, 5)
    strategy = Strategy(name, rounds, bands=bands)
    secret = new_secret()
    ours = RoundNoise(strategy, 2.0, "sum", lambda *names: noise_stream(secret, *names))
    noise = np.array([ours.add(number, np.zeros(values), bound=1.0) for number in range(rounds)])
    unit = np.zeros(rounds)
    unit[::5] = 1.0
    # The covariance of all rounds, and the best linear statistic for this direction.
    spread = np.diff(strategy.decode * strategy.scale, axis=0, prepend=0.0)
    weights = np.linalg.solve(spread @ spread.T, unit)
    seen = (weights @ noise).std() / (weights @ unit)
    claimed = correlated_event(2.0, strategy, turns).noise_multiplier
    assert seen == pytest.approx(claimed, rel=0.06) if name != "tree" else seen > claimed * 0.94
