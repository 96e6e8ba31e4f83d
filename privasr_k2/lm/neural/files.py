"""The kinds of neural language models, their configurations, and a finished model's folder.

A folder holds ``model.yaml``, ``words.txt`` (the numbering) and ``model.safetensors``. A new kind is one
line of :data:`KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from privasr_k2 import config as configuration
from privasr_k2.errors import DataError
from privasr_k2.fileio import write_text
from privasr_k2.lm.neural.char_lstm import CharLstmConfig, CharLstmLm
from privasr_k2.lm.neural.lstm import LstmConfig, LstmLm
from privasr_k2.lm.neural.model import NeuralLm
from privasr_k2.lm.neural.softmax import OutputConfig
from privasr_k2.lm.neural.transformer import TransformerConfig, TransformerLm
from privasr_k2.lm.neural.vocabulary import NO_WORDS, Vocabulary, read_vocabulary, vocabulary_text
from privasr_k2.lm.train import check_text
from privasr_k2.randomness import derive_seed
from privasr_k2.training.task import TrainerConfig
from privasr_k2.training.weights import fill, load_tensors, read_header, save_tensors

SPEC, WORDS, WEIGHTS = "model.yaml", "words.txt", "model.safetensors"


@dataclass(frozen=True)
class NeuralLmConfig(TrainerConfig):
    """What ``conf/lm_<kind>.yaml`` holds besides the network.

    Attributes:
        kind: one of :data:`KINDS`.
        output: the softmax.
        trained: ``all``, or ``output``: the softmax alone, of a model that is trained further.
        text, train_repeat: as in :class:`privasr_k2.lm.train.TextConfig`.
        max_text_words: train on sentences chosen at random with so many words; 0 = on all.
        max_words: most positions in a batch of a process, sentence ends and padding included.
    """

    kind: str
    output: OutputConfig
    trained: str
    text: str
    train_repeat: int
    max_text_words: int
    max_words: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in KINDS or not isinstance(self, KINDS[self.kind].config):
            raise ValueError(f"kind must be that of the configuration's file, got {self.kind!r}")
        if self.trained not in ("all", "output"):
            raise ValueError(f"trained must be all or output, got {self.trained!r}")
        if self.trained == "output" and self.output.tied:
            raise ValueError(
                "trained=output needs output.tied=false, because tied vectors are read as well: set it, and "
                "a tied model of --in-init goes on with a copy of them to read"
            )
        check_text(self)
        for name, least in {"max_words": 1, "max_text_words": 0}.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")


@dataclass(frozen=True)
class LstmLmConfig(NeuralLmConfig):
    """``conf/lm_lstm.yaml``."""

    network: LstmConfig


@dataclass(frozen=True)
class CharLstmLmConfig(NeuralLmConfig):
    """``conf/lm_char_lstm.yaml``."""

    network: CharLstmConfig

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output.tied:
            raise ValueError("output.tied must be false: a word's vector is made of its characters")


@dataclass(frozen=True)
class TransformerLmConfig(NeuralLmConfig):
    """``conf/lm_transformer.yaml``."""

    network: TransformerConfig


@dataclass(frozen=True)
class BaseSpec:
    """What every ``model.yaml`` holds; with ``words.txt`` it is what is needed to build the model again.

    Attributes:
        kind, output: as in :class:`NeuralLmConfig`.
        untied: the model was tied and then trained further with ``output.tied=false``: it reads a copy of the
            vectors that predicted words until then. Older files do not say so, and are of no such model.
    """

    kind: str
    output: OutputConfig
    untied: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class LstmSpec(BaseSpec):
    """``model.yaml`` of a word LSTM."""

    network: LstmConfig


@dataclass(frozen=True)
class CharLstmSpec(BaseSpec):
    """``model.yaml`` of a character-aware LSTM; ``untied`` is always false."""

    network: CharLstmConfig


@dataclass(frozen=True)
class TransformerSpec(BaseSpec):
    """``model.yaml`` of a Transformer."""

    network: TransformerConfig


Spec = LstmSpec | CharLstmSpec | TransformerSpec


class Kind(NamedTuple):
    """A configuration, what of it is kept beside the weights, and how that becomes a model."""

    config: type[NeuralLmConfig]
    spec: type[Any]
    make: Callable[[Any, Vocabulary], NeuralLm]


KINDS = {
    "lstm": Kind(LstmLmConfig, LstmSpec, lambda s, v: LstmLm(s.network, s.output, len(v), untied=s.untied)),
    "char_lstm": Kind(
        CharLstmLmConfig, CharLstmSpec, lambda s, v: CharLstmLm(s.network, s.output, v.symbols)
    ),
    "transformer": Kind(
        TransformerLmConfig,
        TransformerSpec,
        lambda s, v: TransformerLm(s.network, s.output, len(v), untied=s.untied),
    ),
}


def kind_of(files: Iterable[Path]) -> Kind:
    """The kind that YAML files name, the last one winning.

    Raises:
        ConfigError: none of them names one of :data:`KINDS`.
    """
    return KINDS[configuration.named_kind(files, KINDS, "conf/lm_lstm.yaml")]


def spec_of(config: NeuralLmConfig) -> Spec:
    """What of a configuration the model's form depends on."""
    return KINDS[config.kind].spec(config.kind, config.output, config.network)  # type: ignore[attr-defined]


