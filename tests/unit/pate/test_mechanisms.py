"""What a configuration comes to, what is refused, and what the paper would have called it."""

from __future__ import annotations

import math

import pytest

from privasr_k2.errors import ConfigError, PrivacyError
from privasr_k2.pate.mechanisms import RELATION, Setting, make_setting
from privasr_k2.pate.plan import VotePlanConfig, largest_noise, plan_votes, winning_chance
from privasr_k2.pate.published import (
    as_published,
    published_epsilons,
    published_lines,
    published_noise,
)
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Epsilon, account
from privasr_k2.privacy.pate.gnmax import confident_gnmax_event, gnmax_event, posteriors_event
from privasr_k2.privacy.pate.lnmax import lnmax_event
from privasr_k2.privacy.pate.mechanisms import all_mechanisms
from privasr_k2.privacy.pate.sensitivity import Change
from tests.support.small_pate import mechanism


def setting(
    available: int = 100, weight: float = 1.0, change: Change = Change.MOVES, **changes: object
) -> Setting:
    pool = dict(teachers=10, available=available, largest_weight=weight, utterances=available)
    return make_setting(mechanism(**changes), change=change, **pool)


def cost(sigma: float, answers: int, delta: float = 1e-5) -> Epsilon:
    return account(gnmax_event(sigma=sigma, answers=answers, discrete=True), RELATION, delta)


def test_epsilon_and_noise_say_how_many_answers():
    found = setting()
    assert found.max_answers == found.max_queries < 100
    assert found.event == gnmax_event(sigma=4.0, answers=found.max_answers, discrete=True)
    assert found.epsilon == account(found.event, RELATION, 1e-5)
    assert found.epsilon.value <= 8 < cost(4.0, found.max_answers + 1).value
    assert setting(available=5).max_answers == 5
    assert setting(max_answers=3).max_answers == 3


@pytest.mark.parametrize("name", all_mechanisms())
def test_epsilon_and_answers_say_how_much_noise(name):
    found = setting(mechanism=name, noise=0.0, max_answers=20, delta=1e-4)
    assert found.max_answers == 20 and found.epsilon is not None
    assert 7.9 < found.epsilon.value <= 8
    assert found.max_queries == (100 if name == "confident_gnmax" else 20)
    noise, counts = found.noise, dict(answers=20, discrete=True)
    checked = dict(threshold_sigma=1.5 * noise, asked=100)
    wanted = {
        "gnmax": gnmax_event(sigma=noise, **counts),
        "lnmax": lnmax_event(scale=noise, **counts),
        "gumbel_max": events.repeated(events.bounded_range(2 / noise), 20),
        "confident_gnmax": confident_gnmax_event(sigma=noise, **checked, **counts),
        "gaussian_posteriors": posteriors_event(sigma=noise, largest_weight=1.0, vectors=20),
        "laplace_posteriors": events.repeated(events.laplace_vector(noise / 2), 20),
    }
    assert found.event == wanted[name]


def test_rather_fewer_answers_than_more_noise():
    free = setting(noise=0.0)
    assert setting(noise=0.0, max_sigma=free.noise + 1, min_answers=1) == free
    found = setting(noise=0.0, max_sigma=4.0, min_answers=1)
    bought = setting(noise=4.0)
    assert found.max_answers == bought.max_answers < free.max_answers == 100
    # The whole budget is used, with a little less noise.
    assert 3.5 < found.noise <= 4.0 and bought.epsilon is not None and found.epsilon is not None
    assert bought.epsilon.value <= found.epsilon.value <= 8
    least = setting(noise=0.0, max_sigma=4.0, min_answers=bought.max_answers + 5)
    assert least.max_answers == bought.max_answers + 5 and least.noise > 4.0
    assert setting(noise=0.0, max_sigma=4.0, min_answers=500) == free
    # Where nothing can be bought with so little.
    assert setting(noise=0.0, max_sigma=0.2, min_answers=2).max_answers == 2


def test_a_heavier_teacher_needs_more_noise():
    even, heavy = (
        setting(mechanism="gaussian_posteriors", noise=0.0, max_answers=5, weight=weight).noise
        for weight in (1.0, 3.0)
    )
    assert heavy == pytest.approx(3 * even, rel=1e-3)


@pytest.mark.parametrize(
    ("error", "message", "changes"),
    [
        (PrivacyError, "22 that it buys", {"max_answers": 60}),
        (PrivacyError, "0 that it buys", {"noise": 0.2}),
        (ConfigError, "at most 10", {"mechanism": "confident_gnmax", "threshold": 11.0}),
        (ConfigError, "something to vote on", {"available": 0}),
    ],
)
def test_what_exceeds_the_budget_is_refused(error, message, changes):
    with pytest.raises(error, match=message):
        setting(**changes)


def test_no_noise_is_no_release():
    found = setting(epsilon=math.inf, noise=0.0)
    assert (found.event, found.epsilon, found.noise, found.max_answers) == (None, None, 0.0, 100)
    assert "NO GUARANTEE" in found.lines("utterances")[0]


def test_the_papers_noise_has_its_true_cost():
    for reading, noise in (("equation", 2 * 10 / 100), ("figures", 100 / (2 * 10))):
        found = setting(noise=0.0, epsilon=10.0, published_scale=reading, delta=1e-3)
        assert found.noise == published_noise(10.0, 100, reading) == noise
        assert found.epsilon == cost(noise, 100, 1e-3)
        assert found.epsilon.value > 10
        assert published_epsilons(noise, 100)[f"published_{reading}"] == pytest.approx(10)
    record = as_published(5.0, 4000, 100)
    assert record["guarantee"] is False and record["K"] == 100
    assert record["votes_that_it_does_not_count"] == 3900
    lines = published_lines(record)
    assert all("as published" in line for line in lines)
    assert all("NO GUARANTEE" in line for line in lines[:3])
    assert "K = 100" in lines[0] and "scale 5 votes" in lines[0]


