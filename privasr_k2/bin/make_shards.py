r"""Deal private data out to teachers: disjoint shards by speaker or utterance.

    python -m privasr_k2.bin.make_shards --in-private-feats data/feats_private \
        --in-public-dev data/feats_public --out-dir exp/pate/shards \
        --config conf/pate.yaml#shards --set teachers=15 unit=speaker

Writes shard_1/ ... shard_I/, each a features folder for train_am (train: its units; dev: the public part),
and shards.json. --in-public-roster names all units, a line each, where some of them may have no data.
"""

from __future__ import annotations

import logging
from collections import Counter

from privasr_k2.bin import cli

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, deal, write."""
    made = cli.parser(
        __doc__,
        in_private_feats="DIR role train is private",
        in_public_dev="DIR features; role dev",
        in_public_roster="[FILE] names of all units",
        out_dir="DIR the shards",
    )
    cli.add_config(made)
    args = cli.parse(made)

    from privasr_k2.pate.shards import ShardsConfig, make_shards

    config = cli.load(ShardsConfig, args)
    shards = make_shards(
        args.in_private_feats, args.in_public_dev, args.out_dir, config, args.in_public_roster
    )
    sizes = Counter(shards.roster.values()).values()
    log.info(
        "%d units (%s) in %d shards of %d to %d; the roster is public",
        *(len(shards.roster), shards.unit, shards.teachers, min(sizes), max(sizes)),
    )


if __name__ == "__main__":
    cli.run(main)
