"""G in OpenFst's text format, as icefall keeps it: ``G_3_gram.fst.txt`` of kaldilm."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from privasr_k2.errors import DataError, GraphError
from privasr_k2.fileio import read_lines
from privasr_k2.graph.grammar import Grammar

SUFFIX = ".fst.txt"
_EXPECTED = "SOURCE TARGET WORD WORD COST, or STATE COST, with numbers of words.txt"
_AGAIN = "make it again: python -m kaldilm --read-symbol-table=words.txt --disambig-symbol='#0'"


def read_grammar(path: Path, num_words: int) -> Grammar:
    """An acceptor over words; arcs of back-off have the last number, ``#0``.

    Args:
        num_words: numbers of ``words.txt``, from ``<eps>`` to ``#0``.

    Raises:
        DataError: with its line: other fields, a number that is none, or a label out of range.
        GraphError: no arcs, no sentence end, or back-off along epsilons in place of ``#0``.
    """
    backoff = num_words - 1
    rows: list[tuple[int, int, int]] = []
    costs: list[float] = []
    ends: dict[int, float] = {}
    start = None
    for number, line in read_lines(path):
        fields = line.split()
        if not fields:
            continue
        source, target, label, cost = _parsed(fields, f"{path}:{number}", line)
        start = source if start is None else start
        if target < 0:
            ends[source] = cost
            continue
        if not 0 <= label < num_words:
            place, expected = f"{path}:{number}", f"word numbers up to {backoff}, that of #0"
            raise DataError(place, expected, str(label), "give the words.txt that it was made with")
        rows.append((source, target, label))
        costs.append(cost)
    if not rows or not ends or start is None:
        found = "no sentence end" if rows else "no arcs"
        raise GraphError(path, "a grammar with arcs and final states", found, _AGAIN)
    sources, targets, labels = np.array(rows, dtype=np.int64).T
    if not labels.all():
        expected = "the disambiguation symbol #0 on arcs of back-off"
        raise GraphError(path, expected, "arcs of <eps>", _AGAIN)
    size = 1 + max(int(sources.max()), int(targets.max()), *ends)
    if size > 2 * (len(rows) + len(ends)):
        found = f"state {size - 1} of {len(rows)} arcs"
        raise GraphError(path, "states that are numbered from 0", found, _AGAIN)
    number_of = np.arange(size)
    number_of[[0, start]] = number_of[[start, 0]]  # the start takes number 0
    finals = np.full(len(number_of), np.inf)
    finals[number_of[list(ends)]] = list(ends.values())
    known = len(np.unique(labels[labels != backoff]))
    arcs = (number_of[sources], number_of[targets], labels, np.array(costs))
    return Grammar(*arcs, finals, known)


def _parsed(fields: list[str], place: str, line: str) -> tuple[int, int, int, float]:
    """Source, target (-1: a final state), label and cost of a line."""
    is_arc = len(fields) in (4, 5)
    try:
        whole = [int(field) for field in fields[: 4 if is_arc else 1]]
        cost = float(fields[-1]) if len(fields) in (2, 5) else 0.0
    except ValueError:
        whole, cost = [], math.nan
    # A back-off arc may tell #0 as what is read alone.
    same = not is_arc or (len(whole) == 4 and whole[3] in (0, whole[2]))
    if not whole or min(whole) < 0 or not math.isfinite(cost) or not same or len(fields) > 5:
        raise DataError(place, _EXPECTED, repr(line)[:60], _AGAIN)
    if not is_arc:
        if len(fields) > 2:
            raise DataError(place, _EXPECTED, repr(line)[:60], _AGAIN)
        return whole[0], -1, 0, cost
    return whole[0], whole[1], whole[2], cost
