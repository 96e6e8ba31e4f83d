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
from privasr_k2.privacy.pate.sensitivity import Change


def read_asked(labels: Path) -> tuple[dict[str, Any], list[str]]:
    """The content of ``labels.json`` of ``aggregate_votes``, and the utterances that were queried.

    Raises:
        DataError: labels without noise, or of another verb.
    """
    about = read_json(labels / ABOUT)
    if about.get("epsilon") is None:
        raise DataError(labels / ABOUT, "labels with a claim", "none", "give a release with noise")
    expected, way_out = "answers of aggregate_votes", "give its folder of labels"
    header, _ = read_arrays(labels / ANSWERS, [], expected=expected, way_out=way_out)
    return about, list(header.get("ids", ()))


def vote_costs(votes: Votes, about: Mapping[str, Any], asked: list[str]) -> NotForRelease:
    """The data-dependent cost of the answers to these votes.

    Classes without votes are added to queries with fewer classes; the cost grows or stays.

    Args:
        about, asked: what :func:`read_asked` gave.

    Raises:
        ConfigError: a mechanism whose cost does not depend on the votes.
        DataError: answers about utterances without votes.
    """
    chosen = mechanism(about["mechanism"])
    if chosen.votes_cost is None:
        known = [name for name in all_mechanisms() if mechanism(name).votes_cost is not None]
        way_out = "see labels.json for its cost"
        raise ConfigError("mechanism", f"one of {', '.join(known)}", chosen.name, way_out)
    places = {name: place for place, name in enumerate(votes.ids)}
    if not asked or not set(asked) <= set(places):
        way_out = "give the votes of these labels"
        raise DataError("the votes", "those that were answered", "others", way_out)
    _, sizes, flat = votes.of_utterances(np.array([places[name] for name in asked]))
    counts = np.zeros((len(sizes), int(sizes.max())), dtype=np.int64)
    counts[np.arange(counts.shape[1]) < sizes[:, None]] = flat
    answers = min(about["votes_planned"]["answered"], len(counts))
    change = Change.of(about.get("units_in_a_shard", 2))
    checked = (len(counts), about["threshold_noise"])
    amounts = Amounts(about["noise"], answers, *checked, change=change)
    return chosen.votes_cost(counts, amounts, about["threshold"], about["epsilon"]["delta"])
