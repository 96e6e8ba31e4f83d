"""From a features folder and a lang folder to a trained acoustic model's folder."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from privasr_k2 import config as configuration
from privasr_k2.am.checkpoints import continue_model, save_model
from privasr_k2.am.kinds import new_model, spec_of, task_of
from privasr_k2.am.model import AcousticModel, AmConfig, feature_statistics
from privasr_k2.data.batches import Batches, drop_unalignable
from privasr_k2.data.manifests import load_cuts
from privasr_k2.graph.lang import Lang, load_lang
from privasr_k2.graph.spelled import spelled_targets
from privasr_k2.training.distributed import Process
from privasr_k2.training.fingerprints import hashed, training_fingerprint
from privasr_k2.training.trainer import train
from privasr_k2.training.weights import average

if TYPE_CHECKING:
    from lhotse import CutSet

log = logging.getLogger(__name__)


def train_am(
    feats: Path,
    lang_dir: Path,
    folder: Path,
    config: AmConfig,
    process: Process,
    num_workers: int = 0,
    *,
    init: Path | None = None,
) -> None:
    """Train on the role ``train``, score epochs on ``dev``, and write the averaged model.

    Args:
        feats: folder with the cuts of both roles, which have features.
        folder: gets what :func:`privasr_k2.training.trainer.train` writes, ``config.yaml`` and the
            model.
        num_workers: processes that read ahead where features do not fit in memory.
        init: train this model further, with its mean and deviation of the features.
    """
    cuts = {role: load_cuts(feats, role) for role in ("train", "dev")}
    train_cuts(cuts, load_lang(lang_dir), folder, config, process, num_workers, init=init)


def train_cuts(
    cuts: Mapping[str, CutSet],
    lang: Lang,
    folder: Path,
    config: AmConfig,
    process: Process,
    num_workers: int = 0,
    *,
    init: Path | None = None,
) -> None:
    """As :func:`train_am`, from the cuts of the roles ``train`` and ``dev``."""
    spec = spec_of(config, cuts["train"][0].num_features, lang.num_tokens)
    model = (
        new_model(spec, config.seed) if init is None else continue_model(init, spec, lang.tokens)
    )
    sources = {
        role: _batches(cuts[role], lang, model, role, config, process, num_workers)
        for role in ("train", "dev")
    }
    content = hashlib.sha256()
    batches = hashed(sources["train"].everything(), content)
    statistics = feature_statistics(batches, utterance_mean=config.utterance_mean)
    if init is None:
        model.mean, model.deviation = statistics
    millions = sum(p.numel() for p in model.parameters()) / 1e6
    log.info("%.2f M parameters, %s", millions, process.device)
    if process.leads:
        configuration.save(config, folder / "config.yaml")
    targets = sources["train"].targets
    fingerprint = training_fingerprint(
        config, spec, lang.tokens, targets, content.hexdigest(), model
    )
    task, given = task_of(config), (sources["train"], sources["dev"])
    epochs = train(model, task, *given, folder, config, process, fingerprint)
    if process.leads:
        log.info("average of %s", " ".join(path.stem for path in epochs))
        save_model(folder, spec, average(epochs), lang.tokens)


def _batches(
    cuts: CutSet,
    lang: Lang,
    model: AcousticModel,
    role: str,
    config: AmConfig,
    process: Process,
    num_workers: int,
) -> Batches:
    cuts, targets = spelled_targets(cuts, lang, role=role)
    training = role == "train"
    shortest = 1.0 - config.time_stretch if training else 1.0
    if model.needs_frames():
        cuts = drop_unalignable(
            cuts, targets, lambda frames: model.output_frames(int(frames * shortest)), role=role
        )
    return Batches(
        cuts,
        targets,
        max_duration=config.max_duration,
        seed=config.seed if training else None,
        rank=process.rank if training else 0,
        world_size=process.world_size if training else 1,
        num_workers=num_workers,
        memory_gb=config.memory_gb,
    )
