"""Helpers shared with ``test_end_to_end.py``."""

from __future__ import annotations


def renamed(name: str) -> str:
    """``lstm.l0.ih.weight`` of Opacus as ``lstm.weight_ih_l0``."""
    parts = name.removeprefix("_module.").split(".")
    if len(parts) > 3 and parts[-2] in ("ih", "hh"):
        return ".".join([*parts[:-3], f"{parts[-1]}_{parts[-2]}_{parts[-3]}"])
    return ".".join(parts)
