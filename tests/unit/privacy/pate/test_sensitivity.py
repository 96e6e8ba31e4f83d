"""One unit changes one teacher by anything: what the events claim about the counts holds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.groups import for_group
from privasr_k2.privacy.pate.gnmax import confident_gnmax_event, gnmax_event, posteriors_event
from privasr_k2.privacy.pate.lnmax import lnmax_event
from privasr_k2.privacy.pate.mechanisms import Amounts, mechanism
from privasr_k2.privacy.pate.sensitivity import Change

CLASSES = 5
votes_of_teachers = st.lists(st.integers(0, CLASSES - 1), min_size=1, max_size=30)
weights_of_classes = st.lists(
    st.floats(0, 1e6, allow_nan=False), min_size=CLASSES, max_size=CLASSES
).filter(lambda values: sum(values) > 0)


@settings(deadline=None)
@given(votes_of_teachers, st.integers(0, 29), st.integers(0, CLASSES - 1))
def test_a_changed_teacher_moves_the_counts_by_what_the_events_claim(
    votes: list[int], teacher: int, other: int
) -> None:
    changed = list(votes)
    changed[teacher % len(votes)] = other
    before, after = (np.bincount(v, minlength=CLASSES) for v in (votes, changed))
    moved = before - after
    claimed_l2 = 1 / gnmax_event(sigma=1.0, answers=1, discrete=False).event.noise_multiplier
    assert np.linalg.norm(moved) <= claimed_l2 * (1 + 1e-12)
    # Discrete events: two counts move by 1 each.
    for event in (
        gnmax_event(sigma=1.0, answers=1, discrete=True),
        lnmax_event(scale=1.0, answers=1, discrete=True),
        lnmax_event(scale=1.0, answers=1, discrete=False),
    ):
        ((leaf, count),) = events.terms(event).items()
        assert np.count_nonzero(moved) <= count
        assert np.abs(moved).max() <= getattr(leaf, "sensitivity", 1)
    # The threshold is compared with the largest count, which moves by 1.
    check = events.gaussian(1.0)
    asked = {"answers": 0, "threshold_sigma": 1.0, "asked": 1}
    event = confident_gnmax_event(sigma=3.0, **asked, discrete=False)
    assert events.terms(event) == {check: 1}
    assert abs(int(before.max()) - int(after.max())) <= 1 / check.noise_multiplier


@settings(deadline=None)
@given(
    st.lists(weights_of_classes, min_size=1, max_size=6),
    weights_of_classes,
    st.integers(0, 5),
    st.lists(st.floats(0.01, 1.0), min_size=6, max_size=6),
)
def test_a_changed_posterior_moves_the_weighted_sum_by_what_its_event_claims(
    posteriors: list[list[float]], other: list[float], teacher: int, weights: list[float]
) -> None:
    before = np.array(posteriors) / np.sum(posteriors, axis=1, keepdims=True)
    used = np.array(weights[: len(before)])
    after = before.copy()
    after[teacher % len(before)] = np.array(other) / np.sum(other)
    event = posteriors_event(sigma=1.0, largest_weight=float(used.max()), vectors=1)
    claimed = 1 / event.event.noise_multiplier
    assert np.linalg.norm(used @ before - used @ after) <= claimed * (1 + 1e-9)
    assert math.isclose(claimed, math.sqrt(2) * used.max())


def pairs(
    teachers: int, classes: int, change: Change
) -> Iterator[tuple[tuple[int | None, ...], tuple[int | None, ...]]]:
    """All votes of all teachers (None: abstains) with and without the data of one unit."""
    options = [None, *range(classes)]
    for votes in itertools.product(options, repeat=teachers):
        for place, own in itertools.product(range(teachers), options):
            if change is Change.GIVEN and None not in (votes[place], own):
                continue  # the unit is alone in its shard: with its data a vote, without it none
            yield votes, (*votes[:place], own, *votes[place + 1 :])


def histogram(votes: tuple[int | None, ...], classes: int) -> np.ndarray:
    return np.bincount([vote for vote in votes if vote is not None], minlength=classes)


@pytest.mark.parametrize("change", Change)
@pytest.mark.parametrize(("teachers", "classes"), [(1, 2), (2, 3), (3, 3), (4, 2)])
def test_the_largest_change_of_all_neighbouring_histograms_is_the_sensitivity(
    change: Change, teachers: int, classes: int
) -> None:
    l1 = l2 = counts = of_largest = 0.0
    for votes, without in pairs(teachers, classes, change):
        before, after = histogram(votes, classes), histogram(without, classes)
        l1, l2 = max(l1, np.abs(before - after).sum()), max(l2, np.linalg.norm(before - after))
        counts = max(counts, np.count_nonzero(before - after))
        of_largest = max(of_largest, abs(int(before.max()) - int(after.max())))
    assert (l1, counts) == (change.l1, change.counts) and l2 == pytest.approx(change.l2)
    assert of_largest == 1  # the threshold check, either way


@pytest.mark.parametrize(("teachers", "classes"), [(1, 2), (2, 3), (3, 3)])
def test_a_public_vote_in_place_of_silence_would_make_a_vote_move(teachers, classes):
    largest = {"silent": 0.0, "stand-in": 0.0}
    for votes, without in pairs(teachers, classes, Change.GIVEN):
        for name, own in {"silent": None, "stand-in": 0}.items():
            before, after = (
                histogram(tuple(own if v is None else v for v in side), classes)
                for side in (votes, without)
            )
            largest[name] = max(largest[name], float(np.linalg.norm(before - after)))
    assert largest["silent"] == Change.GIVEN.l2
    assert largest["stand-in"] == pytest.approx(Change.MOVES.l2)


@pytest.mark.parametrize("change", Change)
def test_events_have_the_sensitivity_of_their_queries(change: Change) -> None:
    amounts = Amounts(3.0, 1, 1, threshold_noise=5.0, largest_weight=2.0, change=change)
    count, check = events.discrete_gaussian(3.0, 1), events.discrete_gaussian(5.0, 1)
    wanted = {
        "gnmax": {count: change.counts},
        "confident_gnmax": {count: change.counts, check: 1},
        "lnmax": {events.discrete_laplace(3.0, 1): change.counts},
        "gumbel_max": {events.bounded_range(change.l1 / 3.0): 1},
        "gaussian_posteriors": {events.gaussian(3.0 / (2.0 * change.l2)): 1},
        "laplace_posteriors": {events.laplace_vector(3.0 / (2.0 * change.l1)): 1},
    }
    for name, terms in wanted.items():
        assert events.terms(mechanism(name).event(amounts)) == terms, name


@pytest.mark.parametrize("change", Change)
def test_posteriors_that_are_given_or_not_change_by_no_more(change: Change) -> None:
    rng = np.random.default_rng(1)
    corners = [*np.eye(3), np.zeros(3), *rng.dirichlet([0.3] * 3, size=40)]
    largest = 0.0
    for one, other in itertools.product(corners, repeat=2):
        if change is Change.GIVEN and one.any() and other.any():
            continue
        assert np.linalg.norm(one - other) <= change.l2 + 1e-12
        assert np.abs(one - other).sum() <= change.l1 + 1e-12
        largest = max(largest, float(np.linalg.norm(one - other)))
    assert largest == pytest.approx(change.l2)


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def of_counts(pmf: np.ndarray, shifts: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Noise on several counts, and the same moved by ``shifts``, on one grid."""
    one = two = np.ones(1)
    for shift in shifts:
        one, two = np.outer(one, pmf).ravel(), np.outer(two, np.roll(pmf, shift)).ravel()
    return one, two


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("noise", [0.4, 1.0, 3.0])
@pytest.mark.parametrize(
    ("change", "spread"),
    [
        (Change.GIVEN, [(1, 1), (1, -1)]),  # -1: a replaced unit
        (Change.MOVES, [(2, -1, -1), (1, 1, -1, -1), (1, 1, -2)]),
    ],
)
def test_the_votes_of_a_group_cost_no_more_in_several_classes(
    kind: str, noise: float, change: Change, spread: list[tuple[int, ...]]
) -> None:
    """Two units: for_group moves the same counts by 2; other counts may change by 1 instead."""
    values = np.arange(-20, 21) if len(spread[-1]) < 4 else np.arange(-16, 17)
    exponent = values**2 / (2 * noise**2) if kind == "gaussian" else np.abs(values) / noise
    pmf = np.exp(-exponent) / np.exp(-exponent).sum()
    claimed = of_counts(pmf, (2,) if change is Change.GIVEN else (2, -2))
    for shifts in spread:
        found = of_counts(pmf, shifts)
        for epsilon in (0.0, 0.3, 1.0, 2.0, 4.0, 8.0):
            ours = max(hockey_stick(*found, epsilon), hockey_stick(*found[::-1], epsilon))
            # What np.roll brings round is below 1e-2 of the least noise's and 1e-3 of Laplace's.
            assert ours <= hockey_stick(*claimed, epsilon) * (1 + 1e-9) + 2e-3


def test_a_person_in_several_shards_costs_a_group() -> None:
    amounts = Amounts(40.0, 100, 100, change=Change.GIVEN)
    one = mechanism("gnmax").event(amounts)
    relation, delta = Relation.ADD_OR_REMOVE_ONE, 1e-5
    assert events.terms(for_group(one, 4)) == {events.discrete_gaussian(40.0, 4): 100}
    assert account(for_group(one, 4), relation, delta).value > account(one, relation, delta).value
