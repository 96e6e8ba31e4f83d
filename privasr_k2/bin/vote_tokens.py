r"""Release labels of public utterances token by token: teachers vote for each next token.

    privasr verb vote_tokens --in-private-teachers exp/pate/teachers \
        --in-private-shards exp/pate/shards --in-public-feats data/feats_pool \
        --in-public-model exp/e2e/public/am --out-dir exp/pate/tokens_8 \
        --out-privacy exp/pate/tokens_8_privacy.json --ledger privacy/ledger.json \
        --config conf/pate.yaml#pate conf/pate.yaml#vote_tokens \
        --set data=mini/train noise=20 epsilon=8

Each token costs an answer, except those to which --in-public-model gives the probability
public_threshold or more. Paid for are margin times the answers that the public model's own texts
would take; once they are spent, the rest of the pool gets no labels. A batch is written before the
next is drawn, and never drawn again. With epsilon=.inf there is no noise and no guarantee; then
omit --out-privacy and --ledger.

With --out-plan and without teachers it writes what would be asked, with which noise, and how often
a majority would win. That reads nothing private and spends nothing.
"""

from __future__ import annotations

from privasr_k2.bin import cli


def main() -> None:
    """Parse, plan, spend, draw step by step, write."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_private_teachers="[DIR] the ensemble",
        in_private_shards="DIR|--in-shards output of make_shards",
        in_public_feats="DIR|--in-feats the public pool",
        in_public_model="[DIR] whose texts say how much to pay; whose sure tokens are not voted on",
        out_dir="[DIR] the labels",
        out_plan="[FILE] in place of teachers and labels: the answers, their noise, what wins",
        out_privacy="[FILE] privacy.json, where there is noise",
        ledger="[FILE] of the private data, where there is noise",
        max_epsilon="[X] refuse to spend beyond it",
    )

    import torch

    from privasr_k2.am.checkpoints import load_recognizer
    from privasr_k2.data.manifests import load_cuts
    from privasr_k2.errors import ConfigError
    from privasr_k2.fileio import write_json
    from privasr_k2.pate.loading import open_ensemble
    from privasr_k2.pate.nbest_hypotheses import check_public
    from privasr_k2.pate.shards import read_shards
    from privasr_k2.pate.tokens import (
        TOKEN,
        TokenVotesConfig,
        chosen,
        planned,
        public_queries,
        release_tokens,
        settle_tokens,
    )
    from privasr_k2.pate.verbs import begin_release, check_flags, print_plan, print_result
    from privasr_k2.training.distributed import choose_device

    config = cli.load(TokenVotesConfig, args)
    plans = args.out_plan is not None
    if {args.in_private_teachers is None, args.out_dir is None} != {plans}:
        expected = "--in-private-teachers and --out-dir, or --out-plan alone"
        raise ConfigError("the command line", expected, "something else", "see --help")
    if not plans:
        check_flags(config, args.out_privacy, args.ledger)
    if (plans or config.public_threshold < 1 or config.margin) and args.in_public_model is None:
        expected = "--in-public-model with public_threshold below 1, a margin or --out-plan"
        way_out = "give it, or --set public_threshold=1 margin=0"
        raise ConfigError("the command line", expected, "none", way_out)
    torch.set_num_threads(args.num_jobs)
    shards, device = read_shards(args.in_private_shards), str(choose_device(args.device))
    cuts = chosen(load_cuts(args.in_public_feats, config.role), config)
    public, expected = None, None
    if args.in_public_model is not None:
        if args.public_from_private == "false":
            check_public(args.in_public_model)
        public = load_recognizer(args.in_public_model, device)
        if config.margin:
            expected = public_queries(public, cuts, config, device)
    setting = settle_tokens(cuts, shards, config, expected)
    if plans:
        write_json(args.out_plan, planned(setting, config, shards, expected, public.num_tokens))
        print_plan(setting, f"tokens of {len(cuts):,} utterances")
        return
    ensemble = open_ensemble(args.in_private_teachers, shards.teachers, device, per_token=True)
    if config.public_threshold == 1:
        public = None  # every token is asked about, and all are voted on
    print_plan(setting, f"tokens of {len(cuts):,} utterances")
    who = {"vote": TOKEN, "unit": shards.unit, "units": len(shards.roster)}
    who["teachers"] = shards.teachers
    inputs = [args.in_private_teachers, args.in_private_shards, args.in_public_feats]
    inputs += filter(None, [args.in_public_model])
    with begin_release(args, config, setting, who, inputs, shards.people) as release:
        summary = release_tokens(
            args.out_dir, ensemble, cuts, shards, setting, config, device, release, public
        )
        print_result(summary, release)


if __name__ == "__main__":
    cli.run(main)
