"""Choose the LM weight and the insertion penalty with the fewest errors on dev.

  python -m privasr_k2.bin.tune_weights --in-hyps exp/ctc/decode_dev --out-weights exp/ctc/weights.json

Reads a folder that ``decode`` wrote for dev (another role is refused); writes the choice with the error
counts of the whole grid. Of points with equally many errors it takes the smallest LM weight, then the
insertion penalty nearest to 0.
"""

from __future__ import annotations

import logging
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.decoding.tune import tune
from privasr_k2.fileio import write_json
from privasr_k2.scoring.corpus_info import read_corpus_info
from privasr_k2.scoring.hypotheses import check_complete, read_decoded


def main() -> None:
    """Parse, choose, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-hyps", type=Path, required=True, metavar="DIR", help="decode_dev, with *.jsonl")
    made.add_argument(
        "--in-manifests", type=Path, metavar="DIR", help="to find lost utterances, and units to score"
    )
    made.add_argument("--out-weights", type=Path, required=True, metavar="FILE", help="weights.json")
    args = cli.parse(made)

    decoded = read_decoded(args.in_hyps)
    choice = tune(decoded, read_corpus_info(args.in_manifests).scored_units)
    if args.in_manifests is not None:
        check_complete(decoded, args.in_manifests)
    write_json(args.out_weights, choice.to_dict())
    logging.info(
        "%d settings on %s: the best is LM weight %s, insertion penalty %s (%.2f %% WER)",
        len(choice.grid),
        choice.role,
        choice.weights.lm_weight,
        choice.weights.insertion_penalty,
        choice.grid[choice.weights].percent,
    )


if __name__ == "__main__":
    cli.run(main)
