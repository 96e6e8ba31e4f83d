"""Kaldi's archives of lattices: all forms, there and back, and damaged ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privasr_k2.decoding.kaldi_archives import (
    KaldiLattice,
    read_kaldi_lattices,
    write_kaldi_lattices,
)
from privasr_k2.errors import DataError
from tests.support.kaldi_lattices import TEXT, compact_bytes, plain_bytes, write_gz
from tests.support.word_lattices import no_path, random_lattice

#: What TEXT holds, in Kaldi's binary form.
BINARY = compact_bytes(
    "u1",
    {2: (1.0, 0.0, (9, 9))},
    {
        0: [(1, 1, 1.0, 4.0, (7, 7, 8)), (1, 0, 2.5, 8.0, (7, 8, 8))],
        1: [(2, 2, 0.5, 2.0, (9,))],
    },
)


def rows(lattice: KaldiLattice) -> list[tuple]:
    columns = (lattice.sources, lattice.targets, lattice.words, lattice.costs, lattice.frames)
    found = zip(*(column.tolist() for column in columns))
    return sorted((*ends, *costs, frames) for *ends, costs, frames in found)


def read(path: Path) -> list[KaldiLattice]:
    return list(read_kaldi_lattices(path))


WANTED = [
    (0, 1, 0, 2.5, 8.0, 3), (0, 1, 1, 1.0, 4.0, 3), (1, 2, 2, 0.5, 2.0, 1), (2, 3, 0, 1.0, 0.0, 2),
]  # fmt: skip


@pytest.mark.parametrize(
    "entry",
    [TEXT.encode(), TEXT.replace("u1 \n", "u1\n").replace("\t", " ").encode(), BINARY],
    ids=["text", "blanks", "binary"],
)
def test_compact_lattices(entry: bytes, tmp_path: Path) -> None:
    other = entry.replace(b"u1", b"u2", 1)
    path = write_gz(tmp_path / "lat.1.gz", entry, other)
    first, second = read(path)
    assert (first.id, second.id, first.num_states) == ("u1", "u2", 4)
    assert rows(first) == rows(second) == WANTED
    (tmp_path / "lat.1").write_bytes(entry)
    assert rows(read(tmp_path / "lat.1")[0]) == WANTED


def test_lattices_without_compact_weights(tmp_path: Path) -> None:
    """Text of ``lattice-copy --write-compact=false``; weights of one are left out in it."""
    text = "u1 \n3 1 7 1 1,4\n3 1 0 0\n1 2 8 0 0,2\n2 1,0\n1\n\n"
    [found] = read(write_gz(tmp_path / "lat.gz", text.encode()))
    assert rows(found) == [
        (0, 1, 0, 0.0, 0.0, 0), (0, 1, 1, 1.0, 4.0, 1), (1, 2, 0, 0.0, 2.0, 1),
        (1, 4, 0, 0.0, 0.0, 0), (2, 4, 0, 1.0, 0.0, 0),
    ]  # fmt: skip
    nothing = compact_bytes("u1", {}, {0: []})
    [found] = read(write_gz(tmp_path / "none.gz", nothing))
    assert found.num_states == 1 and not len(found.words)
    [found] = read(write_gz(tmp_path / "none.gz", b"u1 \n\n"))
    assert found.num_states == 1 and not len(found.words)


@pytest.mark.parametrize("name", ["lat.1.gz", "lat.1"])
def test_what_is_written_is_read(name: str, tmp_path: Path) -> None:
    made = [random_lattice(seed, num_words=9) for seed in (1, 2)]
    write_kaldi_lattices(tmp_path / name, [made[0], no_path("u9"), made[1]])
    found = read(tmp_path / name)
    assert [one.id for one in found] == ["u1", "u2"]
    for one, wanted in zip(found, made):
        arcs = zip(wanted.sources, wanted.targets, wanted.words, wanted.lm_scores, wanted.am_scores)
        exact = sorted((*map(int, ends), -lm, -am, 0) for *ends, lm, am in arcs)
        np.testing.assert_allclose(rows(one), exact, rtol=1e-6)
    again = tmp_path / f"again.{name}"
    write_kaldi_lattices(again, made)
    assert again.read_bytes() == (tmp_path / name).read_bytes()


def test_kaldifst_writes_what_is_read(tmp_path: Path) -> None:
    pytest.importorskip("kaldifst")
    made = random_lattice(4, num_words=9)
    [found] = read(write_gz(tmp_path / "lat.gz", plain_bytes(made)))
    spoken = found.words > 0
    assert found.frames.sum() == 3 * spoken.sum()
    assert sorted(found.words[spoken].tolist()) == sorted(made.words[made.words > 0].tolist())
    sums = -found.costs.sum(axis=0)
    np.testing.assert_allclose(sums, (made.lm_scores.sum(), made.am_scores.sum()), rtol=1e-6)


def test_every_cut_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lat"
    for entry in (TEXT.encode(), BINARY):
        for size in range(1, len(entry)):
            path.write_bytes(entry[:size])
            with pytest.raises(DataError):
                read(path)


#: The target of the last arc is a state that is not there.
OUTSIDE = compact_bytes("u1", {0: (1.0, 0.0)}, {1: [(0, 1, 1.0, 1.0)]})[:-4] + b"\x09\0\0\0"
MATRIX = b"u1 \0BFM \4\1\0\0\0\4\1\0\0\0\0\0\0\0"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (b"", "found an empty file"),
        (MATRIX, "found another table"),
        (b"hello world", "a Kaldi archive of lattices"),
        (b"\xff\xfe\x00", "no utterance before"),
        (BINARY.replace(b"compactlattice44", b"compactlattice48"), "arcs compactlattice48"),
        (BINARY.replace(b"vector", b"const_"), "type const_"),
        (b"u1 \n0 1 hello 1,2,\n1\n\n", "words must be numbers"),
        (b"u1 \n0 1 1 1;2\n1\n\n", "arcs of numbers"),
        (b"u1 \n0 1 1 nan,2,\n1\n\n", "costs that are numbers"),
        (b"u1 \n0 1 1 1,-inf,\n1\n\n", "costs that are numbers"),
        (b"u1 \n0 -1 1 1,2,\n1\n\n", "arcs of numbers"),
        (OUTSIDE, "outside of its numbers"),
    ],
)
def test_what_is_no_archive(entry: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "lat"
    path.write_bytes(entry)
    with pytest.raises(DataError, match=message) as error:
        read(path)
    assert str(path) in str(error.value)


def test_broken_gzip(tmp_path: Path) -> None:
    path = write_gz(tmp_path / "lat.gz", BINARY)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="a Kaldi archive of lattices"):
        read(path)
    path.write_bytes(BINARY)
    with pytest.raises(DataError, match=r"[Nn]ot a gzipped file"):
        read(path)
