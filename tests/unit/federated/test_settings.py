"""What a configuration refuses, before anything is spent, and what it enters in the ledger."""

from __future__ import annotations

from typing import Any

import pytest

from privasr_k2.errors import ConfigError, PrivacyError
from privasr_k2.federated.cohorts import SCHEMES, chunks, expected_size, sampling_of
from privasr_k2.federated.settings import spending
from privasr_k2.federated.train import paper_epsilon
from privasr_k2.federated.weighting import Weighting, prepare
from privasr_k2.privacy.accounting import account
from privasr_k2.privacy.correlated import correlated_event
from privasr_k2.privacy.plan import Plan, PlanRequest, plan
from privasr_k2.privacy.strategies import Turns
from tests.support.fed_small import PRIVATE, VOCABULARY, made_clients, settings

ORDERED = (*PRIVATE, "sampling=ordered", "privacy.strategy=square_root")


@pytest.mark.parametrize(
    "overrides",
    [
        ["privacy.clip=0"],
        ["privacy.clip=-1"],
        ["privacy.noise=1.0"],
        ["privacy.noise=-1.0", "privacy.clip=1.0"],
        ["privacy.delta=0"],
        ["privacy.delta=1"],
        ["client_fraction=0"],
        ["client_fraction=1.1"],
        [*PRIVATE, "weights.by=words"],
        [*PRIVATE, "data="],
        [*PRIVATE, "unit=user"],  # the file says what a client is
        [*PRIVATE, "privacy.quantile=0.5", "privacy.count_noise=0.5"],
        ["privacy.quantile=0.5"],
        [*PRIVATE, "privacy.strategy=square_root"],  # Poisson
        [*PRIVATE, "privacy.strategy=tree", "sampling=fixed"],
        [*PRIVATE, "privacy.strategy=roots", "sampling=ordered"],
        [*ORDERED, "privacy.bands=0"],
        [*ORDERED, "privacy.bands=5"],  # of 4 rounds
        [*ORDERED, "privacy.strategy=tree", "privacy.bands=2"],
        ["privacy.bands=2"],
        ["confidences.use=none"],
        ["confidences.threshold=1.5"],
        ["server.adam_eps=0"],
        ["server.beta1=1.0"],
        ["client.epochs=0"],
        ["client.lr=0"],
        ["sampling=some"],
        ["cohort=0"],
        ["trained=some"],  # no list
        ["lora.rank=0"],
    ],
)
def test_refused(overrides: list[str]) -> None:
    with pytest.raises(ConfigError):
        settings(*overrides)


@pytest.mark.parametrize(
    ("overrides", "clients"),
    [
        (["privacy.delta=0.05"], 20),  # at 1 / clients
        (["cohort=21"], 20),  # a rate above 1
        (["cohort=21", "sampling=fixed"], 20),
        (["relation=replace one"], 20),  # no bound for Poisson
    ],
)
def test_refused_for_the_clients_at_hand(overrides: list[str], clients: int) -> None:
    with pytest.raises(PrivacyError):
        spending(settings(*PRIVATE, *overrides), clients, "speaker")


def test_without_noise_there_is_no_claim() -> None:
    with pytest.raises(PrivacyError):
        spending(settings("privacy.clip=0.5"), 20, "speaker")


def planned_for(**asked: Any) -> Plan:
    asked |= {"kind": "updates", "privacy_unit": "user", "num_units": 200}
    asked["relation"] = "add or remove one"
    nothing = dict.fromkeys(PlanRequest.__dataclass_fields__)
    return plan(PlanRequest(**{**nothing, **asked, "delta": 1e-5, "noise": 1.0}))


@pytest.mark.parametrize("more", [[], ["privacy.quantile=0.5"], ["privacy.isolate_clients=false"]])
def test_what_is_entered_is_what_was_planned(more: list[str]) -> None:
    planned = planned_for(client_fraction=0.025, rounds=4)
    entered = spending(settings(*PRIVATE, *more), 200, "speaker")
    assert account(entered.event, entered.relation, 1e-5) == planned.epsilon
    assert entered.sampling == "Poisson, rate 0.025" and entered.units == 200