def new_lm(spec: Spec, vocabulary: Vocabulary, seed: int) -> NeuralLm:
    """A model with random weights of its own stream; torch's global generator stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "initial weights"))
        return KINDS[spec.kind].make(spec, vocabulary)


def save_lm(folder: Path, spec: Spec, weights: Mapping[str, Tensor], vocabulary: Vocabulary) -> None:
    """Write the files that :func:`load_lm` reads; ``model.safetensors`` last."""
    write_text(folder / WORDS, vocabulary_text(vocabulary))
    configuration.save(spec, folder / SPEC)
    save_tensors(folder / WEIGHTS, weights, {"words": vocabulary.digest})


def load_lm(folder: str | Path, device: torch.device | str = "cpu") -> tuple[NeuralLm, Vocabulary]:
    """The language model of a folder that ``train_lm`` wrote, ready to score, and its numbering of words.

    Raises:
        DataError: a file is missing or damaged, or weights of another numbering or another ``model.yaml``.
    """
    folder = Path(folder)
    spec = _read_spec(folder)
    model, vocabulary = _filled(folder, spec)
    return model.to(device).eval(), vocabulary


def continue_lm(folder: Path, spec: Spec, words: Iterable[str]) -> tuple[NeuralLm, Vocabulary, Spec]:
    """The model of a folder with the dropout of ``spec``, to train it further.

    Where it is tied and ``spec`` is not, it is untied: it gets a copy of the vectors that it reads, and gives
    the same probabilities bit for bit.

    Returns:
        the model, its numbering of words, and ``spec`` with what else the model's form depends on.

    Raises:
        DataError: as :func:`load_lm`; or the model is of another kind or size than ``spec``, or has other
            words.
    """
    saved = _read_spec(folder)
    if saved.kind != spec.kind:
        raise DataError(
            folder / SPEC, f"kind: {spec.kind}", saved.kind, "take the YAML file that it was trained with"
        )
    unties = saved.output.tied and not spec.output.tied
    spec = replace(spec, untied=unties or (saved.untied and not spec.output.tied))
    model, vocabulary = _filled(folder, spec, unties=unties)
    wanted, found = set(words) - NO_WORDS, set(vocabulary.words)
    if differing := sorted(wanted ^ found):
        raise DataError(
            folder / WORDS,
            f"the {len(wanted)} words of the lang folder",
            f"{len(found)}; {len(differing)} are in one of them only, {differing[0]!r} among them",
            "train the first model with the same lang folder",
        )
    return model, vocabulary, spec


def _read_spec(folder: Path) -> Spec:
    if not (folder / SPEC).is_file():
        raise DataError(folder / SPEC, "a language model", "no such file", "train it with train_lm")
    spec: Spec = configuration.load(kind_of([folder / SPEC]).spec, [folder / SPEC])
    return spec


def _filled(folder: Path, spec: Spec, *, unties: bool = False) -> tuple[NeuralLm, Vocabulary]:
    vocabulary = read_vocabulary(folder / WORDS)
    weights = load_tensors(folder / WEIGHTS)
    if read_header(folder / WEIGHTS)["words"] != vocabulary.digest:
        raise DataError(
            folder / WORDS, "the words that the model was trained with", "others", "train the model again"
        )
    model = KINDS[spec.kind].make(spec, vocabulary)
    if unties:
        tied = {
            name.replace("output.", "vectors.", 1): name for name in weights if name.startswith("output.")
        }
        weights |= {name: weights[tied[name]] for name in model.state_dict() if name in tied}
    fill(model, weights, folder / WEIGHTS)
    return model, vocabulary
