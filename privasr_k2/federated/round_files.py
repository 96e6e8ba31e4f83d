"""The files of a federated training: its state, and the noisy rounds released since.

``latest.safetensors`` has the server's state. Under a claim each noisy average is written to
``released/round-N.safetensors`` before it is used, and read back after a kill: a round is never
drawn twice. ``best.safetensors`` has the weights of the round with the least perplexity on dev.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from privasr_k2.federated.server import ServerState
from privasr_k2.fileio import remove_tree
from privasr_k2.training.checkpoint_manager import LATEST
from privasr_k2.training.weights import load_tensors, read_header, save_tensors

log = logging.getLogger(__name__)

_BEST = "best.safetensors"


@dataclass(frozen=True, eq=False)
class Stand:
    """The state of a training: rounds done, server, and the clip of the next round."""

    round: int
    server: ServerState
    clip: float | None


class RoundFiles:
    """Reads and writes the files of ``checkpoints/``.

    Args:
        fingerprint: of all that the weights depend on; files of another are removed.
        writes: whether this process does; the others read nothing either.
    """

    def __init__(self, folder: Path, fingerprint: str, *, writes: bool) -> None:
        self._folder, self._fingerprint, self._writes = folder, fingerprint, writes

    def resume(self, beginning: Stand) -> Stand:
        """The latest stand of this fingerprint, or the ``beginning``."""
        if not self._writes:
            return beginning
        latest = self._folder / LATEST
        header = read_header(latest) if latest.is_file() else None
        mine = [p for p in self._rounds() if read_header(p)["fingerprint"] == self._fingerprint]
        if header is not None and header["fingerprint"] == self._fingerprint:
            tensors = load_tensors(latest)
            server = ServerState(**tensors, steps=header["steps"])
            log.info("continuing after round %d", header["round"])
            return Stand(header["round"], server, header["clip"])
        if self._folder.is_dir() and not mine:
            log.warning("%s: of other data or another configuration; training anew", self._folder)
            remove_tree(self._folder)
        return beginning

    def save(self, stand: Stand) -> None:
        """Write the stand, and remove the released rounds that it contains."""
        if self._writes:
            server = stand.server
            header = {"round": stand.round, "steps": server.steps, "clip": stand.clip}
            tensors = {"weights": server.weights, "first": server.first, "second": server.second}
            self._save(self._folder / LATEST, tensors, header)
            for path in self._rounds():
                if read_header(path)["round"] < stand.round:
                    path.unlink()

    def save_best(self, number: int, ppl: float, weights: Tensor) -> None:
        """Write the weights of round ``number`` (from 1) and their perplexity on dev."""
        self._save(self._folder / _BEST, {"weights": weights}, {"round": number, "ppl": ppl})

    def best(self) -> tuple[int, float, Tensor] | None:
        """The weights that :meth:`save_best` wrote last; None before the first."""
        path = self._folder / _BEST
        header = read_header(path) if self._writes and path.is_file() else None
        if header is None or header["fingerprint"] != self._fingerprint:
            return None
        return header["round"], header["ppl"], load_tensors(path)["weights"]

    def save_round(self, number: int, delta: Tensor, clip: float | None) -> None:
        """Write the noisy average of round ``number`` (from 0) and the clip of the next."""
        self._save(self._path(number), {"delta": delta}, {"round": number, "clip": clip})

    def read_round(self, number: int) -> tuple[Tensor, float | None] | None:
        """The round that :meth:`save_round` wrote; None before the first."""
        path = self._path(number)
        if not self._writes or not path.is_file():
            return None
        header = read_header(path)
        if header["fingerprint"] != self._fingerprint:
            return None
        return load_tensors(path)["delta"], header["clip"]

    def _save(self, path: Path, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
        save_tensors(path, tensors, {"fingerprint": self._fingerprint, **header})

    def _path(self, number: int) -> Path:
        return self._folder / "released" / f"round-{number}.safetensors"

    def _rounds(self) -> list[Path]:
        return sorted((self._folder / "released").glob("round-*.safetensors"))
