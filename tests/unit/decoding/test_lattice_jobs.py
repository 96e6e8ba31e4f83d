"""What becomes of a search's lattice: seconds, references, and what is said about limits."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from privasr_k2 import config
from privasr_k2.decoding import lattice_jobs
from privasr_k2.decoding.compact_lattice import CompactLattice
from privasr_k2.decoding.lattice_jobs import LatticeJobConfig, lattice_cuts, lattice_of
from privasr_k2.decoding.lattices import Found
from privasr_k2.errors import ConfigError
from tests.support.conf import section
from tests.support.nbest_jobs import Cut


def found(beam: float = 8.0, limited: bool = False) -> Found:
    """One word, said in the first seven frames."""
    arcs = (np.array([0, 1]), np.array([1, 2]), np.array([4, 0]))
    scores = np.array([-3.0, 0.0]), np.array([-1.0, -0.5])
    return Found(CompactLattice(np.array([0, 7, 9]), *arcs, *scores), beam, limited)


def test_seconds_are_those_of_the_cut() -> None:
    """Three features of 20 ms make one output; the last one reaches beyond the cut's end."""
    one = lattice_of(Cut(), found(), 3, 8.0)  # type: ignore[arg-type]
    assert one.seconds.tolist() == pytest.approx([0.0, 0.42, 0.5])
    assert (one.id, one.part, one.speaker, one.ref, one.beam) == ("u1", "dev_x", "s1", "ab b", 8.0)
    assert one.words.tolist() == [4, 0] and one.words.dtype == np.int32
    assert one.am_scores.tolist() == [-3.0, 0.0] and one.lm_scores.tolist() == [-1.0, -0.5]


def test_without_a_path() -> None:
    one = lattice_of(Cut(custom={}), None, 3, 8.0)  # type: ignore[arg-type]
    assert one.num_states == 0 and not len(one.words)
    assert (one.id, one.part, one.speaker, one.ref) == ("u1", "", "s1", "ab b")


def test_limits_are_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    class Model:
        subsampling = 3

    results: list[Any] = [(Cut("a"), found()), (Cut("b"), found(2.0, True)), (Cut("c"), None)]
    monkeypatch.setattr(lattice_jobs, "search_cuts", lambda *_: iter(results))
    base = [section(name) for name in ("decode", "lattices")]
    settings = config.load(LatticeJobConfig, base, ["max_states=5", "beam=8"])
    with caplog.at_level(logging.INFO):
        made = list(lattice_cuts(Model(), None, None, settings, "cpu"))  # type: ignore[arg-type]
    facts = [(lattice.id, lattice.beam, lattice.num_states) for lattice in made]
    assert facts == [("a", 8.0, 3), ("b", 2.0, 3), ("c", 8.0, 0)]
    assert "3 lattices, 6 states and 4 arcs" in caplog.text
    assert "1 lattices hold less than the beam of 8" in caplog.text
    assert "max_states=5: b (2); raise" in caplog.text


def test_settings() -> None:
    base = [section(name) for name in ("decode", "lattices")]
    for wrong in ("beam=-1", "max_states=0", "job=2", "search_beam=0"):
        with pytest.raises(ConfigError, match="allows"):
            config.load(LatticeJobConfig, base, [wrong])
