"""One unit changes one teacher by anything: what the events claim about the counts holds."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from privasr_k2.privacy import events
from privasr_k2.privacy.pate.gnmax import confident_gnmax_event, gnmax_event, posteriors_event
from privasr_k2.privacy.pate.lnmax import lnmax_event

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
