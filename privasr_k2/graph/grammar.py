"""G: a back-off n-gram model as an acceptor over words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from privasr_k2.errors import GraphError
from privasr_k2.lm.arpa import BOS, EOS, Arpa


@dataclass(frozen=True)
class Grammar:
    """An acceptor; ``costs`` are -ln P. State 0 is the start.

    Args:
        sources, targets, labels, costs: (A,) the arcs; back-off arcs have the back-off symbol.
        finals: (S,) the cost of ending in each state, inf for none.
        num_words: the model's words in the graph.
    """

    sources: np.ndarray
    targets: np.ndarray
    labels: np.ndarray
    costs: np.ndarray
    finals: np.ndarray
    num_words: int

    def to_openfst(self) -> str:
        """The acceptor in OpenFst's text format, start state first."""
        first_arcs = self.sources == 0
        order = np.concatenate([np.flatnonzero(first_arcs), np.flatnonzero(~first_arcs)])
        columns = (self.sources, self.targets, self.labels, self.costs)
        arcs = zip(*(column[order].tolist() for column in columns))
        lines = [
            f"{source} {target} {label} {label} {cost:.7g}\n"
            for source, target, label, cost in arcs
        ]
        ending = np.flatnonzero(np.isfinite(self.finals))
        finals = zip(ending.tolist(), self.finals[ending].tolist())
        lines += [f"{state} {cost:.7g}\n" for state, cost in finals]
        return "".join(lines)


def empty_history(G: Grammar, backoff_label: int) -> np.ndarray:
    """The state of the empty history: the only one that backs off no further."""
    return np.setdiff1d(np.arange(len(G.finals)), G.sources[G.labels == backoff_label])


def grammar(
    model: Arpa, word_ids: dict[str, int], *, backoff_label: int, place: str | Path
) -> Grammar:
    """A model as an acceptor: a state for each history, an arc for each n-gram and each back-off.

    N-grams with a word that is not in ``word_ids`` (``<unk>`` among them) are left out; their
    probability is not given to the others.

    Args:
        word_ids: number of each word in ``words.txt``.
        backoff_label: the number of ``#0``.
        place: the model's file, for error messages.

    Raises:
        GraphError: none of the model's words is in ``word_ids``, or no sentence can end.
    """
    labels_of = np.array([word_ids.get(word, -1) for word in model.words], dtype=np.int64)
    bos, eos = model.word_ids[BOS], model.word_ids[EOS]
    labels_of[[bos, eos]] = -1
    num_words = int(np.count_nonzero(labels_of >= 0))
    if not num_words:
        found = f"none of its {len(model.words)} words"
        raise GraphError(place, "words of words.txt", found, "estimate it with this lang folder")
    parents, words = model.parents, model.last_words
    predicts = (labels_of[words] >= 0) | (words == eos)
    speakable = np.ones(len(parents) + 1, dtype=bool)  # nodes that a decoder can come to
    speakable[1 : len(model.words) + 1] = labels_of >= 0
    speakable[bos + 1] = True
    for rows in model.rows_of_orders()[1:]:
        known = labels_of[words[rows]] >= 0
        speakable[rows.start + 1 : rows.stop + 1] = speakable[parents[rows]] & known
    used = predicts & speakable[parents] & (model.log10_probs > -98.0)
    is_state = _states(model, speakable, parents[used])
    state_of = np.cumsum(is_state) - 1
    nearest = _nearest_states(model, is_state)
    start = int(nearest[bos + 1])
    swap = np.arange(int(state_of[-1]) + 1)  # the start takes number 0
    swap[[0, state_of[start]]] = swap[[state_of[start], 0]]
    state_of = swap[state_of]

    ends = used & (words == eos)
    finals = np.full(len(swap), np.inf)
    finals[state_of[parents[ends]]] = -math.log(10) * model.log10_probs[ends]
    if not np.isfinite(finals).any():
        raise GraphError(place, f"a probability of {EOS}", "none", "estimate the model again")
    arcs = np.flatnonzero(used & (words != eos))
    backing = np.flatnonzero(is_state[1:]) + 1
    sources = state_of[np.concatenate([parents[arcs], backing])]
    targets = state_of[np.concatenate([nearest[arcs + 1], nearest[model.suffixes[backing]]])]
    labels = np.concatenate([labels_of[words[arcs]], np.full(len(backing), backoff_label)])
    log10_probs = [model.log10_probs[arcs], model.log10_backoffs[backing - 1]]
    costs = -math.log(10) * np.concatenate(log10_probs)
    return Grammar(sources, targets, labels, costs, finals, num_words)


def _states(model: Arpa, speakable: np.ndarray, histories: np.ndarray) -> np.ndarray:
    """(n + 1,) the nodes that need a state: the root, and those with arcs or a back-off weight."""
    is_state = np.zeros(len(model.keys) + 1, dtype=bool)
    is_state[histories] = True
    is_state[1:] |= model.log10_backoffs != 0
    is_state &= speakable
    is_state[model.rows_of_orders()[-1].start + 1 :] = False
    is_state[0] = True
    return is_state


def _nearest_states(model: Arpa, is_state: np.ndarray) -> np.ndarray:
    """(n + 1,) for each node, itself or its longest suffix that is a state."""
    nearest = np.zeros(len(is_state), dtype=np.int64)
    for rows in model.rows_of_orders():
        nodes = np.arange(rows.start + 1, rows.stop + 1)
        nearest[nodes] = np.where(is_state[nodes], nodes, nearest[model.suffixes[nodes]])
    return nearest
