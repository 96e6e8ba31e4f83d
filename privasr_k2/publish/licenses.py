"""Licences of the corpora and encoders behind what a release takes for public."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from privasr_k2.fileio import read_json, read_yaml
from privasr_k2.publish.kinds import FEATURES
from privasr_k2.recipe.history import stages_behind
from privasr_k2.scoring.corpus_info import CORPUS_FILE

NOT_STATED = "not stated"
ENCODER = "public_encoder"
"""Key of ``features.yaml``, where the features are outputs of one."""


def licenses_of(
    paths: Iterable[str], work_dir: Path, stamps: list[dict[str, Any]]
) -> dict[str, str]:
    """Each corpus and public encoder behind the paths, with its licence or :data:`NOT_STATED`.

    Args:
        paths: in ``work_dir``, of files and folders.
        stamps: of all its stages.
    """
    licenses: dict[str, str] = {}
    for stamp in stages_behind(paths, stamps):
        for output in stamp["outputs"]:
            licenses |= _of_corpus(work_dir / output / CORPUS_FILE)
            licenses |= _of_encoder(work_dir / output / FEATURES)
    return dict(sorted(licenses.items()))


def _of_corpus(file: Path) -> Mapping[str, str]:
    if not file.is_file():
        return {}
    about = read_json(file)
    return {f"corpus {about['name']}": str(about.get("license") or NOT_STATED)}


def _of_encoder(file: Path) -> Mapping[str, str]:
    about = read_yaml(file).get(ENCODER) if file.is_file() else None
    if about is None:
        return {}
    return {f"encoder {about['name']}": f"{about['licence']}. {about['training_data']}"}
