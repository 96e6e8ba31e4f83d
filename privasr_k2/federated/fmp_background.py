"""The background unigrams u of [liu2020, eq. 2]: counted once, read by all that adapts to marginals."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from privasr_k2.errors import DataError
from privasr_k2.federated.fmp_spoken import WordNumbers
from privasr_k2.fileio import atomic_path, disk_errors, read_arrays
from privasr_k2.lm.train import check_text


@dataclass(frozen=True)
class BackgroundConfig:
    """``conf/fmp_background.yaml``.

    Args:
        text, train_repeat: as in :class:`privasr_k2.lm.train.TextConfig`.
        prior_words: even chances count as so many words; 0: as the text has different words.
    """

    text: str
    train_repeat: int
    prior_words: float

    def __post_init__(self) -> None:
        check_text(self)
        if not 0 <= self.prior_words < math.inf:
            raise ValueError(f"prior_words must be 0 or more, got {self.prior_words}")


def write_background(path: Path, unigrams: np.ndarray, numbers: WordNumbers) -> None:
    """Write u (V,) with the digest of the words that it is of."""
    with atomic_path(path) as temporary, disk_errors(path):
        save_file({"unigrams": unigrams}, str(temporary), {"json": json.dumps({"words": numbers.digest})})


def read_background(path: Path, numbers: WordNumbers) -> np.ndarray:
    """(V,) u.

    Raises:
        DataError: another kind of file, or unigrams of the words of another model.
    """
    what = "unigrams of make_background"
    header, arrays = read_arrays(path, ["unigrams"], expected=what, way_out="make them")
    unigrams = arrays["unigrams"]
    if header.get("words") != numbers.digest:
        raise DataError(path, "unigrams of the words of --in-lm", "of others", "make them with that model")
    if unigrams.shape != (numbers.size,) or not (np.isfinite(unigrams) & (unigrams >= 0)).all():
        raise DataError(path, what, "other numbers than probabilities of its words", "make them")
    return unigrams
