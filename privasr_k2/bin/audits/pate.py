"""Attack the release of labels: does one teacher's vote show?

Runs the code that answered, with the numbers of labels.json, on two histograms that differ in one teacher's
vote: about tied, and with a threshold also there. Again with the noise divided, which must exceed the claim,
and with next to none. It looks at no private vote. Noisy posteriors are attacked as with uniform weights.
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

log = logging.getLogger(__name__)

#: The share of the noise that stands for none.
_HARDLY_ANY = 1e-6


def event_of(told: Mapping[str, Any], asked: int, answers: int) -> Event:
    """Return the event of a number of answers, with the values of ``labels.json``."""
    from privasr_k2.privacy.pate.mechanisms import Amounts, mechanism

    amounts = Amounts(float(told["noise"]), answers, asked, told["threshold_noise"])
    return mechanism(told["mechanism"]).event(amounts)


def answer(setting: Setting, votes: np.ndarray, share: float) -> np.ndarray:
    """(Q,) labels of (Q, C) votes by the release's own code, with a share of the noise."""
    import numpy as np

    from privasr_k2.pate.answers import noisy_posteriors, noisy_winners, winners
    from privasr_k2.privacy.pate.mechanisms import POSTERIORS, mechanism
    from privasr_k2.randomness import new_secret, noise_stream

    share, sizes = max(share, _HARDLY_ANY), np.full(len(votes), votes.shape[1])
    noised = replace(
        setting, noise=setting.noise * share, threshold_noise=setting.threshold_noise * share,
        answers=len(votes), asked=len(votes),
    )  # fmt: skip
    secret = noise_stream(new_secret(), "audit")
    if mechanism(setting.mechanism).aggregates == POSTERIORS:
        return winners(noisy_posteriors(votes.ravel().astype(float), sizes, noised, 1.0, secret), sizes)
    return noisy_winners(votes.ravel(), sizes, noised, secret)


def audit(args: argparse.Namespace) -> None:
    """Attack and write ``args.out_audit``."""
    from privasr_k2.attack.vote_audit import AUDITS, VoteClaim, audit_lines, neighbours
    from privasr_k2.pate.mechanisms import RELATION, Setting
    from privasr_k2.privacy.pate.mechanisms import mechanism

    config, place = cli.load(VoteAuditConfig, args), args.in_labels / "labels.json"
    told = read_json(place)
    if told.get("epsilon") is None:
        raise DataError(place, "labels with a claim", "none", "audit a release with noise")
    attack = AUDITS[mechanism(told["mechanism"]).audit]
    asked, answers = told["votes_planned"]["asked"], told["votes_planned"]["answered"]
    whole = event_of(told, asked, answers)
    setting = Setting(
        told["mechanism"],
        told["noise"],
        told["threshold"],
        told["threshold_noise"],
        asked,
        answers,
        whole,
        None,
    )
    claim = VoteClaim(event_of(told, 1, 1), whole, answers, told["epsilon"]["delta"], RELATION)
    pairs, needed = {"tied": neighbours(told["teachers"])}, math.ceil(setting.threshold)
    if told["teachers"] / 2 + 1 <= needed <= told["teachers"]:
        pairs["at_threshold"] = neighbours(told["teachers"], threshold=needed)
    found = {key: told[key] for key in ("mechanism", "vote", "unit", "teachers", "noise")}
    for name, pair in pairs.items():
        found[name] = attack(lambda votes, share: answer(setting, votes, share), pair, claim, config)
        for what in ("one_answer", "whole_release"):
            for line in audit_lines(f"{name}, {what}".replace("_", " "), found[name][what]):
                log.info(line)
    write_json(args.out_audit, found)
