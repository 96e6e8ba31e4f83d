"""Files of ``invert_model``: features by word, with the attack's settings in the header."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from privasr_k2.attack.background import Background
from privasr_k2.attack.inversion import Inverted
from privasr_k2.attack.settings import InversionConfig
from privasr_k2.errors import DataError
from privasr_k2.training.weights import load_tensors, read_header, save_tensors

_FORMAT = "inversion-1"


@dataclass(frozen=True)
class Inversion:
    """One attack on one target.

    Attributes:
        name: of the file, without its suffix.
        models: how many were attacked together.
        deviation: (F,) of the public speech that the attacker knew.
        frame_shift: seconds.
    """

    name: str
    config: Mapping[str, Any]
    models: int
    deviation: np.ndarray
    frame_shift: float
    words: Mapping[str, Inverted]

    @property
    def control(self) -> bool:
        """Whether a randomly initialized model was attacked."""
        return bool(self.config["control"])


def write_inversion(
    path: Path,
    reconstructed: Mapping[str, Inverted],
    background: Background,
    config: InversionConfig,
    models: int,
) -> None:
    """Write the reconstructions of an attack."""
    tensors, scores = {}, {}
    for word, best in reconstructed.items():
        tensors[f"features/{word}"] = torch.from_numpy(best.features)
        names = ("log_likelihood", "begun_at", "queries")
        scores[word] = {name: getattr(best, name) for name in names}
    header = {
        "format": _FORMAT,
        "config": asdict(config),
        "models": models,
        "frame_shift": background.frame_shift,
        "words": scores,
    }
    save_tensors(path, {**tensors, "deviation": torch.from_numpy(background.deviation)}, header)


def read_inversion(path: Path) -> Inversion:
    """Read a file of :func:`write_inversion`.

    Raises:
        DataError: not what ``invert_model`` writes.
    """
    tensors, header = load_tensors(path), read_header(path)
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise DataError(path, "what invert_model writes", "something else", "run it again")
    words = {
        word: Inverted(tensors[f"features/{word}"].numpy(), **scores)
        for word, scores in header["words"].items()
    }
    config, models, shift = header["config"], header["models"], header["frame_shift"]
    return Inversion(path.stem, config, models, tensors["deviation"].numpy(), shift, words)
