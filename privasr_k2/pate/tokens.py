"""Votes token by token: all teachers read what was answered so far, and vote for what comes next.

No list of hypotheses is needed; every token, and the end, costs an answer. An utterance whose end is not
reached, because a check fails or the votes are used up, has no label.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privasr_k2.decoding.end_to_end import join_tokens
from privasr_k2.decoding.jobs import ShareConfig, recognized
from privasr_k2.errors import ConfigError
from privasr_k2.pate.aggregate import AggregateConfig
from privasr_k2.pate.answers import UNANSWERED, noisy_winners
from privasr_k2.pate.ensembles import TeacherEnsemble
from privasr_k2.pate.mechanisms import EXACT, POSTERIORS, Setting, make_setting
from privasr_k2.pate.releases import about, read_answers, write_answers, write_labels
from privasr_k2.pate.shards import Shards
from privasr_k2.privacy.release import Release
from privasr_k2.randomness import stream

if TYPE_CHECKING:
    import torch
    from lhotse import CutSet
    from lhotse.cut import Cut

log = logging.getLogger(__name__)

TOKEN = "token"


@dataclass(frozen=True)
class TokenPoolConfig:
    """Whose tokens are voted on; defaults in ``conf/vote_tokens.yaml``.

    Args:
        role: which cuts are the pool.
        max_duration: seconds of speech that are read at a time.
        tokens_per_second: no label has more tokens.
        utterances: so many of the pool, drawn at random; 0: all.
    """

    role: str
    max_duration: float
    tokens_per_second: float
    utterances: int

    def __post_init__(self) -> None:
        if not self.tokens_per_second > 0 or not self.max_duration > 0:
            raise ValueError(
                "tokens_per_second and max_duration must be above 0, got "
                f"{self.tokens_per_second}, {self.max_duration}"
            )
        if self.utterances < 0:
            raise ValueError(f"utterances must be 0 or more, got {self.utterances}")


@dataclass(frozen=True)
class TokenVotesConfig(AggregateConfig, TokenPoolConfig):
    """A release of labels, token by token: ``conf/pate.yaml`` and ``conf/vote_tokens.yaml`` together."""

    def __post_init__(self) -> None:
        AggregateConfig.__post_init__(self)
        TokenPoolConfig.__post_init__(self)
        if self.mechanism in POSTERIORS or self.epsilon_means != EXACT:
            raise ValueError("mechanism must be one of votes, and epsilon_means exact, for votes on tokens")
        if self.order != "random":
            raise ValueError(f"order must be random for votes on tokens, got {self.order!r}")

    def longest(self, seconds: float) -> int:
        """Most tokens of an utterance, the end not counted."""
        return math.ceil(seconds * self.tokens_per_second)


def chosen(cuts: CutSet, config: TokenVotesConfig) -> CutSet:
    """The utterances that are asked about."""
    from lhotse import CutSet

    if not config.utterances:
        return cuts
    by_name = {cut.id: cut for cut in cuts}
    order = stream(config.seed, "utterances of token votes").permutation(len(by_name))[: config.utterances]
    names = sorted(by_name)
    return CutSet.from_cuts(by_name[names[place]] for place in order)


def settle_tokens(cuts: CutSet, shards: Shards, config: TokenVotesConfig) -> Setting:
    """The mechanism and its caps, before a teacher is asked.

    Raises:
        PrivacyError: what does not fit the budget.
    """
    most = sum(config.longest(cut.duration) + 1 for cut in cuts)
    return make_setting(
        config, teachers=shards.teachers, available=most, largest_weight=1.0, utterances=len(cuts)
    )


def release_tokens(
    folder: Path,
    ensemble: TeacherEnsemble,
    cuts: CutSet,
    shards: Shards,
    setting: Setting,
    config: TokenVotesConfig,
    device: str,
    release: Release | None,
) -> dict[str, object]:
    """Draw the answers, batch by batch, each written once; write the labels; finish.

    A batch that was written is read back by a later run; of one that was not, nothing has left.

    Args:
        folder: gets ``answers-<n>.safetensors`` and the labels.

    Raises:
        ConfigError: tokens that make no words.
        PrivacyError: the release is finished, and what it has drawn is gone.
    """
    names = ensemble.tokens
    if names is None:
        raise ConfigError("the teachers", "tokens with names", "none", "train them by train_am")
    found: list[tuple[str, np.ndarray]] = []
    used = np.zeros(2, dtype=np.int64)  # asked, answered
    batch = 0

    def label(features: torch.Tensor, lengths: torch.Tensor, own: Sequence[Cut]) -> list[np.ndarray]:
        nonlocal batch, used
        path = folder / f"answers-{batch}.safetensors"
        drawn = read_answers(path, release)
        if drawn is None:
            ties = f"batch {batch}"
            left = dataclasses.replace(
                setting, asked=setting.asked - int(used[0]), answers=setting.answers - int(used[1])
            )
            texts, spent = _stepwise(ensemble, features, lengths, own, left, config, release, ties)
            splits = np.cumsum([0, *map(len, texts)])
            values = {
                "tokens": np.concatenate([*texts, np.zeros(0, np.int64)]),
                "splits": splits,
                "used": spent,
            }
            drawn = values, {"ids": [cut.id for cut in own]}
            write_answers(path, *drawn, release)
        values = drawn[0]
        batch, used = batch + 1, used + values["used"]
        return np.split(values["tokens"], values["splits"][1:-1])

    share = ShareConfig(role=config.role, job=1, num_jobs=1, max_duration=config.max_duration)
    for cut, text in recognized(label, cuts, share, device):
        if text is not None and len(text) and text[-1] == 0:
            found.append((cut.id, text[:-1]))
    labels = [(name, [(join_tokens([names[token] for token in text]), 1.0)]) for name, text in found]
    told = about(
        setting, release=release, vote=TOKEN, unit=shards.unit, teachers=shards.teachers, asked=int(used[0]),
        answered=int(used[1]), utterances=(len(cuts), len(labels)),
    )  # fmt: skip
    write_labels(folder, labels, told)
    if release is not None:
        release.finish()
    return told


def _stepwise(
    ensemble: TeacherEnsemble,
    features: torch.Tensor,
    lengths: torch.Tensor,
    cuts: Sequence[Cut],
    left: Setting,
    config: TokenVotesConfig,
    release: Release | None,
    ties: str,
) -> tuple[list[np.ndarray], np.ndarray]:
    """Tokens of each utterance, a 0 at the end where it was reached, and what was asked and answered."""
    longest = np.array([config.longest(cut.duration) for cut in cuts])
    texts = np.full((len(cuts), int(longest.max()) + 1), UNANSWERED)
    reading = ensemble.token_votes(features, lengths)
    alive, counts = np.arange(len(cuts)), reading.counts
    asked = answered = 0
    for step in range(texts.shape[1]):
        # As many as may still be asked, and answered.
        now = dataclasses.replace(left, asked=left.asked - asked, answers=left.answers - answered)
        able = min(len(alive), now.asked if now.answers > 0 else 0)
        alive, counts = alive[:able], counts[:able]
        if not able:
            break
        sizes = np.full(able, counts.shape[1])
        broken = release.noise(ties, step) if release is not None else None
        tokens = noisy_winners(counts.ravel(), sizes, now, broken)
        texts[alive, step] = tokens
        asked, answered = asked + able, answered + int((tokens != UNANSWERED).sum())
        onward = np.flatnonzero((tokens > 0) & (step < longest[alive]))
        alive = alive[onward]
        if not len(alive):
            break
        counts = reading.extend(onward, tokens[onward])
    return [text[text != UNANSWERED] for text in texts], np.array([asked, answered])