@pytest.mark.parametrize("strategy", ["square_root", "tree"])
def test_correlated_noise_is_entered_as_one_mechanism(strategy: str) -> None:
    """200 clients, 40 a round, 23 rounds: a client is in 5 of them at most, 5 rounds apart."""
    config = settings(*ORDERED, f"privacy.strategy={strategy}", "cohort=40", "rounds=23")
    entered = spending(config, 200, "speaker")
    planned = planned_for(batches=5, strategy=strategy, rounds=23)
    assert entered.event == planned.event and entered.sampling == planned.sampling
    made = config.strategy_for(200)
    assert entered.event == correlated_event(1.0, made, Turns(5, 5))
    assert strategy in entered.sampling and "in the same order" in entered.sampling
    if strategy == "square_root":
        assert len(made.column) == 5
    # It costs more than independent noise of the same size would, and less than one client in all
    # rounds.
    apart = spending(
        settings(*PRIVATE, "sampling=ordered", "cohort=40", "rounds=23"), 200, "speaker"
    )
    assert entered.event.noise_multiplier < 5**-0.5
    costs = [account(one.event, one.relation, 1e-5).value for one in (apart, entered)]
    assert costs[0] < costs[1]
    everyone = (*ORDERED, f"privacy.strategy={strategy}", "sampling=everyone", "rounds=23")
    everyone = spending(settings(*everyone), 200, "speaker")
    assert everyone.event.noise_multiplier < entered.event.noise_multiplier


def test_orders_that_are_drawn_anew_may_bring_a_client_twice_in_a_row() -> None:
    numbers = (*ORDERED, "cohort=40", "rounds=23", "privacy.bands=5")
    fixed, anew = (
        spending(settings(*numbers, f"sampling={sampling}"), 200, "speaker")
        for sampling in ("ordered", "partitioned")
    )
    assert anew.event.noise_multiplier < 0.9 * fixed.event.noise_multiplier


def test_bands_follow_the_turns() -> None:
    for sampling, cohort, rounds, bands in (
        ("ordered", 40, 23, 5),
        ("ordered", 2, 23, 23),
        ("partitioned", 40, 23, 1),
        ("everyone", 40, 23, 1),
    ):
        config = settings(*ORDERED, f"sampling={sampling}", f"cohort={cohort}", f"rounds={rounds}")
        assert len(config.strategy_for(200).column) == bands
    assert len(settings(*ORDERED, "privacy.bands=3").strategy_for(200).column) == 3
    assert settings(*PRIVATE).strategy_for(200).name == "increments"


def test_the_papers_multipliers() -> None:
    found = {noise: paper_epsilon(noise, 1e-5) for noise in (0.2, 0.5, 1.5)}
    assert [round(found[noise].rdp, 1) for noise in found] == [252.9, 15.4, 1.0]
    assert all(one.pld is not None and one.pld < one.rdp for one in found.values())


def test_the_denominator_is_public() -> None:
    config = settings(*PRIVATE, "weights.by=capped", "weights.mean=0.5")
    assert config.denominator(200) == 2.5
    assert config.weights.of(1000) == 1.0 and config.weights.of(50) == 0.5
    for scheme in SCHEMES:
        sampling = sampling_of(scheme, cohort=5, client_fraction=None, clients=200)
        assert expected_size(sampling, 200) == (200 if scheme == "everyone" else 5)


def test_chunks_have_everybody_once_and_room() -> None:
    cohort = prepare(made_clients(30), VOCABULARY, Weighting("all", 0.0))
    for positions in (1, 60, 10**6):
        found = chunks(cohort, batch_size=8, positions=positions)
        assert sorted(c.name for chunk in found for c in chunk) == [c.name for c in cohort]
        sizes = [sum(c.text.lengths.mean() * min(8, len(c.text)) for c in chunk) for chunk in found]
        assert all(size <= positions or len(chunk) == 1 for size, chunk in zip(sizes, found))
    assert len(chunks(cohort, batch_size=8, positions=1)) == 30 and len(found) == 1


@pytest.mark.parametrize("scheme", ["poisson", "fixed"])
def test_a_cohort_larger_than_all_clients_is_named(scheme: str) -> None:
    with pytest.raises(PrivacyError, match=r"cohort: expected at most 80, .* found 100"):
        sampling_of(scheme, cohort=100, client_fraction=None, clients=80)
    everyone = sampling_of(scheme, cohort=80, client_fraction=None, clients=80)
    assert expected_size(everyone, 80) == 80
