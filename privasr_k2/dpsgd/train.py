"""Train a public model further on private speech by DP-SGD, and write its folder.

An interrupted training continues from ``checkpoints/latest.safetensors``. Later steps are repeated
with the same batches and noise, which come from the key of the release.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from privasr_k2 import config as configuration
from privasr_k2.am.checkpoints import continue_model, save_model
from privasr_k2.am.exported import ExportedSpec
from privasr_k2.am.files import SPEC
from privasr_k2.am.kinds import KINDS, new_model, read_spec
from privasr_k2.am.model import AcousticModel
from privasr_k2.data.batches import Batches, drop_unalignable
from privasr_k2.data.manifests import load_cuts
from privasr_k2.data.roster import read_units
from privasr_k2.dpsgd.settings import DpSgdConfig
from privasr_k2.dpsgd.trainer import PrivateData, Trainer
from privasr_k2.dpsgd.units import Speech, people_of, units_of
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json, remove_tree, write_json
from privasr_k2.graph.lang import Lang
from privasr_k2.graph.spelled import spelled_targets
from privasr_k2.privacy.people import People
from privasr_k2.privacy.release import Release
from privasr_k2.privacy.streams import Drawn
from privasr_k2.training.checkpoint_manager import (
    LATEST,
    TrainerState,
    restore_training,
    training_tensors,
)
from privasr_k2.training.distributed import Process
from privasr_k2.training.fingerprints import training_fingerprint
from privasr_k2.training.trainer import evaluate
from privasr_k2.training.trainlog import TrainLog
from privasr_k2.training.weights import read_header, save_tensors

log = logging.getLogger(__name__)

ABOUT = "dpsgd.json"
_AVERAGE = "average/"


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of a training: ``model`` with its initial weights, ``dev`` of public speech.

    ``people`` stand behind the units; None: not known.
    """

    model: AcousticModel
    tokens: Sequence[str]
    data: PrivateData
    dev: Batches
    people: People | None


def read_inputs(
    private: Path,
    public: Path,
    lang: Lang,
    init: Path,
    config: DpSgdConfig,
    roster: Path | None = None,
) -> Inputs:
    """Read and check all inputs, before any privacy is spent.

    Args:
        private: features folder with ``cuts_train.jsonl.gz``.
        public: features folder with ``cuts_dev.jsonl.gz``, of public speech.
        init: a model that train_am wrote, for form, normalization and, if pretrained, weights.
        roster: the public names of all units (:mod:`privasr_k2.data.roster`), whose number then
            depends on no data; None: the units of the data, whose number is taken as public.

    Raises:
        DataError: no model to begin with, or another's features, tokens or no usable utterance; or
            a unit that the roster lacks.
    """
    if not (init / SPEC).is_file():
        raise DataError(init / SPEC, "an acoustic model", "no such file", "train it with train_am")
    spec = read_spec(init / SPEC)
    if isinstance(spec, ExportedSpec):
        expected = "a model that train_am wrote"
        raise DataError(init, expected, "an exported one", "train one with train_am")
    model = continue_model(init, spec, lang.tokens)
    if config.init == "scratch":
        fresh = new_model(spec, config.seed)
        fresh.mean, fresh.deviation = model.mean, model.deviation
        fresh.public = model.public
        model = fresh
    cuts = {"train": load_cuts(private, "train"), "dev": load_cuts(public, "dev")}
    targets, usable = {}, {}
    for role, folder in (("train", private), ("dev", public)):
        dim = cuts[role][0].num_features if len(cuts[role]) else None
        if dim != model.feature_dim:
            expected = f"utterances of {model.feature_dim} features"
            raise DataError(folder, expected, f"{dim}", "compute the model's features")
        spelled, targets[role] = spelled_targets(cuts[role], lang, role=role)
        shortest = 1.0 - config.time_stretch if role == "train" else 1.0
        usable[role] = spelled
        if model.needs_frames():
            usable[role] = drop_unalignable(
                spelled,
                targets[role],
                lambda frames, shortest=shortest: model.output_frames(int(frames * shortest)),
                role=role,
            )
    speech = Speech(usable["train"], targets["train"], memory_gb=config.memory_gb)
    persons = {} if roster is None else read_units(roster, config.unit)
    units = units_of(cuts["train"], config.unit, speech.targets, persons)
    limits = {"max_duration": config.max_duration, "memory_gb": config.memory_gb}
    dev = Batches(usable["dev"], targets["dev"], seed=None, **limits)
    people = people_of(cuts["train"], config.unit, private)
    if roster is not None:
        people = People.of(persons.items(), source=roster)
    return Inputs(model, lang.tokens, PrivateData(units, speech), dev, people)


def fingerprint_of(inputs: Inputs, config: DpSgdConfig) -> str:
    """A hash of everything that the trained weights depend on."""
    units = [(unit.name, unit.copies) for unit in inputs.data.units]
    content = inputs.data.speech.content()
    model = inputs.model
    return training_fingerprint(config, model.spec, inputs.tokens, units, content, model)


