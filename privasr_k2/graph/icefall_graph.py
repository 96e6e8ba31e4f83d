"""HLG of icefall (``HLG.pt``) as a graph folder of ours, and graphs of ours as HLG for icefall."""

from __future__ import annotations

import math
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privasr_k2.errors import GraphError
from privasr_k2.fileio import atomic_path, file_hash, read_lines, write_text
from privasr_k2.graph.epsilons import WordArcs
from privasr_k2.graph.folder import check_labels
from privasr_k2.graph.hlg import Compiled, Graph, save_graph
from privasr_k2.graph.k2_files import read_fsa, write_fsa
from privasr_k2.graph.lang import Lang, check_same_tokens, symbols_text

if TYPE_CHECKING:
    import k2

HLG = "HLG.pt"


def import_hlg(path: Path, lang: Lang, folder: Path) -> dict[str, Any]:
    """Write a graph folder with icefall's HLG, all or nothing.

    Args:
        lang: of :func:`privasr_k2.graph.icefall_lang.import_icefall_lang`, of the lang folder that
            HLG was compiled from.

    Returns:
        The content of ``graph.yaml``.

    Raises:
        DataError: no such file, a truncated one, or a pickle that would run code.
        GraphError: tokens or words beyond those of ``lang``, other tables beside the file, or no
            CTC topology.
    """
    fsa = read_fsa(path)
    check_labels(
        path,
        largest_token=int(fsa.labels.max()),
        num_tokens=lang.num_tokens,
        largest_word=int(fsa.words.max(initial=0)),
        num_words=len(lang.words) - 1,
    )
    _check_tables(path.parent, lang)
    topology = topology_of(fsa.sources, fsa.targets, fsa.labels, path)
    # As k2 has it, label -1 comes last.
    order = np.lexsort((fsa.labels.view(np.uint32), fsa.sources))
    sizes = np.diff(fsa.splits)
    spoken = np.split(fsa.words, fsa.splits[1:-1])
    words = np.concatenate([spoken[arc] for arc in order.tolist()])
    splits = np.concatenate([[0], np.cumsum(sizes[order])]).astype(np.int32)
    columns = (column[order] for column in (fsa.sources, fsa.targets, fsa.labels, fsa.scores))
    arcs = WordArcs(*columns, words, splits)
    info = {
        "ctc_topology": topology,
        "num_tokens": lang.num_tokens,
        "num_words": len(np.unique(fsa.words)),
        "num_states": {"HLG": arcs.num_states},
        "num_arcs": {"HLG": arcs.num_arcs},
        "sha256": {path.name: file_hash(path)},
    }
    save_graph(Compiled(arcs, None, lang.words, {}), lang, info, folder)
    return info


def _check_tables(folder: Path, lang: Lang) -> None:
    """Refuse a language folder of other symbols than those beside HLG, whose labels are numbers.

    Raises:
        GraphError: the first symbol that differs.
    """
    for name, ours in (("tokens.txt", lang.tokens), ("words.txt", lang.words)):
        if not (folder / name).is_file():
            continue
        theirs = [line.split()[0] for _, line in read_lines(folder / name) if line.strip()]
        # The blank has several names; behind the last ones are marks, which graphs have anew.
        pairs = zip_longest(ours, theirs[: len(ours)], fillvalue="none")
        for number, (symbol, one) in enumerate(pairs):
            if number and symbol != one:
                place, expected = lang.folder / name, f"symbol {number} of {folder / name}: {one}"
                way_out = "import the lang folder of HLG.pt first, with --raw-icefall-lang"
                raise GraphError(place, expected, symbol, way_out)


def topology_of(sources: np.ndarray, targets: np.ndarray, labels: np.ndarray, path: Path) -> str:
    """Which of k2's CTC topologies H o LG was made with: ``standard`` or ``modified``.

    In the standard one a blank leads out of every state, in the modified one only around the
    states of no token.

    Raises:
        GraphError: neither.
    """
    is_blank, is_loop = labels == 0, sources == targets
    blanks = np.bincount(sources[is_blank], minlength=int(targets.max()))
    if blanks.all() and (is_blank & ~is_loop).any():
        return "standard"
    held = np.unique(sources[~is_blank & (blanks[sources] == 0)])
    looped = np.isin(held, sources[is_loop & ~is_blank]).all()
    if blanks[0] and looped and not (is_blank & ~is_loop).any():
        return "modified"
    expected, way_out = "HLG, composed of k2.ctc_topo and LG", "give HLG.pt of compile_hlg.py"
    raise GraphError(path, expected, "another automaton", way_out)


