"""Release labels of public utterances: noisy answers to private votes.

Utterances, their order, number of answers and mechanism are fixed before any vote is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from privasr_k2.constraints import one_of
from privasr_k2.errors import ConfigError, DataError, PrivacyError
from privasr_k2.graph.lexicon import spell_words
from privasr_k2.pate.mechanisms import MechanismConfig, Setting, make_setting
from privasr_k2.pate.nbest_hypotheses import NbestHypotheses
from privasr_k2.pate.noisy_answers import (
    UNANSWERED,
    noisy_posteriors,
    noisy_winners,
    on_simplex,
    winners,
)
from privasr_k2.pate.releases import (
    Weighted,
    about,
    collapsed,
    read_answers,
    write_answers,
    write_labels,
)
from privasr_k2.pate.votes import FRAME, UTTERANCE, Votes
from privasr_k2.privacy.pate.mechanisms import POSTERIORS, all_mechanisms, mechanism
from privasr_k2.privacy.release import Release
from privasr_k2.randomness import stream

ANSWERS = "answers-0.safetensors"


@dataclass(frozen=True)
class AggregateConfig(MechanismConfig):
    """A release of labels; ``conf/pate.yaml#pate`` explains the values."""

    order: Annotated[str, one_of("random", "unsure")]
    seed: int


@dataclass(frozen=True, eq=False)
class Asked:
    """The queries of a release, chosen without reading the counts.

    Attributes:
        places: (n,) utterances of the votes, in the order in which they are asked.
        setting: mechanism, noise, caps.
    """

    places: np.ndarray
    setting: Setting


def settle(votes: Votes, hypotheses: NbestHypotheses | None, config: AggregateConfig) -> Asked:
    """The utterances to query, in order, and the settings of the answers.

    Args:
        votes: whose counts are not looked at.
        hypotheses: that were voted on; None for frames.

    Raises:
        ConfigError: a mechanism that does not fit the votes.
        DataError: other hypotheses than those that were voted for.
        PrivacyError: what does not fit the budget.
    """
    chosen = mechanism(config.mechanism)
    if chosen.aggregates != votes.of:
        known = f"one of {', '.join(all_mechanisms(aggregates=votes.of))}"
        way_out = "change it, or cast votes with another of="
        raise ConfigError("mechanism", known, config.mechanism, way_out)
    if votes.vote == FRAME and (chosen.needs_threshold or config.order != "random"):
        expected = "a mechanism that answers all of them, order=random"
        raise ConfigError("votes on frames", expected, config.mechanism, "change it")
    if votes.vote == UTTERANCE:
        _check_hypotheses(votes, hypotheses)
    order = _order(votes, hypotheses, config)
    queries = np.diff(votes.splits)[order]
    pool = dict(teachers=votes.teachers, available=int(queries.sum()), utterances=len(order))
    by = dict(largest_weight=votes.largest_weight, change=votes.change)
    setting = make_setting(config, **by, **pool)
    # Whole utterances, as far as the budget goes.
    places = order[: int(np.searchsorted(np.cumsum(queries), setting.max_queries, side="right"))]
    if not len(places):
        allowed, wanted = f"{setting.max_queries:,} votes", f"the {queries[0]:,} of one utterance"
        raise PrivacyError(allowed, wanted, "fewer", "more noise or epsilon")
    return Asked(places, setting)


def _order(votes: Votes, hypotheses: NbestHypotheses | None, config: AggregateConfig) -> np.ndarray:
    shuffled = stream(config.seed, "order of votes").permutation(len(votes.ids))
    if config.order == "random" or hypotheses is None:
        return shuffled
    margins = np.array([hypotheses.margins[votes.ids[place]] for place in shuffled])
    return shuffled[np.argsort(margins, kind="stable")]


