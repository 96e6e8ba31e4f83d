"""The influence of one unit by brute force, the cost of noise, and files of releases."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.federated import fmp_published
from privasr_k2.federated.fmp_published import (
    largest_move,
    moves_of_units,
    published_event,
    published_marginals,
    published_sums,
    published_worth,
    spending_of,
    usable,
)
from privasr_k2.federated.fmp_release import (
    clipped_increments,
    read_release,
    released_marginals,
    unit_numbers,
    write_release,
)
from privasr_k2.federated.fmp_settings import PublishedConfig
from privasr_k2.federated.fmp_simulation import rounds_of
from privasr_k2.federated.fmp_spoken import Spoken, WordNumbers
from privasr_k2.federated.marginals import background_unigrams, smoothed, utterance_counts
from privasr_k2.privacy import release
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.spending import SETTINGS, Spending, guarantees
from privasr_k2.privacy.strategies import STRATEGIES, Turns
from tests.support.fmp_release import mechanism
from tests.support.fmp_tiny import CACHES, NUMBERS, random_world

U = background_unigrams([list("abcab")], NUMBERS, 3.0)
_, _, SPOKEN = random_world(5, utterances=24)


def norm_of(values: np.ndarray, norm: str) -> float:
    """Exactly, over all values."""
    whole = [int(value) for value in values.ravel()]
    return float(sum(map(abs, whole))) if norm == "l1" else float(sum(v * v for v in whole)) ** 0.5


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", ["discrete_laplace", "discrete_gaussian"])
@pytest.mark.parametrize(
    ("unit", "max_rounds"), [("utterance", 0), ("user", 0), ("user", 2), ("client", 1)]
)
def test_no_unit_moves_more_than_is_claimed(
    strategy: str, kind: str, unit: str, max_rounds: int
) -> None:
    made = mechanism(strategy=strategy, mechanism=kind, unit=unit, max_rounds=max_rounds)
    counts = utterance_counts(SPOKEN, 1.0, normalized=True)
    rounds, (units, number) = rounds_of(SPOKEN, 3), unit_numbers(SPOKEN, unit)
    whole = clipped_increments(counts, rounds, units, made)
    claimed = made.strategy.sensitivity(made.bound_steps, Turns(made.max_rounds, 1), made.norm)
    found = []
    for one in range(number):
        silent = counts * (units != one)[:, None]
        moved = whole - clipped_increments(csr_array(silent), rounds, units, made)
        assert all(norm_of(row, made.norm) <= made.bound_steps for row in moved)
        assert np.count_nonzero(moved.any(axis=1)) <= made.max_rounds
        found.append(norm_of(made.measure(moved), made.norm))
    assert max(found) <= claimed
    assert max(found) > 0.3 * claimed  # it is no bound that nothing comes near


@pytest.mark.parametrize(
    ("kind", "bound", "row"),
    [
        ("discrete_laplace", 10.0, (1, 1, 1, 1, 6)),
        ("discrete_gaussian", 8.0, (1, 2, 2, 1, 2, 7, 1)),
    ],
)
def test_a_long_unit_changes_nobody_elses_clip(
    kind: str, bound: float, row: tuple[int, ...]
) -> None:
    """Norms at the bound came out otherwise beside a longer row, with which they were padded."""
    made = mechanism(mechanism=kind, bound=bound, rounds=1)
    counts = np.zeros((301, 164))
    counts[:300, : len(row)] = row
    counts[300, 100:] = 1.0
    rounds, units = np.zeros(301, dtype=int), np.arange(301)
    whole = clipped_increments(csr_array(counts), rounds, units, made)
    counts[300] = 0.0
    moved = whole - clipped_increments(csr_array(counts), rounds, units, made)
    assert not moved[:, :100].any()
    assert norm_of(moved, made.norm) <= made.bound_steps


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", ["discrete_laplace", "discrete_gaussian"])
def test_the_worst_unit_reaches_the_claim(strategy: str, kind: str) -> None:
    made = mechanism(strategy=strategy, mechanism=kind, unit="user", max_rounds=2)
    counts = csr_array(np.array([[0.0, 9.0, 0.0]] * 4))
    moved = clipped_increments(counts, np.arange(4), np.zeros(4, dtype=int), made)
    claimed = made.strategy.sensitivity(made.bound_steps, Turns(2, 1), made.norm)
    # Steps are cut off twice.
    assert abs(norm_of(made.measure(moved), made.norm) / claimed - 1) < 2e-4


def test_without_the_clip_a_unit_moves_more() -> None:
    made = mechanism(unit="user", bound=0.5)
    counts = utterance_counts(SPOKEN, 1.0, normalized=True)
    rounds, (units, number) = rounds_of(SPOKEN, 3), unit_numbers(SPOKEN, "user")
    loose = mechanism(unit="user", bound=64.0)
    whole = clipped_increments(counts, rounds, units, loose)
    silent = (csr_array(counts * (units != unit)[:, None]) for unit in range(number))
    moves = (whole - clipped_increments(others, rounds, units, loose) for others in silent)
    steps = max(norm_of(moved, "l1") for moved in moves)
    assert steps * loose.grid.step > 3 * 0.5 * made.max_rounds


def test_cutting_rounds_again_moves_others_too() -> None:
    """Why the guarantee is for rounds as they were cut: when utterances came is public."""
    places = np.arange(12)
    before, after = places * 4 // 12, np.delete(np.arange(-1, 11), 0) * 4 // 11
    counts = csr_array(np.eye(12))
    made = mechanism(rounds=3)
    moved = clipped_increments(counts, before, places, made)
    moved -= clipped_increments(csr_array(counts[1:]), after, places[1:], made)
    assert norm_of(moved, "l1") > made.bound_steps


@pytest.mark.parametrize("kind", ["discrete_laplace", "discrete_gaussian"])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_the_event_costs_what_was_asked(kind: str, strategy: str, epsilon: float) -> None:
    made = mechanism(mechanism=kind, strategy=strategy, epsilon=epsilon, unit="user", max_rounds=2)
    found = account(made.event, Relation.ADD_OR_REMOVE_ONE, 1e-5).value
    assert 0.995 * epsilon <= found <= epsilon
    spent = made.spending("user", 48)
    assert spent.unit == "user" and spent.event == made.event
    assert any("first 2 rounds" in sentence for sentence in spent.does_not_cover)
    assert SETTINGS in spent.does_not_cover


def test_gaussian_noise_is_less_for_many_different_words() -> None:
    """One utterance of m different words: m in L1, the root of m in L2."""

    def error(kind: str, bound: float) -> float:
        return float(mechanism(mechanism=kind, bound=bound, delta=1e-6, rounds=1).errors()[0])

    assert error("discrete_laplace", 4.0) < error("discrete_gaussian", 2.0)
    assert error("discrete_gaussian", 5.0) < error("discrete_laplace", 25.0)


def test_noise_has_the_stated_errors() -> None:
    for kind in ("discrete_laplace", "discrete_gaussian"):
        made = mechanism(mechanism=kind, strategy="square_root")
        noisy = made.sums(made.noise.add(np.zeros((3, 1500), dtype=np.int64)))
        assert np.allclose(noisy.std(axis=1) / made.errors(), 1, atol=0.12), kind


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("epsilon", 0.0), ("epsilon", -1.0), ("delta", 0.0), ("bound", 0.0), ("decay", 0.0)),
        *(("unit", "city"), ("mechanism", "laplace"), ("strategy", "none"), ("rounds", 0)),
        ("kernel_bandwidth", -1.0),
    ],
)
def test_values_out_of_range(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        mechanism(**{name: value})


def begun(folder: Path, spending: Spending, fingerprint: str = "a" * 64) -> Any:
    costs = {"spending": spending, "fingerprint": fingerprint, "max_epsilon": None}
    return release.begin(folder / "ledger.json", beside=folder / "privacy.json", **costs)


def test_a_release_is_written_once_and_read_back(tmp_path: Path) -> None:
    made, path = mechanism(), tmp_path / "out" / "released.safetensors"
    path.parent.mkdir()
    spending = made.spending("utterance", 24)
    with begun(tmp_path, spending) as started:
        write_release(path, SPOKEN, made, started)
    content = path.read_bytes()
    with begun(tmp_path, spending) as again:
        assert again.is_finished
        write_release(path, SPOKEN, made, again)
    assert path.read_bytes() == content
    read, measured = read_release(path, NUMBERS)
    assert read == made and measured.shape == (3, 9) and measured.any()
    with begun(tmp_path, spending, "b" * 64) as other:
        write_release(path, SPOKEN, made, other)
    assert path.read_bytes() != content
    with pytest.raises(DataError, match="of this vocabulary"):
        read_release(path, WordNumbers({"a": 1}, 2, 0, (0,), None))
    path.unlink()
    missing = pytest.raises(PrivacyError, match="something of it is missing")
    with begun(tmp_path, spending, "b" * 64) as gone, missing:
        write_release(path, SPOKEN, made, gone)
    with pytest.raises(DataError, match="released marginals"):
        read_release(path, NUMBERS)


def test_post_processing_gives_distributions() -> None:
    rng = np.random.default_rng(1)
    sums = rng.normal(size=(4, 9)) * 10
    sums[3] = -5.0
    for threshold in (0.0, 2.0, np.inf):
        found = released_marginals(sums, np.full(4, 10.0), U, threshold=threshold, prior_words=2.0)
        assert (found[:, 1:] > 0).all() and not found[:, 0].any()
        assert np.allclose(found.sum(axis=1), 1, atol=1e-6)
    assert np.allclose(found, U, atol=1e-12)
    negative = released_marginals(sums[3:], np.full(1, 10.0), U, threshold=0.0, prior_words=2.0)
    assert np.allclose(negative, U)
    with pytest.raises(ValueError, match="threshold"):
        released_marginals(sums, np.ones(4), U, threshold=-1.0, prior_words=0.0)


def test_post_processing_without_noise_is_equation_6() -> None:
    counts = np.array([[0.0, 30, 10, 0, 0, 0, 0, 0, 60]])
    found = released_marginals(counts, np.zeros(1), U, threshold=3.0, prior_words=1.0)
    assert np.allclose(found, (counts + U) / 101, atol=1e-12)


def test_the_threshold_believes_what_noise_cannot_explain() -> None:
    counts = np.array([[0.0, 100, 0, 0, 0, 0, 0, 3, 100]])
    [found] = released_marginals(counts, np.array([5.0]), U, threshold=2.0, prior_words=1.0)
    found /= U.clip(1e-9)
    assert found[8] > 2 and found[7] < found[8]
    assert found[1] < 203 * U[1]


def test_published_equations_and_what_they_are_worth(tmp_path: Path) -> None:
    sums = published_sums(SPOKEN, CACHES, U)
    counts = utterance_counts(SPOKEN, 1.0, normalized=False)
    weights = np.asarray(counts.sum(axis=1)).ravel()
    in_round = rounds_of(SPOKEN, 2)
    assert np.allclose(sums.sum(axis=1), [weights[in_round <= t].sum() for t in range(2)])
    config = PublishedConfig(
        "x", "utterance", 2, 1.0, 1.0, 2.0, epsilon=50.0, words=40.0, delta=1e-5
    )
    with begun(tmp_path, spending_of(config, SPOKEN)) as started:
        noisy, replaced = published_marginals(sums, 50.0, U, started)
    [found] = guarantees([spending_of(config, SPOKEN)])
    assert math.isinf(found.epsilon.value) and math.isinf(found.person.value)
    assert found.only_for == ("each utterance of at most 40 words",)
    assert found.only_for_epsilon is not None
    assert found.only_for_epsilon.value == pytest.approx(40 * 2 * 50, rel=1e-3)
    error = np.abs(noisy - sums / sums.sum(axis=1, keepdims=True)).max()
    assert replaced == 0 and np.allclose(noisy.sum(axis=1), 1) and 1e-4 < error < 0.05
    assert (usable(np.array([[-0.5, 1.0, 0.5]])) == [[0, 2 / 3, 1 / 3]]).all()


def test_a_round_without_a_total_has_the_background(tmp_path: Path) -> None:
    """Small epsilon: the noise outweighs the words of some rounds."""
    rounds = 40
    sums = np.tile(published_sums(SPOKEN, CACHES, U)[:1], (rounds, 1))
    config = PublishedConfig(
        "x", "utterance", rounds, 1.0, 1.0, 2.0, epsilon=0.1, words=7.0, delta=1e-5
    )
    with begun(tmp_path, spending_of(config, SPOKEN)) as started:
        found, replaced = published_marginals(sums, 0.1, U, started)
    same = (found == U).all(axis=1)
    assert 0 < replaced == same.sum() < rounds
    assert np.allclose(found.sum(axis=1), 1)


def test_totals_that_fall_to_zero_are_written_read_and_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums far below 0 in the second round: whatever the noise is, its total is below 0."""
    sums = published_sums(SPOKEN, CACHES, U)
    sums[1] = -1000.0
    monkeypatch.setattr(fmp_published, "published_sums", lambda *_: sums)
    config = PublishedConfig(
        "x", "utterance", 2, 1.0, 1.0, 2.0, epsilon=50.0, words=7.0, delta=1e-5
    )
    path = tmp_path / "marginals.safetensors"
    with begun(tmp_path, spending_of(config, SPOKEN)) as started:
        fmp_published.write_published(path, SPOKEN, config, U, started)
    found, about = fmp_published.read_published(path, NUMBERS)
    assert about["background_rounds"] == 1
    assert np.allclose(found[1], U) and not np.allclose(found[0], U)


