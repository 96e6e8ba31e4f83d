r"""Part speech by people: a private side, a public side with its texts, and a public pool without texts.

    python -m privasr_k2.bin.split_speech --in-feats data/feats_fbank \
        --in-public-train data/public/feats_fbank --out-dir data/sides_fbank \
        --config conf/pate.yaml#split_speech --set 'pool_speakers=[anna,bert]'

Writes private/ and public/ (roles train and dev), pool/ (role pool) and sides.json, which names the people of
each side: that is public. A pool that the corpus has is taken; otherwise it is speakers of train, named, or
drawn by pool_share. In the same way --in-public-train, or speakers of train, are the public side. The
corpus's dev is taken to be public.
"""

from __future__ import annotations

import logging

from privasr_k2.bin import cli
from privasr_k2.data.private_public_split import SplitConfig, split_speech

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, deal out, write."""
    made = cli.parser(
        __doc__,
        in_feats="DIR features of the corpus",
        in_public_train="[DIR] features of another corpus, public",
        out_dir="DIR the sides",
    )
    cli.add_config(made)
    args = cli.parse(made)
    config = cli.load(SplitConfig, args)
    for side, speakers in split_speech(
        args.in_feats, args.out_dir, config, public_feats=args.in_public_train
    ).items():
        log.info("%s: %d speakers", side, len(speakers))


if __name__ == "__main__":
    cli.run(main)
