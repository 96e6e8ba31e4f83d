r"""Choose on dev how several language models are combined when N-best lists are rescored.

  python -m privasr_k2.bin.tune_rescoring --in-nbest exp/x/nbest_dev --in-scores exp/x/lstm_dev.safetensors \
      exp/x/ngram_dev.safetensors --config conf/common.yaml#rescore --out-weights exp/x/rescoring.json

Lists of another role than dev are refused. The whole grid's errors are written beside the choice.
"""

from __future__ import annotations

import logging
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.decoding.lm_scores import candidates_of, read_lm_scores
from privasr_k2.decoding.rescoring import GridConfig, Rescoring, choose, grid_errors
from privasr_k2.decoding.tune import TUNING_ROLE
from privasr_k2.errors import DataError
from privasr_k2.fileio import write_json
from privasr_k2.scoring.align import to_scored_units
from privasr_k2.scoring.corpus_info import read_corpus_info
from privasr_k2.scoring.nbest_lists import check_nbest_complete, read_nbest

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, choose, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-nbest", type=Path, required=True, metavar="DIR", help="nbest_dev, with *.jsonl")
    made.add_argument(
        "--in-scores", type=Path, required=True, nargs="+", metavar="FILE", help="of score_nbest"
    )
    made.add_argument("--in-manifests", type=Path, metavar="DIR", help="references, and what is scored")
    made.add_argument("--out-weights", type=Path, required=True, metavar="FILE", help="rescoring.json")
    cli.add_config(made)
    args = cli.parse(made)
    config = cli.load(GridConfig, args)
    role = args.in_nbest.name.removeprefix("nbest_")
    if role != TUNING_ROLE:
        found = f"those of {role}"
        raise DataError(
            args.in_nbest, f"the lists of {TUNING_ROLE}", found, "choose on dev, not on what is scored"
        )

    lists = read_nbest(args.in_nbest)
    scores = read_lm_scores(args.in_scores, lists)
    if args.in_manifests:
        check_nbest_complete(lists, args.in_manifests / f"cuts_{role}.jsonl.gz")
    units = read_corpus_info(args.in_manifests).scored_units
    candidates = candidates_of(lists, scores, units)
    names = tuple(scores)
    lengths = {one.id: len(to_scored_units(one.ref.split(), units)) for one in lists.lists}
    # Without a path every word is a deletion, whatever the weights.
    lost = sum(lengths[one.id] for one in lists.lists if one.no_path)
    errors = {point: count + lost for point, count in grid_errors(candidates, names, config).items()}
    chosen = Rescoring(names, config.interpolation, choose(errors), role, errors, sum(lengths.values()))
    write_json(args.out_weights, chosen.to_dict())
    log.info("%d settings of %s on %s: %s", len(errors), " + ".join(names), role, chosen.point)


if __name__ == "__main__":
    cli.run(main)
