"""A tiny language model, clients with text, and settings of a federated training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2 import config
from privasr_k2.federated.client import LocalTrainer
from privasr_k2.federated.clients import ClientText, Utterance
from privasr_k2.federated.settings import FedLmConfig
from privasr_k2.lm.neural.files import save_lm
from privasr_k2.lm.neural.kinds import new_lm
from privasr_k2.lm.neural.lstm import LstmConfig, LstmSpec
from privasr_k2.lm.neural.softmax import OutputConfig
from privasr_k2.lm.neural.vocabulary import SYMBOLS, Vocabulary
from privasr_k2.randomness import stream
from privasr_k2.training.trainable import choose_trained
from tests.support.conf import section

VOCABULARY = Vocabulary((*SYMBOLS, *(f"w{n}" for n in range(20))))
SPEC = LstmSpec(
    kind="lstm",
    output=OutputConfig(softmax="full", cutoffs=[], reduction=1.0, tied=False),
    network=LstmConfig(embedding_dim=6, dim=8, layers=1, dropout=0.0),
)
#: What a claim needs.
PRIVATE = ("data=mini/adapt", "weights.by=uniform", "privacy.clip=0.5", "privacy.noise=1.0")


def made_clients(count: int, most: int = 12, seed: int = 0) -> list[ClientText]:
    """Clients with 1 to ``most`` sentences of 1 to 7 words, and confidences."""
    generator = stream(seed, "made clients")

    def utterance(name: str) -> Utterance:
        words = generator.choice(VOCABULARY.words, size=int(generator.integers(1, 8))).tolist()
        confidences = tuple(generator.random(len(words)).tolist())
        return Utterance(name, tuple(words), confidences, f"client-{name.split('-')[0]:>02}")

    def client(number: int) -> ClientText:
        size = int(generator.integers(1, most + 1))
        text = tuple(utterance(f"{number}-{which}") for which in range(size))
        return ClientText(f"client-{number:02}", text, "speaker")

    return [client(number) for number in range(count)]


def settings(*overrides: str) -> FedLmConfig:
    """Section ``fedlm`` with four rounds of cohorts of five, and what is given."""
    return config.load(FedLmConfig, [section("fedlm")], ["rounds=4", "cohort=5", *overrides])


def trainer(chosen: FedLmConfig, **client: Any) -> LocalTrainer:
    """With a new model, the same each time."""
    model = new_lm(SPEC, VOCABULARY, seed=1)
    choose_trained(model, chosen.trained, chosen.lora, chosen.seed)
    return LocalTrainer(model, replace(chosen.client, **client), chosen.seed)


def saved_model(folder: Path) -> Path:
    """The same model in a folder."""
    save_lm(folder, SPEC, new_lm(SPEC, VOCABULARY, seed=1).state_dict(), VOCABULARY)
    return folder


def norm(values: Any) -> float:
    """L2 norm in float64."""
    return float(np.linalg.norm(np.asarray(values, dtype=np.float64)))