def test_published_epsilon_of_an_average_utterance_of_ami() -> None:
    """89,666 words in 12,643 utterances, ten releases: 70.9 in place of 1."""
    event = published_event(1.0, 89_666 / 12_643, 10)
    assert round(account(event, Relation.ADD_OR_REMOVE_ONE, 1e-6).value, 1) == 70.9
    worth = published_worth(SPOKEN, CACHES, 1.0, 1e-6, "user")
    heaviest = moves_of_units(SPOKEN, CACHES, "user").max()
    assert worth["average"].value < worth["largest"].value
    assert abs(worth["largest"].value - 2 * heaviest) < 1e-3
    smoothed = dataclasses.replace(CACHES, prior_words=0.0)
    both = published_worth(SPOKEN, smoothed, 1.0, 1e-6, "user")
    for name in ("average", "largest"):  # the paper's own arithmetic, without our smoothing
        assert both[f"paper_{name}"] == worth[name] == worth[f"paper_{name}"]
        assert both[name].value > both[f"paper_{name}"].value
    with pytest.raises(PrivacyError, match="epsilon"):
        published_event(0.0, 7.0, 10)


def without(gone: np.ndarray) -> Spoken:
    """``SPOKEN`` with some utterances silent."""
    tokens = np.where(gone[SPOKEN.token_utterances], NUMBERS.end, SPOKEN.tokens)
    return dataclasses.replace(SPOKEN, tokens=tokens)


