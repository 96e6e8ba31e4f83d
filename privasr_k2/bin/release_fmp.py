r"""Release the global marginals of all rounds with a guarantee for each utterance, user or client.

    python -m privasr_k2.bin.release_fmp --in-private-nbest exp/x/nbest_test \
        --in-private-timeline exp/fmp/timeline_test.jsonl --in-public-lm exp/x/lm/transformer \
        --out-release exp/fmp/user_1/marginals.safetensors --out-privacy exp/fmp/user_1/privacy.json \
        --ledger privacy/ledger.json \
        --config conf/fmp.yaml#fmp_release --set data=mini/test unit=user epsilon=1

Counts of the public vocabulary, clipped unit by unit, with discrete noise; run_fmp --in-release reads them.
A killed run is continued with the same noise, and spends nothing more.
"""

from __future__ import annotations

import logging
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, spend, add noise, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-private-nbest", type=Path, required=True, metavar="DIR", help="with *.jsonl")
    made.add_argument(
        "--in-private-timeline", type=Path, required=True, metavar="FILE", help="of prepare_fmp"
    )
    made.add_argument(
        "--in-public-lm", type=Path, required=True, metavar="LM", help="whose words are counted"
    )
    made.add_argument("--out-release", type=Path, required=True, metavar="FILE", help="*.safetensors")
    made.add_argument("--out-privacy", type=Path, required=True, metavar="FILE", help="privacy.json")
    made.add_argument("--ledger", type=Path, required=True, metavar="FILE", help="of the private lists")
    made.add_argument("--max-epsilon", type=float, metavar="X", help="refuse to spend beyond it")
    cli.add_config(made)
    args = cli.parse(made)

    from privasr_k2.federated.fmp_release import FmpMechanism, FmpReleaseConfig, unit_numbers, write_release
    from privasr_k2.federated.fmp_scores import numbers_of_lm
    from privasr_k2.federated.fmp_spoken import spoken_of
    from privasr_k2.federated.fmp_timeline import read_timeline
    from privasr_k2.privacy import release
    from privasr_k2.privacy.spending import guarantees
    from privasr_k2.scoring.nbest_lists import read_nbest

    config = cli.load(FmpReleaseConfig, args)
    if not config.data:
        raise ConfigError("data", "a corpus and its part", "nothing", "name it: --set data=mini/test")
    lists, timeline = read_nbest(args.in_private_nbest), read_timeline(args.in_private_timeline)
    spoken = spoken_of(lists, timeline, numbers_of_lm(args.in_public_lm))
    mechanism = FmpMechanism(config)
    spent = mechanism.spending(unit_numbers(spoken, config.unit)[1])
    inputs = [args.in_private_nbest, args.in_private_timeline, args.in_public_lm]
    with release.begin(
        args.ledger,
        beside=args.out_privacy,
        spending=spent,
        fingerprint=release.fingerprint_of(config, inputs),
        max_epsilon=args.max_epsilon,
    ) as begun:
        write_release(args.out_release, spoken, mechanism, begun)
    log.info("noise of a word's running count: %.3g words after the last round", mechanism.errors()[-1])
    for line in guarantees([spent])[0].lines():
        log.info(line)


if __name__ == "__main__":
    cli.run(main)
