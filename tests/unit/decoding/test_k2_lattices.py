"""Lattices for k2 have the paths and scores of ours, and are rescored as icefall does it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from privasr_k2.decoding.lattice_files import write_lattices
from privasr_k2.decoding.lattices import Lattice
from privasr_k2.graph.grammar import grammar
from privasr_k2.lm.arpa import read_arpa
from privasr_k2.scoring.hypotheses import Weights
from tests.support.small_lm import WORDS
from tests.support.verbs import call, refused
from tests.support.word_lattices import no_path, paths, random_lattice, write_closed_arpa

k2 = pytest.importorskip("k2")
pytestmark = pytest.mark.k2
SYMBOLS = ("<eps>", *WORDS, "#0")


def scores(lattice: Lattice, *, with_lm: bool = True) -> list[float]:
    """Of every path, am or am + LM."""
    if not lattice.num_states:
        return []
    arcs = lattice.am_scores + lattice.lm_scores if with_lm else lattice.am_scores
    return [float(arcs[list(path.arcs)].sum()) for path in paths(lattice)]


def test_paths_scores_and_another_lm(tmp_path: Path) -> None:
    made = [random_lattice(1, num_words=len(WORDS) + 1), no_path("u2")]
    made.append(random_lattice(3, num_words=len(WORDS) + 1))
    write_lattices(tmp_path / "lattices/1.safetensors", made, SYMBOLS, Weights(0.8, 0.4))
    call(f"export --in-lattices {tmp_path}/lattices --out-k2 {tmp_path}/k2")
    assert (tmp_path / "k2/utterances.txt").read_text() == "u1\nu2\nu3\n"
    assert (tmp_path / "k2/words.txt").read_text().splitlines()[-1] == f"#0 {len(WORDS) + 1}"
    lattice = k2.Fsa.from_dict(torch.load(str(tmp_path / "k2/lattices.pt")))
    assert lattice.shape == (3, None, None)
    best = k2.shortest_path(lattice, use_double_scores=True)
    assert best.get_tot_scores(True, False).tolist() == pytest.approx(
        [max(scores(one), default=-np.inf) for one in made], abs=1e-3
    )
    model = read_arpa(write_closed_arpa(tmp_path / "a.arpa", WORDS))
    ids = {word: n for n, word in enumerate(WORDS, start=1)}
    G = grammar(model, ids, backoff_label=len(WORDS) + 1, place="a.arpa")
    fsa = k2.Fsa.from_openfst(G.to_openfst(), acceptor=False)
    del fsa.aux_labels
    labels = fsa.labels.clone()
    labels[labels > len(WORDS)] = 0  # back-off is an epsilon in icefall's second pass
    fsa.labels = labels
    fsa = k2.arc_sort(k2.add_epsilon_self_loops(k2.create_fsa_vec([k2.arc_sort(fsa)])))
    lattice.scores = lattice.scores - lattice.lm_scores
    del lattice.lm_scores
    to_first = torch.zeros(3, dtype=torch.int32)
    again = k2.intersect_device(fsa, k2.invert(lattice), to_first, sorted_match_a=True)
    best = k2.shortest_path(k2.top_sort(k2.connect(again)), use_double_scores=True)
    totals = best.get_tot_scores(True, False).tolist()
    assert totals[1] == float("-inf")
    for n in (0, 2):
        every = paths(made[n])
        lm, _ = model.sentence_scores(
            [[SYMBOLS[word] for word in path.words if word] for path in every]
        )
        am = scores(made[n], with_lm=False)
        expected = max(am + np.log(10) * lm)
        assert totals[n] == pytest.approx(expected, abs=1e-3)


def test_a_damaged_lattice_is_refused(tmp_path: Path) -> None:
    lattice = random_lattice(1, num_words=len(WORDS) + 1)
    path = tmp_path / "lattices/1.safetensors"
    write_lattices(path, [lattice], SYMBOLS, Weights(0.8, 0.4))
    path.write_bytes(path.read_bytes()[:-8])
    with refused("1.safetensors: expected lattices of decode"):
        call(f"export --in-lattices {tmp_path}/lattices --out-k2 {tmp_path}/k2")
    assert not (tmp_path / "k2").exists()
