r"""Choose weights with the fewest errors on dev: of a first pass, or of rescoring with LMs.

    privasr verb tune_weights --in-hyps exp/ctc/decode_dev --out-weights exp/ctc/weights.json
    privasr verb tune_weights --in-nbest exp/x/nbest_dev \
        --in-scores exp/x/lstm_dev.safetensors exp/x/ngram_dev.safetensors \
        --config conf/common.yaml#rescore --out-weights exp/x/rescoring.json

--in-hyps chooses the LM weight and the insertion penalty from decode's grid. Ties go to the
smallest LM weight, then to the insertion penalty nearest to 0. --in-nbest and --in-scores choose
the weights of several language models. --in-frozen keeps the LM weight and the insertion penalty
of another choice: then the shares of the models alone are tried, so that no row gains by another
penalty. --out-weights holds the choice and the errors of the whole grid. Another role than dev is
refused.
"""

from __future__ import annotations

import argparse
import logging

from privasr_k2.bin import cli
from privasr_k2.decoding.lm_scores import candidates_of, read_lm_scores
from privasr_k2.decoding.rescoring import (
    GridConfig,
    Rescoring,
    choose,
    frozen,
    grid_errors,
    read_rescoring,
)
from privasr_k2.decoding.tune import tune, tuning_role
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import write_json
from privasr_k2.scoring.align import to_scored_units
from privasr_k2.scoring.corpus_info import read_corpus_info
from privasr_k2.scoring.hypotheses import check_complete, read_decoded
from privasr_k2.scoring.nbest_lists import check_nbest_complete, read_nbest

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, choose, write."""
    parser = cli.parser(__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    cli.add_flags(
        source, in_hyps="[DIR] decode_dev, with *.jsonl", in_nbest="[DIR] nbest_dev, with *.jsonl"
    )
    cli.add_flags(
        parser,
        in_scores="[FILE...] of lm_scores",
        in_frozen="[FILE] rescoring.json whose LM weight and insertion penalty are kept",
        in_manifests="[DIR] references, and what is scored",
        out_weights="FILE weights.json, rescoring.json",
    )
    args = cli.parse(parser)
    if bool(args.in_nbest) != bool(args.in_scores):
        place = "the command line"
        raise ConfigError(place, "--in-nbest with --in-scores", "one", "give the other")
    if args.in_frozen and not args.in_nbest:
        expected = "--in-frozen with --in-nbest"
        raise ConfigError("the command line", expected, "--in-hyps", "remove --in-frozen")
    if args.in_hyps:
        _first_pass(args)
    else:
        _rescoring(args)


def _first_pass(args: argparse.Namespace) -> None:
    decoded = read_decoded(args.in_hyps)
    choice = tune(decoded, read_corpus_info(args.in_manifests).scored_units)
    if args.in_manifests is not None:
        check_complete(decoded, args.in_manifests)
    write_json(args.out_weights, choice.to_dict())
    text = "%d settings on %s: the best is LM weight %s, insertion penalty %s (%.2f %% WER)"
    wer = choice.grid[choice.weights].percent
    log.info(text, len(choice.grid), choice.role, *choice.weights, wer)


def _rescoring(args: argparse.Namespace) -> None:
    config = cli.load(GridConfig, args)
    if args.in_frozen:
        config = frozen(config, read_rescoring(args.in_frozen)[2])
    role, lists = tuning_role(args.in_nbest), read_nbest(args.in_nbest)
    scores = read_lm_scores(args.in_scores, lists)
    if args.in_manifests:
        check_nbest_complete(lists, args.in_manifests / f"cuts_{role}.jsonl.gz")
    units = read_corpus_info(args.in_manifests).scored_units
    candidates = candidates_of(lists, scores, units)
    names = tuple(scores)
    lengths = {nbest.id: len(to_scored_units(nbest.ref.split(), units)) for nbest in lists.lists}
    # Without a path every word is a deletion, whatever the weights.
    lost = sum(lengths[nbest.id] for nbest in lists.lists if nbest.no_path)
    counts = grid_errors(candidates, names, config)
    errors = {point: count + lost for point, count in counts.items()}
    best, ref_words = choose(errors), sum(lengths.values())
    chosen = Rescoring(names, config.interpolation, best, role, errors, ref_words)
    write_json(args.out_weights, chosen.to_dict())
    log.info("%d settings of %s on %s: %s", len(errors), " + ".join(names), role, chosen.point)


if __name__ == "__main__":
    cli.run(main)
