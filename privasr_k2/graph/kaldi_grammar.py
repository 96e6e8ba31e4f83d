"""G of a class LM for Kaldi: whole, for ``mkgraph.sh``, or in parts, for ``make-grammar-fst``.

**Whole**: names stand in the root model's G. On its input side they begin and end with runs of
``#0``, the only disambiguation symbol of every ``words.txt``. Back-off takes fewer than ``order``
of them in a row, so runs of ``order`` and more tell where names are, and LG can be determinized as
with symbols of their own. **In parts**: the root model has ``#nonterm:CLASS`` in place of names,
and the names of a class stand between ``#nonterm_begin`` and ``#nonterm_end``. Words are
those of a given ``words.txt``; the output side has words alone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from privasr_k2.errors import GraphError
from privasr_k2.fileio import atomic_path
from privasr_k2.graph.class_delimiters import ClassDelimiters
from privasr_k2.graph.grammar import Grammar, grammar
from privasr_k2.graph.nonterminals import (
    check_classes,
    delimited_words,
    names_grammar,
    with_calls,
)
from privasr_k2.graph.openfst import Fst
from privasr_k2.lm.arpa import Arpa
from privasr_k2.lm.class_files import sub_file
from privasr_k2.lm.classes import ClassLm

BACKOFF, BEGIN, END, NONTERMINAL = "#0", "#nonterm_begin", "#nonterm_end", "#nonterm:"
_NO_WORDS = ("<s>", "</s>")


@dataclass(frozen=True, eq=False)
class KaldiWords:
    """A ``words.txt`` of Kaldi.

    Args:
        place: the file.
        symbols: by their numbers, ``""`` where there is none (``kaldi_files.read_table``).
    """

    place: Path
    symbols: tuple[str, ...]

    def number(self, symbol: str, way_out: str) -> int:
        """The number of a symbol.

        Raises:
            GraphError: there is none.
        """
        if symbol not in self.symbols:
            raise GraphError(self.place, f"the symbol {symbol}", "none", way_out)
        return self.symbols.index(symbol)

    @property
    def backoff(self) -> int:
        """The number of ``#0``."""
        return self.number(BACKOFF, "give words.txt of prepare_lang.sh, with its symbol #0")

    @property
    def word_ids(self) -> dict[str, int]:
        """The number of each word: of what is no epsilon, boundary or disambiguation symbol."""
        numbered = enumerate(self.symbols[1:], start=1)
        others = ("", *_NO_WORDS)
        return {word: n for n, word in numbered if word not in others and word[0] != "#"}

    def nonterminal(self, kind: str) -> int:
        """The number of a class's nonterminal."""
        way_out = f"list {NONTERMINAL}{kind} in nonterminals.txt and run prepare_lang.sh again"
        return self.number(f"{NONTERMINAL}{kind}", way_out)


def plain_g(model: Arpa, words: KaldiWords, *, place: str | Path) -> Fst:
    """G of an n-gram model, as ``arpa2fst --disambig-symbol=#0`` makes it; ``place`` for errors."""
    G = grammar(model, words.word_ids, backoff_label=words.backoff, place=place)
    return _transducer(G, {words.backoff})


def whole_g(lm: ClassLm, words: KaldiWords, *, place: str | Path) -> Fst:
    """G with the names of all classes in it.

    Raises:
        GraphError: no ``#0``, a class without names of known words, or a tag without a class.
    """
    G, delimiters = _root(lm, words, place)
    G = with_calls(G, delimiters, backoff_label=words.backoff, cut_history=lm.cut_history)
    sources, targets, labels = G.sources, G.targets, G.labels
    costs, finals = G.costs, G.finals
    for number, (kind, sub) in enumerate(lm.sub_lms.items()):
        leave = delimiters.first + 2 * number + 1
        names = names_grammar(sub, kind, words.word_ids, leave=leave, source=sub_file(place, kind))
        # Each hole, the state before a #x, holds a copy of the names.
        exits = np.flatnonzero(labels == leave)
        holes, behind = sources[exits], targets[exits]
        columns = [(np.delete(sources, exits), np.delete(targets, exits),
                    np.delete(labels, exits), np.delete(costs, exits))]  # fmt: skip
        count = len(names.finals)
        for copy, (hole, after) in enumerate(zip(holes.tolist(), behind.tolist())):
            states = len(finals) + copy * (count - 2) + np.arange(count) - 1
            states[0], states[count - 1] = hole, after
            ends = states[names.sources], states[names.targets]
            columns.append((*ends, names.labels, names.costs))
        finals = np.concatenate([finals, np.full(len(holes) * (count - 2), np.inf)])
        sources, targets, labels, costs = map(np.concatenate, zip(*columns))
    spliced = Grammar(sources, targets, labels, costs, finals, G.num_words)
    marked = _with_runs(spliced, delimiters, lm.root.order, words.backoff)
    return _transducer(marked, {words.backoff})


