"""Transducers as arrays, and OpenFst's binary format (``const``, version 2) of Kaldi's tools."""

from __future__ import annotations

import errno
import os
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privasr_k2.errors import GraphError

if TYPE_CHECKING:
    import kaldifst

_MAGIC, _EXPANDED = 2125659606, 1
_ACCEPTOR = 0x10000  # OpenFst's kAcceptor
# Magic number, kinds of FST and of arc (a length and a text each), version, flags, properties,
# start, S, A.
_HEADER = struct.Struct("<ii5si8siiQqqq")
_COUNTS = ("first", "num_arcs", "num_ieps", "num_oeps")
_STATE = np.dtype([("final", "<f4"), *((name, "<u4") for name in _COUNTS)])
_ARC = np.dtype([("ilabel", "<i4"), ("olabel", "<i4"), ("cost", "<f4"), ("target", "<i4")])


@dataclass(frozen=True, eq=False)
class Fst:
    """A transducer of S states and A arcs, tropical semiring; costs are -ln P, label 0 is epsilon.

    Args:
        row_splits: (S + 1,) int64, state s has the arcs ``row_splits[s]:row_splits[s + 1]``.
        ilabels, olabels, targets: (A,) int32.
        costs: (A,) float32.
        finals: (S,) float32, the cost of ending in each state, inf for none.
        start: the first state.
    """

    row_splits: np.ndarray
    ilabels: np.ndarray
    olabels: np.ndarray
    targets: np.ndarray
    costs: np.ndarray
    finals: np.ndarray
    start: int

    @property
    def num_states(self) -> int:
        """S."""
        return len(self.finals)

    @property
    def num_arcs(self) -> int:
        """A."""
        return len(self.targets)

    @property
    def sources(self) -> np.ndarray:
        """(A,) int64, the state that each arc leaves."""
        return np.repeat(np.arange(self.num_states), np.diff(self.row_splits))

    @classmethod
    def from_arcs(
        cls,
        sources: np.ndarray,
        targets: np.ndarray,
        ilabels: np.ndarray,
        olabels: np.ndarray,
        costs: np.ndarray,
        finals: np.ndarray,
        *,
        start: int = 0,
    ) -> Fst:
        """A transducer from arcs in any order; those of a state keep theirs.

        >>> arcs = np.array([[1, 0], [1, 1], [2, 3], [0, 4], [0, 0]])
        >>> loop = Fst.from_arcs(*arcs, np.array([np.inf, 0]))
        >>> loop.row_splits.tolist(), loop.ilabels.tolist()
        ([0, 1, 2], [3, 2])
        """
        order = np.argsort(sources, kind="stable")
        counts = np.bincount(sources.astype(np.int64), minlength=len(finals))
        splits = np.concatenate([[0], np.cumsum(counts)])
        i4 = (values[order].astype(np.int32) for values in (ilabels, olabels, targets))
        costs, finals = costs[order].astype(np.float32), finals.astype(np.float32)
        return cls(splits.astype(np.int64), *i4, costs, finals, start)

    @classmethod
    def from_kaldifst(cls, fst: kaldifst.StdFst) -> Fst:
        """The arrays of a kaldifst transducer, every bit of its costs."""
        import kaldifst

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fst"
            if not kaldifst.StdConstFst(fst).write(str(path)):
                # kaldifst says no more; the folder has just been made, so that room is what lacks.
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            return cls.read(path)

    def to_kaldifst(self) -> kaldifst.StdConstFst:
        """Convert to a kaldifst transducer, which is constant."""
        import kaldifst

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "fst"
            self.write(path)
            fst = kaldifst.StdConstFst.read(str(path))
        # What it does not know to be an acceptor, OpenFst determinizes whole before it cuts to a
        # beam.
        fst.properties(_ACCEPTOR, True)
        return fst

    def write(self, path: Path) -> None:
        """Write the file; not atomically."""
        states, arcs = np.empty(self.num_states, _STATE), np.empty(self.num_arcs, _ARC)
        # Sums of 0 and 1 before each arc: counts of epsilons by state, also where a state has no
        # arcs.
        is_eps = (labels == 0 for labels in (self.ilabels, self.olabels))
        eps = [np.concatenate([[0], np.cumsum(silent)]) for silent in is_eps]
        ieps, oeps = (np.diff(sums[self.row_splits]) for sums in eps)
        columns = (self.finals, self.row_splits[:-1], np.diff(self.row_splits), ieps, oeps)
        for name, values in zip(_STATE.names or (), columns):
            states[name] = values
        values_of_arcs = (self.ilabels, self.olabels, self.costs, self.targets)
        for name, values in zip(_ARC.names or (), values_of_arcs):
            arcs[name] = values
        header = (_MAGIC, 5, b"const", 8, b"standard", 2, 0, _EXPANDED)
        with path.open("wb") as file:
            file.write(_HEADER.pack(*header, self.start, self.num_states, self.num_arcs))
            file.write(states.data)
            file.write(arcs.data)

    @classmethod
    def read(cls, path: Path) -> Fst:
        """Read what :meth:`write` or OpenFst wrote.

        Raises:
            GraphError: another kind of file, or one that is cut short or damaged.
        """
        data = path.read_bytes()
        head = _HEADER.unpack_from(data) if len(data) >= _HEADER.size else ()
        if head[:6] != (_MAGIC, 5, b"const", 8, b"standard", 2) or head[6] != 0:
            expected = "an OpenFst file of type const, arcs standard, version 2, no symbol tables"
            way_out = "compile the graph again, or convert it with fstconvert --fst_type=const"
            raise GraphError(path, expected, "another one", way_out)
        start, num_states, num_arcs = head[8:]
        size = _HEADER.size + num_states * _STATE.itemsize + num_arcs * _ARC.itemsize
        if min(num_states, num_arcs) < 0 or len(data) != size:
            raise GraphError(path, f"{size} bytes", f"{len(data)} bytes", "compile the graph again")
        states = np.frombuffer(data, _STATE, num_states, _HEADER.size)
        arcs = np.frombuffer(data, _ARC, num_arcs, _HEADER.size + num_states * _STATE.itemsize)
        splits = np.concatenate([states["first"].astype(np.int64), [num_arcs]])
        targets = arcs["target"]
        if (
            splits[0] != 0
            or np.any(np.diff(splits) != states["num_arcs"])
            or (num_arcs and not 0 <= targets.min() <= targets.max() < num_states)
            or not (0 <= start < num_states or num_states == 0)
        ):
            raise GraphError(path, "arcs between its states", "others", "compile the graph again")
        names = ("ilabel", "olabel", "target", "cost")
        columns = (np.ascontiguousarray(arcs[name]) for name in names)
        return cls(splits, *columns, np.ascontiguousarray(states["final"]), start)
