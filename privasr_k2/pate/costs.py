"""The data-dependent cost of a release's answers. It is private, and no guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import read_arrays, read_json
from privasr_k2.pate.aggregate import ANSWERS
from privasr_k2.pate.releases import ABOUT
from privasr_k2.pate.votes import Votes
from privasr_k2.privacy.pate.best_order import NotForRelease
from privasr_k2.privacy.pate.mechanisms import Amounts, all_mechanisms, mechanism


def read_asked(labels: Path) -> tuple[dict[str, Any], list[str]]:
    """The content of ``labels.json`` of ``aggregate_votes``, and the utterances that were queried.

    Raises:
        DataError: labels without noise, or of another verb.
    """
    told = read_json(labels / ABOUT)
    if told.get("epsilon") is None:
        raise DataError(labels / ABOUT, "labels with a claim", "none", "give a release with noise")
    expected, way_out = "answers of aggregate_votes", "give its folder of labels"
    header, _ = read_arrays(labels / ANSWERS, [], expected=expected, way_out=way_out)
    return told, list(header.get("ids", ()))


def vote_costs(votes: Votes, told: Mapping[str, Any], asked: list[str]) -> NotForRelease:
    """The data-dependent cost of the answers to these votes.

    Queries with fewer classes than others get classes without votes, which makes the cost no
    smaller.

    Args:
        told, asked: what :func:`read_asked` gave.

    Raises:
        ConfigError: a mechanism whose cost does not depend on the votes.
        DataError: answers about utterances that nobody voted on.
    """
    chosen = mechanism(told["mechanism"])
    if chosen.votes_cost is None:
        known = [name for name in all_mechanisms() if mechanism(name).votes_cost is not None]
        raise ConfigError(
            "mechanism", f"one of {', '.join(known)}", chosen.name, "see labels.json for its cost"
        )
    places = {name: place for place, name in enumerate(votes.ids)}
    if not asked or not set(asked) <= set(places):
        raise DataError(
            "the votes", "those that were answered", "others", "give the votes of these labels"
        )
    _, sizes, flat = votes.of_utterances(np.array([places[name] for name in asked]))
    counts = np.zeros((len(sizes), int(sizes.max())), dtype=np.int64)
    counts[np.arange(counts.shape[1]) < sizes[:, None]] = flat
    answers = min(told["votes_planned"]["answered"], len(counts))
    amounts = Amounts(told["noise"], answers, len(counts), told["threshold_noise"])
    return chosen.votes_cost(counts, amounts, told["threshold"], told["epsilon"]["delta"])
