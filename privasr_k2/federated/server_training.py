"""Training on the server with all clients' text: the baseline of [liu2021, section 3.2].

Adam, batches of 32 sentences, 10 epochs, and the clients' own loss and confidences. There is no
dropout and no claim.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch

from privasr_k2 import config as configuration
from privasr_k2.constraints import Count, Positive, one_of
from privasr_k2.errors import DataError
from privasr_k2.federated.client import ClientConfig, LocalTrainer
from privasr_k2.federated.client_store import ClientData
from privasr_k2.federated.clients import ClientText
from privasr_k2.federated.fedlm_tuning import GROUPS, divide
from privasr_k2.federated.local_batch import batch_of
from privasr_k2.federated.settings import SELECTED, InitConfig
from privasr_k2.federated.train import Sentences, load_initial
from privasr_k2.federated.weighting import Weighting, prepare
from privasr_k2.lm.neural.files import save_lm
from privasr_k2.lm.neural.scoring import NeuralScorer
from privasr_k2.lm.neural.vocabulary import Text
from privasr_k2.lm.perplexity import perplexity
from privasr_k2.randomness import stream
from privasr_k2.recipe.progress import report_progress

HELD_OUT = "held_out"
"""Half of the clients are not trained on, and select the epoch."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FinetuneConfig(InitConfig):
    """Training on the server; see ``conf/fedlm.yaml#finetune_lm``."""

    epochs: Count
    select_epoch: Annotated[str, one_of(*SELECTED, HELD_OUT)]
    by: Annotated[str, one_of(*GROUPS)]
    batch_size: Count
    lr: Positive
    confidences: Weighting


def pooled(clients: Sequence[ClientData]) -> ClientData:
    """All clients as one.

    Raises:
        DataError: no sentence is left.
    """
    words = np.concatenate([client.text.words for client in clients])
    sizes = np.concatenate([np.diff(client.text.starts) for client in clients])
    if not len(sizes):
        raise DataError("the clients", "sentences to train on", "none", "lower the threshold")
    starts = np.concatenate([[0], np.cumsum(sizes)])
    weights = np.concatenate([client.weights for client in clients])
    return ClientData("server", Text(words, starts), weights, len(words))


def epochs(trainer: LocalTrainer, data: ClientData, config: FinetuneConfig) -> Iterator[int]:
    """Train; yields the number of each finished epoch, from 0."""
    optimizer = torch.optim.Adam(trainer.trained, lr=config.lr)
    for epoch in range(config.epochs):
        report_progress(epoch, config.epochs, "epoch")
        order = stream(config.seed, "server", epoch).permutation(len(data.text))
        for at in range(0, len(order), config.batch_size):
            trainer.gradient_of(batch_of(data, order[at : at + config.batch_size]))
            optimizer.step()
        yield epoch


def finetune(
    clients: Sequence[ClientText],
    dev: Sentences,
    init: Path,
    folder: Path,
    config: FinetuneConfig,
    device: torch.device,
) -> Sentences:
    """Train, and write the model's folder.

    Args:
        dev: scored after every epoch; needed with ``select_epoch=best``. With ``held_out`` half of
            the clients take its place, and the others are trained on.

    Returns:
        The sentences that were scored after every epoch.

    Raises:
        ConfigError: as :func:`privasr_k2.federated.train.load_initial`.
        DataError: an utterance without the confidences in use, no text, or no model.
    """
    model, vocabulary, spec = load_initial(init, config)
    if config.select_epoch == HELD_OUT:
        clients, dev = divide(clients, clients, config.by, config.seed)
    data = pooled(prepare(clients, vocabulary, config.confidences))
    model = model.to(device)
    plain = ClientConfig(epochs=1, batch_size=config.batch_size, lr=config.lr, max_seconds=0)
    trainer = LocalTrainer(model, plain, config.seed)
    configuration.save(config, folder / "config.yaml")
    least, kept = math.inf, None
    for epoch in epochs(trainer, data, config):
        on_dev = perplexity(NeuralScorer(model, vocabulary), dev, vocabulary.words) if dev else None
        log.info(
            "epoch %d of %d: %s", epoch + 1, config.epochs, "" if on_dev is None else on_dev.shown
        )
        if config.select_epoch != "last" and on_dev is not None and on_dev.ppl < least:
            least, kept = on_dev.ppl, trainer.vector.clone()
    if kept is not None:
        trainer.load(kept)
    save_lm(folder, spec, model.state_dict(), vocabulary)
    return dev