@pytest.mark.parametrize(
    "bad",
    [
        *(dict(mechanism="max"), dict(epsilon=0.0), dict(epsilon=-1.0), dict(epsilon=math.nan)),
        *(dict(delta=1.0), dict(published_scale="published"), dict(noise=-1.0)),
        *(dict(max_answers=-1), dict(min_answers=-1), dict(max_sigma=2.0, min_answers=1)),
        *(dict(max_sigma=2.0, noise=0.0), dict(max_queries=-1), dict(noise=1.0, epsilon=math.inf)),
        *(dict(threshold=0.0, mechanism="confident_gnmax"), dict(published_scale="figures")),
    ],
)
def test_bad_numbers_are_named(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        mechanism(**bad)


def plan(**changes: object) -> VotePlanConfig:
    values: dict[str, object] = dict(kind="queries", mechanism="gnmax", teachers=[15], classes=500)
    values |= dict(units_in_a_shard=2)
    values |= dict(agreement=[1.0], correct=0.95, epsilon=[8.0], delta=1e-5)
    return VotePlanConfig(**{**values, **changes})


def test_fifteen_unanimous_teachers_give_thirteen_votes():
    [found] = plan_votes(plan())
    assert found.votes == 13 and found.epsilon.value <= 8


def test_with_a_unit_a_teacher_there_are_twice_the_answers():
    """mini_pate: 250 speakers, 250 teachers, epsilon 8 at 1e-5, noise 37.5 votes."""
    pool = dict(teachers=250, available=10_000, largest_weight=1.0, utterances=1200)
    asked = mechanism(noise=37.5)
    found = {change: make_setting(asked, change=change, **pool) for change in Change}
    answers = {change: setting.max_answers for change, setting in found.items()}
    assert answers == {Change.GIVEN: 3902, Change.MOVES: 1951}
    given, moves = found[Change.GIVEN].epsilon, found[Change.MOVES].epsilon
    assert given.value == pytest.approx(moves.value) and given.rdp == pytest.approx(moves.rdp)


@pytest.mark.parametrize(
    ("change", "answers", "wanted"),
    [
        (Change.GIVEN, 1951, {"gnmax": 0.997, "gumbel_max": 0.999}),
        (Change.GIVEN, 8000, {"gnmax": 0.847, "gumbel_max": 0.957}),
        (Change.MOVES, 1951, {"gnmax": 0.959, "gumbel_max": 0.959}),
        (Change.MOVES, 8000, {"gnmax": 0.702, "gumbel_max": 0.733}),
    ],
)
def test_gumbel_noise_answers_better_where_a_vote_only_comes_or_goes(change, answers, wanted):
    """250 teachers, 59 % for one of 4 tokens, the rest spread; epsilon 8, delta 1e-5."""
    pool = dict(teachers=250, available=answers, largest_weight=1.0, utterances=1200)
    found = {}
    for name in wanted:
        made = make_setting(mechanism(mechanism=name, noise=0.0), change=change, **pool)
        assert made.max_answers == answers
        found[name] = winning_chance([148, 34, 34, 34], name, made.noise)
    assert found == pytest.approx(wanted, abs=1.5e-3)


@pytest.mark.parametrize("name", all_mechanisms())
def test_no_mechanism_asks_for_more_noise_where_a_vote_only_comes_or_goes(name):
    asked = dict(mechanism=name, noise=0.0, max_answers=20, delta=1e-4)
    given, moves = (setting(change=change, **asked).noise for change in Change)
    share = {"laplace_posteriors": 0.501, "gumbel_max": 0.501}.get(name, 0.75)
    assert given <= share * moves or (name == "confident_gnmax" and given < moves)


def test_the_plan_takes_what_the_shards_say():
    moves, given = plan_votes(plan()), plan_votes(plan(), {15: 1, 30: 2})
    assert (moves[0].votes, given[0].votes, given[0].units_in_a_shard) == (13, 26, 1)
    assert plan_votes(plan(units_in_a_shard=1)) == given


def test_more_teachers_and_more_agreement_buy_more():
    found = plan_votes(plan(classes=8, teachers=[15, 30], agreement=[0.8, 1.0]))
    made = [(plan.teachers, plan.agreement) for plan in found]
    assert made == [(15, 0.8), (15, 1.0), (30, 0.8), (30, 1.0)]
    assert found[0].votes < found[1].votes < found[3].votes and found[0].votes < found[2].votes


def test_the_largest_noise_is_just_enough():
    for name in ("gnmax", "lnmax", "gumbel_max"):
        noise = largest_noise([12, 3, 0], name, 0.9)
        least, more = (winning_chance([12, 3, 0], name, factor * noise) for factor in (1, 1.01))
        assert least >= 0.9 > more
    with pytest.raises(PrivacyError, match="take more teachers"):
        largest_noise([5, 5], "gnmax", 0.9)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("mechanism", "max"), ("teachers", []), ("classes", 1)),
        *(("agreement", [0.5]), ("correct", 1.0), ("epsilon", [0.0])),
    ],
)
def test_plans_of_nothing_are_refused(key, value):
    with pytest.raises(ValueError, match=key):
        plan(**{key: value})
