r"""Split a corpus by speakers into private speech, public speech and a public pool without texts.

    privasr verb split_speech --in-feats data/feats_fbank \
        --in-public-train data/public/feats_fbank --out-dir data/sides_fbank \
        --config conf/pate.yaml#split_speech --set 'pool_speakers=[anna,bert]'

--out-dir gets private/ and public/ (roles train and dev), pool/ (role pool) and sides.json, which
names the speakers of each. roster_speaker.txt and roster_utterance.txt name the private units,
whether or not they have data: those of --in-public-roster (a speaker a line, or Kaldi's utt2spk),
else of train of --in-manifests. Sides are dealt out by the roster. All of that but private/ is
public, as is the corpus's dev. The pool is that of the corpus. Otherwise it has the named speakers
of train, or a drawn pool_share of them. Likewise the public speech is --in-public-train, or
speakers of train.
"""

from __future__ import annotations

import logging

from privasr_k2.bin import cli
from privasr_k2.data.private_public_split import SplitConfig, split_speech

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, deal out, write."""
    args = cli.arguments(
        __doc__,
        in_feats="DIR features of the corpus",
        in_manifests="[DIR] the corpus before features, whose train is the roster",
        in_public_roster="[FILE] all of train in its place, also who has no data",
        in_public_train="[DIR] features of another corpus, public",
        out_dir="DIR the sides",
    )
    config = cli.load(SplitConfig, args)
    sides = split_speech(
        args.in_feats,
        args.out_dir,
        config,
        public_feats=args.in_public_train,
        manifests=args.in_manifests,
        roster=args.in_public_roster,
    )
    for side, speakers in sides.items():
        log.info("%s: %d speakers", side, len(speakers))


if __name__ == "__main__":
    cli.run(main)
