"""Plans: the same event that a recipe would enter, and its inverse."""

from __future__ import annotations

import json
import math

import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.correlated import correlated_event
from privasr_k2.privacy.plan import PlanRequest, plan
from privasr_k2.privacy.spending import shown
from privasr_k2.privacy.strategies import Strategy, Turns

UNITS = {"privacy_unit": "speaker", "num_units": 74, "relation": "add or remove one", "delta": 1e-5}
BASE = dict.fromkeys(PlanRequest.__dataclass_fields__) | UNITS


def request(**values):
    """A request with the usual values."""
    return PlanRequest(**{**BASE, "kind": "updates", **values})


def test_updates_cost_what_their_event_costs():
    found = plan(request(client_fraction=0.1, rounds=100, noise=1.0))
    event = events.repeated(events.poisson_sampled(0.1, events.gaussian(1.0)), 100)
    assert found.event == event
    assert found.epsilon == account(event, Relation.ADD_OR_REMOVE_ONE, 1e-5)
    assert f"{found.epsilon.pld:.2f}" in found.lines()[-1]


def test_a_person_of_several_devices():
    asked = {"privacy_unit": "device", "num_units": 10_000, "person_units": 4}
    found = plan(request(**asked, client_fraction=0.01, rounds=1000, noise=1.5))
    assert (shown(found.epsilon.value), shown(found.person.value)) == ("0.918", "4.36")
    assert found.to_json()["person_epsilon"] == found.person.value
    asked["relation"] = "replace one"
    fixed = plan(request(**asked, cohort=100, rounds=10, noise=5.0))
    assert math.isinf(fixed.person.value) and fixed.to_json()["person_epsilon"] is None
    assert "person_epsilon" not in plan(request(rounds=1, noise=1.0)).to_json()


def test_inverses():
    epsilon = plan(request(client_fraction=0.1, rounds=100, noise=1.0)).epsilon.value
    noise = plan(request(client_fraction=0.1, rounds=100, epsilon=epsilon)).noise
    assert noise == pytest.approx(1.0, rel=1e-3)
    assert plan(request(client_fraction=0.1, noise=1.0, epsilon=epsilon * 1.0001)).rounds == 100


def test_a_fixed_cohort_costs_more_than_poisson():
    poisson = plan(request(client_fraction=7 / 74, rounds=100, noise=1.0))
    fixed = plan(request(cohort=7, rounds=100, noise=1.0))
    assert fixed.epsilon.value > 10 * poisson.epsilon.value
    assert "fixed cohorts of 7 out of 74" in fixed.sampling


def test_noise_correlated_over_rounds():
    found = plan(request(batches=10, strategy="square_root", rounds=40, noise=2.0))
    root = Strategy("square_root", 40, bands=10)
    assert found.event == correlated_event(2.0, root, Turns(4, 10))
    assert "square_root of 10 bands over 40 rounds" in found.sampling
    assert "same order" in found.sampling
    rooted = {"batches": 10, "strategy": "square_root", "rounds": 40}
    assert plan(request(**rooted, bands=20, noise=2.0)).epsilon.value > found.epsilon.value
    back = plan(request(**rooted, epsilon=found.epsilon.value))
    assert back.noise == pytest.approx(2.0, rel=1e-3)
    everyone = plan(request(strategy="tree", rounds=8, noise=2.0))
    assert everyone.event == correlated_event(2.0, Strategy("tree", 8), Turns(8, 1))


@pytest.mark.parametrize(
    "values",
    [
        {"batches": 10, "strategy": "roots", "rounds": 40, "noise": 2.0},
        {"batches": 10, "bands": 4, "rounds": 40, "noise": 2.0},
        {"batches": 10, "strategy": "tree", "bands": 4, "rounds": 40, "noise": 2.0},
        {"batches": 10, "strategy": "tree", "noise": 2.0, "epsilon": 3.0},
        {"client_fraction": 0.1, "strategy": "tree", "rounds": 40, "noise": 2.0},
        {"cohort": 7, "strategy": "tree", "rounds": 40, "noise": 2.0},
        {"kind": "votes", "mechanism": "gnmax", "strategy": "tree", "rounds": 40, "noise": 2.0},
    ],
)
def test_correlations_that_cannot_be(values):
    with pytest.raises(PrivacyError):
        plan(request(**values))


