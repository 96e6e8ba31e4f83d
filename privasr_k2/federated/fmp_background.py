"""The background unigrams u of [liu2020, eq. 2], counted once for all marginals."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from safetensors.numpy import save_file

from privasr_k2.constraints import Checked, Count, FiniteOrZero, one_of
from privasr_k2.errors import DataError
from privasr_k2.federated.fmp_spoken import WordNumbers
from privasr_k2.fileio import atomic_path, disk_errors, read_arrays
from privasr_k2.lm.train import TEXTS


@dataclass(frozen=True)
class BackgroundConfig(Checked):
    """The text of u and its smoothing; see ``conf/fmp.yaml#fmp_background``."""

    text: Annotated[str, one_of(*TEXTS)]
    train_repeat: Count
    prior_words: FiniteOrZero


def write_background(path: Path, unigrams: np.ndarray, numbers: WordNumbers) -> None:
    """Write u (V,) with the digest of its numbering."""
    header = {"json": json.dumps({"words": numbers.digest})}
    with atomic_path(path) as temporary, disk_errors(path):
        save_file({"unigrams": unigrams}, str(temporary), header)


def read_background(path: Path, numbers: WordNumbers) -> np.ndarray:
    """(V,) u.

    Raises:
        DataError: another kind of file, or another numbering.
    """
    expected = "unigrams of prepare_fmp"
    header, arrays = read_arrays(path, ["unigrams"], expected=expected, way_out="make them")
    unigrams = arrays["unigrams"]
    if header.get("words") != numbers.digest:
        raise DataError(path, "unigrams of the words of --in-lm", "of others", "make their own")
    if unigrams.shape != (numbers.size,) or not (np.isfinite(unigrams) & (unigrams >= 0)).all():
        raise DataError(
            path, expected, "other numbers than probabilities of its words", "make them"
        )
    return unigrams
