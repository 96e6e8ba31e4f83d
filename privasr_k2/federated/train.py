"""From clients' text and a pre-trained model to the folder of an adapted one."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from privasr_k2 import config as configuration
from privasr_k2.errors import DataError
from privasr_k2.federated.client import LocalTrainer
from privasr_k2.federated.client_store import ClientData
from privasr_k2.federated.clients import ClientText, table
from privasr_k2.federated.fedlm import Federation, rounds
from privasr_k2.federated.processes import from_leader
from privasr_k2.federated.round_files import RoundFiles
from privasr_k2.federated.settings import FedLmConfig, InitConfig
from privasr_k2.federated.weighting import prepare
from privasr_k2.fileio import read_json, write_json
from privasr_k2.lm.neural.files import SPEC, continue_lm, save_lm
from privasr_k2.lm.neural.kinds import Spec, kind_of, new_lm
from privasr_k2.lm.neural.model import NeuralLm
from privasr_k2.lm.neural.scoring import NeuralScorer
from privasr_k2.lm.neural.vocabulary import Vocabulary, read_vocabulary
from privasr_k2.lm.perplexity import perplexity
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Epsilon, Relation, account
from privasr_k2.privacy.release import Release
from privasr_k2.privacy.streams import Drawn
from privasr_k2.training.checkpoint_manager import TrainerState
from privasr_k2.training.distributed import Process
from privasr_k2.training.fingerprints import training_fingerprint
from privasr_k2.training.trainable import LAST_BLOCK, LORA, OUTPUT, choose_trained
from privasr_k2.training.trainlog import TrainLog

ABOUT = "federated.json"
Sentences = Sequence[Sequence[str]]
log = logging.getLogger(__name__)


def neutral(config: FedLmConfig) -> FedLmConfig:
    """The configuration with fixed values for what changes no weights."""
    # A round that is not scored on dev cannot be kept as the best.
    eval_every = config.eval_every if config.select_round == "best" else 0
    return dataclasses.replace(config, eval_every=eval_every, save_every=1)


def paper_epsilon(noise: float, delta: float) -> Epsilon:
    """The epsilon of the paper's setting: 1,000 rounds, Poisson sampling of 100 of 10,000 clients.

    >>> found = paper_epsilon(1.5, 1e-5)
    >>> f"{found.rdp:.2f} {found.pld:.2f}"
    '1.01 0.92'
    """
    step = events.poisson_sampled(100 / 10_000, events.gaussian(noise))
    return account(events.repeated(step, 1000), Relation.ADD_OR_REMOVE_ONE, delta)


def load_initial(folder: Path, config: InitConfig) -> tuple[NeuralLm, Vocabulary, Spec]:
    """The model to begin with; only what ``config.trained`` chooses wants gradients.

    A tied model is untied where its softmax is trained, or has adapters, and not everything is
    trained: what reads words stays as it is.

    Raises:
        ConfigError: as :func:`privasr_k2.training.trainable.choose_trained`.
        DataError: as :func:`privasr_k2.lm.neural.files.load_lm`.
    """
    if not (folder / SPEC).is_file():
        raise DataError(folder / SPEC, "a language model", "no such file", "train it with train_lm")
    spec: Spec = configuration.load(kind_of([folder / SPEC]).spec, [folder / SPEC])
    trains_output = any(part.split(".")[0] in (OUTPUT, LAST_BLOCK) for part in config.trained)
    if LORA in config.trained:
        trains_output |= any(end.split(".")[0] == OUTPUT for end in config.lora.layers)
    if spec.output.tied and trains_output and config.is_part:
        spec = dataclasses.replace(spec, output=dataclasses.replace(spec.output, tied=False))
    model, vocabulary, spec = continue_lm(folder, spec, read_vocabulary(folder / "words.txt").words)
    if config.init == "scratch":
        model = new_lm(spec, vocabulary, config.seed)
    choose_trained(model, config.trained, config.lora, config.seed)
    return model, vocabulary, spec


def train_fedlm(
    clients: Iterable[ClientText],
    dev: Sentences,
    init: Path,
    folder: Path,
    config: FedLmConfig,
    process: Process,
    release: Release | None,
) -> None:
    """Train; write the model and ``federated.json``, and logs and checkpoints beside them.

    Adapters are drawn once, stay apart from the weights through all rounds, and are added to them
    in the model that is written.

    What is released has no times: of its files all are that of the ledger's entry.

    Args:
        clients: read twice; sorted by name. None of them stays in memory.
        dev: public sentences that select the round; may be empty with ``select_round=last``. The
            choice costs no privacy, as every round is released.
        init: folder of the model to begin with.
        release: of the leader, where a guarantee is claimed; finished at the end.

    Raises:
        ConfigError: as :func:`load_initial`.
        DataError: an utterance without the confidences in use, or no model to begin with.
        PrivacyError: the release is finished and its files are gone, or impossible rates.
    """
    model, vocabulary, spec = load_initial(init, config)
    data = prepare(clients, vocabulary, config.confidences)
    model = model.to(process.device)
    trainer = LocalTrainer(model, config.client, config.seed)
    size, sent = sum(p.numel() for p in model.parameters()) / 1e6, len(trainer.vector)
    bytes_sent = sent * trainer.vector.element_size()
    shown = size, sent / 1e6, bytes_sent / 1e6
    log.info("%.2f M parameters, %.2f M of them trained: a client sends %.2f MB a round", *shown)
    name = release.entry.release if release is not None else ""
    if not _is_done(folder, name, process):
        # A release has one configuration and one data set; a hash of them in a file would tell of
        # the data.
        fingerprint = name or _fingerprint(config, data, dev, model)
        files = RoundFiles(folder / "checkpoints", fingerprint, writes=process.leads)
        secrets = release if release is not None else Drawn("cohorts", config.seed)
        if process.leads:
            configuration.save(config, folder / "config.yaml")
        _follow(Federation(data, trainer), vocabulary, dev, folder, config, process, secrets, files)
        if process.leads:
            kept = files.best() if config.select_round == "best" else None
            if kept is not None:
                trainer.load(kept[2])
            save_lm(folder, spec, model.state_dict(), vocabulary)
            figures = {"clients": len(data)} if config.claims else table(clients)
            about = _about(config, figures, trainer, name)
            about["kept_round"] = config.rounds if kept is None else kept[0]
            write_json(folder / ABOUT, about)
    if release is not None:
        release.date(folder)
        release.finish()


def _is_done(folder: Path, release: str, process: Process) -> bool:
    """Whether this release was written whole by a run that was killed before finishing it."""
    about = folder / ABOUT
    done = bool(release) and about.exists() and read_json(about)["release"] == release
    return bool(from_leader(process, torch.tensor([int(done)])))


def _follow(
    federation: Federation,
    vocabulary: Vocabulary,
    dev: Sentences,
    folder: Path,
    config: FedLmConfig,
    process: Process,
    secrets: Release | Drawn,
    files: RoundFiles,
) -> None:
    train_log: TrainLog | None = None
    best = files.best()
    for finished in rounds(federation, config, process, secrets if process.leads else None, files):
        done = finished.number + 1
        state = TrainerState(epoch=finished.number, step=done)
        if train_log is None:
            writes, claims = process.leads, config.claims
            train_log = TrainLog(folder, finished.number, writes=writes, claims=claims)
        if not config.claims:  # otherwise private: no guarantee covers them
            train_log.step(state, **finished.figures)
        due = done == config.rounds or (config.eval_every and done % config.eval_every == 0)
        if process.leads and due:
            scalars = {} if finished.stand.clip is None else {"clip": finished.stand.clip}
            if dev:
                federation.trainer.load(finished.stand.server.weights)
                scorer = NeuralScorer(federation.trainer.model, vocabulary)
                ppl = scalars["dev_ppl"] = perplexity(scorer, dev, vocabulary.words).ppl
                if config.select_round == "best" and (best is None or ppl < best[1]):
                    best = done, ppl, finished.stand.server.weights
                    files.save_best(*best)
            train_log.epoch(state, scalars)
    if train_log is not None:
        train_log.close()


def _about(
    config: FedLmConfig, figures: Mapping[str, Any], trainer: LocalTrainer, release: str
) -> dict[str, Any]:
    """The description of the model; under a claim only the number of clients is from the data."""
    return {
        "release": release or None,
        "claim": config.claims,
        **figures,
        "rounds": config.rounds,
        "sampling": config.sampling_for(figures["clients"]).describe(),
        "trained": config.trained,
        "trained_parameters": len(trainer.vector),
        "update_bytes": len(trainer.vector) * trainer.vector.element_size(),
        "confidence_use": config.confidences.use,
    }


def _fingerprint(
    config: FedLmConfig, data: Sequence[ClientData], dev: Sentences, model: NeuralLm
) -> str:
    """Of everything that weights without a claim depend on."""
    chosen_by = dev if config.select_round == "best" else []
    clients = [part for of in data for part in (of.name, of.text.words, of.text.starts, of.weights)]
    return training_fingerprint(config, chosen_by, model, *clients)
