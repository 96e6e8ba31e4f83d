"""Automata in files of k2: ``torch.save(fsa.as_dict())``, read without unpickling.

icefall keeps its lexicons and graphs so: ``L.pt``, ``L_disambig.pt``, ``HLG.pt``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.fileio import atomic_path, disk_errors

if TYPE_CHECKING:
    import k2

_EXPECTED = "one automaton of k2 with words, saved as torch.save(fsa.as_dict())"
_AGAIN = "write it again with icefall's script"


@dataclass(frozen=True, eq=False)
class SavedFsa:
    """A transducer of A arcs, as k2 numbers them.

    State 0 is the start, the last state the end; arcs into it have the label -1. Arcs are sorted
    by source.

    Args:
        sources, targets, labels: (A,) int32; label 0 is epsilon, or the blank of HLG.
        scores: (A,) float32, natural log.
        words: int32, above 0, of arc a: ``words[splits[a]:splits[a + 1]]``.
        splits: (A + 1,) int32.
        others: further attributes of arcs.
    """

    sources: np.ndarray
    targets: np.ndarray
    labels: np.ndarray
    scores: np.ndarray
    words: np.ndarray
    splits: np.ndarray
    others: Mapping[str, np.ndarray]

    @property
    def num_states(self) -> int:
        """States, the end included."""
        return int(self.targets.max()) + 1


def read_fsa(path: Path) -> SavedFsa:
    """Read an automaton with ``aux_labels``, plain or ragged.

    Raises:
        DataError: no such file, a truncated one, a pickle that would run code, a vector of
            automata, or arrays that do not fit.
    """
    import torch

    from privasr_k2.encoders.torch_file import TorchFile

    if not path.is_file():
        raise DataError(path, _EXPECTED, "no such file", "correct the name")
    file = TorchFile(path)
    arrays = {name: file[name].numpy() for name in file if file[name].dtype != torch.bfloat16}
    arcs = arrays.pop("arcs", None)
    if arcs is None or arcs.ndim != 2 or arcs.shape[1] != 4 or arcs.dtype != np.int32:
        is_vector = arcs is not None and arcs.ndim == 1
        found = "a vector of automata" if is_vector else f"tensors {sorted(file)}"
        raise DataError(path, _EXPECTED, found, _AGAIN)
    sources, targets, labels = (np.ascontiguousarray(arcs[:, n]) for n in range(3))
    scores = np.ascontiguousarray(arcs[:, 3]).view(np.float32)
    words, splits = _words(arrays, len(arcs), path)
    fsa = SavedFsa(sources, targets, labels, scores, words, splits, arrays)
    _check(fsa, path)
    return fsa


def _words(
    arrays: dict[str, np.ndarray], num_arcs: int, path: Path
) -> tuple[np.ndarray, np.ndarray]:
    """The words above 0 of all arcs, and where those of each arc begin."""
    plain, values = arrays.pop("aux_labels", None), arrays.pop("aux_labels.values", None)
    splits = arrays.pop("aux_labels.row_splits", None)
    if plain is not None:
        values, splits = plain, np.arange(len(plain) + 1)
    if values is None or splits is None:
        raise DataError(path, _EXPECTED, "no aux_labels", _AGAIN)
    shaped = values.ndim == splits.ndim == 1 and len(splits) == num_arcs + 1
    whole = shaped and splits[0] == 0 and splits[-1] == len(values) and (np.diff(splits) >= 0).all()
    if not whole or values.dtype.kind != "i":
        raise DataError(path, f"aux_labels of {num_arcs} arcs", "others", _AGAIN)
    kept = np.concatenate([[0], np.cumsum(values > 0)])
    return values[values > 0].astype(np.int32), kept[splits].astype(np.int32)


def _check(fsa: SavedFsa, path: Path) -> None:
    """Refuse what k2 would read beyond its arrays with, or search without an end."""
    problem = ""
    if not len(fsa.sources):
        problem = "no arcs"
    elif min(int(fsa.sources.min()), int(fsa.targets.min())) < 0:
        problem = "a negative state"
    elif (np.diff(fsa.sources) < 0).any():
        problem = "arcs that are not sorted by source state"
    elif ((fsa.labels == -1) != (fsa.targets == fsa.targets.max())).any():
        problem = "labels other than -1 into the last state"
    elif int(fsa.labels.min()) < -1 or int(fsa.sources.max()) >= int(fsa.targets.max()):
        problem = "a negative label, or arcs out of the last state"
    elif np.isnan(fsa.scores).any():
        problem = "a score that is no number"
    if problem:
        raise DataError(path, _EXPECTED, problem, _AGAIN)


def write_fsa(fsa: k2.Fsa, path: Path) -> None:
    """Write an automaton or a vector of them for ``k2.Fsa.from_dict``, whole or not at all."""
    import torch

    record: dict[str, Any] = fsa.to("cpu").as_dict()
    with atomic_path(path) as temporary, disk_errors(path):
        torch.save(record, str(temporary))
