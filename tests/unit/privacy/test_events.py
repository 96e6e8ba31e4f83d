"""Events: what they hold, how they are written, and what replacing one unit does to them."""

from __future__ import annotations

import json

import pytest
from dp_accounting import dp_event as dp

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events

GAUSSIAN = {"mechanism": "gaussian", "noise_multiplier": 1.0}
ALL = [
    events.gaussian(1.5),
    events.laplace(0.7),
    events.discrete_laplace(3.0, 2),
    events.discrete_gaussian(4.0, 1),
    events.discrete_gaussian_vector(4.0, 2.5),
    events.pure(0.1),
    events.bounded_range(0.25),
    events.laplace_vector(2.5),
    events.randomized_response(0.3, 1000),
    events.weighted_response(0.3, 0.01),
    events.search(events.gaussian(2.0), 10.0, 1.0),
    events.search(events.composed(events.gaussian(2.0), events.laplace(9.0)), 10.0, None),
    events.poisson_sampled(0.01, events.gaussian(0.5)),
    events.poisson_sampled(0.01, events.laplace(0.5)),
    events.fixed_size_sampled(10, 74, events.gaussian(0.5)),
    events.repeated(events.gaussian(1.0), 1000),
    events.composed(events.gaussian(1.0), events.repeated(events.pure(0.5), 3)),
    events.unprotected(),
    dp.NoOpDpEvent(),
]


@pytest.mark.parametrize("event", ALL, ids=str)
def test_json_returns(event):
    text = json.dumps(events.to_json(event))
    assert events.from_json(json.loads(text), "here") == event


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda: events.gaussian(-1.0), "noise_multiplier"),
        (lambda: events.gaussian(1e200), "noise_multiplier"),
        (lambda: events.gaussian(0.0), "noise_multiplier"),
        (lambda: events.laplace(float("nan")), "noise_multiplier"),
        (lambda: events.discrete_laplace(1.0, 0), "sensitivity"),
        (lambda: events.discrete_gaussian(1.0, 1.5), "sensitivity"),
        (lambda: events.pure(-0.1), "epsilon"),
        (lambda: events.randomized_response(0.0, 10), "noise"),
        (lambda: events.randomized_response(0.5, 1), "categories"),
        (lambda: events.weighted_response(0.3, 0.0), "least"),
        (lambda: events.weighted_response(0.3, 0.6), "least"),
        (lambda: events.search(events.gaussian(1.0), 1.0, 1.0), "mean"),
        (lambda: events.search(events.gaussian(1.0), 0.0, None), "mean"),
        (lambda: events.search(events.gaussian(1.0), 5.0, -1.0), "shape"),
        (lambda: events.poisson_sampled(1.1, events.gaussian(1.0)), "rate"),
        (lambda: events.poisson_sampled(0.0, events.gaussian(1.0)), "rate"),
        (lambda: events.fixed_size_sampled(11, 10, events.gaussian(1.0)), "size"),
        (lambda: events.repeated(events.gaussian(1.0), 2.5), "count"),
        (lambda: events.repeated(events.gaussian(1.0), -1), "count"),
    ],
)
def test_bad_values_are_named(make, place):
    with pytest.raises(PrivacyError) as caught:
        make()
    assert caught.value.place == place


def test_amplification_is_refused_where_none_is_proven():
    with pytest.raises(PrivacyError, match="do not claim any"):
        events.poisson_sampled(0.1, events.pure(1.0))
    with pytest.raises(PrivacyError, match="do not claim any"):
        events.fixed_size_sampled(1, 10, events.laplace(1.0))


def test_terms_multiply_through_nested_compositions():
    gaussian, pure = events.gaussian(1.0), events.pure(0.5)
    nested = events.repeated(events.composed(gaussian, events.repeated(pure, 4), gaussian), 10)
    assert events.terms(nested) == {gaussian: 20, pure: 40}
    assert events.terms(events.repeated(gaussian, 0)) == {}


@pytest.mark.parametrize("event", [dp.UnsupportedDpEvent()])
def test_unknown_events_cost_no_small_epsilon(event):
    with pytest.raises(PrivacyError, match="a mechanism out of"):
        events.terms(events.composed(events.gaussian(1.0), event))


def test_replacing_doubles_the_sensitivity_and_nothing_else():
    before = events.composed(
        events.repeated(events.gaussian(2.0), 5),
        events.laplace(1.0),
        events.discrete_laplace(3.0, 2),
    )
    assert events.terms(events.for_replacing(before)) == {
        events.gaussian(1.0): 5,
        events.laplace(0.5): 1,
        events.discrete_laplace(3.0, 4): 1,
    }
    assert events.for_replacing(events.laplace_vector(3.0)) == events.laplace_vector(1.5)
    of_two = events.search(events.gaussian(2.0), 5.0, 0.0)
    assert events.for_replacing(of_two) == events.search(events.gaussian(1.0), 5.0, 0.0)
    of_words = [events.randomized_response(0.5, 10), events.weighted_response(0.5, 0.2)]
    for event in (events.pure(1.0), *of_words):
        assert events.for_replacing(event) == event
    with pytest.raises(PrivacyError, match="replacing"):
        events.for_replacing(events.poisson_sampled(0.1, events.gaussian(1.0)))


@pytest.mark.parametrize(
    "value",
    [
        None,
        {"mechanism": "magic"},
        {"mechanism": "gaussian"},
        {"mechanism": "composed", "of": 3},
        {"mechanism": "zCDP", "rho": 0.1, "xi": 5.0},
        {**GAUSSIAN, "more": 1},
        {"mechanism": "gaussian", "noise_multiplier": -1.0},
        {"mechanism": "gaussian", "noise_multiplier": "1"},
        {"mechanism": "repeated", "count": 1.5, "of": GAUSSIAN},
        {"mechanism": "poisson sampled", "rate": 2, "of": GAUSSIAN},
    ],
)
def test_json_of_something_else(value):
    with pytest.raises(PrivacyError, match=r"^ledger\.json: entry 3"):
        events.from_json(value, "ledger.json: entry 3")


@pytest.mark.parametrize(
    "event",
    [
        dp.GaussianDpEvent(-1.0),
        dp.GaussianDpEvent(float("inf")),
        dp.ZCDpEvent(0.1, xi=5.0),
        dp.SelfComposedDpEvent(dp.GaussianDpEvent(1.0), -1),
        dp.LaplaceDpEvent(float("nan")),
        dp.PoissonSampledDpEvent(1.5, dp.GaussianDpEvent(1.0)),
    ],
)
def test_events_made_elsewhere_are_checked(event):
    with pytest.raises(PrivacyError):
        events.terms(events.composed(events.gaussian(1.0), event))


def test_a_rate_of_one_is_no_sampling():
    step = events.gaussian(2.0)
    assert events.terms(events.poisson_sampled(1.0, step)) == {step: 1}
