"""Votes token by token: all teachers read the answers so far and vote for the next token.

Each token, and the end, costs an answer, unless a public model is confident of it. An utterance
whose end is not reached, by a failed check or for lack of answers, has no label.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from annotated_types import MinLen

from privasr_k2.am.sequence import Recognizer
from privasr_k2.constraints import Checked, Natural, NotNegative, Positive, PositiveShare
from privasr_k2.decoding.jobs import ShareConfig, recognized
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.graph.lexicon import spell_words
from privasr_k2.pate.aggregate import AggregateConfig
from privasr_k2.pate.ensembles import TeacherEnsemble
from privasr_k2.pate.mechanisms import UNPUBLISHED, Setting, make_setting
from privasr_k2.pate.noisy_answers import UNANSWERED, noisy_winners
from privasr_k2.pate.plan import winning_chance
from privasr_k2.pate.releases import about, joined, read_answers, write_answers, write_labels
from privasr_k2.pate.shards import Shards
from privasr_k2.privacy.pate.mechanisms import all_mechanisms, mechanism
from privasr_k2.privacy.release import Release
from privasr_k2.randomness import stream

if TYPE_CHECKING:
    import torch
    from lhotse import CutSet
    from lhotse.cut import Cut

TOKEN = "token"


@dataclass(frozen=True)
class TokenPoolConfig(Checked):
    """The pool of token votes; ``conf/pate.yaml#vote_tokens`` explains the values."""

    role: str
    max_duration: Positive
    tokens_per_second: Positive
    utterances: Natural
    margin: NotNegative
    public_threshold: PositiveShare
    top_k: Natural
    agreement: Annotated[list[PositiveShare], MinLen(1)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.top_k == 1 or (self.top_k and self.public_threshold == 1):
            raise ValueError(f"top_k must be 0, or 2 or more with a public model, got {self.top_k}")


@dataclass(frozen=True)
class TokenVotesConfig(AggregateConfig, TokenPoolConfig):
    """A release of labels token by token: sections ``pate`` and ``vote_tokens``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not mechanism(self.mechanism).tokens or self.published_scale != UNPUBLISHED:
            known = " ".join(all_mechanisms(tokens=True))
            raise ValueError(f"mechanism must be one of {known}, and published_scale none")
        if self.order != "random":
            raise ValueError(f"order must be random for votes on tokens, got {self.order!r}")

    def longest(self, seconds: float) -> int:
        """Most tokens of an utterance, the end not counted."""
        return math.ceil(seconds * self.tokens_per_second)

    def is_asked(self, probs: np.ndarray) -> np.ndarray:
        """Which tokens are voted on, (N,) bool.

        Args:
            probs: (N,), the highest probability that the public model gives to a token.
        """
        return probs < self.public_threshold if self.public_threshold < 1 else probs >= 0


def chosen(cuts: CutSet, config: TokenVotesConfig) -> CutSet:
    """The utterances that are voted on."""
    from lhotse import CutSet

    if not config.utterances:
        return cuts
    by_name = {cut.id: cut for cut in cuts}
    names = sorted(by_name)
    order = stream(config.seed, "utterances of token votes").permutation(len(names))
    return CutSet.from_cuts(by_name[names[place]] for place in order[: config.utterances])


def public_queries(public: Recognizer, cuts: CutSet, config: TokenVotesConfig, device: str) -> int:
    """How many queries the public model's own greedy texts of the pool take.

    A query is a token, or an end, with a probability below ``public_threshold``. So many would be
    asked if all teachers voted as the public model does.
    """
    alone = TeacherEnsemble([public], per_token=True)

    def count(features: torch.Tensor, lengths: torch.Tensor, own: Sequence[Cut]) -> list[int]:
        reading = alone.token_votes(features, lengths)
        longest = np.array([config.longest(cut.duration) for cut in own])
        queries, alive = np.zeros(len(own), dtype=np.int64), np.arange(len(own))
        for step in range(int(longest.max()) + 1):
            probs, best = reading.scores()[0].softmax(dim=1).max(dim=1)
            tokens = best.cpu().numpy()
            queries[alive] += config.is_asked(probs.cpu().numpy())
            onward = np.flatnonzero((tokens > 0) & (step < longest[alive]))
            alive = alive[onward]
            if not len(alive):
                break
            reading.extend(onward, tokens[onward])
        return queries.tolist()

    share = ShareConfig(role=config.role, job=1, num_jobs=1, max_duration=config.max_duration)
    return sum(queries or 0 for _, queries in recognized(count, cuts, share, device))


def settle_tokens(
    cuts: CutSet, shards: Shards, config: TokenVotesConfig, expected: int | None = None
) -> Setting:
    """The mechanism and its caps, before a teacher is asked.

    Args:
        expected: of :func:`public_queries`; ``margin`` times as many are paid for. None: as many
            as the longest labels need.

    Raises:
        PrivacyError: what does not fit the budget.
    """
    most = sum(config.longest(cut.duration) + 1 for cut in cuts)
    if expected is not None:
        most = min(most, max(1, math.ceil(config.margin * expected)))
    pool = dict(teachers=shards.teachers, available=most, utterances=len(cuts))
    return make_setting(config, largest_weight=1.0, change=shards.change, **pool)


def planned(
    setting: Setting, config: TokenVotesConfig, shards: Shards, expected: int | None, tokens: int
) -> dict[str, object]:
    """What a release will ask and answer, as plain values, before a teacher is trained.

    Args:
        expected: of :func:`public_queries`.
        tokens: of the models, the end included.

    Returns:
        ``majority_wins``: for each share of the teachers that agree, how often an answer is theirs
        where the others agree on another token; null where there is no formula.
    """
    cost, chances = setting.epsilon, {}
    for share in config.agreement:
        first = round(share * shards.teachers)
        classes = config.top_k or tokens
        counts = [first, shards.teachers - first, *[0] * (classes - 2)]
        known = setting.noise > 0 and mechanism(setting.mechanism).is_planned
        chances[f"{share:g}"] = (
            winning_chance(counts, setting.mechanism, setting.noise) if known else None
        )
    return {
        "mechanism": setting.mechanism,
        "teachers": shards.teachers,
        "sensitivity": setting.change.l2,
        "expected": expected,
        "votes": setting.max_answers,
        "noise": setting.noise,
        "majority_wins": chances,
        "epsilon": None if cost is None else cost.value,
        "delta": None if cost is None else cost.delta,
    }


def release_tokens(
    folder: Path,
    ensemble: TeacherEnsemble,
    cuts: CutSet,
    shards: Shards,
    setting: Setting,
    config: TokenVotesConfig,
    device: str,
    release: Release | None,
    public: Recognizer | None = None,
) -> dict[str, object]:
    """Draw the answers, batch by batch, each written once; write the labels; finish.

    A later run reads back what was written; of an unwritten batch nothing was released.

    Args:
        folder: gets ``answers-<n>.safetensors`` and the labels.
        public: the model of ``config.public_threshold``, trained on public data only.

    Raises:
        ConfigError: tokens that make no words.
        DataError: a public model of other tokens.
        PrivacyError: the release is finished, and what it has drawn is gone.
    """
    names = ensemble.tokens
    if names is None:
        raise ConfigError("the teachers", "tokens with names", "none", "train them by train_am")
    if public is not None and public.tokens != names:
        way_out = "give the model that they began at"
        raise DataError("the public model", "the teachers' tokens", "others", way_out)
    finished: list[tuple[str, np.ndarray]] = []
    used = np.zeros(2, dtype=np.int64)  # asked, answered
    batch = 0

    def label(
        features: torch.Tensor, lengths: torch.Tensor, own: Sequence[Cut]
    ) -> list[np.ndarray]:
        nonlocal batch, used
        path = folder / f"answers-{batch}.safetensors"
        drawn = read_answers(path, release)
        if drawn is None:
            left = _less(setting, *used.tolist())
            given = (features, lengths, own, left, config, release, f"batch {batch}")
            texts, spent = _stepwise(ensemble, public, *given)
            tokens = np.concatenate([*texts, np.zeros(0, np.int64)])
            values = {"tokens": tokens, "splits": np.cumsum([0, *map(len, texts)]), "used": spent}
            drawn = values, {"ids": [cut.id for cut in own]}
            write_answers(path, *drawn, release)
        values, header = drawn
        if header["ids"] != [cut.id for cut in own]:
            expected = "answers about this batch's utterances"
            raise DataError(path, expected, "others", "force the stage: a new release")
        batch, used = batch + 1, used + values["used"]
        return np.split(values["tokens"], values["splits"][1:-1])

    share = ShareConfig(role=config.role, job=1, num_jobs=1, max_duration=config.max_duration)
    # The longest first would spend what votes there are on these alone.
    shuffle = stream(config.seed, "batches of token votes")
    for cut, text in recognized(label, cuts, share, device, shuffle):
        if text is not None and len(text) and text[-1] == 0:
            finished.append((cut.id, text[:-1]))
    labels = [(name, [(joined(text, names), 1.0)]) for name, text in finished]
    numbers = dict(asked=int(used[0]), answered=int(used[1]), utterances=(len(cuts), len(labels)))
    who = dict(vote=TOKEN, unit=shards.unit, teachers=shards.teachers)
    who["units_in_a_shard"] = shards.units_in_a_shard
    summary = about(setting, release=release, **who, **numbers)
    write_labels(folder, labels, summary, in_phones=not spell_words(names))
    if release is not None:
        release.finish()
    return summary


def _less(setting: Setting, asked: int, answered: int) -> Setting:
    """What is left of the caps."""
    queries, answers = setting.max_queries - asked, setting.max_answers - answered
    return dataclasses.replace(setting, max_queries=queries, max_answers=answers)


def _stepwise(
    ensemble: TeacherEnsemble,
    public: Recognizer | None,
    features: torch.Tensor,
    lengths: torch.Tensor,
    cuts: Sequence[Cut],
    left: Setting,
    config: TokenVotesConfig,
    release: Release | None,
    ties: str,
) -> tuple[list[np.ndarray], np.ndarray]:
    """Tokens of each utterance, 0 at a reached end; and how much was asked and answered."""
    longest = np.array([config.longest(cut.duration) for cut in cuts])
    texts = np.full((len(cuts), int(longest.max()) + 1), UNANSWERED)
    reading = ensemble.token_votes(features, lengths)
    guide = None
    if public is not None:
        guide = TeacherEnsemble([public], per_token=True).token_votes(features, lengths)
    alive, asked, answered = np.arange(len(cuts)), 0, 0
    for step in range(texts.shape[1]):
        tokens, candidates = np.full(len(alive), UNANSWERED), None
        if guide is not None:
            own = guide.scores()[0].softmax(dim=1)
            probs, likeliest = own.sort(dim=1, descending=True, stable=True)
            candidates = likeliest[:, : config.top_k or None]
            confident = ~config.is_asked(probs[:, 0].cpu().numpy())
            tokens[confident] = likeliest[:, 0].cpu().numpy()[confident]
        # As many as may still be asked, and answered.
        now = _less(left, asked, answered)
        asks = np.flatnonzero(tokens == UNANSWERED)[: now.max_queries if now.max_answers > 0 else 0]
        noise = release.noise(ties, step) if release is not None else None
        counts = reading.counts(candidates)[asks]
        sizes = np.full(len(asks), counts.shape[1])
        answers = noisy_winners(counts.ravel(), sizes, now, noise)
        if candidates is not None:
            answers = np.where(answers < 0, UNANSWERED, candidates.cpu().numpy()[asks, answers])
        tokens[asks] = answers
        texts[alive, step] = tokens
        asked, answered = asked + len(asks), answered + int((tokens[asks] != UNANSWERED).sum())
        onward = np.flatnonzero((tokens > 0) & (step < longest[alive]))
        alive = alive[onward]
        if not len(alive):
            break
        reading.extend(onward, tokens[onward])
        if guide is not None:
            guide.extend(onward, tokens[onward])
    return [text[text != UNANSWERED] for text in texts], np.array([asked, answered])
