r"""Score N-best lists with a language model that federated marginals adapt, round by round [liu2020].

    python -m privasr_k2.bin.run_fmp --in-nbest exp/x/nbest_test --in-timeline exp/fmp/timeline_test.jsonl \
        --in-lm exp/x/lm/transformer --in-background data/manifests/cuts_train.jsonl.gz \
        --in-choice exp/fmp/lambda.json --out-scores exp/fmp/T10/lm_scores/test.safetensors \
        --out-run exp/fmp/T10/run_test.json --config conf/fmp.yaml#fmp --set rounds=10

The scores are such as score_nbest writes: rescore_nbest takes them with the weights of the unadapted model,
whose name they have. --in-plain: what score_nbest gave, so that unnormalized scores need no model again.
--in-release: global marginals of release_fmp or release_fmp_published in place of the exact average.
--out-run has the settings and, where scores are normalized, perplexities of the best hypotheses by round and
client.
"""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

from privasr_k2.bin import cli
from privasr_k2.fileio import write_json

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, adapt, score, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-nbest", type=Path, required=True, metavar="DIR", help="with *.jsonl")
    made.add_argument("--in-timeline", type=Path, required=True, metavar="FILE", help="of prepare_fmp")
    made.add_argument("--in-lm", type=Path, required=True, metavar="LM", help="of train_lm, or an ARPA file")
    made.add_argument("--in-background", type=Path, required=True, metavar="FILE", help="of make_background")
    made.add_argument("--in-plain", type=Path, metavar="FILE", help="of score_nbest with the same LM")
    made.add_argument("--in-release", type=Path, metavar="FILE", help="released global marginals")
    made.add_argument("--in-choice", type=Path, metavar="FILE", help="of tune_fmp")
    made.add_argument("--out-scores", type=Path, required=True, metavar="FILE", help="*.safetensors")
    made.add_argument("--out-run", type=Path, required=True, metavar="FILE", help="settings, perplexities")
    cli.add_device(made)
    cli.add_config(made)
    args = cli.parse(made)

    import torch

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

    torch.set_num_threads(args.num_jobs)
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
    run: dict[str, Any] = {"config": dataclasses.asdict(config), "release": about, "perplexity": None}
    if config.normalized:
        found = client_perplexities(world.spoken, scores, config.rounds)
        run["perplexity"] = {
            "total": found.total,
            "by_round": found.by_round.tolist(),
            "clients": {
                name: {"nats": nats, "tokens": tokens}
                for name, nats, tokens in zip(
                    world.spoken.client_names, found.nats.tolist(), found.tokens.tolist()
                )
            },
        }
        log.info("perplexity %.2f; by round %s", found.total, " ".join(f"{p:.1f}" for p in found.by_round))
    write_lm_scores(args.out_scores, config.name or lm.name, world.lists, scores)
    write_json(args.out_run, run)


if __name__ == "__main__":
    cli.run(main)
