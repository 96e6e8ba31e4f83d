"""Attacks on federated training: canaries, membership of clients, and a lower bound on epsilon.

What they need of the training is what is released: the model after each round. None of them is a release.

- *Exposure*: some clients have a secret sentence drawn out of a list; how far up does it stand by the model's
  loss?
- *Membership*: do the sentences of clients that took part gain more than those of clients that did not?
- *Marks*: clients that send one coordinate, as long as the clip allows, are put in by coins. The attack adds
  up what each round released there. It is the strongest attack on a sum, so that its bound can come near the
  claim (:mod:`privasr_k2.privacy.audit.one_run`); it is run again with the noise divided, and next to none,
  since a bound below the claim counts only where the same attack finds what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from privasr_k2.errors import DataError
from privasr_k2.federated.client import LocalTrainer
from privasr_k2.federated.clients import ClientText, Utterance
from privasr_k2.federated.fedlm import Federation, rounds
from privasr_k2.federated.settings import FedLmConfig, spending
from privasr_k2.federated.weighting import ClientData
from privasr_k2.lm.neural.scoring import NeuralScorer
from privasr_k2.lm.neural.vocabulary import Text
from privasr_k2.privacy.accounting import account
from privasr_k2.privacy.audit import bounds, exposure, membership
from privasr_k2.privacy.audit.one_run import guesses_from_scores, inclusion_coins, one_run_bound
from privasr_k2.privacy.streams import Drawn
from privasr_k2.randomness import new_secret, noise_stream, stream
from privasr_k2.training.distributed import Process

#: The noise of the run that must show leakage, by that of the claim.
_HARDLY_ANY = 1e-6


@dataclass(frozen=True)
class AuditConfig:
    """``conf/fedlm_audit.yaml``, where every number is explained."""

    canaries: int
    candidates: int
    secret_words: int
    repeats: int
    top: int
    marks: int
    guesses: float
    broken: float
    confidence: float

    def __post_init__(self) -> None:
        least = {"canaries": 1, "candidates": 2, "secret_words": 1, "repeats": 1, "top": 1, "marks": 2}
        for name, value in least.items():
            if getattr(self, name) < value:
                raise ValueError(f"{name} must be at least {value}, got {getattr(self, name)}")
        if self.top >= self.candidates:
            raise ValueError(f"top must be below candidates, got {self.top} of {self.candidates}")
        if not 0 < self.guesses <= 1 or not 0 < self.confidence < 1 or self.broken <= 1:
            raise ValueError("guesses must be in (0, 1], confidence in (0, 1) and broken above 1")


@dataclass(frozen=True)
class AuditedConfig(AuditConfig, FedLmConfig):
    """Both files."""

    def __post_init__(self) -> None:
        AuditConfig.__post_init__(self)
        FedLmConfig.__post_init__(self)


@dataclass(frozen=True)
class Canary:
    """A secret sentence: one of its candidates, drawn uniformly."""

    candidates: tuple[tuple[str, ...], ...]
    planted: int


def draw_canaries(words: Sequence[str], config: AuditConfig, seed: int) -> list[Canary]:
    """Canaries whose candidates are different sentences of random words.

    Raises:
        DataError: too few words for so many different sentences.
    """
    if len(words) ** config.secret_words < 2 * config.candidates:
        raise DataError(
            "the vocabulary", "words for the canaries", f"{len(words)} words", "take longer secrets"
        )
    found = []
    for number in range(config.canaries):
        generator = stream(seed, "canary", number)
        sentences: dict[tuple[str, ...], None] = {}
        while len(sentences) < config.candidates:
            sentences[tuple(generator.choice(words, size=config.secret_words).tolist())] = None
        found.append(Canary(tuple(sentences), int(generator.integers(config.candidates))))
    return found


def plant(clients: Sequence[ClientText], canaries: Sequence[Canary], repeats: int) -> list[ClientText]:
    """The clients and one more for each canary, sorted by name; secrets are sure to be right."""
    planted = []
    for number, canary in enumerate(canaries):
        secret = canary.candidates[canary.planted]
        sure = (1.0,) * len(secret)
        name = f"canary-{number}"
        planted.append(
            ClientText(name, tuple(Utterance(f"{name}-{time}", secret, sure) for time in range(repeats)))
        )
    return sorted([*clients, *planted], key=lambda client: client.name)


def exposure_of(
    scorer: NeuralScorer, canaries: Sequence[Canary], config: AuditConfig, delta: float
) -> dict[str, Any]:
    """Ranks, exposures in bits, and the bound on epsilon that all canaries of one model give."""
    losses = -scorer.score_sentences([one for canary in canaries for one in canary.candidates])
    by_canary = losses.reshape(len(canaries), -1)
    own = np.array([canary.planted for canary in canaries])
    others = np.ones(by_canary.shape, dtype=bool)
    others[np.arange(len(own)), own] = False
    ranks = exposure.ranks(by_canary[~others], by_canary[others].reshape(len(own), -1))
    bound = exposure.bound_in_one_run(
        ranks, space=config.candidates, top=config.top, delta=delta, confidence=config.confidence
    )
    bits = exposure.exposure(ranks, space=config.candidates)
    return {
        "ranks": ranks.tolist(),
        "mean_exposure": float(bits.mean()),
        "largest_exposure": float(bits.max()),
        "largest_possible_exposure": float(np.log2(config.candidates)),
        "epsilon_lower": bound.epsilon_lower,
    }


def membership_of(
    before: NeuralScorer,
    after: NeuralScorer,
    members: Sequence[ClientText],
    others: Sequence[ClientText],
    config: AuditConfig,
) -> dict[str, Any]:
    """How well members are told from others by what the model gained, in nats a symbol, on their text."""
    gains = [np.array([_gain(before, after, client) for client in group]) for group in (members, others)]
    curve = membership.roc(*gains)
    interval = membership.auc_interval(curve, confidence=config.confidence)
    rare = membership.at_low_fpr(*gains, fpr=0.1, confidence=config.confidence)
    return {
        "members": len(members),
        "others": len(others),
        "auc": curve.auc,
        "auc_interval": [interval.low, interval.high],
        "tpr_at_fpr_0.1": None if rare is None else rare.true_positives / rare.members,
    }


def _gain(before: NeuralScorer, after: NeuralScorer, client: ClientText) -> float:
    sentences = [one.words for one in client.utterances]
    return float(after.token_log_probs(sentences).mean() - before.token_log_probs(sentences).mean())


def marks(
    make_trainer: Callable[[], LocalTrainer],
    clients: Sequence[ClientData],
    config: FedLmConfig,
    audit: AuditConfig,
    process: Process,
) -> dict[str, Any]:
    """The one-run audit of a claim: with its noise, with it divided, and with next to none.

    Args:
        make_trainer: a new model for each run, with more trained parameters than there are marks.
        clients: real ones, who take part as well.

    Returns:
        the bounds, what is claimed, and the verdict.

    Raises:
        DataError: fewer trained parameters than marks.
    """
    claimed = spending(config, len(clients) + audit.marks)
    cost = account(claimed.event, claimed.relation, claimed.delta)
    found = {
        name: _marked_run(make_trainer(), clients, _with_noise(config, share), audit, process)
        for name, share in {"sound": 1.0, "broken": 1 / audit.broken, "noise_free": _HARDLY_ANY}.items()
    }
    claim = {"claimed_epsilon": cost.value, "claimed_delta": claimed.delta}
    verdict = bounds.judge(found["sound"], broken=found["broken"], noise_free=found["noise_free"], **claim)
    return {
        "epsilon_rdp": cost.rdp,
        "epsilon_pld": cost.pld,
        "delta": claimed.delta,
        "epsilon_lower": {name: bound.epsilon_lower for name, bound in found.items()},
        "largest_possible": found["sound"].largest_possible,
        "trials": found["sound"].trials,
        "confidence": audit.confidence,
        "verdict": verdict.value,
    }


def _with_noise(config: FedLmConfig, share: float) -> FedLmConfig:
    privacy = replace(
        config.privacy, noise=config.privacy.noise * share, count_noise=config.privacy.count_noise * share
    )
    return replace(config, privacy=privacy)


def _marked_run(
    trainer: LocalTrainer,
    clients: Sequence[ClientData],
    config: FedLmConfig,
    audit: AuditConfig,
    process: Process,
) -> bounds.AuditBound:
    size = len(trainer.vector)
    if size < audit.marks:
        raise DataError("marks", f"at most {size}, a coordinate each", str(audit.marks), "take fewer")
    coins = inclusion_coins(noise_stream(new_secret(), "coins"), canaries=audit.marks)
    names = [f"mark-{number:06}" for number in range(audit.marks)]
    coordinates = stream(config.seed, "marks").choice(size, size=audit.marks, replace=False)
    replaced = {}
    for number in np.flatnonzero(coins).tolist():
        update = torch.zeros(size)
        update[coordinates[number]] = 2.0 * (config.privacy.clip or 0.0)
        replaced[names[number]] = update
    nothing = Text(np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64))
    added = [
        ClientData(name, nothing, np.zeros(0, dtype=np.float32), config.weights.cap) for name in replaced
    ]
    everyone = sorted([*clients, *added], key=lambda client: client.name)
    scores = np.zeros(audit.marks)
    federation = Federation(everyone, trainer, replaced)
    for one in rounds(federation, config, process, Drawn("cohorts", None), None):
        if one.delta is not None:
            scores += one.delta.numpy()[coordinates]
    # None is guessed to be out: whoever is in may never have been drawn.
    guesses = guesses_from_scores(scores, guess_in=max(1, round(audit.guesses * audit.marks)), guess_out=0)
    return one_run_bound(coins, guesses, delta=config.privacy.delta, confidence=audit.confidence)


def split_members(clients: Sequence[ClientText], seed: int) -> tuple[list[ClientText], list[ClientText]]:
    """Half of the clients, who will take part, and the others, in the order of their names.

    Raises:
        DataError: fewer than two clients.
    """
    if len(clients) < 2:
        raise DataError("the clients", "two or more", str(len(clients)), "give more")
    inside = set(stream(seed, "members").permutation(len(clients))[: (len(clients) + 1) // 2].tolist())
    groups: Mapping[bool, list[ClientText]] = {True: [], False: []}
    for place, client in enumerate(clients):
        groups[place in inside].append(client)
    return groups[True], groups[False]
