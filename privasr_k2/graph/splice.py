"""A user's names put into a compiled HLG, without composing or determinizing it again.

The root model is compiled once, with marks in place of each class's names: an arc ``#bPER`` into a
hole and arcs ``#xPER`` out of it (:mod:`privasr_k2.graph.nonterminals`). An HLG state is a pair of
an LG state and a token (:mod:`privasr_k2.graph.ctc_compose`), and its arcs follow from the arcs of
its LG state alone. So names change the graph in three places only, which are composed with the
topology as a small graph of their own:

- states with a mark get arcs into the names;
- the names themselves (:mod:`privasr_k2.graph.name_trees`), one copy for each hole, so that what
  follows a name is what follows the hole;
- states behind names get pairs with tokens that end names and that no word there ends with.

All other states and arcs stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from privasr_k2.errors import GraphError
from privasr_k2.graph.ctc_compose import compose_pairs
from privasr_k2.graph.epsilons import WordArcs, remove_epsilons
from privasr_k2.graph.name_trees import END, NameArcs
from privasr_k2.graph.openfst import Fst
from privasr_k2.graph.tlg import silenced
from privasr_k2.ragged import Columns, rows_of


@dataclass(frozen=True, eq=False)
class OpenGraph:
    """The HLG of a root model without names, and what is needed to put names into it.

    Args:
        HLG: without names.
        keys: of each state of ``HLG`` but the last, ``q * num_tokens + token`` with its state q of
            ``LG``, ascending.
        LG: without epsilons and marks.
        marks: the arcs of marks; label ``num_tokens + 2 c`` enters a hole of class c and the next
            one leaves it.
        num_tokens: C, the blank included.
        topology: ``standard`` or ``modified``.
    """

    HLG: WordArcs
    keys: np.ndarray
    LG: WordArcs
    marks: WordArcs
    num_tokens: int
    topology: str

    def holes(self, number: int) -> np.ndarray:
        """The states of LG that stand for the names of class ``number``."""
        return np.unique(self.marks.targets[self.marks.labels == self.num_tokens + 2 * number])


def open_graph(
    root: Fst, *, num_tokens: int, backoff_word: int, marks: range, topology: str
) -> OpenGraph:
    """The open graph of a root model's LG.

    Args:
        root: with disambiguation symbols, as :mod:`privasr_k2.graph.class_pieces` makes it.
        backoff_word: the number of ``#0`` among the words.
        marks: input labels of delimiters, two for each class.
    """
    place = root.ilabels - marks.start
    at_mark = (place >= 0) & (place < len(marks))
    silent = silenced(root, num_tokens=num_tokens, backoff_word=backoff_word)
    labels = np.where(at_mark, num_tokens + place, silent.ilabels).astype(np.int32)
    # Words that are pending at a mark come before the name's.
    holes = root.sources[at_mark & (place % 2 == 1)]
    plain = remove_epsilons(replace(silent, ilabels=labels), holes)
    is_mark = plain.labels >= num_tokens
    LG = _chosen(plain, np.flatnonzero(~is_mark))
    HLG, keys = compose_pairs(LG, num_tokens, topology)
    marked = _chosen(plain, np.flatnonzero(is_mark))
    return OpenGraph(HLG, keys, LG, marked, num_tokens, topology)


@dataclass(frozen=True, eq=False)
class _Parts(Columns):
    """Arcs of the small graph, each of up to three parts, whose scores and words it joins.

    Args:
        sources, targets, labels: (A,).
        before, own, behind: (A,) rows of :class:`_Table`, 0 for nothing.
    """

    sources: np.ndarray
    targets: np.ndarray
    labels: np.ndarray
    before: np.ndarray
    own: np.ndarray
    behind: np.ndarray


@dataclass(frozen=True, eq=False)
class _Table:
    """Scores and lists of words; row 0 is empty."""

    scores: np.ndarray
    words: np.ndarray
    splits: np.ndarray

    def arcs(self, parts: _Parts) -> WordArcs:
        """The arcs with what their rows hold, sorted."""
        parts = parts[np.lexsort((parts.labels.astype(np.uint32), parts.sources))]
        columns = np.stack([parts.before, parts.own, parts.behind], axis=1)
        scores = self.scores[columns].sum(axis=1).astype(np.float32)
        sizes = np.diff(self.splits)[columns]
        _, places = rows_of(self.splits, columns[sizes > 0])
        splits = np.concatenate([[0], np.cumsum(sizes.sum(axis=1))]).astype(np.int32)
        i4 = (ends.astype(np.int32) for ends in (parts.sources, parts.targets, parts.labels))
        return WordArcs(*i4, scores, self.words[places].astype(np.int32), splits)


@dataclass(frozen=True, eq=False)
class _Small:
    """The states of the small graph: a start, then the states of each array in turn, the end.

    Args:
        entries: states of LG with marks into holes.
        names: how many states all copies of names have.
        behind: states of LG behind names.
        after: states of LG that follow these.
    """

    entries: np.ndarray
    names: int
    behind: np.ndarray
    after: np.ndarray

    @property
    def first_name(self) -> int:
        """The first state in names."""
        return 1 + len(self.entries)

    @property
    def end(self) -> int:
        """The end."""
        return self.first_name + self.names + len(self.behind) + len(self.after)

    @property
    def in_LG(self) -> np.ndarray:
        """(end,) the state of LG that each state stands for, -1 for none."""
        new = np.full(self.names, -1)
        return np.concatenate([[-1], self.entries, new, self.behind, self.after])

    def entry(self, states: np.ndarray) -> np.ndarray:
        """The numbers of states with marks."""
        return 1 + np.searchsorted(self.entries, states)

    def follower(self, states: np.ndarray) -> np.ndarray:
        """The numbers of states behind names."""
        return self.first_name + self.names + np.searchsorted(self.behind, states)

    def later(self, states: np.ndarray) -> np.ndarray:
        """The numbers of states that follow these."""
        first = self.first_name + self.names + len(self.behind)
        return first + np.searchsorted(self.after, states)


def splice_names(graph: OpenGraph, names: Mapping[int, NameArcs], *, max_states: int) -> WordArcs:
    """The HLG with names in all holes.

    Args:
        names: of every class, by its number.
        max_states: bound on the states of all copies of names.

    Raises:
        GraphError: more states, or a class without names.
    """
    C, marks, end = graph.num_tokens, graph.marks, graph.LG.num_states - 1
    wanted = np.unique((marks.labels - C) // 2)
    if lacking := sorted(set(wanted.tolist()) - names.keys()):
        found, way_out = f"none of class {lacking[0]}", "give a list for each class"
        raise GraphError("the graph", "names of every class", found, way_out)
    states = sum(len(graph.holes(number)) * arcs.num_states for number, arcs in names.items())
    if states > max_states:
        expected, found = f"at most {max_states} states for the names of all classes", str(states)
        way_out = "set cut_history=true for one copy of each class, or raise max_class_states"
        raise GraphError("the graph", expected, found, way_out)
    into = (marks.labels - C) % 2 == 0
    behind = np.unique(marks.targets[~into])
    following = np.flatnonzero(np.isin(graph.LG.sources, behind))
    after = np.setdiff1d(graph.LG.targets[following], end)
    small = _Small(np.unique(marks.sources[into]), states, behind, after)
    table, of_mark, of_name, of_real = _table(graph, names)
    parts = [*_names(graph, small, names, of_mark, of_name)]
    # What follows behind names, as in the whole graph.
    sources, targets = (ends[following] for ends in (graph.LG.sources, graph.LG.targets))
    targets = np.where(targets == end, small.end, small.later(targets))
    labels = graph.LG.labels[following]
    parts.append(_parts(small.follower(sources), targets, labels, own=of_real[following]))
    # Tokens with which states with marks are entered in the whole graph.
    held_state, held_token = np.divmod(graph.keys, C)
    held = np.flatnonzero(np.isin(held_state, small.entries) & (held_token > 0))
    start = np.zeros(len(held), dtype=np.int64)
    parts.append(_parts(start, small.entry(held_state[held]), held_token[held]))
    # The small graph has an end, also where no sentence ends behind a name.
    parts.append(_parts(np.array([0]), np.array([small.end]), np.array([-1])))
    composed, keys = compose_pairs(table.arcs(_Parts.joined(parts)), C, graph.topology)
    return _merged(graph, composed, keys, small)


def _names(
    graph: OpenGraph,
    small: _Small,
    names: Mapping[int, NameArcs],
    of_mark: np.ndarray,
    of_name: Mapping[int, np.ndarray],
) -> Iterator[_Parts]:
    """The arcs of the names' copies, into them and out of them."""
    marks = graph.marks
    into = (marks.labels - graph.num_tokens) % 2 == 0
    entering, leaving = np.flatnonzero(into), np.flatnonzero(~into)
    # A state with marks may be one behind names as well, and enters from its copy there, too.
    again = entering[np.isin(marks.sources[entering], small.behind)]
    calls = np.concatenate([entering, again])
    called = small.entry(marks.sources[entering]), small.follower(marks.sources[again])
    callers, first = np.concatenate(called), small.first_name
    for number, arcs in names.items():
        rows = np.arange(len(arcs.sources))
        starting, ending = rows[arcs.sources == 0], arcs.targets == END
        for hole in graph.holes(number).tolist():
            here = marks.targets[calls] == hole
            source = np.append(arcs.sources + first, np.repeat(callers[here], len(starting)))
            row = np.append(rows, np.tile(starting, int(here.sum())))
            call = np.repeat(of_mark[calls[here]], len(starting))
            call = np.append(np.zeros(len(rows), dtype=np.int64), call)
            on, over = np.flatnonzero(~ending[row]), np.flatnonzero(ending[row])
            ends = source[on], arcs.targets[row[on]] + first, arcs.labels[row[on]]
            yield _parts(*ends, before=call[on], own=of_name[number][row[on]])
            exits = leaving[marks.sources[leaving] == hole]
            out = np.tile(exits, len(over))
            over = np.repeat(over, len(exits))
            ends = source[over], small.follower(marks.targets[out]), arcs.labels[row[over]]
            rest = {"own": of_name[number][row[over]], "behind": of_mark[out]}
            yield _parts(*ends, before=call[over], **rest)
            first += arcs.num_states


