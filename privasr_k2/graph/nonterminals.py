"""G of a class LM in pieces: the root model with calls and returns at tags, and each class's names.

An arc with a tag becomes ``#bPER`` (with the tag's cost) into a state for the class's names, and
``#xPER`` out of it [turan2022, 2.2]. Distinct symbols keep determinization of homophones inside and
outside of names finite, and mark names in the output (:mod:`privasr_k2.graph.class_delimiters`).
With ``cut_history`` there is one such state a class, else one for each history behind a tag. Paths
have the scores of :class:`privasr_k2.lm.classes.ClassLm` for their best reading, but for back-off.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from annotated_types import Interval

from privasr_k2.constraints import Count, one_of
from privasr_k2.errors import GraphError
from privasr_k2.fileio import read_lines
from privasr_k2.graph.class_delimiters import ClassDelimiters
from privasr_k2.graph.grammar import Grammar, empty_history
from privasr_k2.graph.hlg import GraphConfig
from privasr_k2.graph.unknown_names import UNKNOWN_NAMES
from privasr_k2.lm.arpa import UNK
from privasr_k2.lm.sub_lm import SubLm
from privasr_k2.text.tags import is_tag, tag_of

log = logging.getLogger(__name__)

_SHOWN = 5
_STEPS = 200  # of the sum over names; longer ones count as lost


@dataclass(frozen=True)
class ClassGraphConfig(GraphConfig):
    """Settings of the graph of a class LM; defaults in ``conf/common.yaml#graph``.

    Args:
        cut_history: whether the root model goes on from the tag alone after a name.
        max_class_states: bound on the states of all copies of the classes' names in LG.
        unknown_names: ``none``, or ``phone_loop``: see :mod:`privasr_k2.graph.unknown_names`.
        unknown_min_tokens: tokens of the loop's shortest word.
    """

    cut_history: bool
    max_class_states: Count
    unknown_names: Annotated[str, one_of(*UNKNOWN_NAMES)]
    unknown_min_tokens: Annotated[int, Interval(ge=1, le=3)]


def with_calls(
    G: Grammar, delimiters: ClassDelimiters, *, backoff_label: int, cut_history: bool
) -> Grammar:
    """The root model's acceptor with ``#bPER`` and ``#xPER`` in place of each arc of a tag.

    Args:
        G: in which the arcs of class c have the label ``delimiters.first + 2 c``.
        backoff_label: the number of ``#0``.

    Raises:
        GraphError: a class whose tag has no probability.
    """
    num_states = len(G.finals)
    calls = np.flatnonzero(G.labels >= delimiters.first)
    kinds = (G.labels[calls] - delimiters.first) // 2
    own = np.full(len(delimiters.classes), -1)
    # The empty history has an arc for every tag.
    plain = np.isin(G.sources[calls], empty_history(G, backoff_label))
    own[kinds[plain]] = G.targets[calls[plain]]
    if (own < 0).any():
        name = delimiters.classes[int(np.flatnonzero(own < 0)[0])]
        way_out = "train it on text with this class, or take the class out"
        raise GraphError("the root model", f"a probability of {tag_of(name)}", "none", way_out)
    back = own[kinds] if cut_history else G.targets[calls]
    copies, which = np.unique(np.stack([kinds, back]), axis=1, return_inverse=True)
    which = which.reshape(-1)  # numpy 2.0 gives it another shape
    inside = num_states + np.arange(copies.shape[1])
    targets = G.targets.copy()
    targets[calls] = inside[which]
    return Grammar(
        np.concatenate([G.sources, inside]),
        np.concatenate([targets, copies[1]]),
        np.concatenate([G.labels, delimiters.first + 2 * copies[0] + 1]),
        np.concatenate([G.costs, np.zeros(len(inside))]),
        np.concatenate([G.finals, np.full(len(inside), np.inf)]),
        G.num_words - len(delimiters.classes),
    )


def names_grammar(
    sub: SubLm, name: str, word_ids: dict[str, int], *, leave: int, source: Path | None = None
) -> Grammar:
    """A class's names as an acceptor; it ends with the class's second delimiter.

    Names with words that ``word_ids`` lacks are left out with a warning, and their probability is
    not given to the others.

    Args:
        name: of the class.
        word_ids: number of each word of names, with ``<unk>`` for unlisted names.
        leave: the number of the class's second delimiter.
        source: the file of ``sub``, for messages.

    Raises:
        GraphError: no name is left, or a class inside the class.
    """
    labels = known_words(sub, name, word_ids, source)[sub.labels]
    kept = labels >= 0
    ends = np.flatnonzero(np.isfinite(sub.finals))
    last = len(sub.finals)
    return Grammar(
        np.concatenate([sub.sources[kept], ends]),
        np.concatenate([sub.targets[kept], np.full(len(ends), last)]),
        np.concatenate([labels[kept], np.full(len(ends), leave)]),
        -np.concatenate([sub.log_probs[kept], sub.finals[ends]]),
        np.append(np.full(last, np.inf), 0.0),
        len(np.unique(labels[kept])),
    )


def known_words(sub: SubLm, name: str, word_ids: dict[str, int], source: Path | None) -> np.ndarray:
    """(W,) the number of each word of names, -1 where ``word_ids`` lacks it.

    Warnings, arguments and errors are those of :func:`names_grammar`.
    """
    numbers = np.array([word_ids.get(word, -1) for word in sub.words], dtype=np.int64)
    labels = numbers[sub.labels]
    kept = labels >= 0
    mass = _mass(sub, kept)
    lacking = [word for word in sub.words if word not in word_ids and word != UNK]
    nested = [word for word in lacking if word.startswith("<") and word.endswith(">")]
    if nested:
        place = _place(source, nested[0], name)
        raise GraphError(place, "words (classes are not nested)", nested[0], "take it out")
    if lacking:
        message = "%s: %d words of names are not in the lexicon; their names are left out: %s"
        place, listed = _place(source, lacking[0], name), " ".join(lacking[:_SHOWN])
        log.warning(message, place, len(lacking), listed)
    if UNK in sub.words and UNK not in word_ids:
        message = "class %s: unlisted names (%s) are not in the graph: unknown_names=none"
        log.warning(message, name, UNK)
    if _mass(sub, kept & (labels != word_ids.get(UNK, -1))) <= 0:
        found = f"words that it lacks: {' '.join(lacking[:_SHOWN])}" if lacking else "no names"
        place = _place(source, lacking[0] if lacking else "", name)
        way_out = "add words to the lexicon, or names to the class"
        raise GraphError(place, "names of words of the lexicon", found, way_out)
    if mass < 1 - 1e-6:
        log.warning("class %s: %.2f %% of its probability is left out", name, 100 * (1 - mass))
    return numbers


def _place(source: Path | None, word: str, name: str) -> str:
    """The class, and the first line of its file with the word."""
    if source is None or not source.is_file():
        return f"class {name}"
    numbers = (number for number, line in read_lines(source) if word in line.split()[2:3])
    return f"{source}:{next(numbers, 1)} (class {name})"


def _mass(sub: SubLm, kept: np.ndarray) -> float:
    """P(a name of these arcs only)."""
    ends, probs = np.exp(sub.finals), np.exp(sub.log_probs[kept])
    sources, targets = sub.sources[kept], sub.targets[kept]
    ending = ends
    for _ in range(_STEPS):
        longer = ends + np.bincount(sources, probs * ending[targets], minlength=len(ends))
        if np.abs(longer - ending).max() < 1e-12:
            break
        ending = longer
    return float(ending[0])


def delimited_words(word_ids: dict[str, int], delimiters: ClassDelimiters) -> dict[str, int]:
    """Words, and each tag with the number of its first delimiter: ``word_ids`` of ``grammar``."""
    tags = {tag_of(name): delimiters.first + 2 * n for n, name in enumerate(delimiters.classes)}
    return {**word_ids, **tags}


def check_classes(root_words: Collection[str], names: Collection[str], place: str) -> None:
    """Refuse tags of the root model without a class among ``names``.

    Raises:
        GraphError: with the first such tag.
    """
    if lone := sorted(set(filter(is_tag, root_words)) - {tag_of(name) for name in names}):
        expected = "names for every class of the root model"
        raise GraphError(place, expected, f"none for {lone[0]}", "add them")