def inner_labels(
    sources: np.ndarray, targets: np.ndarray, labels: np.ndarray, topology: str
) -> np.ndarray:
    """(A,) the token that begins with each arc of HLG, 0 where none does: icefall's ``tokens``."""
    if topology == "standard":
        begins = sources != targets
    else:
        free = np.unique(sources[(labels == 0) & (sources == targets)])
        begins = np.isin(sources, free)
    return np.where(begins | (labels < 0), labels, 0).astype(np.int32)


def hlg_of(graph: Graph) -> k2.Fsa:
    """A graph's HLG with what icefall's decoding reads: ``aux_labels``, ``tokens``, ``lm_scores``.

    Delimiters of classes are left out.
    """
    import k2
    import torch

    arcs = graph.HLG.arcs.values().cpu()
    sources, targets, labels = (arcs[:, n].numpy() for n in range(3))
    made = k2.Fsa(arcs.clone(), aux_labels=graph.HLG.aux_labels.to("cpu"))
    topology = graph.info["ctc_topology"]
    made.tokens = torch.from_numpy(inner_labels(sources, targets, labels, topology))
    made.lm_scores = graph.HLG.lm_scores.cpu().clone()
    return made


def lexicon_of(lang: Lang) -> k2.Fsa:
    """The lexicon as icefall's ``L.pt``: from tokens to words, without disambiguation symbols.

    Words begin and end in one state; with silence, ways into it have the token or none.
    """
    import k2

    silence = lang.silence
    loop, pause, free = (0, -1, 1) if silence is None else (1, 2, 3)
    ends, lines = {loop: 0.0}, list[tuple[int, int, int, int, float]]()
    if silence is not None:
        ends = {loop: math.log1p(-silence.prob), pause: math.log(silence.prob)}
        lines += [(0, state, 0, 0, score) for state, score in ends.items()]
        lines.append((pause, loop, lang.token_ids[silence.token], 0, 0.0))
    for word, spelled in lang.pronunciations:
        source, said = loop, lang.word_ids[word]
        for token in spelled[:-1]:
            lines.append((source, free, lang.token_ids[token], said, 0.0))
            source, said, free = free, 0, free + 1
        last = lang.token_ids[spelled[-1]]
        lines += [(source, end, last, said, score) for end, score in ends.items()]
    lines.append((loop, free, -1, -1, 0.0))
    in_order = sorted(lines, key=lambda arc: arc[0])
    text = "".join(f"{' '.join(map(str, arc))}\n" for arc in in_order)
    return k2.Fsa.from_str(f"{text}{free}", acceptor=False)


def export_hlg(graph: Graph, folder: Path, lang: Lang | None = None) -> None:
    """Write ``HLG.pt``, ``tokens.txt`` and ``words.txt`` as in an icefall lang folder.

    Words behind ``#0`` (names that no list has, delimiters) keep their numbers.

    Args:
        lang: what the graph was compiled from: ``L.pt`` is written, too.

    Raises:
        GraphError: ``lang`` has other tokens or words than the graph.
    """
    if lang is not None:
        check_same_tokens(lang.tokens, graph.tokens, model=lang.folder, graph=graph.folder)
        if graph.words[: len(lang.words)] != lang.words:
            expected = f"the words of {graph.folder}"
            raise GraphError(lang.folder, expected, "others", "give the lang folder of the graph")
    with atomic_path(folder) as temporary:
        temporary.mkdir(parents=True)
        write_fsa(hlg_of(graph), temporary / HLG)
        if lang is not None:
            write_fsa(lexicon_of(lang), temporary / "L.pt")
        write_text(temporary / "tokens.txt", symbols_text(graph.tokens))
        write_text(temporary / "words.txt", symbols_text(graph.words))
