"""Standard output of a run: whole lines and, on a terminal, a live line below them."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable

_SECONDS = 0.5  # between two states of the live line


class Terminal:
    """Prints lines above a live line, which ``is_live`` terminals have."""

    def __init__(self) -> None:
        self.is_live = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self._shown_at: float | None = None

    def say(self, text: str) -> None:
        """Print a line for good."""
        self.clear()
        print(text, flush=True)

    def show(self, text: Callable[[], str]) -> None:
        """Show the live line anew, at most twice a second."""
        now = time.monotonic()
        if not self.is_live or (self._shown_at is not None and now - self._shown_at < _SECONDS):
            return
        self._shown_at = now
        width = shutil.get_terminal_size().columns - 1
        print(f"\r\033[K{text()[:width]}", end="", flush=True)

    def clear(self) -> None:
        """Remove the live line."""
        if self._shown_at is not None:
            print("\r\033[K", end="", flush=True)
            self._shown_at = None


def duration(seconds: float) -> str:
    """For people.

    >>> duration(1.26), duration(71.4), duration(1234.0), duration(9000.0)
    ('1.3 s', '71 s', '21 min', '2.5 h')
    """
    if seconds < 600:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
