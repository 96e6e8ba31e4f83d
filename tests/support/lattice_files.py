"""Helpers shared with ``test_lattice_files.py``."""

from __future__ import annotations

import numpy as np

from privasr_k2.decoding.lattices import Lattice


def no_path(name: str) -> Lattice:
    none = np.zeros(0, dtype=np.int32)
    return Lattice(
        name, "test", "s2", "ref", 8.0, np.zeros(0), none, none, none, np.zeros(0), np.zeros(0)
    )
