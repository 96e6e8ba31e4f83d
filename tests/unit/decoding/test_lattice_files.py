"""Files of compact lattices: there and back, what is refused, and Kaldi's text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from privasr_k2.decoding.lattice_files import kaldi_text, read_lattices, write_lattices
from privasr_k2.decoding.lattices import END, Lattice
from privasr_k2.errors import DataError
from privasr_k2.scoring.hypotheses import Weights
from tests.support.word_lattices import no_path, random_lattice

WORDS = ("<eps>", *(f"w{n}" for n in range(1, 9)), "#0")
WEIGHTS = Weights(0.8, -1.0)


def lattices(*seeds: int) -> list[Lattice]:
    return [random_lattice(seed, num_words=9) for seed in seeds]


def test_there_and_back(tmp_path: Path) -> None:
    written = [*lattices(3, 1), no_path("u0")]
    write_lattices(tmp_path / "1.safetensors", written[:2], WORDS, WEIGHTS)
    write_lattices(tmp_path / "2.safetensors", written[2:], WORDS, WEIGHTS)
    write_lattices(tmp_path / "3.safetensors", [], WORDS, WEIGHTS)
    found = read_lattices(tmp_path)
    assert found.words == WORDS and found.weights == WEIGHTS
    assert [one.id for one in found.lattices] == ["u0", "u1", "u3"]
    for one, other in zip(found.lattices, [written[2], written[1], written[0]]):
        for name, expected in vars(other).items():
            value = getattr(one, name)
            if isinstance(expected, np.ndarray):
                np.testing.assert_array_equal(value, expected)
                assert value.dtype == (np.int32 if expected.dtype.kind == "i" else np.float64)
            else:
                assert value == expected


def changed(path: Path, header: dict[str, Any] | None = None, **arrays: np.ndarray) -> None:
    """Write a file again with other values."""
    with safe_open(str(path), "np") as file:
        told = json.loads(file.metadata()["json"])
        held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(held | arrays, str(path), {"json": json.dumps(told | (header or {}))})


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "1.safetensors"
    with pytest.raises(DataError, match="found none"):
        read_lattices(tmp_path)

    def refused(message: str, header: dict[str, Any] | None = None, **arrays: np.ndarray) -> None:
        write_lattices(path, lattices(1, 2), WORDS, WEIGHTS)
        changed(path, header, **arrays)
        with pytest.raises(DataError, match=message) as error:
            read_lattices(tmp_path)
        assert "1.safetensors" in str(error.value) and "decode" in str(error.value)

    refused("the format 'other'", {"format": "other"})
    refused("u1: the word 8 of 4", {"words": list(WORDS[:4])})
    refused("lm_weight", {"weights": {}})
    refused("speaker", {"utterances": [{"id": "u1", "part": "", "ref": "", "beam": 1.0}]})
    refused("topological order", targets=np.zeros(200, dtype=np.int32))
    refused("different lengths", words=np.ones(3, dtype=np.int32))
    for content in (path.read_bytes()[:-100], b""):
        path.write_bytes(content)
        with pytest.raises(DataError, match="lattices of decode"):
            read_lattices(tmp_path)


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    write_lattices(tmp_path / "1.safetensors", lattices(1), WORDS, WEIGHTS)
    write_lattices(tmp_path / "2.safetensors", lattices(2), WORDS, Weights(0.8, 0.0))
    with pytest.raises(DataError, match=r"found other weights, \(0.8, 0.0\)"):
        read_lattices(tmp_path)
    write_lattices(tmp_path / "2.safetensors", lattices(2), (*WORDS[:-1], "w9", "#0"), WEIGHTS)
    with pytest.raises(DataError, match="found other words"):
        read_lattices(tmp_path)
    write_lattices(tmp_path / "2.safetensors", lattices(1), WORDS, WEIGHTS)
    with pytest.raises(DataError, match="u1 again"):
        read_lattices(tmp_path)


def test_kaldi_reads_the_same_paths() -> None:
    """In kaldifst the cheapest path of the text has the scores of the lattice's best."""
    kaldifst = pytest.importorskip("kaldifst")
    [lattice] = lattices(5)
    first, *rows, _, _ = kaldi_text(lattice).split("\n")
    assert first == "u5" and len(rows) == len(lattice.words)
    lines = []
    for row in rows:
        *places, weight = row.split()
        graph, acoustic, transitions = weight.split(",")
        assert transitions == "" and len(places) == (3 if len(places) > 1 else 1)
        lines.append(" ".join([*places, f"{float(graph) + float(acoustic):.9f}"]))
    fst = kaldifst.compile("\n".join(lines) + "\n", acceptor=True)
    _, words, _, cost = kaldifst.get_linear_symbol_sequence(kaldifst.shortest_path(fst))
    totals = lattice.totals(Weights(1.0, 0.0))
    assert -cost.value == pytest.approx(lattice.dag.best_from(0, totals)[-1], abs=1e-4)
    assert END not in words
