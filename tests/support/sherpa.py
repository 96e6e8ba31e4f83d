"""What sherpa-onnx's search reads from a graph, by ``kaldi_decoder``, which it is made with."""

from __future__ import annotations

from typing import Any

import numpy as np

from privasr_k2.graph.openfst import Fst

#: ``FasterDecoderOptions`` of sherpa-onnx, which sets ``max_active`` alone.
BEAM = 16.0


def sherpa_words(
    graph: Fst, scores: list[np.ndarray], *, beam: float = BEAM, max_active: int = 1_000_000
) -> list[list[int]]:
    """Word numbers of each (T, C) array of log-probabilities; none where no path ends.

    As its C++ does: a word counts on an arc with a token that is not that of the arc before.
    """
    import kaldi_decoder

    fst = graph.to_kaldifst()
    options = kaldi_decoder.FasterDecoderOptions(beam=beam, max_active=max_active)
    search, found = kaldi_decoder.FasterDecoder(fst, options), []
    for log_probs in scores:
        search.decode(kaldi_decoder.DecodableCtc(np.ascontiguousarray(log_probs)))
        path = search.get_best_path()[1] if search.reached_final() else None
        found.append([] if path is None else _words(path))
    return found


def _words(path: Any) -> list[int]:
    """Of a linear lattice."""
    words, before = [], 0
    arcs = [line.split() for line in path.to_str().splitlines()]
    # SOURCE TARGET ILABEL OLABEL COSTS; the last line is the final state's.
    for ilabel, olabel in ((int(arc[2]), int(arc[3])) for arc in arcs if len(arc) >= 4):
        if ilabel > 1 and ilabel != before and olabel:
            words.append(olabel)
        before = ilabel
    return words