def parts_of_g(lm: ClassLm, words: KaldiWords, *, place: str | Path) -> dict[str, Fst]:
    """The root model's G under the name ``""``, and one G for the names of each class.

    Raises:
        GraphError: as of :func:`whole_g`; a nonterminal that ``words.txt`` lacks.
    """
    numbers = [words.nonterminal(kind) for kind in lm.sub_lms]
    way_out = "run prepare_lang.sh with a nonterminals.txt"
    begin, end = words.number(BEGIN, way_out), words.number(END, way_out)
    G, delimiters = _root(lm, words, place)
    # As with_calls does it, without the states inside.
    called = with_calls(G, delimiters, backoff_label=words.backoff, cut_history=lm.cut_history)
    behind = np.arange(len(called.finals))
    returns = called.labels >= delimiters.first
    returns &= (called.labels - delimiters.first) % 2 == 1
    behind[called.sources[returns]] = called.targets[returns]
    kept = ~returns
    labels = called.labels[kept].copy()
    tags = labels >= delimiters.first
    labels[tags] = np.array(numbers)[(labels[tags] - delimiters.first) // 2]
    ends = called.sources[kept], behind[called.targets[kept]]
    finals = called.finals[: len(G.finals)]
    root = Grammar(*ends, labels, called.costs[kept], finals, G.num_words)
    parts = {"": _transducer(root, {words.backoff, *numbers})}
    for kind, sub in lm.sub_lms.items():
        names = names_grammar(sub, kind, words.word_ids, leave=end, source=sub_file(place, kind))
        first = len(names.finals)  # before the names
        swap = np.arange(first + 1)
        swap[[0, first]] = swap[[first, 0]]
        begun = Grammar(
            swap[np.append(names.sources, first)],
            swap[np.append(names.targets, 0)],
            np.append(names.labels, begin),
            np.append(names.costs, 0.0),
            np.append(names.finals, np.inf)[swap],
            names.num_words,
        )
        parts[kind] = _transducer(begun, {begin, end})
    return parts


def write_g(path: Path, G: Fst) -> None:
    """Write a G as Kaldi's scripts expect it: type ``vector``, arcs sorted by input label."""
    import kaldifst

    fst = kaldifst.StdVectorFst(G.to_kaldifst())
    kaldifst.arcsort(fst, "ilabel")
    with atomic_path(path) as temporary:
        if not fst.write(str(temporary)):
            raise OSError(f"{path} could not be written")


def _root(lm: ClassLm, words: KaldiWords, place: str | Path) -> tuple[Grammar, ClassDelimiters]:
    """The root model's acceptor, its tags numbered behind all symbols."""
    delimiters = ClassDelimiters(len(words.symbols), tuple(lm.sub_lms))
    check_classes(lm.root.words, delimiters.classes, str(place))
    numbered = delimited_words(words.word_ids, delimiters)
    G = grammar(lm.root, numbered, backoff_label=words.backoff, place=place)
    if G.num_words == len(delimiters.classes):
        raise GraphError(place, f"words of {words.place}", "none", "give the LM in its case")
    return G, delimiters


def _with_runs(G: Grammar, delimiters: ClassDelimiters, order: int, backoff: int) -> Grammar:
    """Each delimiter as a run of ``#0``: ``order`` to leave, ``order`` (c + 1) to enter class c."""
    marked = np.flatnonzero(G.labels >= delimiters.first)
    kinds, leaving = np.divmod(G.labels[marked] - delimiters.first, 2)
    lengths = np.where(leaving == 1, order, order * (kinds + 1))
    plain = G.labels < delimiters.first
    of = np.repeat(np.arange(len(marked)), lengths)
    first = np.diff(of, prepend=-1) > 0
    last = np.append(first[1:], True)[: len(of)]
    between = len(G.finals) - 1 + np.cumsum(~last)
    targets = np.where(last, G.targets[marked][of], between)
    sources = np.where(first, G.sources[marked][of], np.roll(targets, 1))
    return Grammar(
        np.concatenate([G.sources[plain], sources]),
        np.concatenate([G.targets[plain], targets]),
        np.concatenate([G.labels[plain], np.full(len(of), backoff)]),
        np.concatenate([G.costs[plain], np.where(first, G.costs[marked][of], 0.0)]),
        np.concatenate([G.finals, np.full(int((~last).sum()), np.inf)]),
        G.num_words,
    )


def _transducer(G: Grammar, symbols: Collection[int]) -> Fst:
    """With epsilons in place of what is no word on the output side."""
    spoken = ~np.isin(G.labels, list(symbols))
    columns = (G.sources, G.targets, G.labels, np.where(spoken, G.labels, 0), G.costs)
    return Fst.from_arcs(*columns, G.finals)
