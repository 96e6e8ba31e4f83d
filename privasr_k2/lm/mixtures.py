"""Language models by their files, and mixtures as one model or as a JSON file.

A mixture's file has ``format`` and ``lms``: for each model its path (from the file's folder),
weight and hash.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json, write_json
from privasr_k2.lm.arpa import Arpa, read_arpa
from privasr_k2.lm.class_files import is_class_lm, load_class_lm
from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.interpolate import Interpolated, checked_weights, interpolate
from privasr_k2.lm.perplexity import KenlmModel, LanguageModel
from privasr_k2.recipe.fingerprint import HashCache

FORMAT = "privasr_k2 mixture 1"


def open_lm(path: Path, device: str = "cpu") -> LanguageModel:
    """The model at ``path``: a neural or a class LM's folder, a mixture's JSON, or an ARPA file."""
    if path.suffix == ".json":
        return load_mixture(path, device)
    if is_class_lm(path):
        return load_class_lm(path)
    if path.is_dir():
        from privasr_k2.lm.neural.files import load_lm
        from privasr_k2.lm.neural.scoring import NeuralScorer
        from privasr_k2.training.distributed import choose_device

        return NeuralScorer(*load_lm(path, choose_device(device)), name=str(path))
    return KenlmModel(path)


def interpolate_files(paths: Sequence[Path], weights: Sequence[float]) -> Arpa | ClassLm:
    """ARPA files and class LMs as one static mixture; a class LM where one of them is one.

    Of class LMs the root models are mixed. A word model has no tags and so no history after a name,
    and a root model has none after a name read as plain words: the result differs from the dynamic
    mixture [turan2022, eq. 3].

    Raises:
        DataError: class LMs with different names, a neural model, or weights that do not fit.
    """
    models: list[Arpa | ClassLm] = []
    for path in paths:
        if path.is_dir() and not is_class_lm(path):
            raise DataError(path, "an ARPA file or class LM", "a folder", "take --set form=dynamic")
        models.append(load_class_lm(path) if path.is_dir() else read_arpa(path))
    with_classes = [model for model in models if isinstance(model, ClassLm)]
    for other in with_classes[1:]:
        if not with_classes[0].same_names(other):
            expected = f"the names of {with_classes[0].name}"
            raise DataError(other.name, expected, "others", "take --set form=dynamic")
    roots = [model.root if isinstance(model, ClassLm) else model for model in models]
    mixed = interpolate(roots, weights)
    return with_classes[0].with_root(mixed) if with_classes else mixed


def save_mixture(path: Path, lms: Sequence[Path], weights: Sequence[float]) -> None:
    """Write a dynamic mixture's file."""
    folder = path.absolute().parent
    named = [
        {"path": os.path.relpath(lm.absolute(), folder), "weight": float(weight), "hash": _hash(lm)}
        for lm, weight in zip(lms, checked_weights(weights, len(lms)))
    ]
    write_json(path, {"format": FORMAT, "lms": named})


def load_mixture(path: Path, device: str = "cpu") -> Interpolated:
    """The mixture that a file names.

    Raises:
        DataError: another file, a missing or changed model, or weights that do not sum to 1.
    """
    spec: Any = read_json(path)
    named = spec.get("lms") if isinstance(spec, dict) and spec.get("format") == FORMAT else None
    if not isinstance(named, list) or not all(isinstance(entry, dict) for entry in named):
        raise DataError(path, f"format {FORMAT!r} and lms", "another file", "make it again")
    lms = []
    for entry in named:
        lm = path.parent / str(entry.get("path"))
        digest = _hash(lm)
        if digest is None or digest != entry.get("hash"):
            raise DataError(path, f"{lm} as it was when weights were chosen", "another", "redo it")
        lms.append(open_lm(lm, device))
    weights = [float(entry.get("weight", np.nan)) for entry in named]
    return Interpolated(lms, weights, name=str(path))


def _hash(path: Path) -> str | None:
    return HashCache(Path(os.devnull), path.parent).digest(path.name)
