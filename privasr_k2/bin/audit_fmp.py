r"""Attack the release of marginals: does a rare word that one unit has said show? A lower bound on epsilon.

    python -m privasr_k2.bin.audit_fmp --in-nbest exp/x/nbest_test --in-timeline exp/fmp/timeline_test.jsonl \
        --in-lm exp/x/lm/transformer --out-audit exp/fmp/audit.json \
        --config conf/fmp.yaml#fmp_release conf/fmp.yaml#fmp_audit --set data=mini/test unit=user epsilon=1

Twice: with a unit that says one word as often as the bound allows, and with the rarest word of the lists. The
bound is beneath the claim, and above it with a tenth of the noise. Beside it stands what eq. 8 and 9 as
published are worth at the same nominal epsilon. What is written is for the owner: no guarantee covers it.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from privasr_k2.bin import cli
from privasr_k2.errors import PrivacyError
from privasr_k2.fileio import write_json

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, attack, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-nbest", type=Path, required=True, metavar="DIR", help="with *.jsonl")
    made.add_argument("--in-timeline", type=Path, required=True, metavar="FILE", help="of prepare_fmp")
    made.add_argument("--in-lm", type=Path, required=True, metavar="LM", help="whose words are counted")
    made.add_argument("--out-audit", type=Path, required=True, metavar="FILE", help="JSON")
    cli.add_config(made)
    args = cli.parse(made)

    from privasr_k2.federated.fmp_audit import audit_release, heaviest_unit, rarest_word
    from privasr_k2.federated.fmp_published import published_worth
    from privasr_k2.federated.fmp_release import FmpMechanism
    from privasr_k2.federated.fmp_scores import numbers_of_lm
    from privasr_k2.federated.fmp_settings import AuditedReleaseConfig
    from privasr_k2.federated.fmp_simulation import CacheConfig
    from privasr_k2.federated.fmp_spoken import spoken_of
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
    found: dict[str, Any] = {"unit": config.unit, "mechanism": config.mechanism, "strategy": config.strategy}
    for name, said in attacked.items():
        audit = audit_release(mechanism, said, trials=config.trials, confidence=config.confidence)
        found[name] = audit.to_json()
        for line in audit.lines():
            log.info("%s: %s", name, line)
    caches = CacheConfig(
        rounds=config.rounds, sigma=config.sigma, normalized_kernel=False, prior_words=0.0,
        decay=config.decay, refresh="round", client_rate=1.0, seed=0,
    )  # fmt: skip
    worth = published_worth(spoken, caches, config.epsilon, config.delta, config.unit)
    found["published"] = {"called": config.epsilon, **{kind: eps.value for kind, eps in worth.items()}}
    log.info("as published, epsilon %g is worth %s", config.epsilon, found["published"])
    write_json(args.out_audit, found)


if __name__ == "__main__":
    cli.run(main)
