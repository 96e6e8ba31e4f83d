"""Events of searches and of weighted responses: relations, groups, ends, what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events, renyi
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.groups import for_group
from privasr_k2.privacy.replacement import weighted_replacement
from privasr_k2.privacy.searches import log_gamma

AOR, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE


@pytest.mark.parametrize("shape", [-0.9, 0.0, 1e-6, 1.0, 2.0, 100.0])
@pytest.mark.parametrize("mean", [1.001, 3.0, 1e6])
def test_gamma_gives_the_mean(mean, shape):
    gamma = math.exp(log_gamma(mean, shape))
    rest = math.log(1 / gamma) if shape == 0 else (1 - gamma**shape) / shape
    assert (1 / gamma - 1) / rest == pytest.approx(mean, rel=1e-4)


def test_more_runs_and_larger_shapes_cost_more():
    run = events.gaussian(5.0)
    costs = [
        account(events.search(run, mean, shape), AOR, 1e-6).value
        for mean, shape in ((1.001, 0.0), (5.0, 0.0), (50.0, 0.0), (50.0, 1.0), (50.0, 3.0))
    ]
    assert costs == sorted(costs) and account(run, AOR, 1e-6).value < costs[0]


def test_relations_and_groups_go_to_the_runs():
    run = events.composed(events.repeated(events.gaussian(4.0), 3), events.bounded_range(0.1))
    searched = events.search(run, 10.0, None)
    assert events.terms(searched) == {searched: 1}
    doubled = events.composed(events.repeated(events.gaussian(2.0), 3), events.bounded_range(0.2))
    assert events.for_replacing(searched) == events.search(doubled, 10.0, None)
    assert for_group(searched, 2) == events.search(doubled, 10.0, None)
    for of_words in (events.randomized_response(0.5, 4), events.weighted_response(0.5, 0.2)):
        for event in (of_words, events.search(of_words, 10.0, 1.0)):
            assert account(event, REPLACE, 1e-6).value > 0
            with pytest.raises(PrivacyError, match="replacing a unit only"):
                account(event, AOR, 1e-6)
        assert for_group(of_words, 3) == events.repeated(of_words, 3)
    with pytest.raises(PrivacyError, match="cost for replacing"):
        sampled = events.poisson_sampled(0.1, events.gaussian(1.0))
        events.for_replacing(events.search(sampled, 10.0, 1.0))


def test_a_search_of_nothing_or_of_what_is_unprotected():
    assert events.terms(events.search(events.composed(), 5.0, 1.0)) == {}
    assert events.is_unprotected(events.search(events.unprotected(), 5.0, 1.0))
    cohort = events.fixed_size_sampled(2, 10, events.gaussian(1.0))
    assert events.is_unprotected(for_group(events.search(cohort, 5.0, 1.0), 2))


def test_searches_are_pure_where_their_runs_are():
    run = events.composed(events.pure(0.1), events.bounded_range(0.2))
    assert renyi.pure_epsilon(events.search(run, 9.0, 1.0)) == pytest.approx(0.9)
    assert renyi.pure_epsilon(events.search(run, 9.0, None)) == math.inf
    found = account(events.search(run, 9.0, 1.0), AOR, 1e-9)
    assert found.value <= 0.9 * (1 + 1e-12) and found.pld is None
    orders = np.array([1.01, 2.0, 1e6])
    assert (renyi.rdp(events.search(run, 9.0, 1.0), orders) <= 0.9 * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    ("keep", "chances", "place"),
    [
        (1.0, [0.5, 0.5], "keep_probability"),
        (0.1, [1.0], "chances"),
        (0.1, [0.5, 0.6], "chances"),
        (0.1, [1.0, 0.0], "least"),
        (0.1, [1.5, -0.5], "least"),
        (0.1, [math.nan, 0.5], "chances"),
    ],
)
def test_replacements_that_cannot_be(keep, chances, place):
    with pytest.raises(PrivacyError) as caught:
        weighted_replacement(keep_probability=keep, chances=chances)
    assert caught.value.place == place


def test_always_replaced_tells_nothing():
    never = weighted_replacement(keep_probability=0.0, chances=[0.2, 0.8])
    assert account(never, REPLACE, 1e-6).value == 0
