r"""Release labels of public utterances token by token: teachers vote for each next token.

    privasr verb vote_tokens --in-private-teachers exp/pate/teachers \
        --in-private-shards exp/pate/shards --in-public-feats data/feats_pool \
        --out-dir exp/pate/tokens_8 --out-privacy exp/pate/tokens_8_privacy.json \
        --ledger privacy/ledger.json --config conf/pate.yaml#pate conf/pate.yaml#vote_tokens \
        --set data=mini/train noise=20 epsilon=8

Each token costs an answer, except those to which --in-public-model gives the probability
public_threshold or more. A batch is written before the next is drawn, and never drawn again. With
epsilon=.inf there is no noise and no guarantee; then omit --out-privacy and --ledger.
"""

from __future__ import annotations

from privasr_k2.bin import cli


def main() -> None:
    """Parse, plan, spend, draw step by step, write."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_private_teachers="DIR the ensemble",
        in_shards="DIR|--in-private-shards output of make_shards",
        in_feats="DIR|--in-public-feats the public pool",
        in_public_model="[DIR] whose sure tokens are not asked about",
        out_dir="DIR the labels",
        out_privacy="[FILE] privacy.json, where there is noise",
        ledger="[FILE] of the private data, where there is noise",
        max_epsilon="[X] refuse to spend beyond it",
    )

    import torch

    from privasr_k2.am.checkpoints import load_recognizer
    from privasr_k2.data.manifests import load_cuts
    from privasr_k2.errors import ConfigError
    from privasr_k2.pate.loading import open_ensemble
    from privasr_k2.pate.nbest_hypotheses import check_public
    from privasr_k2.pate.shards import read_shards
    from privasr_k2.pate.tokens import (
        TOKEN,
        TokenVotesConfig,
        chosen,
        release_tokens,
        settle_tokens,
    )
    from privasr_k2.pate.verbs import begin_release, check_flags, print_plan, print_result
    from privasr_k2.training.distributed import choose_device

    config = cli.load(TokenVotesConfig, args)
    check_flags(config, args.out_privacy, args.ledger)
    if (args.in_public_model is None) != (config.public_threshold == 1):
        expected, found = "below 1 with --in-public-model, else 1", f"{config.public_threshold}"
        raise ConfigError("public_threshold", expected, found, "correct the value, or the flag")
    torch.set_num_threads(args.num_jobs)
    shards, device = read_shards(args.in_shards), str(choose_device(args.device))
    cuts = chosen(load_cuts(args.in_feats, config.role), config)
    setting = settle_tokens(cuts, shards, config)
    ensemble = open_ensemble(args.in_private_teachers, shards.teachers, device, per_token=True)
    public = None
    if args.in_public_model is not None:
        check_public(args.in_public_model)
        public = load_recognizer(args.in_public_model, device)
    print_plan(setting, f"tokens of {len(cuts):,} utterances")
    who = {"vote": TOKEN, "unit": shards.unit, "units": len(shards.roster)}
    who["teachers"] = shards.teachers
    inputs = [args.in_private_teachers, args.in_shards, args.in_feats]
    inputs += filter(None, [args.in_public_model])
    with begin_release(args, config, setting, who, inputs, shards.people) as release:
        summary = release_tokens(
            args.out_dir, ensemble, cuts, shards, setting, config, device, release, public
        )
        print_result(summary, release)


if __name__ == "__main__":
    cli.run(main)
