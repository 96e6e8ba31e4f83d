"""H o LG: the CTC topology composed with an LG without epsilons, as arrays.

A state is a pair: a state q of LG and the current token, or the blank. Only tokens of arcs into q
are paired with q, so that arcs follow from :func:`privasr_k2.graph.tlg.ctc_topology` directly.
"""

from __future__ import annotations

import itertools

import numpy as np

from privasr_k2.graph.epsilons import WordArcs
from privasr_k2.ragged import rows_of, splits_of

_AT_A_TIME = 400_000  # arcs
_TABLE = 1 << 28  # a table of so many keys is made rather than a sorted list
# Rules: which pairs (q, n) have an arc with label l: all, n = l, n != l, or n the blank.
_ALL, _SAME, _OTHER, _BLANK = range(4)
# The same by rule, whether n = l, and whether n is the blank.
_RULES = [[[1, 1], [1, 1]], [[0, 0], [1, 1]], [[1, 1], [0, 0]], [[0, 1], [0, 1]]]
_KEPT = np.array(_RULES, dtype=bool)


def compose_ctc(LG: WordArcs, num_tokens: int, topology: str) -> WordArcs:
    """H o LG.

    Args:
        LG: labels are tokens above 0; state 0 is the start.
        num_tokens: C, the blank included.
        topology: ``standard`` or ``modified``.
    """
    return compose_pairs(LG, num_tokens, topology)[0]


def compose_pairs(LG: WordArcs, num_tokens: int, topology: str) -> tuple[WordArcs, np.ndarray]:
    """H o LG, and ``q * num_tokens + token`` of each of its states but the last, ascending."""
    end = LG.num_states - 1
    real = np.flatnonzero(LG.labels > 0)
    entered = LG.targets[real].astype(np.int64) * num_tokens + LG.labels[real]
    keys = np.concatenate([np.arange(end) * num_tokens, entered])
    pairs, index = _distinct(keys, end * num_tokens)
    of_blank, into = index[:end], index[end:]
    state, token = np.divmod(pairs, num_tokens)
    held = np.flatnonzero(token)
    # What leaves a state q: source q, label, target pair, rule, arc of LG or -1.
    ends = np.flatnonzero(LG.labels < 0)
    always = _ALL if topology == "standard" else _BLANK
    rows = [
        (np.arange(end), 0, of_blank, always, -1),
        (state[held], token[held], held, _SAME, -1),
        (LG.sources[ends], num_tokens, len(pairs), always, ends),
    ]
    if topology == "standard":
        rows.append((LG.sources[real], LG.labels[real], into, _OTHER, real))
    else:
        rows.append((state[held], token[held], of_blank[state[held]], _SAME, -1))
        both = (into, of_blank[LG.targets[real]])
        rows += [(LG.sources[real], LG.labels[real], to, _BLANK, real) for to in both]
    sources, labels, targets, rules, arcs = (
        np.concatenate([np.broadcast_to(row[n], len(row[0])).astype(kind) for row in rows])
        for n, kind in enumerate((np.int64, np.int32, np.int32, np.int8, np.int32))
    )
    order = np.argsort(sources * (num_tokens + 1) + labels, kind="stable")
    splits = splits_of(sources, end)
    labels, targets, rules, arcs = labels[order], targets[order], rules[order], arcs[order]
    labels_out = np.where(labels == num_tokens, -1, labels).astype(np.int32)
    scores = np.append(LG.scores, np.float32(0.0))[arcs]
    num_words = np.append(np.diff(LG.splits), 0)[arcs]
    # Some pairs at a time, whose arrays stay in the processor's cache.
    edges = np.cumsum(np.diff(splits)[state])
    num_edges = int(edges[-1]) if len(edges) else 0
    cuts = np.searchsorted(edges, np.arange(_AT_A_TIME, num_edges, _AT_A_TIME))
    parts = []
    for first, last in itertools.pairwise([0, *cuts.tolist(), len(pairs)]):
        sizes, which = rows_of(splits, state[first:last])
        held_token = np.repeat(token[first:last], sizes)
        same, blank = (labels[which] == held_token), (held_token == 0)
        kept = _KEPT[rules[which], same.view(np.int8), blank.view(np.int8)]
        which = which[kept]
        _, of_word = rows_of(LG.splits, arcs[which[num_words[which] > 0]])
        parts.append((
            np.repeat(np.arange(first, last, dtype=np.int32), sizes)[kept],
            targets[which], labels_out[which], scores[which], LG.words[of_word], num_words[which],
        ))  # fmt: skip
    *columns, words, counts = map(np.concatenate, zip(*parts))
    splits = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return WordArcs(*columns, words, splits), pairs


def _distinct(keys: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Different keys, all below ``size``, sorted, and the index of each key among them."""
    if size > _TABLE:
        return np.unique(keys, return_inverse=True)
    there = np.zeros(size, dtype=bool)
    there[keys] = True
    distinct, rank = np.flatnonzero(there), np.empty(size, dtype=np.int32)
    rank[distinct] = np.arange(len(distinct))
    return distinct, rank[keys]
