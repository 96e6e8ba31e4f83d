"""Sections of the repository's configuration."""

from __future__ import annotations

from pathlib import Path

from privasr_k2 import sections
from privasr_k2.recipe import layers

ROOT = Path(__file__).resolve().parents[2]


def section(name: str, preset: str = "") -> Path:
    """The address of a section of ``conf/*.yaml``, or of ``conf/presets/PRESET.yaml``."""
    if preset:
        return Path(sections.below(ROOT / f"conf/presets/{preset}.yaml", name))
    return Path(layers.defaults(ROOT)[name])
