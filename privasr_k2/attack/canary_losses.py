"""Exposure of speech canaries: by a recognizer's loss, and by that of recognizer and LM together.

A candidate's loss is that of its own words on its own speech, in nats:

    loss = -log P(words | speech) - lm_weight log P(words).

With a public reference the loss in public models is subtracted, which takes off what is hard for
everybody. On silenced speech (noise in its place) hardly anything but the LM can tell the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from privasr_k2.attack.membership import Scores, unit_losses
from privasr_k2.attack.perturbed import silenced
from privasr_k2.attack.settings import RecognizerAttackConfig
from privasr_k2.attack.speech_canaries import Secrets
from privasr_k2.errors import DataError
from privasr_k2.graph.lang import Lang
from privasr_k2.graph.spelled import spellings
from privasr_k2.lm.perplexity import LanguageModel
from privasr_k2.privacy.audit.drawn_secrets import exposed

if TYPE_CHECKING:
    from lhotse.cut import Cut


@dataclass(frozen=True)
class CanaryLosses:
    """Losses of K R candidates, canary after canary, in nats.

    Attributes:
        heard: (I, K R) of I recognizers on the candidates' speech.
        silenced: (I, K R) of the same on noise in its place.
    """

    heard: np.ndarray
    silenced: np.ndarray


def canary_losses(
    scores_of: Scores,
    cuts: Sequence[Cut],
    lang: Lang,
    config: RecognizerAttackConfig,
    device: torch.device | str,
) -> CanaryLosses:
    """The recognizers' losses of all candidates.

    Raises:
        DataError: speech that is too short for its words.
    """
    texts = [(cut.supervisions[0].text or "") for cut in cuts]
    spelled = spellings(lang, {word for text in texts for word in text.split()})
    sizes = np.array([sum(len(spelled.get(word, ())) for word in text.split()) for text in texts])
    return CanaryLosses(
        *(
            _of_each(scores, cuts, lang, config, device) * sizes
            for scores in (scores_of, silenced(scores_of, seed=config.seed))
        )
    )


def _of_each(
    scores_of: Scores,
    cuts: Sequence[Cut],
    lang: Lang,
    config: RecognizerAttackConfig,
    device: torch.device | str,
) -> np.ndarray:
    """(I, K R) nats a token."""
    seconds = config.max_duration
    found = unit_losses(scores_of, cuts, lang, device, unit="utterance", max_duration=seconds)
    missing = [cut.id for cut in cuts if cut.id not in found]
    if missing:
        expected, way_out = "speech with frames for all of its words", "plant slower canaries"
        raise DataError("canaries", expected, f"{len(missing)} without, {missing[0]}", way_out)
    return np.stack([found[cut.id] for cut in cuts], axis=1)


def lm_losses(lm: LanguageModel, cuts: Sequence[Cut]) -> np.ndarray:
    """(K R,) nats of each candidate's words and sentence end."""
    sentences = [(cut.supervisions[0].text or "").split() for cut in cuts]
    owners = np.repeat(np.arange(len(sentences)), [len(words) + 1 for words in sentences])
    return np.bincount(owners, -lm.token_log_probs(sentences), minlength=len(sentences))


def exposures(
    losses: CanaryLosses,
    place: int,
    secrets: Secrets,
    config: RecognizerAttackConfig,
    *,
    reference: int | None,
    lm: np.ndarray | None,
) -> dict[str, Any]:
    """What the recognizer at ``place`` tells of the canaries, alone and with an LM.

    Args:
        reference: place of the public recognizer; None: nothing is subtracted, which is right for
            that recognizer itself.
        lm: (K R,) losses of the LM that is fused, less those of a public one where ``reference``
            is subtracted; None: without LM.
    """

    def of(losses_of: np.ndarray) -> dict[str, Any]:
        by_canary = losses_of.reshape(len(secrets.planted), secrets.candidates)
        settings = dict(top=config.top, delta=config.delta, confidence=config.confidence)
        return exposed(by_canary, secrets.planted, **settings)  # type: ignore[arg-type]

    def less_public(of_all: np.ndarray) -> np.ndarray:
        return of_all[place] - (0.0 if reference is None else of_all[reference])

    found = {"heard": of(less_public(losses.heard))}
    if lm is not None:
        found["fused"] = of(less_public(losses.heard) + config.lm_weight * lm)
        found["fused_silenced"] = of(less_public(losses.silenced) + config.lm_weight * lm)
    return found
