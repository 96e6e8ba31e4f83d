"""Transducers as arrays and as OpenFst's files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privasr_k2.errors import GraphError
from privasr_k2.graph.openfst import Fst

# Epsilons on both sides, a state without arcs, a negative cost, more than six digits.
TEXT = "0 1 1 2 0.123456789\n0 2 0 3 -1.25\n1 3 2 0 100.12345\n3 1 0 0\n2 1.5\n3\n"


def same(one: Fst, other: Fst) -> None:
    for name in ("row_splits", "ilabels", "olabels", "targets", "costs", "finals"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.start == other.start


def test_is_what_kaldifst_has(tmp_path: Path) -> None:
    kaldifst = pytest.importorskip("kaldifst")
    theirs = kaldifst.compile(TEXT)
    fst = Fst.from_kaldifst(theirs)
    assert (fst.num_states, fst.num_arcs, fst.start) == (4, 4, 0)
    assert fst.sources.tolist() == [0, 0, 1, 3]
    assert fst.finals.tolist() == [np.inf, np.inf, 1.5, 0.0]
    assert fst.costs.tolist() == np.array([0.123456789, -1.25, 100.12345, 0.0], np.float32).tolist()
    again = fst.to_kaldifst()
    assert again.to_str(show_weight_one=True) == theirs.to_str(show_weight_one=True)
    assert [again.num_input_epsilons(state) for state in range(4)] == [1, 0, 0, 1]
    same(Fst.from_kaldifst(again), fst)
    fst.write(tmp_path / "a.fst")
    same(Fst.read(tmp_path / "a.fst"), fst)


def test_an_acceptor_is_known_to_be_one() -> None:
    """OpenFst prunes while it determinizes acceptors only."""
    kaldifst = pytest.importorskip("kaldifst")
    acceptor, ends = 0x10000, np.array([1.0, 0.0])  # kAcceptor
    labels = np.array([3, 0])
    fst = Fst.from_arcs(
        np.array([0, 1]), np.array([1, 2]), labels, labels, np.ones(2), np.array([1.0, 2, 0])
    )
    made = kaldifst.StdVectorFst(fst.to_kaldifst())
    assert made.properties(acceptor, False) == acceptor
    kaldifst.rmepsilon(made)
    assert made.properties(acceptor, False) == acceptor
    other = Fst.from_arcs(np.array([0]), np.array([1]), labels[:1], labels[1:], np.ones(1), ends)
    assert other.to_kaldifst().properties(acceptor, False) == 0


def test_is_the_same_file_as_openfst_writes(tmp_path: Path) -> None:
    kaldifst = pytest.importorskip("kaldifst")
    theirs = kaldifst.StdConstFst(kaldifst.compile(TEXT))
    theirs.write(str(tmp_path / "theirs"))
    Fst.from_kaldifst(theirs).write(tmp_path / "ours")
    ours, wanted = (bytearray((tmp_path / name).read_bytes()) for name in ("ours", "theirs"))
    # The properties (bytes 33 to 40) are what the writer knows of the graph: ours says nothing.
    ours[33:41] = wanted[33:41] = bytes(8)
    assert ours == wanted


def test_arcs_in_any_order() -> None:
    rows = [[1, 0, 1], [0, 1, 1], [3, 4, 5], [6, 7, 8], [0.5, 1.5, 2.5]]
    fst = Fst.from_arcs(*np.array(rows), np.array([0.0, np.inf]))
    assert fst.row_splits.tolist() == [0, 1, 3]
    assert fst.ilabels.tolist() == [4, 3, 5] and fst.costs.tolist() == [1.5, 0.5, 2.5]


def damaged(data: bytes, kind: str) -> bytes:
    states = 65
    if kind == "empty":
        return b""
    if kind == "short":
        return data[:-4]
    if kind == "vector":
        return data.replace(b"const", b"vectr", 1)
    if kind == "symbols":
        return data[:29] + b"\1" + data[30:]
    if kind == "arcs":  # of the first state, one more
        return data[: states + 8] + b"\3" + data[states + 9 :]
    return data[:-4] + b"\x09\0\0\0"  # where the last arc goes


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("short", "expected 209 bytes, found 205"),
        ("vector", "type const"),
        ("symbols", "no symbol tables"),
        ("arcs", "arcs between its states"),
        ("target", "arcs between its states"),
        ("empty", "an OpenFst file"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, kind: str, expected: str) -> None:
    ends, labels = [[0, 0, 1, 3], [1, 2, 3, 1]], [[1, 0, 2, 0], [2, 3, 0, 0]]
    arcs = np.array([*ends, *labels, [0.1, -1.25, 100.1, 0.0]])
    fst = Fst.from_arcs(*arcs, np.array([np.inf, np.inf, 1.5, 0.0]))
    fst.write(tmp_path / "a.fst")
    same(Fst.read(tmp_path / "a.fst"), fst)
    (tmp_path / "a.fst").write_bytes(damaged((tmp_path / "a.fst").read_bytes(), kind))
    with pytest.raises(GraphError, match=expected):
        Fst.read(tmp_path / "a.fst")
