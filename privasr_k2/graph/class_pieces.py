"""The graph of a class LM from pieces, which can be replaced in seconds.

The root model with calls is composed with the lexicon, determinized and minimized. The names of
each class become prefix trees (:mod:`privasr_k2.graph.name_trees`), which are minimized. Behind
``#bPER`` neither words nor costs are pending, thanks to disambiguation symbols: the state there has
one arc, ``#xPER``, and the class's piece replaces it. After replacing a piece only epsilon removal
and CTC topology are computed again.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2.errors import GraphError
from privasr_k2.fileio import file_hash
from privasr_k2.graph.class_delimiters import ClassDelimiters
from privasr_k2.graph.folder import INFO, read_folder
from privasr_k2.graph.grammar import grammar
from privasr_k2.graph.hlg import (
    PIECES,
    QUANTUM,
    Compiled,
    Laps,
    about,
    compose_lexicon_and_grammar,
    finished,
    lexicon_openfst,
)
from privasr_k2.graph.lang import Lang
from privasr_k2.graph.name_trees import END, name_arcs, spoken_words, tree_roots
from privasr_k2.graph.nonterminals import (
    ClassGraphConfig,
    check_classes,
    delimited_words,
    known_words,
    with_calls,
)
from privasr_k2.graph.openfst import Fst
from privasr_k2.graph.unknown_names import (
    class_word_ids,
    delimiters_of,
    loop_arcs,
    unknown_names_loop,
    words_of,
)
from privasr_k2.lm.arpa import UNK
from privasr_k2.lm.class_files import sub_file
from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.sub_lm import SubLm

log = logging.getLogger(__name__)

_ROOT = "root.fst"


@dataclass(frozen=True, eq=False)
class Pieces:
    """Parts of the LG of a class LM, with disambiguation symbols and delimiters.

    Args:
        root: the root model; class c is left with the label ``first_label + 2 c + 1``.
        names: of each class, in the order of their delimiters.
        first_label: the label of the first delimiter.
    """

    root: Fst
    names: Mapping[str, Fst]
    first_label: int


def compile_class_graph(
    lang: Lang, lm: ClassLm, config: ClassGraphConfig, *, place: str | Path
) -> tuple[Compiled, dict[str, Any]]:
    """The graphs of a class LM with their pieces, and the content of ``graph.yaml``.

    Raises:
        GraphError: a class without names that the lexicon has, or a graph beyond the limits.
    """
    laps, delimiters = Laps(), delimiters_of(lang, tuple(lm.sub_lms), config.unknown_names)
    check_classes(lm.root.words, delimiters.classes, str(place))
    if config.unknown_names != "none" and not any(UNK in sub.words for sub in lm.sub_lms.values()):
        message = (
            "unknown_names=%s, but no class of %s gives unlisted names a probability:"
            " set unknown_mass in class_lm.yaml"
        )
        log.warning(message, config.unknown_names, place)
    backoff = len(lang.words) - 1
    words = delimited_words(lang.word_ids, delimiters)
    G = grammar(lm.root, words, backoff_label=backoff, place=place)
    G = with_calls(G, delimiters, backoff_label=backoff, cut_history=config.cut_history)
    laps.lap("G")
    LG = compose_lexicon_and_grammar(lang, G, config.max_states, symbols=delimiters.numbers)
    root = Fst.from_kaldifst(LG)
    laps.lap("LG of the root model")
    names = {
        kind: names_piece(lang, sub, kind, delimiters, config, sub_file(place, kind))
        for kind, sub in lm.sub_lms.items()
    }
    laps.lap("LG of the names")
    pieces = Pieces(root, names, lang.num_tokens + lexicon_openfst(lang)[1])
    limits = ("max_states", "max_class_states", "unknown_names", "unknown_min_tokens")
    described = {
        "names": list(delimiters.classes),
        "cut_history": config.cut_history,
        "first_label": pieces.first_label,
        **{name: getattr(config, name) for name in limits},
    }
    graphs, more = join(pieces, lang, config.ctc_topology, described, laps, place=place)
    more["num_states"] = {"G": len(G.finals), **more["num_states"]}
    more["num_arcs"] = {"G": len(G.sources), **more["num_arcs"]}
    return graphs, {**about(lang, G, lm.root, config), **more}


def names_piece(
    lang: Lang,
    sub: SubLm,
    kind: str,
    delimiters: ClassDelimiters,
    config: ClassGraphConfig,
    source: Path | None,
) -> Fst:
    """The piece of one class's names; ``source`` is their file, for messages."""
    import kaldifst

    numbers = known_words(sub, kind, class_word_ids(lang, delimiters), source)
    variants: dict[str, list[list[int]]] = {word: [] for word in sub.words}
    for word, tokens in lang.pronunciations:
        if word in variants:
            variants[word].append([lang.token_ids[token] for token in tokens])
    silence = lang.silence
    pause = 0 if silence is None else lang.token_ids[silence.token]
    arcs = name_arcs(sub, spoken_words(sub.words, variants), numbers, silence, pause)
    roots = tree_roots(sub)
    end = max(arcs.num_states, int(roots.max()) + 1)
    count, leave = end + 2, delimiters.first + 2 * delimiters.classes.index(kind) + 1
    targets = np.where(arcs.targets == END, end, arcs.targets)
    parts = [(arcs.sources, targets, arcs.labels, arcs.words, -arcs.scores)]
    parts.append(tuple(np.array([value]) for value in (end, end + 1, 0, leave, 0.0)))
    unlisted = len(lang.words)  # where delimiters leave the number to it
    for arc in np.flatnonzero(numbers[sub.labels] == unlisted):
        loop = unknown_names_loop(lang, sub, min_tokens=config.unknown_min_tokens)
        into, target = int(roots[sub.sources[arc]]), int(sub.targets[arc])
        onward = [(int(roots[target]), 0.0)] if roots[target] >= 0 else []
        if np.isfinite(sub.finals[target]):
            onward.append((end, -float(sub.finals[target])))
        around = {"enter": (into, unlisted, -float(sub.log_probs[arc])), "leave": onward}
        more, states = loop_arcs(loop, first=count, **around, silence=silence, silence_id=pause)
        parts += more
        count += states
    finals = np.full(count, np.inf)
    finals[end + 1] = 0.0
    made = Fst.from_arcs(*map(np.concatenate, zip(*parts)), finals)
    smaller = kaldifst.StdVectorFst(made.to_kaldifst())
    kaldifst.minimize_encoded(smaller, delta=QUANTUM)
    return Fst.from_kaldifst(smaller)


