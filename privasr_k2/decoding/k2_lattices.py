"""Compact word lattices as k2's vector of automata, which icefall's rescoring functions read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privasr_k2.decoding.lattice_files import Lattices
from privasr_k2.decoding.lattices import END, Lattice
from privasr_k2.fileio import atomic_path, write_text
from privasr_k2.graph.k2_files import write_fsa
from privasr_k2.graph.lang import symbols_text

if TYPE_CHECKING:
    import k2

FILE, IDS = "lattices.pt", "utterances.txt"
# Enough for 5-grams, which back off four times at most before a word.
_EPSILONS = 4


def fsa_vec(lattices: Sequence[Lattice]) -> k2.Fsa:
    """A vector with an automaton for each lattice, empty where there is no path.

    ``labels`` and ``aux_labels`` are word numbers, -1 on arcs into the last state; ``scores`` is am
    + LM, ``lm_scores`` the LM's, natural log and unweighted. These lattices have no tokens. Some
    epsilons stand before each word: icefall's G backs off along them.
    """
    import k2
    import torch

    fsas = []
    for lattice in lattices:
        if not lattice.num_states:  # k2 makes no automaton without states of an array
            fsas.append(_with_scores(k2.Fsa.from_str(""), np.zeros(0, np.int32), np.zeros(0)))
            continue
        words = np.where(lattice.words == END, -1, lattice.words)
        scores = lattice.am_scores + lattice.lm_scores
        # State s is s * (1 + _EPSILONS), and words leave from the last state of its chain.
        size = 1 + _EPSILONS
        begins = np.arange((lattice.num_states - 1) * size)
        begins = begins[begins % size < _EPSILONS]
        none = np.zeros(len(begins))
        sources = np.concatenate([begins, lattice.sources * size + _EPSILONS])
        targets = np.concatenate([begins + 1, lattice.targets * size])
        order = np.argsort(sources, kind="stable")
        labels = np.concatenate([none, words]).astype(np.int32)[order]
        totals = np.concatenate([none, scores]).astype(np.float32)[order]
        columns = (sources[order], targets[order], labels, totals.view(np.int32))
        arcs = torch.from_numpy(np.stack(columns, axis=1).astype(np.int32))
        lm_scores = np.concatenate([none, lattice.lm_scores])[order]
        fsas.append(_with_scores(k2.Fsa(arcs), labels, lm_scores))
    return k2.create_fsa_vec(fsas)


def _with_scores(fsa: k2.Fsa, words: np.ndarray, lm_scores: np.ndarray) -> k2.Fsa:
    import torch

    fsa.aux_labels = torch.from_numpy(words)
    fsa.lm_scores = torch.from_numpy(lm_scores.astype(np.float32))
    return fsa


def export_k2(found: Lattices, folder: Path) -> None:
    """Write ``lattices.pt``, ``utterances.txt`` (an id a line), ``words.txt``, or nothing."""
    with atomic_path(folder) as temporary:
        temporary.mkdir(parents=True)
        write_fsa(fsa_vec(found.lattices), temporary / FILE)
        write_text(temporary / IDS, "".join(f"{lattice.id}\n" for lattice in found.lattices))
        write_text(temporary / "words.txt", symbols_text(found.words))
