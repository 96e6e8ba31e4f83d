"""Train a student on a public pool and its voted labels; its folder is one of ``train_am``.

A student reads released and public data only: neither its training nor the choice of the best use
of unlabeled data on public dev data costs privacy [yang2022, section 3.1].
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from privasr_k2 import config as configuration
from privasr_k2.am.checkpoints import save_model
from privasr_k2.am.kinds import Kind, spec_of, task_of
from privasr_k2.am.model import AcousticModel
from privasr_k2.am.specaugment import SpecAugment
from privasr_k2.am.train import begin_model, fit_features
from privasr_k2.data.batches import Batches, drop_unalignable
from privasr_k2.errors import DataError
from privasr_k2.fileio import write_json
from privasr_k2.graph.lang import Lang
from privasr_k2.graph.spelled import spelled_targets
from privasr_k2.pate.distillation import (
    DistillationTask,
    HypothesisLosses,
    StudentLoss,
    student_loss,
)
from privasr_k2.pate.student_data import Labels, StudentData, StudentSettings, student_data
from privasr_k2.training.distributed import Process
from privasr_k2.training.fingerprints import training_fingerprint
from privasr_k2.training.trainer import evaluate, train
from privasr_k2.training.weights import average, fill

if TYPE_CHECKING:
    from lhotse import CutSet

    from privasr_k2.scoring.nbest_lists import NbestLists

log = logging.getLogger(__name__)

ABOUT = "student.json"


def config_of(kind: Kind) -> type[Any]:
    """The configuration of a student of a kind: that of its acoustic model, and ``student``."""
    name = f"Student{kind.config.__name__}"
    fields = [("student", StudentSettings)]
    return dataclasses.make_dataclass(name, fields, bases=(kind.config,), frozen=True)


@dataclass(frozen=True)
class StudentInputs:
    """The inputs of a student's training.

    Attributes:
        pool: public utterances with features, answered or not.
        labels: of those that were answered.
        labeled: public utterances with texts of their own.
        lists: N-best lists of the pool, for self-training.
        dev: public utterances with texts.
        init: folder of the initial, public model; None: random weights.
    """

    pool: CutSet
    labels: Labels
    labeled: CutSet | None
    lists: NbestLists | None
    dev: CutSet
    lang: Lang
    init: Path | None


class _Trained(NamedTuple):
    use: str
    counts: Mapping[str, int]
    dev: Mapping[str, float]
    weights: Mapping[str, Tensor]


def train_student(
    given: StudentInputs, folder: Path, config: Any, process: Process, num_workers: int = 0
) -> None:
    """Train a student for each use of unlabeled data, and write the one with the fewest dev errors.

    The loss is :func:`privasr_k2.pate.distillation.student_loss`. Without labels that fit and
    without public transcripts the student is its initial model.

    Args:
        folder: gets what the trainer writes, ``candidates/<use>/``; the model; ``student.json``.
        config: of the class that :func:`config_of` makes.
        num_workers: processes that read ahead where features do not fit in memory.

    Raises:
        DataError: features of different sizes, random weights and nothing to learn from, or what
            :func:`privasr_k2.pate.student_data.student_data` refuses.
    """
    _check_features(given)
    spec = spec_of(config, given.dev[0].num_features, given.lang.num_tokens)
    # Check the data of all uses before the first training.
    uses = config.student.unlabeled_data
    begun = begin_model(spec, config, given.init, given.lang.tokens)
    spec = begun.spec  # with the layers of a public encoder that the initial model has
    data = [_data(use, given, config, begun) for use in uses]
    if given.init is None and not all(of_use.teaches for of_use in data):
        problem = f"none of {data[0].counts['pool']} utterances answered, and no public transcripts"
        way_out = "spend more, or add public data"
        raise DataError("--in-labels", "something to learn from", problem, way_out)
    train_one = partial(_train, student_loss, given, spec, folder, config, process, num_workers)
    students: list[_Trained] = []
    for number, (use, data_of_use) in enumerate(zip(uses, data)):
        # Where all utterances were answered, all uses have the same data.
        same = next((k for k in range(number) if data[k].targets == data_of_use.targets), None)
        if same is None:
            students.append(train_one(use, data_of_use))
        else:
            log.info("%s: the same data as %s, not trained again", use, students[same].use)
            students.append(students[same]._replace(use=use))
    if not process.leads:
        return
    best = min(students, key=lambda student: (student.dev["token_errors"], student.dev["loss"]))
    for student in students:
        errors, nats = student.dev["token_errors"], student.dev["loss"]
        log.info("%s: on dev %.4f errors and %.4f nats a token", student.use, errors, nats)
    configuration.save(config, folder / "config.yaml")
    about = {s.use: {"utterances": dict(s.counts), "dev": dict(s.dev)} for s in students}
    write_json(folder / ABOUT, {"unlabeled_data": best.use, "candidates": about})
    save_model(folder, spec, best.weights, given.lang.tokens)


def _check_features(given: StudentInputs) -> None:
    parts = {"--in-public-feats": given.dev, "--in-public-pool": given.pool}
    dims = {flag: cuts[0].num_features for flag, cuts in parts.items()}
    if len(set(dims.values())) > 1:
        sizes = ", ".join(f"{number} in {flag}" for flag, number in dims.items())
        expected, way_out = "features of the same kind", "compute them alike"
        raise DataError("--in-public-pool", expected, sizes, way_out)


def _data(use: str, given: StudentInputs, config: Any, model: AcousticModel) -> StudentData:
    frames = model.output_frames if model.needs_frames() else None
    shortest = 1.0 - config.time_stretch
    parts = (given.pool, given.labels, given.labeled, given.lists, given.lang)
    return student_data(use, *parts, config.student, frames, shortest)


def _train(
    loss: StudentLoss,
    given: StudentInputs,
    spec: Any,
    folder: Path,
    config: Any,
    process: Process,
    num_workers: int,
    use: str,
    data: StudentData,
) -> _Trained:
    """Minimize ``loss`` on the data of one use."""
    log.info("%s: %s", use, ", ".join(f"{name} {count}" for name, count in data.counts.items()))
    model = begin_model(spec, config, given.init, given.lang.tokens)
    training = folder / "candidates" / use
    reads = dict(
        max_duration=config.max_duration, num_workers=num_workers, memory_gb=config.memory_gb
    )
    dev = Batches(*_dev(given, model), seed=None, **reads)
    losses = HypothesisLosses(model)
    frame_shift = given.pool[0].frame_shift
    task = DistillationTask(
        loss,
        data.targets,
        task_of(config, frame_shift),
        SpecAugment(config.spec_augment, frame_shift=frame_shift),
        time_stretch=config.time_stretch,
        unanswered=config.student.unanswered,
    )
    if not data.teaches:
        log.warning("%s: no label can be learned: the student is --in-public-init", use)
        weights = {name: value.clone() for name, value in model.state_dict().items()}
        scores = evaluate(losses.to(process.device), task, dev, process)
        return _Trained(use, data.counts, scores, weights)
    # The task holds the training targets; a batch's own targets are the heaviest hypotheses.
    heaviest = {n: (target.sequences or ((0,),))[0] or (0,) for n, target in data.targets.items()}
    share = {"rank": process.rank, "world_size": process.world_size}
    source = Batches(data.cuts, heaviest, seed=config.seed, **share, **reads)
    content = fit_features(model, source, config, given.init)
    fingerprint = training_fingerprint(
        config, use, spec, given.lang.tokens, data.targets, content, model
    )
    # A small pool has few steps in an epoch.
    steps = source.num_batches()
    least = math.ceil(config.student.least_steps / steps)
    patience = config.student.patience
    longer = dataclasses.replace(
        config,
        epochs=max(config.epochs, least),
        average_over="best" if patience else config.average_over,
    )
    log.info("%s: at most %d epochs of about %d steps", use, longer.epochs, steps)
    given_to = (losses, task, source, dev, training, longer, process, fingerprint)
    epochs = train(*given_to, patience=patience)
    if not process.leads:
        return _Trained(use, data.counts, {}, {})
    weights = average(epochs)
    fill(losses, weights, training / "checkpoints")
    scores = evaluate(losses.to(process.device), task, dev, process)
    return _Trained(use, data.counts, scores, losses.inner_weights(weights))


def _dev(given: StudentInputs, model: AcousticModel) -> tuple[CutSet, dict[str, list[int]]]:
    cuts, targets = spelled_targets(given.dev, given.lang, role="dev")
    if model.needs_frames():
        cuts = drop_unalignable(cuts, targets, model.output_frames, role="dev")
    return cuts, targets
