"""The attacks find what is there: secrets, members, and noise that was divided by ten."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from privasr_k2 import config as configs
from privasr_k2.errors import DataError
from privasr_k2.federated import fedlm_audit
from privasr_k2.federated.fedlm import Federation, rounds
from privasr_k2.federated.fedlm_audit import AuditConfig
from privasr_k2.federated.weighting import prepare
from privasr_k2.lm.neural.kinds import new_lm
from privasr_k2.lm.neural.scoring import NeuralScorer
from privasr_k2.privacy.streams import Drawn
from privasr_k2.training.distributed import Process
from tests.support.conf import section
from tests.support.fed_small import PRIVATE, SPEC, VOCABULARY, made_clients, settings, trainer

ALONE = Process(0, 1, torch.device("cpu"))


def audit(*overrides: str) -> AuditConfig:
    changes = ["canaries=5", "candidates=30", *overrides]
    return configs.load(AuditConfig, [section("fedlm_audit")], changes)


def test_the_audit_exceeds_the_claim_where_noise_is_divided() -> None:
    config = settings(*PRIVATE, "rounds=40", "client_fraction=0.05")
    found = fedlm_audit.marks(lambda: trainer(config), [], config, audit("marks=700"), ALONE)
    lower = found["epsilon_lower"]
    assert lower["sound"] < found["claimed_epsilon"] < lower["broken"] <= lower["noise_free"]
    assert found["verdict"] == "stands under the claim"


def test_secrets_and_members_are_found_without_privacy() -> None:
    config = settings("rounds=25", "sampling=everyone", "server.lr=0.05")
    clients = made_clients(20)
    chosen = audit("repeats=12", "secret_words=3")
    canaries = fedlm_audit.draw_canaries(VOCABULARY.words, chosen, seed=1)
    members, others = fedlm_audit.split_members(clients, seed=1)
    assert {c.name for c in members} | {c.name for c in others} == {c.name for c in clients}
    trained = trainer(config)
    planted = fedlm_audit.plant(members, canaries, chosen.repeats)
    data = prepare(planted, VOCABULARY, config.confidences)
    for _ in rounds(Federation(data, trained), config, ALONE, Drawn("cohorts", 1), None):
        pass
    before = NeuralScorer(new_lm(SPEC, VOCABULARY, seed=1).eval(), VOCABULARY)
    after = NeuralScorer(trained.model, VOCABULARY)
    found, untrained = (
        fedlm_audit.exposure_of(one, canaries, chosen, 1e-5) for one in (after, before)
    )
    assert found["mean_exposure"] > 4 > 2 > untrained["mean_exposure"]
    assert found["epsilon_lower"] > 0 == untrained["epsilon_lower"]
    assert fedlm_audit.membership_of(before, after, members, others, chosen)["auc"] > 0.6
    assert fedlm_audit.membership_of(before, before, members, others, chosen)["auc"] == 0.5


def test_ranks_are_those_of_the_planted() -> None:
    canaries = fedlm_audit.draw_canaries(VOCABULARY.words, audit(), seed=3)
    assert len({canary.planted for canary in canaries}) > 1
    scorer = NeuralScorer(new_lm(SPEC, VOCABULARY, seed=1).eval(), VOCABULARY)
    found = fedlm_audit.exposure_of(scorer, canaries, audit(), 1e-5)
    for canary, rank in zip(canaries, found["ranks"]):
        losses = -scorer.score_sentences(canary.candidates)
        assert rank == np.count_nonzero(losses <= losses[canary.planted])


def test_too_much_is_refused() -> None:
    config = settings(*PRIVATE)
    with pytest.raises(DataError, match="marks"):
        fedlm_audit.marks(lambda: trainer(config), [], config, audit("marks=5000"), ALONE)
    with pytest.raises(DataError, match="canaries"):
        fedlm_audit.draw_canaries(VOCABULARY.words, audit("secret_words=1"), seed=1)
    with pytest.raises(DataError, match="two or more"):
        fedlm_audit.split_members(made_clients(1), seed=1)
