"""Events of bounded range: costs at the ends, relations, groups, compositions with others."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import bounded_range, events, loss_distributions, renyi
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.groups import for_group

AOR, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE


@pytest.mark.parametrize("eta", [1e-12, 1e-5, 0.1, 3.0, 50.0, 1e6])
def test_the_divergence_lies_between_its_ends(eta):
    orders = np.array([1 + 1e-9, 1.5, 2.0, 50.0, 1e7])
    found = bounded_range.rdp(eta, orders)
    assert (found <= np.minimum(eta, orders * eta**2 / 8)).all()
    assert (np.diff(found) >= -1e-9 * found[1:]).all() and (found > 0).all()
    if eta < 0.01:
        assert found[:3] == pytest.approx(orders[:3] * eta**2 / 8, rel=1e-4)
    if eta >= 0.1:
        assert found[-1] == pytest.approx(eta, rel=1e-3)


def test_the_profile_falls_and_adds_up_to_no_more_than_the_range():
    epsilons = np.linspace(-2.5, 2.5, 41)
    before = bounded_range.profile(0.4, 1, epsilons)
    for count in (2, 5):
        found = bounded_range.profile(0.4, count, epsilons)
        assert (np.diff(found) <= 0).all() and (found >= before).all()
        assert (found[epsilons >= 0.4 * count] == 0).all()
        low = epsilons <= -0.4 * count
        assert found[low] == pytest.approx(-np.expm1(epsilons[low]))
        before = found


def test_replacing_and_groups_add_ranges():
    event = events.repeated(events.bounded_range(0.25), 7)
    assert events.for_replacing(event) == events.repeated(events.bounded_range(0.5), 7)
    assert for_group(event, 3) == events.repeated(events.bounded_range(0.75), 7)
    assert account(event, REPLACE, 1e-6) == account(for_group(event, 2), AOR, 1e-6)


def test_many_answers_are_composed_in_blocks():
    """Epsilon grows with every answer, also where a block begins."""
    costs = [
        account(events.repeated(events.bounded_range(0.3), count), AOR, 1e-5).pld
        for count in (63, 64, 65, 127, 128, 129)
    ]
    assert costs == sorted(costs) and costs[-1] < 1.6 * costs[0]


def test_beside_other_noise_costs_add_up():
    answers = events.repeated(events.bounded_range(0.1), 100)
    gaussian = events.repeated(events.gaussian(20.0), 100)
    both = account(events.composed(answers, gaussian), AOR, 1e-5)
    alone = [account(event, AOR, 1e-5).value for event in (answers, gaussian)]
    assert max(alone) < both.value < sum(alone)
    # A Gaussian of the same cost order by order: 0.1^2 / 8 = 1 / (2 20^2).
    doubled = account(events.repeated(events.gaussian(20.0), 200), AOR, 1e-5)
    assert both.value == pytest.approx(doubled.value, rel=0.03)


def test_of_two_ranges_the_costlier_one_has_the_blocks():
    mixed = events.composed(
        events.repeated(events.bounded_range(0.1), 200),
        events.repeated(events.bounded_range(0.2), 3),
    )
    found = account(mixed, AOR, 1e-5)
    alone = account(events.repeated(events.bounded_range(0.1), 200), AOR, 1e-5)
    assert alone.pld < found.pld < found.rdp


def test_a_range_is_pure_and_beyond_some_size_no_more_than_that():
    assert renyi.pure_epsilon(events.bounded_range(0.5)) == 0.5
    wide = account(events.repeated(events.bounded_range(40.0), 3), AOR, 1e-5)
    assert wide.pld is None and 110 < wide.rdp <= 120
    one = events.bounded_range(1.0)
    assert loss_distributions.delta(one, 0.0) == pytest.approx(math.tanh(0.25), rel=1e-6)
    assert loss_distributions.delta(one, 0.0) < loss_distributions.delta(events.pure(1.0), 0.0)


@pytest.mark.parametrize("eta", [0.0, -1.0, math.nan, math.inf])
def test_ranges_that_cannot_be(eta):
    with pytest.raises(PrivacyError, match="eta"):
        events.bounded_range(eta)
