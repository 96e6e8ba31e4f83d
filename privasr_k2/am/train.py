"""From a features folder and a lang folder to a trained acoustic model's folder."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privasr_k2 import config as configuration
from privasr_k2.am.checkpoints import Upper, continue_model, save_model
from privasr_k2.am.files import SPEC
from privasr_k2.am.kinds import KINDS, new_model, read_spec, spec_of, task_of
from privasr_k2.am.model import AcousticModel, AmConfig, feature_statistics
from privasr_k2.data.batches import Batches, NothingLeftError, drop_unalignable
from privasr_k2.data.folds import fold_of
from privasr_k2.data.manifests import load_cuts
from privasr_k2.encoders.upper import read_upper
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import write_json
from privasr_k2.graph.lang import Lang, load_lang
from privasr_k2.graph.spelled import spelled_targets
from privasr_k2.training.distributed import Process
from privasr_k2.training.fingerprints import hashed, training_fingerprint
from privasr_k2.training.trainable import choose_trained
from privasr_k2.training.trainer import evaluate, train
from privasr_k2.training.weights import average, fill

if TYPE_CHECKING:
    from lhotse import CutSet

log = logging.getLogger(__name__)

DEV_SCORES = "dev.json"
"""Loss, in nats, and errors a token of the averaged model on dev, or on a fold."""


def train_am(
    feats: Path,
    lang_dir: Path,
    folder: Path,
    config: AmConfig,
    process: Process,
    num_workers: int = 0,
    *,
    init: Path | None = None,
    public_encoder: Path | None = None,
    may_be_empty: bool = False,
) -> None:
    """Train on the role ``train``, score epochs on ``dev``, and write the averaged model.

    With ``config.folds`` both are speakers of ``train``.

    Args:
        feats: folder with the cuts of both roles, which have features.
        folder: gets what :func:`privasr_k2.training.trainer.train` writes, ``config.yaml``,
            :data:`DEV_SCORES` and the model.
        num_workers: processes that read ahead where features do not fit in memory.
        init: train this model further, with its mean and deviation of the features.
        public_encoder: the features are the outputs of one of its layers, and ``init`` was trained
            on its last. The layers between both become part of the model.
        may_be_empty: where ``train`` has nothing to learn from, write the model that it begins
            with, marked so (:func:`privasr_k2.am.checkpoints.is_untrained`), instead of an error.

    Raises:
        NothingLeftError: nothing to learn from, and not ``may_be_empty``.
        ConfigError: a public encoder without ``init``.
    """
    if public_encoder is not None and init is None:
        expected, way_out = "a model on the encoder's outputs, to train further", "give --in-init"
        raise ConfigError("--in-public-encoder", expected, "none", way_out)
    upper = None if public_encoder is None else read_upper(public_encoder, feats)
    if config.folds:
        cuts = fold_of(load_cuts(feats, "train"), config.fold, config.folds, config.seed)
    else:
        cuts = {role: load_cuts(feats, role) for role in ("train", "dev")}
    given = (cuts, load_lang(lang_dir), folder, config, process, num_workers)
    train_cuts(*given, init=init, upper=upper, may_be_empty=may_be_empty)


def train_cuts(
    cuts: Mapping[str, CutSet],
    lang: Lang,
    folder: Path,
    config: AmConfig,
    process: Process,
    num_workers: int = 0,
    *,
    init: Path | None = None,
    upper: Upper | None = None,
    may_be_empty: bool = False,
) -> None:
    """As :func:`train_am`, from the cuts of the roles ``train`` and ``dev``."""
    first = next(iter(cuts["train"]), None) or cuts["dev"][0]
    spec = spec_to_train(config, init, first.num_features, lang.num_tokens)
    model = begin_model(spec, config, init, lang.tokens, upper)
    sources: dict[str, Batches] = {}
    for role in ("dev", "train"):
        try:
            sources[role] = _batches(cuts[role], lang, model, role, config, process, num_workers)
        except NothingLeftError:
            if role == "dev" or not may_be_empty:
                raise
            log.info("nothing to learn from: the model stays as it begins, marked as untrained")
            if process.leads:
                configuration.save(config, folder / "config.yaml")
                save_model(folder, model.spec, model.state_dict(), lang.tokens, untrained=True)
            return
    content = fit_features(model, sources["train"], config, init)
    sizes = [(p.numel() / 1e6, p.requires_grad) for p in model.parameters()]
    millions, trained = sum(size for size, _ in sizes), sum(size for size, own in sizes if own)
    log.info("%.2f M parameters, %.2f M of them trained, %s", millions, trained, process.device)
    if process.leads:
        configuration.save(config, folder / "config.yaml")
    targets = sources["train"].targets
    fingerprint = training_fingerprint(config, model.spec, lang.tokens, targets, content, model)
    task, given = task_of(config, first.frame_shift), (sources["train"], sources["dev"])
    epochs = train(model, task, *given, folder, config, process, fingerprint)
    if process.leads:
        log.info("average of %s", " ".join(path.stem for path in epochs))
        weights = average(epochs)
        fill(model, weights, folder / "checkpoints")
        scores = evaluate(model, task, sources["dev"], process)
        about = {"fold": config.fold, "folds": config.folds} if config.folds else {}
        write_json(folder / DEV_SCORES, {**about, **scores})
        save_model(folder, model.spec, weights, lang.tokens)


def spec_to_train(config: AmConfig, init: Path | None, feature_dim: int, num_tokens: int) -> Any:
    """The spec of the configuration; of an imported kind that of the model ``init``.

    Raises:
        ConfigError: an imported kind without ``init``.
        DataError: ``init`` reads features of another size.
    """
    if not KINDS[config.kind].imported:
        return spec_of(config, feature_dim, num_tokens)
    if init is None:
        way_out = "import a model (privasr import) and give it as --in-init"
        raise ConfigError(f"kind: {config.kind}", "a model to train further", "none", way_out)
    spec = read_spec(init / SPEC)
    if spec.feature_dim != feature_dim:
        expected, way_out = f"features of {spec.feature_dim}", "compute those of its encoder"
        raise DataError(init / SPEC, expected, str(feature_dim), way_out)
    return spec


def begin_model(
    spec: Any,
    config: AmConfig,
    init: Path | None,
    tokens: Sequence[str],
    upper: Upper | None = None,
) -> AcousticModel:
    """A model of random weights, or that of the folder ``init`` to train it further.

    Layers of a public encoder come from ``upper``, or are those of ``init``. Only what
    ``config.trained`` chooses wants gradients.
    """
    if init is None:
        model = new_model(spec, config.seed)
    else:
        model = continue_model(init, spec, tokens, upper)
    choose_trained(model, config.trained, config.lora, config.seed)
    return model


def fit_features(model: Any, source: Batches, config: AmConfig, init: Path | None) -> str:
    """Set mean and deviation of the features, unless they are those of ``init``.

    Returns:
        a hash of all features.
    """
    content = hashlib.sha256()
    batches = hashed(source.everything(), content)
    statistics = feature_statistics(batches, utterance_mean=config.utterance_mean)
    if init is None:
        model.mean, model.deviation = statistics
    return content.hexdigest()


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
    shortest, share = 1.0, {}
    if role == "train":
        shortest = 1.0 - config.time_stretch
        share = {"rank": process.rank, "world_size": process.world_size}

    def frames(number: int) -> int:
        return model.output_frames(int(number * shortest))

    if model.needs_frames():
        cuts = drop_unalignable(cuts, targets, frames, role=role)
    reads = dict(max_duration=config.max_duration, memory_gb=config.memory_gb)
    seed = config.seed if role == "train" else None
    return Batches(cuts, targets, seed=seed, num_workers=num_workers, **reads, **share)
