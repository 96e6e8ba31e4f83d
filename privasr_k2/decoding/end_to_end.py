"""Decoding with end-to-end models: tokens from a beam search, words from tokens, no graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from annotated_types import Le, MinLen

from privasr_k2.constraints import Count, Natural, NotNegative, Positive
from privasr_k2.decoding.hyps import Hyp, Record
from privasr_k2.decoding.jobs import ShareConfig, facts_of, recognized
from privasr_k2.errors import DataError
from privasr_k2.graph.lexicon import WORD_START, spell_words
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList

if TYPE_CHECKING:
    import torch
    from lhotse import CutSet
    from lhotse.cut import Cut

    from privasr_k2.am.beam_search import Found
    from privasr_k2.am.sequence import Recognizer


@dataclass(frozen=True)
class EndToEndConfig(ShareConfig):
    """Options of end-to-end decoding; defaults in ``conf/pate.yaml#decode_e2e``.

    Args:
        head: of a folder of heads the one that decodes, from 1; 0 for a whole model.
        beam: prefixes of the beam search; 1 = greedy.
        num_paths: most token sequences of an utterance.
        length_penalty: hypotheses compete by log-probability / (tokens + 1) ** length_penalty, and
            by words in the end; :func:`privasr_k2.am.beam_search.beam_search` says how.
        tokens_per_second: bound on the length of hypotheses.
        ctc_weight: of CTC in a hybrid model's scores, up to 1; below 0 the model's own.
        insertion_penalties: the grid: natural log, the cost of a word when the best is chosen.
    """

    head: Natural
    beam: Count
    num_paths: Count
    length_penalty: NotNegative
    tokens_per_second: Positive
    ctc_weight: Annotated[float, Le(1)]
    insertion_penalties: Annotated[list[float], MinLen(1)]


def prepare(model: Recognizer, folder: Path, config: EndToEndConfig) -> None:
    """Set a model's weight of CTC.

    Raises:
        DataError: no token begins a word: phones need a graph.
    """
    if model.tokens is None or not spell_words(model.tokens):
        expected = f"tokens that begin words with {WORD_START}"
        raise DataError(folder, expected, "none", "train with --units char or bpe_N")
    for one in getattr(model, "models", (model,)):  # those of an ensemble
        if config.ctc_weight >= 0 and hasattr(one, "ctc_weight"):
            one.ctc_weight = config.ctc_weight


def join_tokens(tokens: Sequence[str]) -> str:
    """The words that tokens spell.

    >>> join_tokens(["▁th", "e", "▁", "c", "at"])
    'the cat'
    """
    return " ".join("".join(tokens).replace(WORD_START, " ").split())


def decode_e2e(
    model: Recognizer, cuts: CutSet, config: EndToEndConfig, device: str
) -> Iterator[tuple[Record, NbestList]]:
    """The records and lists of this job's cuts, the longest first, for a prepared model."""
    import torch

    from privasr_k2.am.sequence import nbest

    def recognize(
        features: torch.Tensor, lengths: torch.Tensor, batch: Sequence[Cut]
    ) -> list[list[Found] | None]:
        longest = [int(np.ceil(cut.duration * config.tokens_per_second)) for cut in batch]
        beams = {"beam": config.beam, "num_paths": config.num_paths}
        beams["length_penalty"] = config.length_penalty  # type: ignore[assignment]
        lists = nbest(model, features, lengths, torch.tensor(longest), **beams)
        return [texts_of or None for texts_of in lists]

    for cut, texts_of in recognized(recognize, cuts, config, device):
        facts = *facts_of(cut), texts_of is None
        texts = in_words(texts_of or (), model.tokens or ())
        hyps = tuple(
            best_hyp(texts, penalty, config.length_penalty)
            for penalty in config.insertion_penalties
        )
        ranked = tuple(Hypothesis(rank, *fields, {}) for rank, fields in enumerate(texts, start=1))
        yield Record(*facts, hyps), NbestList(*facts, ranked)


def in_words(sequences: Sequence[Found], tokens: Sequence[str]) -> list[tuple[str, float]]:
    """Words and scores, the best first; probabilities of spellings of the same words are summed."""
    scores: dict[str, float] = {}
    for sequence, score in sequences:
        words = join_tokens([tokens[token] for token in sequence])
        scores[words] = float(np.logaddexp(scores[words], score)) if words in scores else score
    return sorted(scores.items(), key=lambda item: -item[1])


def best_hyp(
    texts: Sequence[tuple[str, float]], insertion_penalty: float, length_penalty: float = 0.0
) -> Hyp:
    """The best of a list at an insertion penalty; no words for an empty list.

    Totals are divided by (words + 1) ** length_penalty.

    >>> best_hyp([("a", -1.0), ("a b", -1.5)], -1.0).words
    'a b'
    >>> best_hyp([("a", -1.0), ("a b", -1.2)], 0.0, 1.0).words
    'a b'
    """

    def total(text: tuple[str, float]) -> float:
        words = len(text[0].split())
        return (text[1] - insertion_penalty * words) / (words + 1) ** length_penalty

    words, score = max(texts, key=total, default=("", 0.0))
    return Hyp(0.0, insertion_penalty, words, score, 0.0)
