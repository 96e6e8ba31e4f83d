"""TLG: CTC topology, lexicon and grammar as one graph for Kaldi's decoders, without k2.

``TLG = T o LG`` from the LG of HLG, its disambiguation symbols as epsilons, which Kaldi's search
passes [Miao et al. 2015]. Token n has the label n + 1, since label 0 is epsilon.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from privasr_k2.errors import GraphError
from privasr_k2.graph.folder import GraphFolder, check_labels, check_size, read_folder
from privasr_k2.graph.openfst import Fst

FILE = "TLG.fst"


@dataclass(frozen=True, eq=False)
class TokenGraph(GraphFolder):
    """A decoding graph for Kaldi with its symbols."""

    TLG: Fst


def ctc_topology(num_tokens: int, topology: str) -> Fst:
    """T, from labels of frames (token + 1) to tokens, as ``k2.ctc_topo`` defines the topologies.

    State n is in token n, state 0 in the blank. ``standard``: arcs between all states, C*C, so that
    equal tokens need a blank between them. ``modified``: none is needed, 4 arcs a token.

    >>> T = ctc_topology(2, "standard")
    >>> list(zip(T.sources.tolist(), T.targets.tolist(), T.ilabels.tolist(), T.olabels.tolist()))
    [(0, 0, 1, 0), (0, 1, 2, 1), (1, 0, 1, 0), (1, 1, 2, 0)]
    """
    tokens = np.arange(num_tokens)
    if topology == "standard":
        sources, targets = (ends.ravel() for ends in np.meshgrid(tokens, tokens, indexing="ij"))
        labels, spoken = targets, np.where(sources == targets, 0, targets)
        finals = np.zeros(num_tokens)
    else:
        real = tokens[1:]
        none = np.zeros_like(real)
        columns = (
            (none, none, real, real),
            (none, real, real, none),
            (real, real, real, real),
            (real, real, none, none),
        )
        sources, targets, labels, spoken = (np.concatenate([[0], *parts]) for parts in columns)
        finals = np.where(tokens == 0, 0.0, np.inf)
    return Fst.from_arcs(sources, targets, labels + 1, spoken, np.zeros(len(labels)), finals)


def compile_tlg(LG: Fst, *, num_tokens: int, topology: str) -> Fst:
    """T o LG, for an LG with epsilons in place of disambiguation symbols; C includes the blank."""
    import kaldifst

    T = kaldifst.StdVectorFst(ctc_topology(num_tokens, topology).to_kaldifst())
    kaldifst.arcsort(T, "olabel")
    grammar = kaldifst.StdVectorFst(LG.to_kaldifst())
    kaldifst.arcsort(grammar, "ilabel")
    return Fst.from_kaldifst(kaldifst.compose(T, grammar))


def load_tlg(folder: str | Path) -> TokenGraph:
    """Read a graph folder's TLG and check that its parts agree.

    Raises:
        GraphError: a missing or foreign file, an unknown topology, labels beyond tokens or words,
            or a TLG of another compilation than ``graph.yaml``.
    """
    folder = Path(folder)
    path = folder / FILE
    if not path.is_file():
        way_out = "make it with bin.compile_graph, or decode with backend=k2"
        raise GraphError(path, "a graph for backend=kaldi", "nothing", way_out)
    TLG, parts = Fst.read(path), read_folder(folder)
    check_labels(
        path,
        largest_token=int(TLG.ilabels.max(initial=0)) - 1,
        num_tokens=len(parts.tokens),
        largest_word=int(TLG.olabels.max(initial=0)),
        num_words=len(parts.words),
    )
    check_size(path, parts.info, num_states=TLG.num_states, num_arcs=TLG.num_arcs)
    return TokenGraph(folder, parts.tokens, parts.words, parts.info, TLG)


def silenced(fst: Fst, *, num_tokens: int, backoff_word: int) -> Fst:
    """Labels from ``num_tokens`` on and the word ``backoff_word`` as epsilons; delimiters stay."""
    return dataclasses.replace(
        fst,
        ilabels=np.where(fst.ilabels < num_tokens, fst.ilabels, 0).astype(np.int32),
        olabels=np.where(fst.olabels != backoff_word, fst.olabels, 0).astype(np.int32),
    )
