"""The kinds of acoustic models: how each is configured, built and trained, one object per kind.

A new kind is a file of this folder that adds itself to :data:`KINDS` and is named in
:func:`_own_kinds`, or a plugin (:mod:`privasr_k2.plugins`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import nn

from privasr_k2 import config
from privasr_k2.am.exported import ExportedSpec, open_exported
from privasr_k2.am.model import AcousticModel, AmConfig, AmTask
from privasr_k2.am.specaugment import SpecAugment
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines
from privasr_k2.plugins import Registry
from privasr_k2.randomness import derive_seed

#: What ``model.yaml`` calls the kind of an exported model.
EXPORTED = "foreign"


@dataclass(frozen=True)
class Kind:
    """One kind of model.

    Attributes:
        config: of a training.
        spec: content of ``model.yaml``: all that the model's form depends on.
        make: a spec to a model.
        task: its losses.
        imported: whether sizes and first weights are those of a model from elsewhere; it is only
            trained further.
    """

    config: type[AmConfig]
    spec: type[Any]
    make: Callable[[Any], AcousticModel]
    task: type[AmTask]
    imported: bool = False


def _own_kinds() -> None:
    for name in ("ctc", "rnnt", "ctc_attention", "las", "whisper"):
        importlib.import_module(f"privasr_k2.am.{name}")


#: By name.
KINDS = Registry[Kind]("kind", _own_kinds)


def kind_of(files: Iterable[Path]) -> Kind:
    """The kind that YAML files name, the last one winning.

    Raises:
        ConfigError: none of them names one of :data:`KINDS`.
    """
    return KINDS[config.named_kind(files, KINDS.names(), "conf/pate.yaml#am_rnnt")]


def spec_of(of: AmConfig, feature_dim: int, num_tokens: int) -> Any:
    """The spec of a model: its configuration with the sizes of features and tokens."""
    spec = KINDS[of.kind].spec
    given = {"feature_dim": feature_dim, "num_tokens": num_tokens}
    names = [field.name for field in fields(spec)]
    return spec(**{name: given.get(name, getattr(of, name, None)) for name in names})


def new_model(spec: Any, seed: int) -> Any:
    """A model with random weights of its own stream; torch's global generator stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "initial weights"))
        return KINDS[spec.kind].make(spec)


def task_of(of: AmConfig, frame_shift: float) -> AmTask:
    """The training task of a kind, with the configuration's augmentation.

    Args:
        frame_shift: seconds between frames of features.
    """
    masks = SpecAugment(of.spec_augment, frame_shift=frame_shift)
    return KINDS[of.kind].task(masks, time_stretch=of.time_stretch)


def read_spec(spec_file: Path) -> Any:
    """The spec in ``model.yaml``."""
    lines = [line for _, line in read_lines(spec_file) if line.startswith("kind:")]
    named = [line.split(":", 1)[1].strip() for line in lines]
    known = (*KINDS.names(), EXPORTED)
    if len(named) != 1 or named[0] not in known:
        expected = f"kind: one of {', '.join(known)}"
        raise DataError(spec_file, expected, repr(named), "run train_am or import_external again")
    return config.load(ExportedSpec if named[0] == EXPORTED else KINDS[named[0]].spec, [spec_file])


def build(folder: Path, spec_file: Path) -> nn.Module:
    """The model that ``model.yaml`` describes, its weights still to be filled in."""
    spec = read_spec(spec_file)
    return open_exported(folder, spec) if spec.kind == EXPORTED else KINDS[spec.kind].make(spec)
