"""HLG: CTC topology, lexicon and grammar as one graph for :mod:`privasr_k2.decoding.first_pass`.

``LG = minimize(determinize(L o G))`` in the tropical semiring; its disambiguation symbols become
epsilons and are removed, because k2's search takes label 0 for the blank; ``HLG = H o LG``
[Mohri et al. 2002; Miao et al. 2015]. Both steps work on arrays (:mod:`privasr_k2.graph.epsilons`,
:mod:`privasr_k2.graph.ctc_compose`); k2's epsilon removal would lose all but the best homophone.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import yaml

from privasr_k2.constraints import Checked, Count, one_of
from privasr_k2.errors import GraphError
from privasr_k2.fileio import atomic_path, disk_errors, write_text
from privasr_k2.graph import tlg
from privasr_k2.graph.ctc_compose import compose_ctc
from privasr_k2.graph.epsilons import WordArcs, remove_epsilons
from privasr_k2.graph.folder import (
    INFO,
    TOPOLOGIES,
    GraphFolder,
    check_labels,
    check_size,
    read_folder,
)
from privasr_k2.graph.grammar import Grammar, grammar
from privasr_k2.graph.lang import Lang, lexicon_text, symbols_text
from privasr_k2.graph.openfst import Fst
from privasr_k2.lm.arpa import Arpa

if TYPE_CHECKING:
    import k2
    import kaldifst
    import torch

log = logging.getLogger(__name__)

PIECES = "class_pieces"
# Costs are rounded to it when states are compared. Kaldi's 2^-10 saves 0.02 % of the states, and
# its errors add up to 0.004 over the words of a short sentence.
QUANTUM = 2.0**-16


@dataclass(frozen=True)
class GraphConfig(Checked):
    """Settings of HLG; defaults in ``conf/common.yaml#graph``.

    Args:
        ctc_topology: ``standard`` (blank between equal tokens) or ``modified`` (fewer arcs).
        max_states: bound on the states of the determinized LG.
    """

    ctc_topology: Annotated[str, one_of(*TOPOLOGIES)]
    max_states: Count


@dataclass(frozen=True, eq=False)
class Compiled:
    """Both graphs of one LG.

    Args:
        HLG: for k2, with delimiters among its words.
        TLG: for Kaldi's decoders, if made.
        words: by their numbers, delimiters included.
        pieces: the pieces of a class LM's LG, by the names of files in ``class_pieces``.
    """

    HLG: WordArcs
    TLG: Fst | None
    words: tuple[str, ...]
    pieces: Mapping[str, Fst]


@dataclass(frozen=True, eq=False)
class Graph(GraphFolder):
    """A decoding graph for k2 with its symbols.

    Args:
        HLG: arc-sorted, with ragged ``aux_labels`` (words) and ``lm_scores`` (natural log); with
            classes also ragged ``symbols``, words and delimiters.
    """

    HLG: k2.Fsa


class Laps:
    """A clock of steps."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._clock = time.perf_counter()

    def lap(self, name: str) -> None:
        """Note and log the seconds of the step that ends now."""
        now = time.perf_counter()
        self.seconds[name], self._clock = round(now - self._clock, 2), now
        log.info("%s: %.1f s", name, self.seconds[name])


def lexicon_openfst(lang: Lang) -> tuple[str, int]:
    """L with disambiguation symbols in OpenFst's text format, and the number of those symbols.

    Symbol C passes the grammar's back-off symbol; symbols C+1, C+2, ... end pronunciations that
    several words share or that begin a longer one. The last one ends optional silence, where the
    language has it. State 0 is between words.
    """
    token_ids, word_ids = lang.token_ids, lang.word_ids
    entries = [
        (word_ids[word], tuple(token_ids[t] for t in tokens))
        for word, tokens in lang.pronunciations
    ]
    shared = Counter(tokens for _, tokens in entries)
    beginnings = {tokens[:end] for tokens in shared for end in range(1, len(tokens))}
    backoff = lang.num_tokens
    ends = _word_ends(lang)
    # The first line has the start.
    lines = [f"1 {state} 0 0 {cost:.7g}\n" for state, cost in ends] if lang.silence else []
    lines.append(f"0 0 {backoff} {len(lang.words) - 1}\n")
    seen: Counter[tuple[int, ...]] = Counter()
    next_state, most = 4 if lang.silence else 1, 0
    for word, tokens in entries:
        labels = list(tokens)
        if shared[tokens] > 1 or tokens in beginnings:
            seen[tokens] += 1
            most = max(most, seen[tokens])
            labels.append(backoff + seen[tokens])
        source = 0
        for position, label in enumerate(labels[:-1]):
            lines.append(f"{source} {next_state} {label} {word if position == 0 else 0}\n")
            source, next_state = next_state, next_state + 1
        last = f"{labels[-1]} {word if len(labels) == 1 else 0}"
        lines += [f"{source} {end} {last}{f' {cost:.7g}' if cost else ''}\n" for end, cost in ends]
    lines.append("0\n")
    if lang.silence is not None:
        most += 1  # its own symbol, so that it is never taken for a word that has the same token
        lines += [f"2 3 {token_ids[lang.silence.token]} 0\n", f"3 0 {backoff + most} 0\n"]
    return "".join(lines), most + 1


