r"""Release the global marginals by eq. 8 and 9 of liu2020 as published, and say what its epsilon is worth.

    python -m privasr_k2.bin.release_fmp_published --in-private-nbest exp/x/nbest_test \
        --in-private-timeline exp/fmp/timeline_test.jsonl --in-public-lm exp/x/lm/transformer \
        --in-public-background exp/fmp/background.safetensors \
        --out-release exp/fmp/published_1/marginals.safetensors \
        --out-privacy exp/fmp/published_1/privacy.json --ledger privacy/ledger.json \
        --config conf/fmp.yaml#fmp_published --set data=mini/test epsilon=1

For comparison only: nothing is clipped, so that the guarantee in privacy.json is for units of at most
``words`` words, and that epsilon is far above the published one. Use release_fmp.
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
    made.add_argument(
        "--in-public-background", type=Path, required=True, metavar="FILE", help="u, of make_background"
    )
    made.add_argument("--out-release", type=Path, required=True, metavar="FILE", help="*.safetensors")
    made.add_argument("--out-privacy", type=Path, required=True, metavar="FILE", help="privacy.json")
    made.add_argument("--ledger", type=Path, required=True, metavar="FILE", help="of the private lists")
    made.add_argument("--max-epsilon", type=float, metavar="X", help="refuse to spend beyond it")
    cli.add_config(made)
    args = cli.parse(made)

    from privasr_k2.federated.fmp_published_release import spending_of, write_published
    from privasr_k2.federated.fmp_scores import numbers_of_lm, read_world
    from privasr_k2.federated.fmp_settings import PublishedConfig
    from privasr_k2.privacy import release
    from privasr_k2.privacy.spending import guarantees

    config = cli.load(PublishedConfig, args)
    if not config.data:
        raise ConfigError("data", "a corpus and its part", "nothing", "name it: --set data=mini/test")
    lists, timeline, background = args.in_private_nbest, args.in_private_timeline, args.in_public_background
    world = read_world(lists, timeline, background, numbers_of_lm(args.in_public_lm))
    spent = spending_of(config, world.spoken)
    inputs = [lists, timeline, args.in_public_lm, background]
    with release.begin(
        args.ledger,
        beside=args.out_privacy,
        spending=spent,
        fingerprint=release.fingerprint_of(config, inputs),
        max_epsilon=args.max_epsilon,
    ) as begun:
        write_published(args.out_release, world.spoken, config, world.background, begun)
    log.warning("published as epsilon %g; a %s of %g words has:", config.epsilon, config.unit, config.words)
    for line in guarantees([spent])[0].lines():
        log.warning(line)


if __name__ == "__main__":
    cli.run(main)
