"""Language models in the case of a vocabulary: theirs may be upper where the model has lower."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from privasr_k2.errors import GraphError
from privasr_k2.lm.arpa import Arpa
from privasr_k2.lm.classes import ClassLm

log = logging.getLogger(__name__)


def arpa_in_case_of(vocabulary: Sequence[str], model: Arpa, path: Path) -> Arpa:
    """The model with its words in the case that most words of the vocabulary are known in.

    Raises:
        GraphError: two of its words would be one, whose n-grams are not added up.
    """
    name, change = _best_case(vocabulary, model.words)
    words = _changed(model.words, name, change, path)
    _log(name, path)
    return replace(model, words=words)


def class_lm_in_case_of(vocabulary: Sequence[str], lm: ClassLm, path: Path) -> ClassLm:
    """The same of a class LM, its names included; tags stay as they are.

    Raises:
        GraphError: as of :func:`arpa_in_case_of`.
    """
    everything = {*lm.root.words}.union(*(sub.words for sub in lm.sub_lms.values()))
    name, change = _best_case(vocabulary, sorted(everything))
    if not name:
        return lm
    root = replace(lm.root, words=_changed(lm.root.words, name, change, path))
    sub_lms = {
        kind: replace(sub, words=_changed(sub.words, name, change, path))
        for kind, sub in lm.sub_lms.items()
    }
    _log(name, path)
    return ClassLm(root, sub_lms, cut_history=lm.cut_history, name=lm.name)


def _best_case(vocabulary: Sequence[str], words: Sequence[str]) -> tuple[str, Callable[[str], str]]:
    """``lower``, ``upper`` or an empty string, and the function of a word."""
    wanted, best = set(vocabulary), len(set(vocabulary) & set(words))
    chosen: tuple[str, Callable[[str], str]] = ("", str)
    for name, change in (("lower", str.lower), ("upper", str.upper)):
        if (known := len(wanted & {_put(word, change) for word in words})) > best:
            chosen, best = (name, change), known
    return chosen


def _put(word: str, change: Callable[[str], str]) -> str:
    return word if word.startswith("<") else change(word)


def _changed(
    words: tuple[str, ...], name: str, change: Callable[[str], str], path: Path
) -> tuple[str, ...]:
    chosen = tuple(_put(word, change) for word in words)
    if len(set(chosen)) < len(words):
        counts = Counter(chosen)
        again = next(word for word, new in zip(words, chosen) if counts[new] > 1)
        expected = f"words of one case, as words.txt has {name} case"
        way_out = f"train it on text in {name} case, or choose --text-case keep"
        raise GraphError(path, expected, f"{again!r} in several", way_out)
    return chosen


def _log(name: str, path: Path) -> None:
    if name:
        log.info("%s: its words are taken in %s case, as words.txt has them", path, name)