def test_votes():
    found = plan(request(kind="votes", mechanism="gnmax", noise=40.0, rounds=1000))
    of_one = {"kind": "votes", "mechanism": "gnmax", "units_in_a_shard": 1}
    alone = plan(request(**of_one, noise=40.0, rounds=1000))
    assert "moves a vote, L2 sensitivity 1.41" in found.lines()[1]
    assert "gives or takes a vote, L2 sensitivity 1" in alone.lines()[1]
    # One unit moves one vote: two counts change by 1.
    assert events.terms(found.event) == {events.discrete_gaussian(40.0, 1): 2000}
    continuous = events.repeated(events.gaussian(40 / 2**0.5), 1000)
    expected = account(continuous, Relation.ADD_OR_REMOVE_ONE, 1e-5).rdp
    assert found.epsilon.rdp == pytest.approx(expected)
    checks = {"asked": 2000, "threshold_noise": 80.0}
    asked = plan(request(kind="votes", mechanism="gnmax", noise=40.0, rounds=1000, **checks))
    assert asked.epsilon.value > found.epsilon.value
    laplace = plan(request(kind="votes", mechanism="lnmax", noise=40.0, rounds=10))
    assert laplace.epsilon.value <= 10 * 2 / 40


@pytest.mark.parametrize("mechanism", ["discrete_laplace", "discrete_gaussian"])
def test_counts_for_replacing_cost_twice_the_sensitivity(mechanism):
    counts = {"kind": "counts", "mechanism": mechanism, "noise": 40.0, "rounds": 5}
    replaced = plan(request(**counts, sensitivity=20.0, relation="replace one"))
    doubled = plan(request(**counts, sensitivity=40.0))
    assert replaced.epsilon.value == pytest.approx(doubled.epsilon.value, rel=1e-9)


def test_the_limit_is_not_part_of_what_is_written():
    limits = (None, 50.0)
    one, other = (
        plan(request(client_fraction=0.1, rounds=100, noise=1.0, max_epsilon=m)) for m in limits
    )
    assert json.dumps(one.to_json()) == json.dumps(other.to_json())
    assert events.from_json(one.to_json()["event"], "here") == one.event


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"client_fraction": 0.1, "rounds": 100, "noise": 1.0, "max_epsilon": 5.0}, "the plan"),
        ({"client_fraction": 0.1, "rounds": 100, "noise": 1.0, "delta": 0.02}, "delta"),
        ({"client_fraction": 0.1, "rounds": 100, "noise": -1.0}, "noise"),
        ({"client_fraction": 1.1, "rounds": 100, "noise": 1.0}, "rate"),
        ({"client_fraction": 0.1, "cohort": 7, "rounds": 100, "noise": 1.0}, "sampling"),
        ({"client_fraction": 0.1, "rounds": 100}, "the plan"),
        ({"client_fraction": 0.1, "rounds": 100, "noise": 1.0, "epsilon": 1.0}, "the plan"),
        ({"client_fraction": 0.1, "epsilon": 1.0}, "the plan"),
        ({"client_fraction": 0.1, "noise": 0.1, "epsilon": 0.1}, "epsilon 0.1"),
        ({"client_fraction": 0.1, "rounds": 0, "noise": 1.0}, "rounds"),
        ({"rounds": 10, "noise": 1.0, "privacy_unit": "speakers"}, "privacy_unit"),
        ({"rounds": 10, "noise": 1.0, "kind": "gradients"}, "kind"),
        ({"rounds": 10, "noise": 1.0, "relation": "replace"}, "relation"),
        ({"rounds": 10, "noise": 1.0, "mechanism": "gnmax"}, "mechanism"),
        ({"kind": "votes", "rounds": 10, "noise": 1.0}, "mechanism"),
        (
            {
                "kind": "votes",
                "mechanism": "gnmax",
                "rounds": 10,
                "noise": 1.0,
                "client_fraction": 0.1,
            },
            "client_fraction",
        ),
        (
            {"kind": "votes", "mechanism": "gnmax", "rounds": 10, "noise": 1.0, "asked": 20},
            "asked and threshold_noise",
        ),
        (
            {"kind": "counts", "mechanism": "discrete_laplace", "rounds": 10, "noise": 1.0},
            "sensitivity",
        ),
    ],
)
def test_plans_that_cannot_be(values, place):
    with pytest.raises(PrivacyError) as caught:
        plan(request(**values))
    assert caught.value.place == place
