r"""Score N-best lists with LMs that know the user, or choose on dev how strongly they do.

    privasr verb personalize --in-nbest exp/x/nbest_test --in-timeline exp/fmp/timeline_test.jsonl \
        --in-lm exp/x/lm/transformer --in-background exp/fmp/background.safetensors \
        --in-choice exp/fmp/lambda.json --out-scores exp/fmp/T10/lm_scores/test.safetensors \
        --out-run exp/fmp/T10/run_test.json --config conf/fmp.yaml#fmp --set rounds=10

The utterances of each client are cut in time into T + 1 groups. Each group is scored by what was
learned from the best hypotheses, or lists, of the groups before; the first one by the model of
--in-lm as it is. method=marginals is federated marginal personalization [liu2020]; other methods
(conf/personal.yaml) learn on the client's device alone.

--out-scores has the format of lm_scores and the name of the LM. select_nbest uses it with that
model's weights. --in-plain gives the unadapted scores of lm_scores, for unnormalized scores of
marginals. --in-release replaces the exact global marginals by those of release_fmp. --out-run holds
the settings, what a device needs, and perplexities by round and client: of the references, or,
where scores are normalized, of the best hypotheses.

    privasr verb personalize --in-nbest exp/x/nbest_dev --in-timeline exp/fmp/timeline_dev.jsonl \
        --in-lm exp/x/lm/transformer --in-background exp/fmp/background.safetensors \
        --in-scores exp/x/lm_scores/ngram_dev.safetensors --in-weights exp/x/all/rescoring.json \
        --in-manifests data/manifests --out-choice exp/fmp/lambda.json --config conf/fmp.yaml#fmp

--out-choice holds lambda, and alpha, beta and kernel_bandwidth where several values are listed; of
other methods the strength. criterion=errors minimizes word errors with the weights of the
unadapted models. The adapted model has the name of its folder, or name=; --in-scores gives the
other models. criterion=perplexity minimizes the perplexity of the best hypotheses; it needs
normalized scores. Ties go to the smaller value. Lists of another role than dev are refused.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privasr_k2 import config as configuration
from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import read_json, write_json

if TYPE_CHECKING:
    import numpy as np

    from privasr_k2.federated.fmp_scores import World

MARGINALS = "marginals"

log = logging.getLogger(__name__)

Point = Mapping[str, float]


def main() -> None:
    """Parse, adapt, score or choose, write."""
    args, scores = _arguments()

    import torch

    torch.set_num_threads(args.num_jobs)
    method = configuration.value_of("method", args.config, args.set)
    by_marginals = method == MARGINALS
    if not by_marginals and (args.in_release or args.in_plain):
        flag = "--in-release" if args.in_release else "--in-plain"
        raise ConfigError(flag, f"method={MARGINALS}", f"method={method}", f"remove {flag}")
    if scores:
        (_score_by_marginals if by_marginals else _score_by_devices)(args)
    else:
        (_choose_marginals if by_marginals else _choose_strength)(args)


def _arguments() -> tuple[argparse.Namespace, bool]:
    """The command line, and whether lists are scored; else a setting is chosen on dev.

    Raises:
        ConfigError: flags of both, or of neither.
    """
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
    given = [getattr(args, name) for name in ("in_release", "in_choice", "out_scores", "out_run")]
    to_choose = [args.in_scores or None, args.in_weights, args.in_manifests, args.out_choice]
    scoring = args.out_scores is not None and args.out_run is not None
    if scoring == (args.out_choice is not None) or any(to_choose if scoring else given):
        wanted = "--out-scores and --out-run, or --out-choice, with the flags of that group"
        raise ConfigError("the command line", wanted, "something else", "see --help")
    return args, scoring


def _score_by_marginals(args: argparse.Namespace) -> None:
    from privasr_k2.decoding.lm_scores import write_lm_scores
    from privasr_k2.federated.device_costs import marginal_costs
    from privasr_k2.federated.fmp_scores import (
        as_chosen,
        open_adaptable,
        read_plain,
        read_released,
        read_world,
        references,
        token_scores,
    )
    from privasr_k2.federated.fmp_settings import FmpConfig

    config = cli.load(FmpConfig, args)
    if args.in_choice is not None:
        config = as_chosen(config, args.in_choice)
    lm = open_adaptable(args.in_lm, args.device)
    world = read_world(args.in_nbest, args.in_timeline, args.in_background, lm.numbers)
    released, about = None, None
    if args.in_release is not None:
        released, about = read_released(args.in_release, lm.numbers, config, world.background)
    plain = None if args.in_plain is None else read_plain(args.in_plain, world.lists)
    begun = time.process_time()
    scores = token_scores(world, lm, config, [config.lam], released, plain)[:, 0]
    costs = marginal_costs(world.spoken, config, seconds=time.process_time() - begun)
    scored, of_scored = world, scores
    if not config.normalized:
        scored = references(world)
        of_scored = token_scores(world, lm, config, [config.lam], released, None, scored)[:, 0]
    figures = _perplexity_record(scored, of_scored, config.rounds)
    run = {"config": dataclasses.asdict(config), "release": about, "perplexity": figures}
    write_lm_scores(args.out_scores, config.name or lm.name, world.lists, scores)
    write_json(args.out_run, {**run, "costs": costs.plain()})


def _choose_marginals(args: argparse.Namespace) -> None:
    from privasr_k2.federated.fmp_scores import open_adaptable, read_plain, read_world, token_scores
    from privasr_k2.federated.fmp_settings import FmpConfig

    config = cli.load(FmpConfig, args)
    role = _role_to_tune(args, config.criterion, normalized=config.normalized)
    lm = open_adaptable(args.in_lm, args.device)
    world = read_world(args.in_nbest, args.in_timeline, args.in_background, lm.numbers)
    plain = None if args.in_plain is None else read_plain(args.in_plain, world.lists)
    lams = sorted(set(config.lams))
    records: list[dict[str, float]] = []
    for point in config.tried():
        scores = token_scores(world, lm, dataclasses.replace(config, **point), lams, None, plain)
        tried = _tried_figures(args, world, scores, config.name or lm.name, config.criterion)
        found = zip(lams, tried)
        records += [{"lam": lam, **point, config.criterion: value} for lam, value in found]
        log.info("%s: %s for lambda %s", point or "the settings", tried, lams)
    _write_choice(args.out_choice, role, records, config.criterion, "lam", lams)


def _score_by_devices(args: argparse.Namespace) -> None:
    from privasr_k2.decoding.lm_scores import write_lm_scores
    from privasr_k2.federated.fmp_scores import open_adaptable, read_world, references
    from privasr_k2.federated.personal import personal_scores
    from privasr_k2.federated.personal_methods import METHODS, PersonalConfig

    config = cli.load(PersonalConfig, args)
    if args.in_choice is not None:
        choice = read_json(args.in_choice)
        if choice.get("method") != config.method or choice.get("role") != "dev":
            expected, found = f"a strength of {config.method}, chosen on dev", str(choice)[:60]
            raise DataError(args.in_choice, expected, found, "choose it with --out-choice")
        config = dataclasses.replace(config, strength=float(choice["strength"]))
    lm = open_adaptable(args.in_lm, args.device)
    world = read_world(args.in_nbest, args.in_timeline, args.in_background, lm.numbers)
    method = config.method if config.strength else "none"
    begin = METHODS[method](args.in_lm, lm, config, [config.strength], world.background)
    scores, costs = personal_scores(world, lm, begin, 1, config.rounds)
    scored, of_scored = world, scores
    if not config.normalized:
        scored, normalized = references(world), dataclasses.replace(config, normalized=True)
        begin = METHODS[method](args.in_lm, lm, normalized, [config.strength], world.background)
        of_scored, _ = personal_scores(world, lm, begin, 1, config.rounds, scored)
    figures = _perplexity_record(scored, of_scored[:, 0], config.rounds)
    write_lm_scores(args.out_scores, config.name or lm.name, world.lists, scores[:, 0])
    run = {"config": dataclasses.asdict(config), "release": None, "perplexity": figures}
    write_json(args.out_run, {**run, "costs": costs.plain()})


def _choose_strength(args: argparse.Namespace) -> None:
    from privasr_k2.federated.fmp_scores import open_adaptable, read_world
    from privasr_k2.federated.personal import personal_scores
    from privasr_k2.federated.personal_methods import METHODS, PersonalConfig

    config = cli.load(PersonalConfig, args)
    role = _role_to_tune(args, config.criterion, normalized=config.normalized)
    lm = open_adaptable(args.in_lm, args.device)
    world = read_world(args.in_nbest, args.in_timeline, args.in_background, lm.numbers)
    tried = sorted(set(config.strengths))
    begin = METHODS[config.method](args.in_lm, lm, config, tried, world.background)
    scores, _ = personal_scores(world, lm, begin, len(tried), config.rounds)
    by, name = config.criterion, config.name or lm.name
    figures = _tried_figures(args, world, scores, name, by)
    records = [{"strength": value, by: figure} for value, figure in zip(tried, figures)]
    about = {"method": config.method}
    _write_choice(args.out_choice, role, records, by, "strength", tried, about=about)


def _perplexity_record(world: World, scores: np.ndarray, rounds: int) -> dict[str, Any]:
    """Perplexities of the best hypotheses by normalized scores (W,): all, by round, by client."""
    from privasr_k2.federated.fmp_simulation import client_perplexities

    found = client_perplexities(world.spoken, scores, rounds)
    totals = zip(found.nats.tolist(), found.tokens.tolist())
    clients = zip(world.spoken.client_names, totals)
    by_round = " ".join(f"{ppl:.1f}" for ppl in found.by_round)
    log.info("perplexity %.2f; by round %s", found.total, by_round)
    return {
        "total": found.total,
        "by_round": found.by_round.tolist(),
        "clients": {name: {"nats": nats, "tokens": n} for name, (nats, n) in clients},
    }


def _role_to_tune(args: argparse.Namespace, criterion: str, *, normalized: bool) -> str:
    """The role of the lists, dev.

    Raises:
        ConfigError: flags that do not fit the criterion.
        DataError: lists of another role.
    """
    from privasr_k2.decoding.tune import tuning_role

    role = tuning_role(args.in_nbest)
    by_errors = criterion == "errors"
    if by_errors != (args.in_weights is not None) or not (by_errors or normalized):
        wanted = "--in-weights for errors; normalized=true and no --in-weights for perplexity"
        raise ConfigError("the command line", wanted, f"criterion={criterion}", "see --help")
    return role


def _tried_figures(
    args: argparse.Namespace, world: World, scores: np.ndarray, name: str, criterion: str
) -> list[float]:
    """Errors or perplexity for each column of scores (W, K)."""
    from privasr_k2.federated.fmp_tuning import perplexities, word_errors

    if criterion == "errors":
        others = args.in_scores, args.in_weights, args.in_manifests
        return word_errors(world, scores, name, *others)
    return perplexities(world, scores)


def _write_choice(
    path: Path,
    role: str,
    records: Sequence[Point],
    criterion: str,
    by: str,
    tried: Sequence[float],
    about: Mapping[str, Any] = {},
) -> None:
    """Write the point with the least figure; ties go to the smaller value of ``by``.

    Args:
        records: points with their figure under the name of the criterion.
        tried: ascending values of ``by``.
        about: further facts.
    """
    chosen = min(records, key=lambda record: (record[criterion], record[by]))
    at_end = chosen[by] == tried[-1] and len(tried) > 1
    choice = {key: value for key, value in chosen.items() if key != criterion}
    shown = {"criterion": criterion, "at_end": at_end, "tried": records}
    write_json(path, {"role": role, **about, **choice, **shown})
    log.info("chosen: %s%s", choice, f", {by} at the end of what was tried" if at_end else "")


if __name__ == "__main__":
    cli.run(main)
