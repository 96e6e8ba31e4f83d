"""Count the background unigrams u that marginals are compared with [liu2020, eq. 2].

Reads text as train_lm does: that of the cuts of the role train and lm_text.txt.gz, or --raw-text in place of
the latter; or, in place of both, the files of --in-text. It should be what the language model was trained on:
u stands for what that expects. Words are those of the model, others count as <unk> where it has that.

    python -m privasr_k2.bin.make_background --in-manifests data/manifests --in-lm exp/fmp/lm/transformer \\
        --out-background exp/fmp/background.safetensors --config conf/fmp.yaml#fmp_background
"""

from __future__ import annotations

import logging
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.errors import DataError

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, count, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-manifests", type=Path, metavar="DIR", help="cuts of train, maybe lm_text.txt.gz")
    source = made.add_mutually_exclusive_group()
    source.add_argument(
        "--in-text", type=Path, nargs="+", metavar="FILE", help="*.jsonl(.gz) or plain, not the corpus's"
    )
    source.add_argument(
        "--raw-text", type=Path, help="a normalized sentence a line, in place of lm_text.txt.gz"
    )
    made.add_argument("--in-lm", type=Path, required=True, metavar="LM", help="of train_lm, or an ARPA file")
    made.add_argument("--out-background", type=Path, required=True, metavar="FILE", help="*.safetensors")
    cli.add_config(made)
    args = cli.parse(made)

    from privasr_k2.federated.fmp_background import BackgroundConfig, write_background
    from privasr_k2.federated.fmp_scores import numbers_of_lm
    from privasr_k2.federated.marginals import background_unigrams
    from privasr_k2.lm.train import training_text

    config, numbers = cli.load(BackgroundConfig, args), numbers_of_lm(args.in_lm)
    text = training_text(config, args.in_manifests, args.in_text, args.raw_text)
    if not any(text):
        place = args.in_manifests or args.in_text[0]
        raise DataError(place, "a text of one word or more", "none", "choose another text")
    write_background(args.out_background, background_unigrams(text, numbers, config.prior_words), numbers)
    log.info("%d words of %d sentences", sum(map(len, text)), len(text))


if __name__ == "__main__":
    cli.run(main)
