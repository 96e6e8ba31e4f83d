"""What n-gram models of sanitized text tell of names that were said in it.

Canaries (:mod:`privasr_k2.attack.planted_names`) are ranked by the model: the attacker knows all of
their sentences but the name, and takes

    loss(candidate) = -sum over its sentences of log P(sentence with the candidate).

The rank of the true name among the R candidates is reported as exposure, in bits. Without memory
its mean is about log2(e) = 1.4, and less where candidates tie, as the true name counts last then.
Two controls stand beside: a model of the text as it was said, and one of text without the canaries.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from annotated_types import MinLen

from privasr_k2.attack.planted_names import WORDS_OF_A_NAME, NameCanary, kinds, vocabulary_of
from privasr_k2.constraints import Checked, Count, ShareBelowOne
from privasr_k2.errors import DataError
from privasr_k2.lm.arpa import write_arpa
from privasr_k2.lm.perplexity import TREATMENT, KenlmModel, perplexity
from privasr_k2.lm.train import NgramConfig, train_ngram
from privasr_k2.privacy.audit.exposure import bound_of_replacing, exposure, ranks
from privasr_k2.privacy.replacement import uniform_replacement
from privasr_k2.privacy.streams import Drawn
from privasr_k2.randomness import stream
from privasr_k2.scoring.bootstrap import ratio_interval
from privasr_k2.text.entities import TaggedText
from privasr_k2.text.sanitize import Replacement, needs_lists, replace_words
from privasr_k2.text.sanitized_release import SanitizeConfig

ORIGINAL, UNSEEN = "original", "unseen"


@dataclass(frozen=True)
class NameAuditConfig(Checked):
    """Section ``audit_names`` of ``conf/classlm.yaml``.

    Args:
        keep_probs: probabilities that a word is kept, in place of ``sanitize.keep_prob``.
        top: a name counts as found among so many first, for the bound on epsilon.
        confidence: of bounds and intervals.
        num_replicates: how often canaries are drawn again for an interval.
        seed: of these draws.
    """

    keep_probs: Annotated[list[ShareBelowOne], MinLen(1)]
    top: Count
    confidence: ShareBelowOne
    num_replicates: Count
    seed: int


@dataclass(frozen=True)
class AuditedNamesConfig(NameAuditConfig, SanitizeConfig, NgramConfig):
    """That, and sections ``sanitize`` and ``lm_ngram``."""


def audit_names(
    texts: Sequence[TaggedText],
    canaries: Sequence[NameCanary],
    tagged: Mapping[str, Sequence[TaggedText]],
    lists: Mapping[str, Sequence[str]],
    scored: Sequence[TaggedText],
    config: AuditedNamesConfig,
) -> dict[str, Any]:
    """Train a model for each tagger and probability, and both controls; rank all candidates.

    Args:
        texts: as they were said, canaries among them.
        tagged: tagger -> the same texts with the names that it found.
        lists: class -> different public words.
        scored: the text of which perplexities are; its documents are the groups.

    Returns:
        ``models``: name -> tagger, probability, epsilons and exposures; ``lms``: perplexities, as
        verb ``perplexity`` writes them.

    Raises:
        DataError: a tagged text that is missing; a class without a list.
    """
    attack = _Attack(texts, canaries, lists, scored, config)
    planted = {id for canary in canaries for id, _ in canary.places}
    attack.add(ORIGINAL, [text.words for text in texts])
    attack.add(UNSEEN, [text.words for text in texts if text.id not in planted])
    for tagger, of_tagger in tagged.items():
        if {text.id for text in of_tagger} != {text.id for text in texts}:
            found = f"{len(of_tagger)} others"
            raise DataError(tagger, f"the {len(texts)} planted texts", found, "tag them again")
        needs_lists(of_tagger, lists)
        for keep in config.keep_probs:
            bounds = (config.mentions, config.words_per_mention, config.utterances_per_user)
            how = Replacement(keep, config.consistency == "document", *bounds)
            # An audit's draws: nobody knows them, and nothing of them is released.
            made = replace_words(of_tagger, lists, how, Drawn("names", None).noise)
            name = f"{tagger}_{keep:g}"
            attack.add(name, [text.words for text in made], tagger=tagger, keep_prob=keep)
    return {"treatment": TREATMENT, "by": "call", "models": attack.models, "lms": attack.lms}


class _Attack:
    """One vocabulary, one list of candidate sentences, and the models so far."""

    def __init__(
        self,
        texts: Sequence[TaggedText],
        canaries: Sequence[NameCanary],
        lists: Mapping[str, Sequence[str]],
        scored: Sequence[TaggedText],
        config: AuditedNamesConfig,
    ) -> None:
        self._config, self._canaries = config, canaries
        self._vocabulary = vocabulary_of(texts, canaries, lists)
        self._scored = [text.words for text in scored]
        self._groups = [text.document or text.user or text.id for text in scored]
        self._longest = max(map(len, lists.values()))
        self._often = max(len(canary.places) for canary in canaries)
        by_id = {text.id: text for text in texts}
        self._asked: list[tuple[str, ...]] = []
        for canary in canaries:
            for id, first in canary.places:
                words = by_id[id].words
                before, behind = words[:first], words[first + WORDS_OF_A_NAME :]
                self._asked += [(*before, *name, *behind) for name in canary.candidates]
        self.models: dict[str, Any] = {}
        self.lms: list[dict[str, Any]] = []

    def add(
        self,
        name: str,
        sentences: Sequence[Sequence[str]],
        *,
        tagger: str = "",
        keep_prob: float | None = None,
    ) -> None:
        """Train the model ``name`` and attack it."""
        model = train_ngram(sentences, self._vocabulary, self._config, held_out=[])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "lm.arpa"
            write_arpa(model, path)
            lm = KenlmModel(path, name)
            losses = -lm.score_sentences(self._asked)
            found = perplexity(lm, self._scored, self._vocabulary, self._groups)
        self.lms.append(found.record())
        told: dict[str, Any] = {"tagger": tagger, "keep_prob": keep_prob}
        if keep_prob is not None:
            told |= self._epsilons(keep_prob)
        self.models[name] = told | self._exposures(self._ranks(losses))

    def _epsilons(self, keep_prob: float) -> dict[str, float]:
        """Of a name that was found, said once or often; a sum over its words."""
        return {
            f"epsilon_{often}": uniform_replacement(
                keep_probability=keep_prob,
                num_names=self._longest,
                mentions=mentions,
                words_per_mention=WORDS_OF_A_NAME,
                off_list="replaced",
                consistency="mention",
            ).epsilon_per_utterance
            for often, mentions in (("once", 1), ("often", self._often))
        }

    def _ranks(self, losses: np.ndarray) -> dict[str, np.ndarray]:
        """Kind -> (K,) rank of each true name."""
        by_kind: dict[str, list[int]] = {}
        start = 0
        for canary in self._canaries:
            shape = (len(canary.places), len(canary.candidates))
            end = start + shape[0] * shape[1]
            of_names = losses[start:end].reshape(shape).sum(axis=0)
            others = np.delete(of_names, canary.planted)
            [rank] = ranks(of_names[[canary.planted]], others[None])
            by_kind.setdefault(canary.kind, []).append(int(rank))
            start = end
        return {kind: np.array(of_kind) for kind, of_kind in by_kind.items()}

    def _exposures(self, by_kind: Mapping[str, np.ndarray]) -> dict[str, Any]:
        config, space = self._config, len(self._canaries[0].candidates)
        told: dict[str, Any] = {}
        for kind, of_kind in by_kind.items():
            bits = exposure(of_kind, space=space)
            interval = ratio_interval(
                bits,
                np.ones_like(bits),
                stream(config.seed, "canaries", kind),
                num_replicates=config.num_replicates,
                confidence=config.confidence,
            )
            told[kind] = {
                "exposure": float(bits.mean()),
                "interval": None if interval is None else [interval.low, interval.high],
                "first": int(np.count_nonzero(of_kind == 1)),
                "canaries": len(of_kind),
            }
        bounds = {}
        for often in dict.fromkeys(kind.rpartition("_")[2] for kind in kinds(self._often)):
            together = np.concatenate([of for kind, of in by_kind.items() if kind.endswith(often)])
            bound = bound_of_replacing(
                together, space=space, top=config.top, confidence=config.confidence
            )
            bounds[f"lower_{often}"] = bound.epsilon_lower
        return {"kinds": told, "possible": float(np.log2(space)), **bounds}
