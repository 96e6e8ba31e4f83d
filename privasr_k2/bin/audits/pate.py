"""Attack the release of labels: does one teacher's vote show?

Runs the code that answered, with the numbers of labels.json, on two histograms that differ in one
teacher's vote, which moves, or is missing where a shard holds one unit at most: about tied, and
with a threshold also there. Again with the noise divided, which must exceed the claim, and with
next to none. It looks at no private vote. Noisy posteriors are attacked as with uniform weights.
"""

from __future__ import annotations

import argparse
import logging
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from privasr_k2.attack.settings import VoteAuditConfig
from privasr_k2.bin import cli
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json, write_json

if TYPE_CHECKING:
    import numpy as np

    from privasr_k2.pate.mechanisms import Setting
    from privasr_k2.privacy.events import Event
    from privasr_k2.privacy.pate.sensitivity import Change

log = logging.getLogger(__name__)

#: The share of the noise that stands for none.
_HARDLY_ANY = 1e-6


def event_of(summary: Mapping[str, Any], asked: int, answers: int) -> Event:
    """The privacy event of ``answers`` answers, by the settings in ``labels.json``."""
    from privasr_k2.privacy.pate.mechanisms import Amounts, mechanism

    checks = (asked, summary["threshold_noise"])
    amounts = Amounts(float(summary["noise"]), answers, *checks, change=change_of(summary))
    return mechanism(summary["mechanism"]).event(amounts)


def change_of(summary: Mapping[str, Any]) -> Change:
    """What one unit changes in a query, by ``labels.json``; earlier ones do not say: it moves."""
    from privasr_k2.privacy.pate.sensitivity import Change

    return Change.of(summary.get("units_in_a_shard", 2))


def answer(setting: Setting, votes: np.ndarray, share: float) -> np.ndarray:
    """(Q,) labels of (Q, C) votes by the release's own code, with a share of the noise."""
    import numpy as np

    from privasr_k2.pate.noisy_answers import noisy_posteriors, noisy_winners, winners
    from privasr_k2.privacy.pate.mechanisms import POSTERIORS, mechanism
    from privasr_k2.randomness import new_secret, noise_stream

    share, sizes = max(share, _HARDLY_ANY), np.full(len(votes), votes.shape[1])
    noised = replace(
        setting, noise=setting.noise * share, threshold_noise=setting.threshold_noise * share,
        max_answers=len(votes), max_queries=len(votes),
    )  # fmt: skip
    secret = noise_stream(new_secret(), "audit")
    if mechanism(setting.mechanism).aggregates == POSTERIORS:
        return winners(
            noisy_posteriors(votes.ravel().astype(float), sizes, noised, 1.0, secret), sizes
        )
    return noisy_winners(votes.ravel(), sizes, noised, secret)


def audit(args: argparse.Namespace) -> None:
    """Attack and write ``args.out_audit``."""
    from privasr_k2.attack.vote_audit import AUDITS, VoteClaim, audit_lines, neighbours
    from privasr_k2.pate.mechanisms import RELATION, Setting
    from privasr_k2.privacy.pate.mechanisms import mechanism

    config, about = cli.load(VoteAuditConfig, args), args.in_labels / "labels.json"
    summary = read_json(about)
    if summary.get("epsilon") is None:
        raise DataError(about, "labels with a claim", "none", "audit a release with noise")
    attack = AUDITS[mechanism(summary["mechanism"]).audit]
    asked, answers = summary["votes_planned"]["asked"], summary["votes_planned"]["answered"]
    whole = event_of(summary, asked, answers)
    known = {key: summary[key] for key in ("mechanism", "noise", "threshold", "threshold_noise")}
    change, caps = change_of(summary), {"max_queries": asked, "max_answers": answers}
    setting = Setting(**known, **caps, change=change, event=whole, epsilon=None)
    claim = VoteClaim(
        event_of(summary, 1, 1), whole, answers, summary["epsilon"]["delta"], RELATION
    )
    pairs = {"tied": neighbours(summary["teachers"], change=change)}
    needed = math.ceil(setting.threshold)
    if summary["teachers"] / 2 + 1 <= needed <= summary["teachers"]:
        pairs["at_threshold"] = neighbours(summary["teachers"], threshold=needed, change=change)
    results = {key: summary[key] for key in ("mechanism", "vote", "unit", "teachers", "noise")}
    for name, pair in pairs.items():
        results[name] = attack(
            lambda votes, share: answer(setting, votes, share), pair, claim, config
        )
        for what in ("one_answer", "whole_release"):
            for line in audit_lines(f"{name}, {what}".replace("_", " "), results[name][what]):
                log.info(line)
    write_json(args.out_audit, results)
