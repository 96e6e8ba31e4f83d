"""Archives of lattices as Kaldi writes them: its text by hand, its binary form by kaldifst."""

from __future__ import annotations

import gzip
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privasr_k2.decoding.lattices import END, Lattice

IDS = 3
"""Transition ids on each arc of a word."""

#: An utterance in Kaldi's text: "a b" (graph 1 + 0.5 + 1, acoustic 4 + 2), "b" (graph 3.5).
TEXT = "u1 \n0\t1\t1\t1,4,7_7_8\n0\t1\t0\t2.5,8,7_8_8\n1\t2\t2\t0.5,2,9\n2\t1,0,9_9\n\n"


def as_kaldifst(lattice: Lattice) -> Any:
    """The lattice as ``kaldifst.Lattice``: each arc of a word is IDS arcs with transition ids."""
    import kaldifst

    fst = kaldifst.Lattice()
    for _ in range(lattice.num_states - 1):
        fst.add_state()
    fst.start = 0
    columns = (lattice.sources, lattice.targets, lattice.words)
    scores = lattice.lm_scores, lattice.am_scores
    for source, target, word, lm, am in zip(*(column.tolist() for column in (*columns, *scores))):
        if word == END:
            fst.set_final(source, kaldifst.LatticeWeight(-lm, -am))
            continue
        for n in range(IDS):
            last = n == IDS - 1
            onward = target if last else fst.add_state()
            weight = kaldifst.LatticeWeight(*((-lm, -am) if n == 0 else (0.0, 0.0)))
            arc = kaldifst.LatticeArc(5 + n, word if n == 0 else 0, weight, onward)
            fst.add_arc(source, arc)
            source = onward
    return fst


def plain_bytes(lattice: Lattice) -> bytes:
    """An entry of ``Lattice``, its FST written by kaldifst."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fst"
        assert as_kaldifst(lattice).write(str(path))
        return f"{lattice.id} ".encode() + path.read_bytes()


def compact_bytes(name: str, finals: Mapping[int, tuple], arcs: Mapping[int, list[tuple]]) -> bytes:
    """An entry of ``CompactLattice``: finals (graph, acoustic, ids), arcs (to, word, and these)."""

    def weight(graph: float, acoustic: float, ids: tuple[int, ...] = ()) -> bytes:
        return struct.pack(f"<ffi{len(ids)}i", graph, acoustic, len(ids), *ids)

    states = 1 + max([*finals, *arcs, *(arc[0] for of in arcs.values() for arc in of)])
    infinite = (float("inf"), float("inf"))
    body = b""
    for state in range(states):
        leaving = arcs.get(state, [])
        body += weight(*finals.get(state, infinite)) + struct.pack("<q", len(leaving))
        for target, word, *rest in leaving:
            body += struct.pack("<ii", word, word) + weight(*rest) + struct.pack("<i", target)
    head = struct.pack("<ii6si16s", 2125659606, 6, b"vector", 16, b"compactlattice44")
    number = sum(map(len, arcs.values()))
    return f"{name} ".encode() + head + struct.pack("<iiQqqq", 2, 0, 1, 0, states, number) + body


def write_gz(path: Path, *entries: bytes) -> Path:
    """An archive of entries."""
    path.write_bytes(gzip.compress(b"".join(entries)))
    return path