def join(
    pieces: Pieces,
    lang: Lang,
    topology: str,
    described: Mapping[str, Any],
    laps: Laps,
    *,
    place: str | Path,
    with_tlg: bool = True,
) -> tuple[Compiled, dict[str, Any]]:
    """Both graphs of the pieces, with sizes, ``classes`` and ``seconds`` for ``graph.yaml``.

    ``described`` are the classes' settings there; ``with_tlg`` makes the graph for Kaldi, too.
    """
    copies = {kind: _copies(pieces, kind) for kind in pieces.names}
    states = sum(n * pieces.names[kind].num_states for kind, n in copies.items())
    if states > described["max_class_states"]:
        sizes = ((n, pieces.names[kind].num_states, kind) for kind, n in copies.items())
        many = ", ".join(f"{n} of {size} for {kind}" for n, size, kind in sizes)
        expected = f"at most {described['max_class_states']} states for the names of all classes"
        way_out = "set cut_history=true for one copy of each class, or raise max_class_states"
        raise GraphError(place, expected, f"{states}: copies {many}", way_out)
    LG = joined(pieces)
    laps.lap("pieces joined")
    graphs, more = finished(LG, lang, topology, laps, place=place, with_tlg=with_tlg)
    classes = {
        kind: {"copies": copies[kind], "states": fst.num_states, "arcs": fst.num_arcs}
        for kind, fst in pieces.names.items()
    }
    delimiters = delimiters_of(lang, tuple(pieces.names), described["unknown_names"])
    more["classes"] = {**described, "pieces": classes}
    files = {_ROOT: pieces.root, **{f"{kind}.fst": fst for kind, fst in pieces.names.items()}}
    return dataclasses.replace(graphs, words=words_of(lang, delimiters), pieces=files), more


def joined(pieces: Pieces) -> Fst:
    """The whole graph: each class's piece in place of every state that stands for it."""
    leaving = (pieces.first_label + 2 * n + 1 for n in range(len(pieces.names)))
    return splice(pieces.root, dict(zip(leaving, pieces.names.values())))


def _copies(pieces: Pieces, kind: str) -> int:
    leave = pieces.first_label + 2 * list(pieces.names).index(kind) + 1
    return int(np.count_nonzero(pieces.root.ilabels == leave))


