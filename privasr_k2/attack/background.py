"""An attacker's prior knowledge: statistics of public speech, and durations of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from privasr_k2.data.features import load_features
from privasr_k2.data.manifests import load_cuts
from privasr_k2.errors import DataError
from privasr_k2.graph.lang import Lang


@dataclass(frozen=True)
class Background:
    """Public speech.

    Attributes:
        mean, deviation: (F,) float32 of its frames.
        frame_shift: seconds.
        frames_per_token: median over utterances.
        frames: median frames of the utterances that say just this, by text.
    """

    mean: np.ndarray
    deviation: np.ndarray
    frame_shift: float
    frames_per_token: float
    frames: Mapping[str, int]

    def frames_of(self, text: str, num_tokens: int) -> int:
        """Number of frames that the attacker reconstructs for ``text``."""
        return self.frames.get(text, max(1, round(self.frames_per_token * num_tokens)))


def read_background(
    folder: Path, roles: Sequence[str], lang: Lang, *, utterances: int
) -> Background:
    """Statistics of the first ``utterances`` of the roles of a features folder.

    Args:
        lang: spells texts; a word that it lacks has no tokens here.

    Raises:
        DataError: no such role, or no utterance.
    """
    cuts = islice((cut for role in roles for cut in load_cuts(folder, role)), utterances)
    parts, texts, shift = [], [], 0.0
    for cut in cuts:
        parts.append(load_features(cut))
        texts.append(" ".join((cut.supervisions[0].text or "").split()))
        shift = float(cut.frame_shift)
    if not parts:
        expected = f"utterances of {' '.join(roles)}"
        raise DataError(folder, expected, "none", "name roles that have some")
    frames = np.array([len(part) for part in parts])
    by_text: dict[str, list[int]] = {}
    for text, size in zip(texts, frames.tolist()):
        by_text.setdefault(text, []).append(size)
    every = np.concatenate(parts).astype(np.float64)
    deviation = every.std(axis=0)
    spelled = lang.first_pronunciations
    tokens = [sum(len(spelled.get(word, ())) for word in text.split()) for text in texts]
    rates = frames / np.maximum(1, tokens)
    return Background(
        every.mean(axis=0).astype(np.float32),
        np.where(deviation > 1e-8, deviation, 1.0).astype(np.float32),
        shift,
        float(np.median(rates)),
        {text: int(np.median(sizes)) for text, sizes in by_text.items()},
    )