@pytest.mark.parametrize("prior_words", [4.0, 0.0])
@pytest.mark.parametrize("unit", ["utterance", "user", "client"])
def test_published_noise_moves_as_the_brute_force_says(unit: str, prior_words: float) -> None:
    """Without one unit: by its weight for constant smoothing, else by no more than the bound."""
    config = dataclasses.replace(CACHES, prior_words=prior_words)
    whole, in_round = published_sums(SPOKEN, config, U), rounds_of(SPOKEN, 2)
    weights = np.asarray(utterance_counts(SPOKEN, 1.0, normalized=False).sum(axis=1)).ravel()
    weights[in_round == 2] = 0.0
    units, number = unit_numbers(SPOKEN, unit)
    of_units = np.bincount(units, weights, minlength=number)
    claimed = np.zeros(number)
    claimed[of_units > 0] = moves_of_units(SPOKEN, config, unit)
    for one in np.flatnonzero(of_units > 0):
        moved = np.abs(whole - published_sums(without(units == one), config, U)).sum(axis=1)
        assert (moved <= claimed[one] * (1 + 1e-9)).all()
        if prior_words or unit == "client":
            assert np.isclose(claimed[one], of_units[one]) and np.isclose(moved[1], of_units[one])
        assert not moved[: in_round[units == one].min()].any()


def test_words_that_are_new_move_what_was_counted_before() -> None:
    """One utterance of seven new words beside sixty: nearly three times its own weight."""
    background = np.full(1000, 1e-3)
    before = np.zeros(1000)
    before[:12] = 20.0
    after = before.copy()
    after[500:507] = 1.0
    sums = [c.sum() * smoothed(c, background, 0.0) for c in (before, after)]
    moved = np.abs(sums[1] - sums[0]).sum()
    assert 2.5 * 7 < moved <= float(largest_move(7.0, 7, 0.0)) == 21.0
