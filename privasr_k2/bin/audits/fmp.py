"""Attack the release of marginals: does a rare word that one unit has said show?

Twice: with a unit that says one word as often as the bound allows, and with the rarest word of the
lists. The bound is beneath the claim, and above it with a tenth of the noise. Beside it stands what
eq. 8 and 9 as published are worth at the same nominal epsilon.
"""

from __future__ import annotations

import argparse
import logging
from typing import Any

from privasr_k2.bin import cli
from privasr_k2.errors import PrivacyError
from privasr_k2.fileio import write_json

log = logging.getLogger(__name__)


def audit(args: argparse.Namespace) -> None:
    """Attack and write ``args.out_audit``."""
    from privasr_k2.federated.fmp_audit import audit_release, heaviest_unit, rarest_word
    from privasr_k2.federated.fmp_published import published_worth
    from privasr_k2.federated.fmp_release import FmpMechanism
    from privasr_k2.federated.fmp_scores import numbers_of_lm
    from privasr_k2.federated.fmp_settings import AuditedReleaseConfig
    from privasr_k2.federated.fmp_simulation import CacheConfig
    from privasr_k2.federated.fmp_spoken import spoken_of, unit_name
    from privasr_k2.federated.fmp_timeline import read_timeline
    from privasr_k2.scoring.nbest_lists import read_nbest

    config = cli.load(AuditedReleaseConfig, args)
    lists, timeline = read_nbest(args.in_nbest), read_timeline(args.in_timeline)
    spoken = spoken_of(lists, timeline, numbers_of_lm(args.in_lm))
    mechanism = FmpMechanism(config)
    attacked = {"heaviest_unit": heaviest_unit(mechanism)}
    try:
        attacked["rarest_word"] = rarest_word(spoken, mechanism)[1]
    except PrivacyError as error:
        log.warning("%s", error)
    audits: dict[str, Any] = {
        "unit": unit_name(spoken, config.unit),
        "mechanism": config.mechanism,
        "strategy": config.strategy,
    }
    limits = {"trials": config.trials, "confidence": config.confidence}
    for name, said in attacked.items():
        found = audit_release(mechanism, said, **limits)
        audits[name] = found.to_json()
        for line in found.lines():
            log.info("%s: %s", name, line)
    caches = CacheConfig(
        rounds=config.rounds, kernel_bandwidth=config.kernel_bandwidth, normalized_kernel=False,
        prior_words=0.0, decay=config.decay, refresh="round", client_fraction=1.0, seed=0,
    )  # fmt: skip
    worth = published_worth(spoken, caches, config.epsilon, config.delta, config.unit)
    audits["published"] = {
        "called": config.epsilon,
        **{kind: eps.value for kind, eps in worth.items()},
    }
    log.info("as published, epsilon %g is worth %s", config.epsilon, audits["published"])
    write_json(args.out_audit, audits)
