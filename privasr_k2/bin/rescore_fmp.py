r"""Score N-best lists with an LM that federated marginals adapt [liu2020], or choose lambda on dev.

    privasr verb rescore_fmp --in-nbest exp/x/nbest_test --in-timeline exp/fmp/timeline_test.jsonl \
        --in-lm exp/x/lm/transformer --in-background exp/fmp/background.safetensors \
        --in-choice exp/fmp/lambda.json --out-scores exp/fmp/T10/lm_scores/test.safetensors \
        --out-run exp/fmp/T10/run_test.json --config conf/fmp.yaml#fmp --set rounds=10

--out-scores has the format of lm_scores and the name of the unadapted model. select_nbest uses it
with that model's weights. --in-plain gives the unadapted scores of lm_scores; unnormalized scores
then need no model. --in-release replaces the exact global marginals by those of release_fmp.
--out-run holds the settings and, for normalized scores, perplexities of the best hypotheses by
round and client.

    privasr verb rescore_fmp --in-nbest exp/x/nbest_dev --in-timeline exp/fmp/timeline_dev.jsonl \
        --in-lm exp/x/lm/transformer --in-background exp/fmp/background.safetensors \
        --in-scores exp/x/lm_scores/ngram_dev.safetensors --in-weights exp/x/all/rescoring.json \
        --in-manifests data/manifests --out-choice exp/fmp/lambda.json --config conf/fmp.yaml#fmp

--out-choice holds lambda, and alpha, beta and kernel_bandwidth where several values are listed.
criterion=errors minimizes word errors with the weights of the unadapted models. The adapted model
has the name of its folder, or name=; --in-scores gives the other models. criterion=perplexity
minimizes the perplexity of the best hypotheses; it needs normalized scores. Ties go to the smaller
lambda. Lists of another role than dev are refused.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
from typing import Any

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import write_json

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, adapt, score or choose, write."""
    parser = cli.parser(
        __doc__,
        in_nbest="DIR with *.jsonl",
        in_timeline="FILE of prepare_fmp",
        in_lm="LM of train_lm, or an ARPA file",
        in_background="FILE of prepare_fmp",
        in_plain="[FILE] of lm_scores with the same LM",
    )
    scores = parser.add_argument_group("to score")
    cli.add_flags(
        scores,
        in_release="[FILE] released global marginals",
        in_choice="[FILE] what --out-choice wrote",
        out_scores="[FILE] *.safetensors",
        out_run="[FILE] settings, perplexities",
    )
    choice = parser.add_argument_group("to choose")
    cli.add_flags(
        choice,
        in_scores="[FILE...] of the other LMs",
        in_weights="[FILE] rescoring.json, for errors",
        in_manifests="[DIR] what is scored",
        out_choice="[FILE] JSON",
    )
    args = cli.parse(parser, device=True)
    to_score = [args.in_release, args.in_choice, args.out_scores, args.out_run]
    to_choose = [args.in_scores or None, args.in_weights, args.in_manifests, args.out_choice]
    scoring = args.out_scores is not None and args.out_run is not None
    if scoring == (args.out_choice is not None) or any(to_choose if scoring else to_score):
        wanted = "--out-scores and --out-run, or --out-choice, with the flags of that group"
        raise ConfigError("the command line", wanted, "something else", "see --help")

    import torch

    torch.set_num_threads(args.num_jobs)
    if scoring:
        _score(args)
    else:
        _choose(args)


def _score(args: argparse.Namespace) -> None:
    from privasr_k2.decoding.lm_scores import write_lm_scores
    from privasr_k2.federated.fmp_scores import (
        as_chosen,
        open_adaptable,
        read_plain,
        read_released,
        read_world,
        token_scores,
    )
    from privasr_k2.federated.fmp_settings import FmpConfig
    from privasr_k2.federated.fmp_simulation import client_perplexities

    config = cli.load(FmpConfig, args)
    if args.in_choice is not None:
        config = as_chosen(config, args.in_choice)
    lm = open_adaptable(args.in_lm, args.device)
    world = read_world(args.in_nbest, args.in_timeline, args.in_background, lm.numbers)
    released, about = None, None
    if args.in_release is not None:
        released, about = read_released(args.in_release, lm.numbers, config, world.background)
    plain = None if args.in_plain is None else read_plain(args.in_plain, world.lists)
    scores = token_scores(world, lm, config, [config.lam], released, plain)[:, 0]
    run: dict[str, Any] = {"config": dataclasses.asdict(config), "release": about}
    run["perplexity"] = None
    if config.normalized:
        perplexities = client_perplexities(world.spoken, scores, config.rounds)
        totals = zip(perplexities.nats.tolist(), perplexities.tokens.tolist())
        clients = zip(world.spoken.client_names, totals)
        run["perplexity"] = {
            "total": perplexities.total,
            "by_round": perplexities.by_round.tolist(),
            "clients": {name: {"nats": nats, "tokens": n} for name, (nats, n) in clients},
        }
        by_round = " ".join(f"{ppl:.1f}" for ppl in perplexities.by_round)
        log.info("perplexity %.2f; by round %s", perplexities.total, by_round)
    write_lm_scores(args.out_scores, config.name or lm.name, world.lists, scores)
    write_json(args.out_run, run)


def _choose(args: argparse.Namespace) -> None:
    from privasr_k2.decoding.tune import TUNING_ROLE
    from privasr_k2.federated.fmp_scores import open_adaptable, read_plain, read_world, token_scores
    from privasr_k2.federated.fmp_settings import FmpConfig
    from privasr_k2.federated.fmp_tuning import perplexities, word_errors

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
    records: list[dict[str, float]] = []
    for point in config.tried():
        scores = token_scores(world, lm, dataclasses.replace(config, **point), lams, None, plain)
        if by_errors:
            name = config.name or lm.name
            others = args.in_scores, args.in_weights, args.in_manifests
            tried = word_errors(world, scores, name, *others)
        else:
            tried = perplexities(world, scores)
        found = zip(lams, tried)
        records += [{"lam": lam, **point, config.criterion: value} for lam, value in found]
        log.info("%s: %s for lambda %s", point or "the settings", tried, lams)
    chosen = min(records, key=lambda record: (record[config.criterion], record["lam"]))
    at_end = chosen["lam"] == lams[-1] and len(lams) > 1
    choice = {key: value for key, value in chosen.items() if key != config.criterion}
    about = {"criterion": config.criterion, "at_end": at_end, "tried": records}
    write_json(args.out_choice, {"role": role, **choice, **about})
    log.info("chosen: %s%s", choice, ", lambda at the end of what was tried" if at_end else "")


if __name__ == "__main__":
    cli.run(main)
