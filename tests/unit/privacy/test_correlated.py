"""Correlated noise is that of the strategy's matrices, once a round, the same after a kill."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events, noise
from privasr_k2.privacy.correlated import RoundNoise, correlated_event
from privasr_k2.privacy.noise import GaussianNoise, standard_normal_vector
from privasr_k2.privacy.strategies import Strategy, Turns
from privasr_k2.randomness import noise_stream

SECRET = bytes(range(32))
BANDS = [("square_root", bands) for bands in (None, 3, 1)]
KINDS = [("increments", None), *BANDS, ("tree", None)]
SIZE = 40


class Streams:
    """Under a key that the tests fix; remembers what was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple] = []

    def __call__(self, *names):
        self.asked.append(names)
        return noise_stream(SECRET, *names)


def measured(strategy: Strategy) -> np.ndarray:
    """z, (M, SIZE), in the order of the rows of C."""
    found = []
    for row in strategy.encode:
        places = np.flatnonzero(row)
        # A Toeplitz row is measured in its round, a block in its last.
        level = int(math.log2(len(places))) if strategy.name == "tree" else 0
        stream = noise_stream(SECRET, int(places[-1]), "sum", level)
        found.append(standard_normal_vector(stream, SIZE))
    return np.array(found)


@pytest.mark.parametrize("rounds", [1, 2, 5, 30])
def test_buffers_solve_their_own_matrix(rounds: int) -> None:
    """Against the triangular matrix of the exact coefficients, which are nowhere rounded."""
    strategy = Strategy("blt", rounds)
    weights, decays = strategy.buffers
    column = np.array([1.0, *(float(weights @ decays**t) for t in range(rounds - 1))])
    matrix = np.array(
        [[column[t - s] if s <= t else 0.0 for s in range(rounds)] for t in range(rounds)]
    )
    expected = np.linalg.solve(matrix, measured(Strategy("increments", rounds)))
    ours = RoundNoise(strategy, 1.5, "sum", Streams())
    grid = GaussianNoise(noise_multiplier=1.5, l2_sensitivity=1.0).grid
    for number in range(rounds):
        found = ours.add(number, np.zeros(SIZE), bound=1.0)
        assert np.abs(found - 1.5 * expected[number]).max() <= grid * 0.5001


@pytest.mark.parametrize(("name", "bands"), KINDS)
@pytest.mark.parametrize("rounds", [1, 4, 7, 13])
def test_noise_is_that_of_the_matrices(name: str, bands: int | None, rounds: int) -> None:
    strategy = Strategy(name, rounds, bands=None if bands is None else min(bands, rounds))
    sums = strategy.decode @ measured(strategy) * strategy.scale
    expected = np.diff(sums, axis=0, prepend=0.0)
    ours = RoundNoise(strategy, 1.5, "sum", Streams())
    vectors = np.random.default_rng(1).normal(size=(rounds, SIZE)) * 50
    bounds = np.linspace(2.0, 0.5, rounds)
    for number in range(rounds):
        found = ours.add(number, vectors[number], bound=bounds[number])
        sigma = 1.5 * bounds[number]
        grid = GaussianNoise(noise_multiplier=1.5, l2_sensitivity=bounds[number]).grid
        assert np.abs(found - vectors[number] - sigma * expected[number]).max() <= grid * 0.5001
        assert (found / grid == np.rint(found / grid)).all()


@pytest.mark.parametrize(("name", "bands"), KINDS)
@pytest.mark.parametrize("killed_before", [1, 2, 5, 6])
def test_after_a_kill_it_is_the_same(name: str, bands: int | None, killed_before: int) -> None:
    strategy = Strategy(name, 7, bands=bands)
    whole = RoundNoise(strategy, 2.0, "sum", Streams())
    expected = [whole.add(number, np.zeros(5), bound=1.0) for number in range(7)]
    streams = Streams()
    again = RoundNoise(strategy, 2.0, "sum", streams)
    for number in range(killed_before, 7):
        assert (again.add(number, np.zeros(5), bound=1.0) == expected[number]).all()
    assert len(set(streams.asked)) == len(streams.asked)
    assert (min(streams.asked)[0] == 0) == (name != "increments")


def test_rounds_without_memory_are_those_of_plain_noise() -> None:
    plain = GaussianNoise(noise_multiplier=2.0, l2_sensitivity=0.5)
    for strategy in (Strategy("increments", 9), Strategy("square_root", 9, bands=1)):
        found = RoundNoise(strategy, 2.0, "sum", Streams()).add(4, np.arange(3.0), bound=0.5)
        assert (found == plain.add(np.arange(3.0), noise_stream(SECRET, 4, "sum", 0))).all()


def test_long_vectors_are_drawn_like_plain_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_BLOCK", 8)
    plain = GaussianNoise(noise_multiplier=2.0, l2_sensitivity=0.5)
    for size in (1, 7, 8, 9, 24, 27):
        expected = plain.add(np.zeros(size), noise_stream(SECRET, 0, "sum", 0))
        ours = RoundNoise(Strategy("increments", 2), 2.0, "sum", Streams())
        found = ours.add(0, np.zeros(size), bound=0.5)
        assert (found == expected).all() and len(set(found)) > 0.8 * size


def test_names_have_noise_of_their_own() -> None:
    both = (RoundNoise(Strategy("tree", 4), 2.0, name, Streams()) for name in "ab")
    found = [ours.add(1, np.zeros(4), bound=1.0) for ours in both]
    assert (found[0] != found[1]).all()


@pytest.mark.parametrize("order", [(0, 0), (3, 2), (7,), (-1,)])
def test_each_round_once_and_in_order(order: tuple[int, ...]) -> None:
    ours = RoundNoise(Strategy("square_root", 7), 1.0, "sum", Streams())
    with pytest.raises(PrivacyError, match="once, in their order"):
        for number in order:
            ours.add(number, np.zeros(2), bound=1.0)


def test_what_is_refused() -> None:
    strategy = Strategy("square_root", 7)
    guessable = RoundNoise(strategy, 1.0, "sum", lambda *names: np.random.default_rng(1))
    with pytest.raises(PrivacyError, match="can be guessed"):
        guessable.add(0, np.zeros(2), bound=1.0)
    for multiplier, bound, value in ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (1.0, 1.0, np.nan)):
        with pytest.raises(PrivacyError):
            ours = RoundNoise(strategy, multiplier, "sum", Streams())
            ours.add(0, np.full(2, value), bound=bound)


def test_independent_noise_costs_what_repeating_does() -> None:
    for most, apart in ((1, 1), (4, 1), (4, 5)):
        event = correlated_event(2.0, Strategy("increments", 20), Turns(most, apart))
        assert event.noise_multiplier == pytest.approx(2.0 / most**0.5, rel=1e-6)


def test_one_round_costs_its_own_column() -> None:
    root = Strategy("square_root", 30, bands=4)
    length = sum((math.comb(2 * k, k) / 4**k) ** 2 for k in range(4)) ** 0.5
    once = correlated_event(2.0, root, Turns(1, 1))
    assert once.noise_multiplier == pytest.approx(2 / length, rel=1e-4)
    turns = Turns(3, 10)
    expected = events.gaussian(2.0 * 2**16 / root.sensitivity(1, turns, "l2"))
    assert correlated_event(2.0, root, turns) == expected
    # A leaf is in 1 + log2(16) whole blocks of 16 rounds.
    tree = correlated_event(2.0, Strategy("tree", 16), Turns(1, 1))
    assert tree.noise_multiplier == pytest.approx(2 / 5**0.5, rel=1e-6)
