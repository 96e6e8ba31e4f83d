"""Attacks upon several recognizers at once: canaries alone and with an LM, and masked names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from privasr_k2.am.sequence import nbest
from privasr_k2.attack import canary_losses, noise_masking
from privasr_k2.attack.membership import Scores
from privasr_k2.attack.name_ranks import name_exposure, name_losses
from privasr_k2.attack.settings import RecognizerAttackConfig
from privasr_k2.attack.speech_canaries import candidate_cuts, read_secrets
from privasr_k2.data.features import FRAME_SHIFT
from privasr_k2.errors import ConfigError
from privasr_k2.graph.lang import Lang
from privasr_k2.lm.perplexity import LanguageModel
from privasr_k2.randomness import derive_seed

if TYPE_CHECKING:
    from lhotse.cut import Cut

Found = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Attacked:
    """Recognizers of the same tokens, the public one last: it has heard nobody who is attacked.

    Attributes:
        names: of the recognizers, in results.
        models: I recognizers; the public one is of CTC.
        scores_of: of all of them, as :data:`privasr_k2.attack.membership.Scores`.
    """

    names: Sequence[str]
    models: Sequence[Any]
    scores_of: Scores
    lang: Lang
    device: torch.device | str

    def reference(self, place: int) -> int | None:
        """The place of the public one, whose losses are subtracted; None for itself."""
        last = len(self.models) - 1
        return None if place == last else last


def attack_canaries(
    attacked: Attacked,
    folder: Path,
    lms: Sequence[LanguageModel],
    config: RecognizerAttackConfig,
) -> Found:
    """Exposures by recognizer, each with its LM.

    Args:
        folder: of :func:`privasr_k2.attack.speech_canaries.plant_canaries`.
        lms: of each recognizer, the public one last; none: recognizers alone.

    Raises:
        ConfigError: ranks that count for the bound are all that there are.
        DataError: another folder, or speech that is too short for its words.
    """
    secrets = read_secrets(folder)
    if config.top >= secrets.candidates:
        expected = f"below {secrets.candidates}, the candidates of a canary"
        raise ConfigError("top", expected, str(config.top), "set a lower top")
    cuts = candidate_cuts(folder, secrets)
    of_lms = [canary_losses.lm_losses(lm, cuts) for lm in lms]
    losses = canary_losses.canary_losses(
        attacked.scores_of, cuts, attacked.lang, config, attacked.device
    )
    found = {}
    for place, name in enumerate(attacked.names):
        reference = attacked.reference(place)
        fused = of_lms[place] if of_lms else None
        if fused is not None and reference is not None:
            fused = fused - of_lms[reference]
        found[name] = canary_losses.exposures(
            losses, place, secrets, config, reference=reference, lm=fused
        )
    return found


def attack_names(
    attacked: Attacked,
    people: Iterable[Cut],
    strangers: Iterable[Cut],
    kind: str,
    config: RecognizerAttackConfig,
) -> Found:
    """What is recognized in place of masked names, by recognizer; empty where nobody says any.

    Args:
        people: who is in the private training, canaries left out.
        strangers: who is in no training.
        kind: of the features, computed from audio.

    Raises:
        DataError: speech without audio.
    """
    said = noise_masking.mentions_of(people, config.classes)
    mentions, names = noise_masking.chosen_mentions(said, config)
    new = [
        mention
        for mention in noise_masking.mentions_of(strangers, config.classes)
        if mention.name not in names.get(mention.label, ())
    ]
    others, unheard = noise_masking.chosen_mentions(new, config)
    public, lang, device = attacked.models[-1], attacked.lang, attacked.device
    masked, of_others = (
        noise_masking.mask(side, public, lang, kind, derive_seed(config.seed, number))
        for number, side in enumerate((mentions, others))
    )
    if not masked:
        return {}
    losses, losses_of_others = (
        name_losses(side, unheard, attacked.scores_of, lang, config, device)
        for side in (masked, of_others)
    )
    found = {}
    for place, (name, model) in enumerate(zip(attacked.names, attacked.models)):
        recognize, reference = _recognizer(model, config), attacked.reference(place)
        found[name] = {
            **noise_masking.written(masked, recognize, lang.tokens, names, config, device),
            **name_exposure(losses, losses_of_others, place, reference, config),
        }
    return found


def _recognizer(model: Any, config: RecognizerAttackConfig) -> noise_masking.Recognize:
    """Its best token sequence of each utterance."""

    def best(features: torch.Tensor, lengths: torch.Tensor) -> list[list[int]]:
        seconds = lengths.double().cpu() * FRAME_SHIFT
        longest = torch.ceil(seconds * config.tokens_per_second).long()
        lists = nbest(model, features, lengths, longest, beam=config.beam, num_paths=1)
        return [[*found[0][0]] if found else [] for found in lists]

    return best