def _parts(
    sources: np.ndarray, targets: np.ndarray, labels: np.ndarray, **rows: np.ndarray
) -> _Parts:
    """Arcs that lack some of their parts."""
    empty = np.zeros(len(sources), dtype=np.int64)
    columns = (rows.get(name, empty) for name in ("before", "own", "behind"))
    return _Parts(sources, targets, labels, *columns)


def _table(
    graph: OpenGraph, names: Mapping[int, NameArcs]
) -> tuple[_Table, np.ndarray, dict[int, np.ndarray], np.ndarray]:
    """The table, and the rows of marks, of names, and of LG's arcs."""
    rows, of_name = 1, {}
    scores, words = [np.zeros(1)], [np.zeros(0, dtype=np.int64)]
    sizes = [np.zeros(1, dtype=np.int64)]
    for number, arcs in names.items():
        of_name[number] = rows + np.arange(len(arcs.scores))
        rows += len(arcs.scores)
        scores.append(arcs.scores)
        words.append(arcs.words[arcs.words > 0])
        sizes.append((arcs.words > 0).astype(np.int64))
    places = []
    for whole in (graph.marks, graph.LG):
        places.append(rows + np.arange(whole.num_arcs))
        rows += whole.num_arcs
        scores.append(whole.scores)
        words.append(whole.words)
        sizes.append(np.diff(whole.splits))
    splits = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    table = _Table(np.concatenate(scores), np.concatenate(words), splits)
    return table, places[0], of_name, places[1]


