"""Graphs compiled from icefall's lang folders decode as icefall's own HLG does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from privasr_k2.decoding.first_pass import Decoder, SearchConfig
from privasr_k2.graph.grammar import grammar
from privasr_k2.graph.hlg import load_graph
from privasr_k2.graph.icefall_graph import hlg_of, import_hlg
from privasr_k2.graph.icefall_lang import import_icefall_lang
from privasr_k2.graph.lang import load_lang
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.randomness import stream
from tests.support.icefall_files import PHONES, compile_hlg, write_lang
from tests.support.small_graphs import make_graph

k2 = pytest.importorskip("k2")
pytestmark = pytest.mark.k2
PIECES = ("<blk>", "<sos/eos>", "<unk>", "▁A", "▁B", "C", "▁")
SPELLED = "AC ▁A C\nB ▁B\nBC ▁B C\nBEE ▁B\nCC ▁ C C\n"
LANGS = {
    "phone": (PHONES, {"silence": 0.4}),
    "bpe": (SPELLED, {"silence": None, "tokens": PIECES, "special": ()}),
}
SEARCH = SearchConfig("k2", 1000.0, 1000.0, 30, 100_000, 1.0, [0.5, 1.0], [0.0, 1.0])


@pytest.mark.parametrize("topology", ["standard", "modified"])
@pytest.mark.parametrize("kind", list(LANGS))
def test_equal_scores_and_words(tmp_path: Path, kind: str, topology: str) -> None:
    lexicon, options = LANGS[kind]
    folder = write_lang(tmp_path / kind, lexicon, **options)
    import_icefall_lang(folder, tmp_path / "lang")
    lang = load_lang(tmp_path / "lang")
    words = sorted({line.split()[0] for line in lexicon.splitlines()})
    draws = stream(1, kind)
    text = [list(draws.choice(words, size=n % 4 + 1)) for n in range(30)]
    model = estimate(count_ngrams(text, words, order=2), "witten_bell")
    G = grammar(model, lang.word_ids, backoff_label=len(lang.words) - 1, place="G").to_openfst()
    theirs = compile_hlg(folder, G, modified=topology == "modified")
    torch.save(theirs.as_dict(), str(folder / "HLG.pt"))
    import_hlg(folder / "HLG.pt", lang, tmp_path / "imported")
    make_graph(tmp_path / "ours", lang, model, topology)
    sizes = [40, 33, 25, 7]
    draw = draws.normal(size=(len(sizes), 40, lang.num_tokens)) * 3
    log_probs = torch.from_numpy(draw.astype(np.float32)).log_softmax(2)
    lengths = torch.tensor(sizes)
    results = [
        Decoder.from_folder(tmp_path / name, SEARCH).decode(log_probs, lengths)
        for name in ("imported", "ours")
    ]
    for one, other in zip(*results):
        assert one is not None and other is not None
        for a, b in zip(one, other):
            totals = [h.am_score + h.lm_weight * h.lm_score for h in (a, b)]
            assert totals[0] == pytest.approx(totals[1], abs=1e-3)
            if kind == "bpe":  # homophones of equal scores
                continue
            assert a.words == b.words
    # What is given back decodes with k2 alone as their own.
    segments = torch.tensor([[n, 0, size] for n, size in enumerate(sizes)], dtype=torch.int32)
    dense = k2.DenseFsaVec(log_probs, segments)
    lattices = [
        k2.intersect_dense_pruned(HLG, dense, 1000.0, 1000.0, 30, 100_000)
        for HLG in (theirs, hlg_of(load_graph(tmp_path / "ours")))
    ]
    one, other = (lattice.get_tot_scores(True, False).tolist() for lattice in lattices)
    assert one == pytest.approx(other, abs=1e-3)
