"""Secrets of canaries: one of several candidates is drawn uniformly and planted [carlini2019].

[carlini2019] N. Carlini et al., The secret sharer, USENIX Security 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.privacy.audit import exposure
from privasr_k2.randomness import stream


@dataclass(frozen=True)
class Canary:
    """A secret sentence: one of its candidates, drawn uniformly."""

    candidates: tuple[tuple[str, ...], ...]
    planted: int


def draw_canaries(
    words: Sequence[str], *, canaries: int, candidates: int, secret_words: int, seed: int
) -> list[Canary]:
    """Canaries whose candidates are different sentences of random words.

    Raises:
        DataError: too few words for so many different sentences.

    >>> [canary] = draw_canaries(["a", "b", "c"], canaries=1, candidates=4, secret_words=2, seed=1)
    >>> len(set(canary.candidates)), 0 <= canary.planted < 4
    (4, True)
    """
    if len(words) ** secret_words < 2 * candidates:
        found = f"{len(words)} words"
        raise DataError("the vocabulary", "words for canaries", found, "take longer")
    drawn = []
    for number in range(canaries):
        generator = stream(seed, "canary", number)
        sentences: dict[tuple[str, ...], None] = {}
        while len(sentences) < candidates:
            sentences[tuple(generator.choice(words, size=secret_words).tolist())] = None
        drawn.append(Canary(tuple(sentences), int(generator.integers(candidates))))
    return drawn


def exposed(
    losses: np.ndarray, planted: Sequence[int], *, top: int, delta: float, confidence: float
) -> dict[str, Any]:
    """Ranks, exposures in bits, and the bound on epsilon, from all canaries of one model.

    Args:
        losses: (K, R) of each canary's candidates.
        planted: (K,) which of them was planted, from 0.
        top: of :func:`privasr_k2.privacy.audit.exposure.bound_in_one_run`, as ``delta`` and
            ``confidence``.

    >>> found = exposed(np.eye(4) * -1.0, [0, 1, 2, 3], top=1, delta=1e-5, confidence=0.95)
    >>> found["ranks"], found["mean_exposure"]
    ([1, 1, 1, 1], 2.0)
    """
    own, space = np.asarray(planted), losses.shape[1]
    others = np.ones(losses.shape, dtype=bool)
    others[np.arange(len(own)), own] = False
    ranks = exposure.ranks(losses[~others], losses[others].reshape(len(own), -1))
    bound = exposure.bound_in_one_run(
        ranks, space=space, top=top, delta=delta, confidence=confidence
    )
    bits = exposure.exposure(ranks, space=space)
    return {
        "ranks": ranks.tolist(),
        "mean_exposure": float(bits.mean()),
        "largest_exposure": float(bits.max()),
        "largest_possible_exposure": float(np.log2(space)),
        "epsilon_lower": bound.epsilon_lower,
    }
