"""The kinds of acoustic models that ``train_am`` trains; a new kind is one line of :data:`KINDS`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import torch

from privasr_k2.am.ctc import CtcConfig, CtcModel, CtcSpec, CtcTask
from privasr_k2.am.ctc_attention import CtcAttentionConfig, CtcAttentionModel, CtcAttentionSpec
from privasr_k2.am.las import LasConfig, LasModel, LasSpec
from privasr_k2.am.model import AcousticModel, AmConfig, AmTask
from privasr_k2.am.rnnt import RnntConfig, RnntModel, RnntSpec
from privasr_k2.am.sequence import SequenceTask
from privasr_k2.am.specaugment import SpecAugment
from privasr_k2.config import named_kind
from privasr_k2.randomness import derive_seed


class Kind(NamedTuple):
    """A configuration, what of it is kept beside the weights, and what makes model and losses of it."""

    config: type[AmConfig]
    spec: type[Any]
    make: Callable[[Any], AcousticModel]
    task: type[AmTask]


KINDS = {
    "ctc": Kind(CtcConfig, CtcSpec, CtcModel, CtcTask),
    "rnnt": Kind(RnntConfig, RnntSpec, RnntModel, SequenceTask),
    "ctc_attention": Kind(CtcAttentionConfig, CtcAttentionSpec, CtcAttentionModel, SequenceTask),
    "las": Kind(LasConfig, LasSpec, LasModel, SequenceTask),
}


def kind_of(files: Iterable[Path]) -> Kind:
    """The kind that YAML files name, the last one winning.

    Raises:
        ConfigError: none of them names one of :data:`KINDS`.
    """
    return KINDS[named_kind(files, KINDS, "conf/am_rnnt.yaml")]


def spec_of(config: AmConfig, feature_dim: int, num_tokens: int) -> Any:
    """What a configuration makes of features and tokens: all that a model's form depends on."""
    spec = KINDS[config.kind].spec
    given = {"feature_dim": feature_dim, "num_tokens": num_tokens}
    names = [field.name for field in fields(spec)]
    return spec(**{name: given.get(name, getattr(config, name, None)) for name in names})


def new_model(spec: Any, seed: int) -> Any:
    """A model with random weights of its own stream; torch's global generator stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "initial weights"))
        return KINDS[spec.kind].make(spec)


def task_of(config: AmConfig) -> AmTask:
    """What the trainer minimizes, with the configuration's augmentation."""
    return KINDS[config.kind].task(SpecAugment(config.spec_augment), time_stretch=config.time_stretch)