def _check_hypotheses(votes: Votes, hypotheses: NbestHypotheses | None) -> None:
    known = hypotheses is not None and all(name in hypotheses.words for name in votes.ids)
    if not known or any(hypotheses.digest(names) != digest for names, digest in votes.digests):  # type: ignore[union-attr]
        expected, way_out = "those that were voted for", "cast the votes again, or give those"
        raise DataError("the public N-best lists", expected, "others", way_out)


def write_release(
    folder: Path,
    votes: Votes,
    hypotheses: NbestHypotheses | None,
    asked: Asked,
    release: Release | None,
) -> dict[str, object]:
    """Draw the answers once, or read those of this release; write the labels; finish.

    Args:
        folder: gets ``answers-0.safetensors``, ``labels.jsonl`` and ``labels.json``.
        release: None without noise.

    Returns:
        the content of ``labels.json``.

    Raises:
        PrivacyError: the release is finished, and its answers are gone.
    """
    path = folder / ANSWERS
    queries, sizes, counts = votes.of_utterances(asked.places)
    answers = read_answers(path, release)
    if answers is None:
        # Refused where the release is finished.
        ties = release.noise("answers") if release is not None else None
        if votes.of == POSTERIORS:
            values = counts * votes.step
            drawn = noisy_posteriors(values, sizes, asked.setting, votes.largest_weight, ties)
        else:
            drawn = noisy_winners(counts, sizes, asked.setting, ties)
        ids = [votes.ids[place] for place in asked.places]
        answers = {"drawn": drawn}, {"ids": ids}
        write_answers(path, *answers, release)
    drawn, ids = answers[0]["drawn"], answers[1]["ids"]
    if votes.of == POSTERIORS:
        labels = [*_weighted(ids, drawn / votes.teachers, queries, sizes, votes, hypotheses)]
        answered = len(sizes)
    else:
        labels = [*_chosen(ids, drawn, queries, votes, hypotheses)]
        answered = int((drawn != UNANSWERED).sum())
    numbers = dict(asked=len(sizes), answered=answered, utterances=(len(ids), len(labels)))
    who = dict(vote=votes.vote, unit=votes.unit, teachers=votes.teachers)
    who["units_in_a_shard"] = votes.units_in_a_shard
    summary = about(asked.setting, release=release, **who, **numbers)
    in_phones = votes.vote == FRAME and not spell_words(votes.tokens)
    write_labels(folder, labels, summary, in_phones=in_phones)
    if release is not None:
        release.finish()
    return summary


def _chosen(
    ids: list[str],
    drawn: np.ndarray,
    queries: np.ndarray,
    votes: Votes,
    hypotheses: NbestHypotheses | None,
) -> Iterator[tuple[str, Weighted]]:
    if votes.vote == UTTERANCE:
        assert hypotheses is not None
        for name, place in zip(ids, drawn.tolist()):
            if place != UNANSWERED:
                yield name, [(hypotheses.words[name][place], 1.0)]
    else:
        for name, path in zip(ids, np.split(drawn, np.cumsum(queries)[:-1])):
            yield name, [(collapsed(path.tolist(), votes.tokens), 1.0)]


def _weighted(
    ids: list[str],
    noisy: np.ndarray,
    queries: np.ndarray,
    sizes: np.ndarray,
    votes: Votes,
    hypotheses: NbestHypotheses | None,
) -> Iterator[tuple[str, Weighted]]:
    """Shares of hypotheses [yang2022, eq. 5], or the best path of noisy frames."""
    if votes.vote == FRAME:
        yield from _chosen(ids, winners(noisy, sizes), queries, votes, hypotheses)
        return
    assert hypotheses is not None
    shares = on_simplex(noisy, sizes)
    for name, own in zip(ids, np.split(shares, np.cumsum(sizes)[:-1])):
        pairs = zip(hypotheses.words[name], own.tolist())
        kept = [(text, share) for text, share in pairs if share > 0]
        total = sum(share for _, share in kept)
        yield name, [(text, w / total) for text, w in sorted(kept, key=lambda hyp: -hyp[1])]