def _merged(graph: OpenGraph, composed: WordArcs, keys: np.ndarray, small: _Small) -> WordArcs:
    """The whole HLG with what is new in the small one, whose states have ``keys``."""
    C, old_end = graph.num_tokens, len(graph.keys)
    state, token = np.divmod(keys, C)
    base = small.in_LG[state]
    wanted = base * C + token
    place = np.minimum(np.searchsorted(graph.keys, wanted), old_end - 1)
    known = (base >= 0) & (graph.keys[place] == wanted)
    new = ~known & (state > 0)
    number = np.where(known, place, old_end + np.cumsum(new) - 1)
    new_end = old_end + int(new.sum())
    number = np.append(number, new_end)
    # Of states with marks, what goes on to names; of names and of new pairs, everything.
    named = np.append(state, small.end) >= small.first_name
    enters = ~named[:-1] & (state > 0)
    kept = new[composed.sources] | (enters[composed.sources] & named[composed.targets])
    old, added = graph.HLG, _chosen(composed, np.flatnonzero(kept))
    added = replace(
        added,
        sources=number[added.sources].astype(np.int32),
        targets=number[added.targets].astype(np.int32),
    )
    old = replace(old, targets=np.where(old.labels < 0, new_end, old.targets).astype(np.int32))
    return _inserted(old, added, int(np.searchsorted(added.sources, old_end)))


def _inserted(old: WordArcs, added: WordArcs, count: int) -> WordArcs:
    """Sorted arcs with the first ``count`` of other ones between them, the others behind them."""
    key, inner = _keys(old), _keys(added)[:count]
    at = np.searchsorted(key, inner)
    at_word = np.repeat(old.splits[at], np.diff(added.splits[: count + 1]))

    def both(before: np.ndarray, more: np.ndarray, places: np.ndarray) -> np.ndarray:
        first = np.insert(before, places, more[: len(places)])
        return np.concatenate([first, more[len(places) :]])

    names = ("sources", "targets", "labels", "scores")
    columns = (both(getattr(old, name), getattr(added, name), at) for name in names)
    sizes = both(np.diff(old.splits), np.diff(added.splits), at)
    words = both(old.words, added.words, at_word)
    return WordArcs(*columns, words, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))


def _keys(arcs: WordArcs) -> np.ndarray:
    """(A,) what arcs are sorted by: source and label, label -1 last."""
    return arcs.sources.astype(np.int64) << 32 | arcs.labels.view(np.uint32)


def _chosen(arcs: WordArcs, rows: np.ndarray) -> WordArcs:
    sizes, places = rows_of(arcs.splits, rows)
    splits = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    columns = (arcs.sources, arcs.targets, arcs.labels, arcs.scores)
    return WordArcs(*(column[rows] for column in columns), arcs.words[places], splits)
