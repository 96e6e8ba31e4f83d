r"""Choose lambda of federated marginal personalization on the clients of dev, and alpha, beta and sigma.

    python -m privasr_k2.bin.tune_fmp --in-nbest exp/x/nbest_dev --in-timeline exp/fmp/timeline_dev.jsonl \
        --in-lm exp/x/lm/transformer --in-background data/manifests/cuts_train.jsonl.gz \
        --in-scores exp/x/lm_scores/ngram_dev.safetensors --in-weights exp/x/all/rescoring.json \
        --in-manifests data/manifests --out-choice exp/fmp/lambda.json --config conf/fmp.yaml#fmp

Tries config's lams with each of its alphas, betas and sigmas, where it lists any. criterion=errors: word
errors of rescoring with the weights of the unadapted models; the adapted one has the name of its folder, or
name=, and --in-scores the other models. criterion=perplexity (normalized scores): of the best hypotheses.
Ties go to the smaller lambda. Lists of another role than dev are refused.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import write_json

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, try, choose, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-nbest", type=Path, required=True, metavar="DIR", help="nbest_dev, with *.jsonl")
    made.add_argument("--in-timeline", type=Path, required=True, metavar="FILE", help="of prepare_fmp")
    made.add_argument("--in-lm", type=Path, required=True, metavar="LM", help="of train_lm, or an ARPA file")
    made.add_argument("--in-background", type=Path, required=True, metavar="FILE", help="of make_background")
    made.add_argument("--in-plain", type=Path, metavar="FILE", help="of score_nbest with the same LM")
    made.add_argument(
        "--in-scores", type=Path, nargs="*", default=[], metavar="FILE", help="of the other LMs"
    )
    made.add_argument("--in-weights", type=Path, metavar="FILE", help="rescoring.json, for errors")
    made.add_argument("--in-manifests", type=Path, metavar="DIR", help="what is scored")
    made.add_argument("--out-choice", type=Path, required=True, metavar="FILE", help="JSON")
    cli.add_device(made)
    cli.add_config(made)
    args = cli.parse(made)

    import torch

    from privasr_k2.decoding.tune import TUNING_ROLE
    from privasr_k2.federated.fmp_scores import open_adaptable, read_plain, read_world, token_scores
    from privasr_k2.federated.fmp_settings import FmpConfig
    from privasr_k2.federated.fmp_tuning import perplexities, word_errors

    torch.set_num_threads(args.num_jobs)
    config = cli.load(FmpConfig, args)
    role = args.in_nbest.name.removeprefix("nbest_")
    if role != TUNING_ROLE:
        found, way_out = f"those of {role}", "choose on dev, not on what is scored"
        raise DataError(args.in_nbest, f"the lists of {TUNING_ROLE}", found, way_out)
    by_errors = config.criterion == "errors"
    if by_errors != (args.in_weights is not None) or not (by_errors or config.normalized):
        wanted = "--in-weights for errors; normalized=true and no --in-weights for perplexity"
        raise ConfigError("the command line", wanted, f"criterion={config.criterion}", "see --help")
    lm = open_adaptable(args.in_lm, args.device)
    world = read_world(args.in_nbest, args.in_timeline, args.in_background, lm.numbers)
    plain = None if args.in_plain is None else read_plain(args.in_plain, world.lists)
    lams = sorted(set(config.lams))
    told: list[dict[str, float]] = []
    for point in config.tried():
        scores = token_scores(world, lm, replace(config, **point), lams, None, plain)
        if by_errors:
            name = config.name or lm.name
            tried = word_errors(world, scores, name, args.in_scores, args.in_weights, args.in_manifests)
        else:
            tried = perplexities(world, scores)
        told += [{"lam": lam, **point, config.criterion: value} for lam, value in zip(lams, tried)]
        log.info("%s: %s for lambda %s", point or "the settings", tried, lams)
    chosen = min(told, key=lambda one: (one[config.criterion], one["lam"]))
    at_end = chosen["lam"] == lams[-1] and len(lams) > 1
    choice = {key: value for key, value in chosen.items() if key != config.criterion}
    write_json(
        args.out_choice,
        {"role": role, **choice, "criterion": config.criterion, "at_end": at_end, "tried": told},
    )
    log.info("chosen: %s%s", choice, ", lambda at the end of what was tried" if at_end else "")


if __name__ == "__main__":
    cli.run(main)
