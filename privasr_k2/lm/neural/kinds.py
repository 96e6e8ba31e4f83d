"""The kinds of neural language models: how each is configured and built, one object per kind.

A new kind is a file of this folder that adds itself to :data:`KINDS` and is named in
:func:`_own_kinds`, or a plugin (:mod:`privasr_k2.plugins`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import torch

from privasr_k2 import config as configuration
from privasr_k2.constraints import Count, Natural, one_of
from privasr_k2.lm.neural.model import NeuralLm
from privasr_k2.lm.neural.softmax import OutputConfig
from privasr_k2.lm.neural.vocabulary import Vocabulary
from privasr_k2.lm.train import TEXTS
from privasr_k2.plugins import Registry
from privasr_k2.randomness import derive_seed
from privasr_k2.training.task import TrainerConfig


@dataclass(frozen=True)
class NeuralLmConfig(TrainerConfig):
    """The settings of ``conf/common.yaml#lm_<kind>`` besides the network."""

    kind: str
    output: OutputConfig
    trained: Annotated[str, one_of("all", "output")]
    text: Annotated[str, one_of(*TEXTS)]
    train_repeat: Count
    max_text_words: Natural
    max_words: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in KINDS or not isinstance(self, KINDS[self.kind].config):
            raise ValueError(f"kind must be that of the configuration's file, got {self.kind!r}")
        if self.trained == "output" and self.output.tied:
            raise ValueError(
                "trained=output needs output.tied=false, because tied vectors are read as well: set"
                " it, and a tied model of --in-init goes on with a copy of them to read"
            )


@dataclass(frozen=True)
class Spec:
    """The content of ``model.yaml``, from which and ``words.txt`` the model is built.

    Attributes:
        kind, output: as in :class:`NeuralLmConfig`.
        untied: a tied model was trained further with ``output.tied=false``, and reads a copy of its
            vectors. Older files lack this key.
    """

    kind: str
    output: OutputConfig
    untied: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Kind:
    """One kind of language model.

    Attributes:
        config: of a training, with the network's numbers as ``network``.
        spec: its part in ``model.yaml``.
        make: a spec and a vocabulary to a model.
    """

    config: type[NeuralLmConfig]
    spec: type[Any]
    make: Callable[[Any, Vocabulary], NeuralLm]


def _own_kinds() -> None:
    for name in ("lstm", "char_lstm", "transformer"):
        importlib.import_module(f"privasr_k2.lm.neural.{name}")


#: By name.
KINDS = Registry[Kind]("kind", _own_kinds)


def kind_of(files: Iterable[Path]) -> Kind:
    """The kind that YAML files name, the last one winning.

    Raises:
        ConfigError: none of them names one of :data:`KINDS`.
    """
    return KINDS[configuration.named_kind(files, KINDS.names(), "conf/common.yaml#lm_lstm")]


def spec_of(config: NeuralLmConfig) -> Spec:
    """The settings that the model's form depends on."""
    return KINDS[config.kind].spec(config.kind, config.output, config.network)  # type: ignore[attr-defined]


def new_lm(spec: Spec, vocabulary: Vocabulary, seed: int) -> NeuralLm:
    """A model with random weights; torch's global generator stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "initial weights"))
        return KINDS[spec.kind].make(spec, vocabulary)
