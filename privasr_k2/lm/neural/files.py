"""A neural language model's folder: ``model.yaml``, ``words.txt``, ``model.safetensors``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from privasr_k2 import config as configuration
from privasr_k2.errors import DataError
from privasr_k2.fileio import write_text
from privasr_k2.lm.neural.kinds import KINDS, Spec, kind_of
from privasr_k2.lm.neural.model import NeuralLm
from privasr_k2.lm.neural.vocabulary import NO_WORDS, Vocabulary, read_vocabulary, vocabulary_text
from privasr_k2.training.trainable import merged_adapters
from privasr_k2.training.weights import fill, load_tensors, read_header, save_tensors

SPEC, WORDS, WEIGHTS = "model.yaml", "words.txt", "model.safetensors"


def save_lm(
    folder: Path, spec: Spec, weights: Mapping[str, Tensor], vocabulary: Vocabulary
) -> None:
    """Write the files that :func:`load_lm` reads, adapters merged; ``model.safetensors`` last."""
    write_text(folder / WORDS, vocabulary_text(vocabulary))
    configuration.save(spec, folder / SPEC)
    save_tensors(folder / WEIGHTS, merged_adapters(weights), {"words": vocabulary.digest})


def load_lm(folder: str | Path, device: torch.device | str = "cpu") -> tuple[NeuralLm, Vocabulary]:
    """The language model of a folder of ``train_lm``, ready to score, and its vocabulary.

    Raises:
        DataError: a missing or damaged file, or weights of other words or another ``model.yaml``.
    """
    folder = Path(folder)
    spec = _read_spec(folder)
    model, vocabulary = _filled(folder, spec)
    return model.to(device).eval(), vocabulary


def continue_lm(
    folder: Path, spec: Spec, words: Iterable[str]
) -> tuple[NeuralLm, Vocabulary, Spec]:
    """The model of a folder with the dropout of ``spec``, to train it further.

    A tied model with an untied ``spec`` gets a copy of the vectors it reads: the same
    probabilities, bit for bit.

    Returns:
        the model, its vocabulary, and the completed ``spec``.

    Raises:
        DataError: as :func:`load_lm`, or another kind, size, or words.
    """
    saved = _read_spec(folder)
    if saved.kind != spec.kind:
        raise DataError(folder / SPEC, f"kind: {spec.kind}", saved.kind, "take its own YAML")
    unties = saved.output.tied and not spec.output.tied
    spec = replace(spec, untied=unties or (saved.untied and not spec.output.tied))
    model, vocabulary = _filled(folder, spec, unties=unties)
    wanted, known = set(words) - NO_WORDS, set(vocabulary.words)
    if differing := sorted(wanted ^ known):
        expected = f"the {len(wanted)} words of the lang folder"
        found = f"{len(known)}; {len(differing)} are in one of them only, {differing[0]!r} first"
        raise DataError(folder / WORDS, expected, found, "train both with one lang folder")
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
            folder / WORDS, "the words that the model was trained with", "others", "retrain"
        )
    model = KINDS[spec.kind].make(spec, vocabulary)
    if unties:
        copies = [name for name in model.state_dict() if name.startswith("vectors.")]
        sources = {name: name.replace("vectors.", "output.", 1) for name in copies}
        weights |= {name: weights[own] for name, own in sources.items() if own in weights}
    fill(model, weights, folder / WEIGHTS)
    return model, vocabulary