def splice(fst: Fst, pieces: Mapping[int, Fst]) -> Fst:
    """Replace each state of ``fst`` whose only arc has a piece's label by a copy of the piece.

    A piece's last state stands for the target of the replaced arc.

    Raises:
        RuntimeError: another arc leaves such a state, which is a defect.
    """
    parts, num_states = [], fst.num_states
    for leave, piece in pieces.items():
        exits = np.flatnonzero(fst.ilabels == leave)
        holes, behind = fst.sources[exits], fst.targets[exits].astype(np.int64)
        degree = np.diff(fst.row_splits)
        last = np.flatnonzero(np.isfinite(piece.finals))
        pending = np.isfinite(fst.finals[holes]).any() or piece.finals[last].any()
        if pending or (degree[holes] > 1).any():
            raise RuntimeError(f"the state before label {leave} has other arcs or pending costs")
        if np.diff(piece.row_splits)[last].any():
            raise RuntimeError("names go on behind their end")
        inner = np.ones(piece.num_states, dtype=bool)
        inner[[piece.start, *last.tolist()]] = False
        # (copies, states of the piece): their numbers in the whole.
        number = np.zeros((len(exits), piece.num_states), dtype=np.int64)
        added = int(np.count_nonzero(inner))
        number[:, inner] = num_states + np.arange(len(exits) * added).reshape(len(exits), added)
        number[:, piece.start] = holes
        number[:, last] = behind[:, None]
        num_states += len(exits) * added
        costs = np.tile(piece.costs, (len(exits), 1))
        costs[:, np.isin(piece.targets, last)] += fst.costs[exits][:, None]
        tiled = [np.tile(values, len(exits)) for values in (piece.ilabels, piece.olabels)]
        ends = (number[:, values].ravel() for values in (piece.sources, piece.targets))
        parts.append((*ends, *tiled, costs.ravel()))
    kept = ~np.isin(fst.ilabels, list(pieces))
    whole = (fst.sources, fst.targets, fst.ilabels, fst.olabels, fst.costs)
    columns = zip(tuple(column[kept] for column in whole), *parts)
    sources, targets, ilabels, olabels, all_costs = map(np.concatenate, columns)
    finals = np.concatenate([fst.finals, np.full(num_states - fst.num_states, np.inf)])
    return Fst.from_arcs(sources, targets, ilabels, olabels, all_costs, finals, start=fst.start)


def read_pieces(folder: Path) -> tuple[Pieces, dict[str, Any]]:
    """The pieces of a graph folder, and its ``graph.yaml``.

    Raises:
        GraphError: no graph of a class LM, or a file that is missing or damaged.
    """
    info = read_folder(folder).info
    described = info.get("classes")
    if not isinstance(described, dict):
        way_out = "compile it with the folder of a class LM"
        raise GraphError(folder / INFO, "classes", "a graph of words", way_out)
    names = (_ROOT, *(f"{kind}.fst" for kind in described["names"]))
    paths = [folder / PIECES / name for name in names]
    for path in paths:
        if not path.is_file():
            raise GraphError(path, "a piece of the graph", "nothing", "compile the graph again")
    root, *names = map(Fst.read, paths)
    return Pieces(root, dict(zip(described["names"], names)), int(described["first_label"])), info


def replace_names(
    folder: Path,
    lang: Lang,
    names: Mapping[str, SubLm],
    *,
    with_tlg: bool,
    sources: Mapping[str, Path] | None = None,
) -> tuple[Compiled, dict[str, Any]]:
    """The graphs of a folder with other names in some classes, and the new ``graph.yaml``.

    Args:
        folder: of :func:`compile_class_graph`'s graph.
        lang: the language folder of its compilation.
        names: of the classes that change.
        with_tlg: whether to make the graph for Kaldi's decoders, which takes longer than the rest.
        sources: files of ``names``, for messages.

    Raises:
        GraphError: a class that the graph does not have, another lexicon, or an error of
            :func:`compile_class_graph`.
    """
    laps = Laps()
    pieces, info = read_pieces(folder)
    # Graphs that were compiled before there was the option say nothing of it.
    described = {"unknown_names": "none", "unknown_min_tokens": 1, **info["classes"]}
    del described["pieces"]
    for kind in names:
        if kind not in pieces.names:
            expected = f"one of the classes {' '.join(pieces.names)}"
            raise GraphError(folder / INFO, expected, kind, "name one")
    was, now = info["sha256"]["lexicon.txt"], file_hash(lang.folder / "lexicon.txt")
    if was != now:
        way_out = "give the language folder of the graph, or compile the graph again"
        raise GraphError(lang.folder / "lexicon.txt", f"that of {folder}", "another one", way_out)
    names_of = [field.name for field in dataclasses.fields(ClassGraphConfig)][1:]
    settings = {name: described[name] for name in names_of}
    config = ClassGraphConfig(ctc_topology=info["ctc_topology"], **settings)
    delimiters = delimiters_of(lang, tuple(pieces.names), config.unknown_names)
    changed = {
        kind: names_piece(lang, sub, kind, delimiters, config, (sources or {}).get(kind))
        for kind, sub in names.items()
    }
    laps.lap("LG of the names")
    pieces = dataclasses.replace(pieces, names={**pieces.names, **changed})
    topology, places = config.ctc_topology, {"place": folder, "with_tlg": with_tlg}
    graphs, more = join(pieces, lang, topology, described, laps, **places)
    for key in ("num_states", "num_arcs"):
        more[key] = {"G": info[key]["G"], **more[key]}
    old = info["sha256"].items()
    hashes = {name: digest for name, digest in old if name.removesuffix(".txt") not in names}
    return graphs, {**info, **more, "sha256": hashes}