def _word_ends(lang: Lang) -> list[tuple[int, float]]:
    """The states of L where words end, and their costs: between words (0) or before silence (2)."""
    if lang.silence is None:
        return [(0, 0.0)]
    return [(0, -math.log1p(-lang.silence.prob)), (2, -math.log(lang.silence.prob))]


def compose_lexicon_and_grammar(
    lang: Lang,
    G: Grammar,
    max_states: int,
    *,
    symbols: range = range(0),
) -> kaldifst.StdVectorFst:
    """LG, determinized and minimized, with its disambiguation symbols.

    Args:
        G: over words and symbols.
        max_states: before minimization.
        symbols: numbers of G's labels that are no words and pass the lexicon, such as delimiters.

    Raises:
        GraphError: nothing is left, or the graph grows beyond ``max_states``.
    """
    import kaldifst

    lexicon_text, num_disambig = lexicon_openfst(lang)
    first = lang.num_tokens + num_disambig
    lexicon_text += "".join(f"0 0 {first + n} {symbol}\n" for n, symbol in enumerate(symbols))
    lexicon, acceptor = kaldifst.compile(lexicon_text), kaldifst.compile(G.to_openfst())
    return composed(lexicon, acceptor, max_states, place=lang.folder, again="use one lang folder")


def composed(
    lexicon: kaldifst.StdVectorFst,
    acceptor: kaldifst.StdVectorFst,
    max_states: int,
    *,
    place: Path,
    again: str,
) -> kaldifst.StdVectorFst:
    """L o G, determinized and minimized; sorts the arcs of both.

    Args:
        place: for messages.
        again: the way out where the grammar has other words.

    Raises:
        GraphError: as of :func:`compose_lexicon_and_grammar`.
    """
    import kaldifst

    kaldifst.arcsort(lexicon, "olabel")
    kaldifst.arcsort(acceptor, "ilabel")
    LG = kaldifst.compose(lexicon, acceptor)
    if not LG.num_states:
        raise GraphError(place, "a grammar over the lexicon's words", "no path in L o G", again)
    try:
        kaldifst.determinize_star(LG, max_states=max_states)
    except RuntimeError as error:
        expected, found = f"at most {max_states} states in LG", str(error).split("[E] ")[-1].strip()
        way_out = "prune the language model, or raise max_states in section graph"
        raise GraphError(place, expected, found, way_out) from error
    kaldifst.minimize_encoded(LG, delta=QUANTUM)
    return LG


def compile_graph(
    lang: Lang, model: Arpa, config: GraphConfig, *, model_path: Path
) -> tuple[Compiled, dict[str, Any]]:
    """The graphs, and the content of ``graph.yaml``: topology, sizes, seconds of each step."""
    laps = Laps()
    G = grammar(model, lang.word_ids, backoff_label=len(lang.words) - 1, place=model_path)
    return compile_grammar(lang, G, model, config, laps, place=model_path)


def compile_grammar(
    lang: Lang,
    G: Grammar,
    model: Arpa | None,
    config: GraphConfig,
    laps: Laps,
    *,
    place: Path,
    symbols: range = range(0),
) -> tuple[Compiled, dict[str, Any]]:
    """As :func:`compile_graph`, of a grammar that was made of ``model``, if that is known.

    Args:
        symbols: labels of G behind those of the words; they become epsilons.
    """
    laps.lap("G")
    LG = Fst.from_kaldifst(compose_lexicon_and_grammar(lang, G, config.max_states, symbols=symbols))
    silent = np.isin(LG.olabels, symbols)
    LG = dataclasses.replace(LG, olabels=np.where(silent, 0, LG.olabels).astype(np.int32))
    laps.lap("LG")
    graphs, more = finished(LG, lang, config.ctc_topology, laps, place=place)
    more["num_states"] = {"G": len(G.finals), **more["num_states"]}
    more["num_arcs"] = {"G": len(G.sources), **more["num_arcs"]}
    return graphs, {**about(lang, G, model, config), **more}


def about(lang: Lang, G: Grammar, model: Arpa | None, config: GraphConfig) -> dict[str, Any]:
    """What ``graph.yaml`` tells of topology, lexicon and language model."""
    info = {
        "ctc_topology": config.ctc_topology,
        "num_tokens": lang.num_tokens,
        "num_words": G.num_words,
        "words_without_ngram": len(lang.word_ids) - G.num_words,
    }
    return (
        info
        if model is None
        else {**info, "lm_order": model.order, "num_ngrams": list(model.counts)}
    )


