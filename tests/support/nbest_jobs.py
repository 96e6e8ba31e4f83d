"""Helpers shared with ``test_nbest_jobs.py``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Supervision:
    text: str = "ab b"
    speaker: str = "s1"


@dataclass
class Cut:
    id: str = "u1"
    duration: float = 0.5
    frame_shift: float = 0.02
    custom: dict[str, Any] = field(default_factory=lambda: {"part": "dev_x"})
    supervisions: list[Supervision] = field(default_factory=lambda: [Supervision()])
