r"""Split private data into disjoint shards by speaker or utterance, one for each teacher.

    privasr verb make_shards --in-private-feats data/feats_private \
        --in-public-dev data/feats_public --in-public-roster data/speakers.txt \
        --out-dir exp/pate/shards --config conf/pate.yaml#shards --set teachers=15 unit=speaker

--out-dir gets shards.json and the features folders shard_1/ ... shard_I/. Their role train holds
the units of the shard, their role dev the public part. --in-public-roster lists all units: a
speaker a line, or for unit=utterance an utterance and its speaker, as Kaldi's utt2spk. It is
public. A listed unit may have no data, and then a shard may be empty: its teacher does not vote.
"""

from __future__ import annotations

import logging

from privasr_k2.bin import cli

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, deal, write."""
    args = cli.arguments(
        __doc__,
        in_private_feats="DIR role train is private",
        in_public_dev="DIR features; role dev",
        in_public_roster="FILE names of all units; public",
        out_dir="DIR the shards",
    )

    from privasr_k2.pate.shards import ShardsConfig, make_shards

    config = cli.load(ShardsConfig, args)
    shards = make_shards(
        args.in_private_feats, args.in_public_dev, args.out_dir, config, args.in_public_roster
    )
    log.info(
        "%d units (%s) on the public roster, at most %d in one of %d shards; L2 sensitivity %.3g",
        *(len(shards.roster), shards.unit, shards.units_in_a_shard, shards.teachers),
        shards.change.l2,
    )


if __name__ == "__main__":
    cli.run(main)
