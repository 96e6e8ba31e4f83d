"""Helpers shared with ``test_class_lm.py``."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.lm.pruning import prune_to
from privasr_k2.lm.sub_lm import make_sub_lm
from tests.support.tiny_lm import sentences, slow_prob, table

PLAIN = ["a", "b", "c", "new", "york", "rose"]  # the last three are words of names as well

TAGS = ["<PER>", "<LOC>"]

PER = {("rose",): 3.0, ("rose", "new"): 1.0, ("ann", "rose"): 1.0, ("ann", "rose", "new"): 0.5}

LOC = {("york",): 1.0, ("new", "york"): 2.0, ("york", "york"): 0.3}


def class_lm(kind: str, cut_history: bool, unknown_mass: float = 0.1, order: int = 3) -> ClassLm:
    words = PLAIN + TAGS
    counts = count_ngrams(sentences(1, 120, words=words), words, order=order)
    root = prune_to(estimate(counts, "witten_bell"), 160)[0]
    subs = {"PER": make_sub_lm(PER, kind, unknown_mass=unknown_mass), "LOC": make_sub_lm(LOC, kind)}
    return ClassLm(root, subs, cut_history=cut_history)


def readings(lm: ClassLm, words: tuple[str, ...]) -> list[tuple[tuple[str, ...], float]]:
    """All ways to read words as words and names: the root model's symbols, and P of the names."""
    if not words:
        return [((), 1.0)]
    found = [((words[0], *rest), prob) for rest, prob in readings(lm, words[1:])]
    for end in range(1, len(words) + 1):
        for name, sub in lm.sub_lms.items():
            prob = math.exp(sub.log_prob(words[:end]))
            if prob > 0:
                found += [((f"<{name}>", *rest), prob * p) for rest, p in readings(lm, words[end:])]
    return found


def reading_probs(lm: ClassLm, words: Sequence[str]) -> list[tuple[tuple[str, ...], float]]:
    """All readings of a sentence, as the root model's symbols, and P of each."""
    ngrams, found = table(lm.root), []
    for symbols, prob in readings(lm, tuple(words)):
        history: tuple[str, ...] = ("<s>",)
        for symbol in (*symbols, "</s>"):
            prob *= slow_prob(ngrams, history, symbol)
            history = (*history, symbol)[-lm.root.order + 1 :]
            if symbol in TAGS and lm.cut_history:
                history = (symbol,)
        found.append((symbols, prob))
    return found