def train_dpsgd(
    trainer: Trainer, inputs: Inputs, folder: Path, fingerprint: str, release: Release | None
) -> None:
    """Train; write the model, its logs, ``checkpoints/`` and ``dpsgd.json``.

    What is released has no times: of its files all are that of the ledger's entry.

    Args:
        trainer: of the model and the data of ``inputs``.
        release: where the configuration claims a guarantee; it is finished in the end.

    Raises:
        PrivacyError: the release is finished and what it has written is gone.
    """
    config, model = trainer.config, trainer.model
    name = release.entry.release if release is not None else ""
    about = folder / ABOUT
    if not (name and about.exists() and read_json(about)["release"] == name):
        secrets = release if release is not None else Drawn("batches", config.seed)
        configuration.save(config, folder / "config.yaml")
        # A release has one configuration and data set; a hash of them would tell of the data.
        files = StepFiles(folder / "checkpoints", name or fingerprint)
        average = files.resume(trainer)
        _follow(trainer, average, inputs.dev, folder, secrets, files)
        save_model(folder, model.spec, average.weights(model), inputs.tokens)
        write_json(about, _about(trainer, len(inputs.data.units), name))
    if release is not None:
        release.date(folder)
        release.finish()


class Average:
    """The mean of the weights after ``count`` steps, the last of them ``step``."""

    def __init__(self, step: int, count: int, means: dict[str, Tensor]) -> None:
        self.step, self.count, self.means = step, count, means

    def add(self, trained: Mapping[str, Tensor]) -> None:
        """Add the weights after a step to the mean."""
        self.count += 1
        for name, value in trained.items():
            mean = self.means.setdefault(name, torch.zeros_like(value, dtype=torch.float64))
            mean += (value.detach().double() - mean) / self.count

    def weights(self, model: AcousticModel) -> dict[str, Tensor]:
        """A model's weights with these in place of what was trained."""
        means = {name: value.float() for name, value in self.means.items()}
        return {**model.state_dict(), **means}


class StepFiles:
    """Writes and reads ``latest.safetensors``; what another fingerprint wrote is removed."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self._folder, self._fingerprint = folder, fingerprint

    def resume(self, trainer: Trainer) -> Average:
        """Put back the latest weights, if there are some of this fingerprint."""
        latest = self._folder / LATEST
        header = read_header(latest) if latest.is_file() else None
        if header is None or header["fingerprint"] != self._fingerprint:
            if self._folder.is_dir():
                reason = "of other data or another configuration"
                log.warning("%s: %s; training anew", self._folder, reason)
                remove_tree(self._folder)
            return Average(0, 0, {})
        others = restore_training(latest, trainer.model, trainer.optimizer.original_optimizer)
        log.info("continuing after step %d", header["step"])
        device = trainer.model.mean.device
        means = {name.removeprefix(_AVERAGE): value.to(device) for name, value in others.items()}
        return Average(header["step"], header["averaged"], means)

    def save(self, trainer: Trainer, average: Average) -> None:
        """Write where the training stands."""
        tensors = training_tensors(trainer.model, trainer.optimizer.original_optimizer)
        tensors |= {f"{_AVERAGE}{name}": value for name, value in average.means.items()}
        header = {"fingerprint": self._fingerprint, "step": average.step, "averaged": average.count}
        save_tensors(self._folder / LATEST, tensors, header)


def _follow(
    trainer: Trainer,
    average: Average,
    dev: Batches,
    folder: Path,
    secrets: Release | Drawn,
    files: StepFiles,
) -> None:
    config, model = trainer.config, trainer.model
    train_log = TrainLog(folder, average.step, writes=True, claims=config.claims)
    alone = Process(0, 1, model.mean.device)
    averaged_from = config.steps - round(config.average_share * config.steps)
    for step in trainer.steps(secrets, average.step):
        average.step = step.number + 1
        if average.step > averaged_from:
            average.add(trainer.trained)
        state = TrainerState(epoch=step.number, step=average.step)
        norm, units = float(step.gradient.norm()), float(step.units)
        train_log.step(state, lr=step.lr, gradient_norm=norm, units=units)  # without a claim alone
        if average.step % config.save_every == 0 or average.step == config.steps:
            files.save(trainer, average)
            scores = evaluate(model, KINDS[model.spec.kind].task(), dev, alone)
            train_log.epoch(state, {f"dev_{name}": value for name, value in scores.items()})
    train_log.close()


def _about(trainer: Trainer, units: int, release: str) -> dict[str, Any]:
    """Metadata of the model; of the private data only the number of units."""
    config = trainer.config
    return {
        "release": release or None,
        "claim": config.claims,
        "kind": trainer.model.spec.kind,
        "unit": config.unit,
        "units": units,
        "steps": config.steps,
        "sampling": config.sampling.describe(),
        "noise_multiplier": trainer.optimizer.noise_multiplier,
        "highest_lr": trainer.highest_lr,
        "clip": config.clip,
        "clip_by": config.clip_by,
        "layers": len(trainer.optimizer.layers),
        "trained_parameters": sum(parameter.numel() for parameter in trainer.trained.values()),
    }
