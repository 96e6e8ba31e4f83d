"""Learning rates for federated training, tried on clients of dev.

Some clients of dev train, the text of the others is scored. Nothing of the real clients is read, so
the sweep costs them no privacy. Cohorts, clip and noise are those of the training.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from annotated_types import MinLen

from privasr_k2.constraints import Checked, Count, Positive, one_of
from privasr_k2.errors import DataError
from privasr_k2.federated.client import LocalTrainer
from privasr_k2.federated.clients import ClientText
from privasr_k2.federated.fedlm import Federation, rounds
from privasr_k2.federated.settings import FedLmConfig
from privasr_k2.federated.weighting import prepare
from privasr_k2.fileio import read_json
from privasr_k2.lm.neural.scoring import NeuralScorer
from privasr_k2.lm.neural.vocabulary import Vocabulary
from privasr_k2.lm.perplexity import perplexity
from privasr_k2.privacy.streams import Drawn
from privasr_k2.randomness import stream
from privasr_k2.training.distributed import Process

GROUPS = ("client", "call")
"""What is whole in one half of :func:`divide`."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TuneConfig(Checked):
    """Learning rates to try; see ``conf/fedlm.yaml#fedlm_tune``."""

    client_lrs: Annotated[list[Positive], MinLen(1)]
    server_lrs: Annotated[list[Positive], MinLen(1)]
    by: Annotated[str, one_of(*GROUPS)]
    clients: Count | None


@dataclass(frozen=True)
class TunedConfig(TuneConfig, FedLmConfig):
    """Sections ``fedlm`` and ``fedlm_tune`` together."""


def divide(
    training: Sequence[ClientText], scored: Sequence[ClientText], by: str, seed: int
) -> tuple[list[ClientText], list[list[str]]]:
    """Clients to train on, of half of the groups, and the sentences of the others' ``scored`` text.

    Args:
        by: ``client``: each is a group; ``call``: names alike up to the last hyphen are one.

    Raises:
        DataError: nobody is left to train, or no sentence to score.
    """

    def group(client: ClientText) -> str:
        return (client.name.rpartition("-")[0] or client.name) if by == "call" else client.name

    groups = sorted({group(client) for client in (*training, *scored)})
    drawn = stream(seed, "tuning").permutation(len(groups))[: (len(groups) + 1) // 2].tolist()
    inside = {groups[index] for index in drawn}
    clients = [client for client in training if group(client) in inside]
    others = [client for client in scored if group(client) not in inside]
    sentences = [list(utterance.words) for client in others for utterance in client.utterances]
    if not clients or not sentences:
        raise DataError("the clients of dev", f"text of two {by}s or more", "less", "give more")
    return clients, sentences


def sized(config: TunedConfig, clients: int) -> TunedConfig:
    """The configuration with cohorts of ``clients`` as large as those of the training."""
    if config.sampling != "poisson":
        return replace(config, cohort=min(config.cohort, clients))
    expected: float = config.cohort
    if config.client_fraction is not None:
        expected = config.client_fraction * (config.clients or clients)
    return replace(config, client_fraction=min(1.0, expected / clients))


def tune(
    make_trainer: Callable[[FedLmConfig], LocalTrainer],
    clients: Sequence[ClientText],
    dev: Sequence[Sequence[str]],
    vocabulary: Vocabulary,
    config: TunedConfig,
    process: Process,
) -> dict[str, Any]:
    """Train with each pair of rates, without a release.

    Args:
        make_trainer: with a new model, the same each time.
        dev: sentences of others than the clients.

    Returns:
        ``client_lr`` and ``server_lr`` of the least perplexity, and the whole ``grid``.
    """
    data, own = prepare(clients, vocabulary, config.confidences), sized(config, len(clients))
    grid = []
    for client_lr, server_lr in itertools.product(config.client_lrs, config.server_lrs):
        tried = replace(
            own, client=replace(own.client, lr=client_lr), server=replace(own.server, lr=server_lr)
        )
        trainer, perplexities = make_trainer(tried), []
        for finished in rounds(
            Federation(data, trainer), tried, process, Drawn("cohorts", tried.seed), None
        ):
            done = finished.number + 1
            if done == tried.rounds or (tried.eval_every and done % tried.eval_every == 0):
                trainer.load(finished.stand.server.weights)
                scorer = NeuralScorer(trainer.model, vocabulary)
                perplexities.append((perplexity(scorer, dev, vocabulary.words).ppl, done))
        ppl, number = min(perplexities) if config.select_round == "best" else perplexities[-1]
        grid.append({"client_lr": client_lr, "server_lr": server_lr, "ppl": ppl, "round": number})
        log.info("client.lr %g, server.lr %g: %.2f, round %d", client_lr, server_lr, ppl, number)
    best = min(grid, key=lambda finished: finished["ppl"])
    return {"client_lr": best["client_lr"], "server_lr": best["server_lr"], "grid": grid}


def read_rates(path: Path) -> list[str]:
    """The rates that :func:`tune` chose, as settings of ``conf/fedlm.yaml#fedlm``.

    Raises:
        DataError: another file.
    """
    rates = read_json(path)
    try:
        return [f"client.lr={float(rates['client_lr'])}", f"server.lr={float(rates['server_lr'])}"]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(path, "what tune_fedlm writes", repr(error), "tune again") from error
