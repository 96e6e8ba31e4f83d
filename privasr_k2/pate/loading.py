"""Ensembles by their folders: whole teachers of ``train_am``, or heads of ``train_heads``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from privasr_k2.am.checkpoints import is_untrained, load_recognizer
from privasr_k2.am.files import WEIGHTS
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.graph.lang import Lang, check_same_tokens
from privasr_k2.pate.ensembles import TeacherEnsemble
from privasr_k2.pate.heads import WEIGHTS as HEADS
from privasr_k2.pate.heads import load_heads


def teacher_folders(folder: Path, teachers: int) -> list[Path]:
    """The folders ``1`` to ``teachers`` of a folder of teachers, each with a trained model.

    Raises:
        DataError: a teacher is missing, or there are more of them: an ensemble of another roster.
    """
    missing = [str(k) for k in range(1, teachers + 1) if not (folder / str(k) / WEIGHTS).is_file()]
    expected = f"{teachers} trained teachers, as many as shards"
    if missing:
        way_out = "run the stage that trains them again: it trains only those that are missing"
        raise DataError(folder, expected, f"none for shard {' '.join(missing[:10])}", way_out)
    if (folder / str(teachers + 1)).exists():
        raise DataError(folder, expected, "more", "give the shards that they are of")
    return [folder / str(k) for k in range(1, teachers + 1)]


def load_teachers(folder: Path, teachers: int, device: str, *, per_token: bool) -> TeacherEnsemble:
    """The ensemble of a folder of teachers, each as ``train_am`` wrote it; untrained ones abstain.

    Raises:
        DataError: as :func:`teacher_folders`, or a damaged model.
    """
    folders = teacher_folders(folder, teachers)
    models: list[Any] = [load_recognizer(path, device) for path in folders]
    for path, model in zip(folders, models):
        if model.tokens != models[0].tokens:
            way_out = "train it with the same lang"
            raise DataError(path, "the tokens of teacher 1", "others", way_out)
    abstaining = [place for place, path in enumerate(folders) if is_untrained(path)]
    return TeacherEnsemble(models, per_token=per_token, abstaining=abstaining)


def holds_heads(folder: Path) -> bool:
    """Whether ``train_heads`` wrote a folder, and not ``train_am``."""
    return (folder / HEADS).is_file()


def open_ensemble(folder: Path, teachers: int, device: str, *, per_token: bool) -> TeacherEnsemble:
    """The ensemble of a folder of whole models, or of one that ``train_heads`` wrote.

    Raises:
        DataError: as :func:`load_teachers`, or another number of heads than shards.
    """
    if not holds_heads(folder):
        return load_teachers(folder, teachers, device, per_token=per_token)
    heads = load_heads(folder, device, per_token=per_token)
    if heads.num_teachers != teachers:
        expected = f"{teachers} heads, as many as shards"
        raise DataError(folder, expected, f"{heads.num_teachers}", "train them on these shards")
    return heads


def open_models(
    folders: Sequence[Path], lang: Lang, device: torch.device | str, *, heads: Sequence[int] = ()
) -> TeacherEnsemble:
    """Models of any origin to be attacked: folders of ``train_am``, or one of ``train_heads``.

    Args:
        heads: of a folder of heads only these, from 1; none: all.

    Raises:
        DataError: a folder without such a model, or a head that is not there.
        GraphError: a model of other tokens than the lang folder's.
        ConfigError: models of different features, or heads and other models at once.
    """
    if any(map(holds_heads, folders)):
        if len(folders) > 1:
            expected = "models, or one folder of heads"
            raise ConfigError("--in-models", expected, "heads and others", "attack them alone")
        ensemble: TeacherEnsemble = load_heads(folders[0], device, per_token=False, chosen=heads)
        check_same_tokens(ensemble.tokens, lang.tokens, model=folders[0], graph=lang.folder)
        return ensemble
    if heads:
        raise ConfigError("heads", "a folder of heads in --in-models", "whole models", "name none")
    models: list[Any] = []
    for folder in folders:
        model: Any = load_recognizer(folder, device)
        check_same_tokens(model.tokens, lang.tokens, model=folder, graph=lang.folder)
        if models and model.feature_dim != models[0].feature_dim:
            dims = f"{model.feature_dim} in {folder}"
            expected = f"models of {models[0].feature_dim} features"
            raise ConfigError("--in-models", expected, dims, "name models of one kind")
        models.append(model)
    return TeacherEnsemble(models, per_token=False)
