"""``encoder.yaml``: name, files, licence and source of an encoder that was got by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from privasr_k2 import config
from privasr_k2.fileio import read_yaml

CARD = "encoder.yaml"


@dataclass(frozen=True)
class EncoderCard:
    """The content of ``encoder.yaml``.

    Attributes:
        files: sha256 by file name.
        source: packages with versions, or a name at Hugging Face with its revision.
    """

    name: str
    files: dict[str, str]
    licence: str
    source: str


def read_card(path: Path) -> EncoderCard:
    """Read ``encoder.yaml``.

    Raises:
        DataError, ConfigError: no YAML, or other keys.
    """
    return config.from_values(EncoderCard, read_yaml(path), path)