def finished(
    LG: Fst, lang: Lang, topology: str, laps: Laps, *, place: str | Path, with_tlg: bool = True
) -> tuple[Compiled, dict[str, Any]]:
    """Both graphs of an LG with disambiguation symbols; their sizes and the seconds of steps."""
    LG = tlg.silenced(LG, num_tokens=lang.num_tokens, backoff_word=len(lang.words) - 1)
    TLG = None
    if with_tlg:
        TLG = tlg.compile_tlg(LG, num_tokens=lang.num_tokens, topology=topology)
        laps.lap("TLG")
    plain = remove_epsilons(LG)
    laps.lap("LG without epsilons")
    if not plain.num_arcs:
        raise GraphError(place, "a graph with a path", "an empty one", "use one lang folder")
    HLG = compose_ctc(plain, lang.num_tokens, topology)
    laps.lap("HLG")
    sizes = {
        "num_states": {"LG": plain.num_states, "HLG": HLG.num_states},
        "num_arcs": {"LG": plain.num_arcs, "HLG": HLG.num_arcs},
    }
    if TLG is not None:
        sizes["num_states"]["TLG"], sizes["num_arcs"]["TLG"] = TLG.num_states, TLG.num_arcs
    return Compiled(HLG, TLG, lang.words, {}), {**sizes, "seconds": laps.seconds}


def save_graph(graphs: Compiled, lang: Lang, info: dict[str, Any], folder: Path) -> None:
    """Write a graph folder with symbols, ``graph.yaml`` and pieces, all or nothing.

    With a user's list it gets a lexicon, too.
    """
    from safetensors.numpy import save_file

    HLG = graphs.HLG
    tensors = {
        "arcs": np.stack([HLG.sources, HLG.targets, HLG.labels], axis=1),
        "scores": HLG.scores,
        "aux_values": HLG.words,
        "aux_row_splits": HLG.splits,
    }
    with atomic_path(folder) as temporary:
        temporary.mkdir(parents=True)
        with disk_errors(folder / "HLG.safetensors"):
            save_file(tensors, temporary / "HLG.safetensors")
        if graphs.TLG is not None:
            graphs.TLG.write(temporary / tlg.FILE)
        write_text(temporary / INFO, yaml.safe_dump(info, sort_keys=False))
        write_text(temporary / "tokens.txt", symbols_text(lang.tokens))
        write_text(temporary / "words.txt", symbols_text(graphs.words))
        if "hotwords" in info or "contacts" in info:
            # Then the folder is a language folder, of the graph's words.
            write_text(temporary / "lexicon.txt", lexicon_text(lang.pronunciations))
        for name, piece in graphs.pieces.items():
            (temporary / PIECES).mkdir(exist_ok=True)
            piece.write(temporary / PIECES / name)


def load_graph(folder: str | Path, device: str = "cpu") -> Graph:
    """Read a graph folder and check that its parts agree.

    Raises:
        GraphError: a missing or foreign file, an unknown topology, labels beyond tokens or words,
            or an HLG of another compilation than ``graph.yaml``.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    folder = Path(folder)
    path = folder / "HLG.safetensors"
    if not path.is_file():
        if (folder / "HLG.pt").exists():
            way_out = f"import it: privasr import --raw-hlg {folder / 'HLG.pt'}"
            raise GraphError(path, "a graph", "HLG.pt of icefall", way_out)
        raise GraphError(path, "a graph", "nothing", "make it with bin.compile_graph")
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        expected, way_out = "a whole safetensors file", "compile the graph again"
        raise GraphError(path, expected, str(error), way_out) from error
    wanted = {"arcs", "scores", "aux_values", "aux_row_splits"}
    if set(tensors) != wanted:
        expected, found = f"tensors {sorted(wanted)}", str(sorted(tensors))
        raise GraphError(path, expected, found, "compile the graph again")
    parts = read_folder(folder)
    check_labels(
        path,
        largest_token=int(tensors["arcs"][:, 2].max()),
        num_tokens=len(parts.tokens),
        largest_word=int(tensors["aux_values"].max()) if len(tensors["aux_values"]) else 0,
        num_words=len(parts.words),
    )
    num_states = int(tensors["arcs"][:, 1].max()) + 1
    check_size(path, parts.info, num_states=num_states, num_arcs=len(tensors["arcs"]))
    HLG = WordArcs(
        *np.ascontiguousarray(tensors["arcs"].T),
        tensors["scores"],
        tensors["aux_values"],
        tensors["aux_row_splits"],
    )
    return as_graph(HLG, parts, device)


def as_graph(HLG: WordArcs, parts: GraphFolder, device: str = "cpu") -> Graph:
    """The graph of arcs for k2, with the symbols of a folder."""
    import k2
    import torch

    columns = (HLG.sources, HLG.targets, HLG.labels, HLG.scores.view(np.int32))
    arcs = torch.from_numpy(np.stack(columns, axis=1))
    delimiters = parts.delimiters
    words = delimiters.words_only(HLG.words, HLG.splits)
    made = k2.Fsa(arcs, aux_labels=_ragged(*map(torch.from_numpy, words)))
    if delimiters.classes:
        made.symbols = _ragged(torch.from_numpy(HLG.words), torch.from_numpy(HLG.splits))
    made = made.to(device)
    made.lm_scores = made.scores.clone()
    return Graph(parts.folder, parts.tokens, parts.words, parts.info, made)


def _ragged(values: torch.Tensor, splits: torch.Tensor) -> k2.RaggedTensor:
    import k2

    return k2.RaggedTensor(k2.ragged.create_ragged_shape2(splits, None, len(values)), values)
