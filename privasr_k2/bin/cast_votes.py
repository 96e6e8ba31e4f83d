r"""Let the teachers vote on a public pool, or on one job's share of it. The output is private.

    privasr verb cast_votes --in-private-teachers exp/pate/teachers --in-shards exp/pate/shards \
        --in-feats data/feats_pool --in-lang data/lang_char \
        --in-public-nbest exp/pate/public/nbest_pool --out-votes exp/pate/votes/1.safetensors \
        --config conf/pate.yaml#votes --set role=pool job=1 num_jobs=2

--in-private-teachers holds folders 1 to I of train_am, or the output of train_heads.
--in-public-nbest holds the hypotheses to vote on, of a public model or of a student of released
labels. Lists that depend on private data are refused. --in-public-weights are those that dev chose
for the public model in its graph: each teacher then adds the LM's weighted score, which its list
has, to its own.
"""

from __future__ import annotations

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError


def main() -> None:
    """Parse, vote, write."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_private_teachers="DIR the ensemble",
        in_shards="DIR of make_shards",
        in_feats="DIR the public pool",
        in_lang="DIR the teachers' language folder",
        in_public_nbest="[DIR] what is voted for, *.jsonl",
        in_public_weights="[PATH] weights.json: of the graph's LM",
        out_votes="FILE *.safetensors; private",
    )

    import torch

    from privasr_k2.data.manifests import load_cuts
    from privasr_k2.decoding.tune import read_weights
    from privasr_k2.graph.lang import load_lang
    from privasr_k2.pate.loading import open_ensemble
    from privasr_k2.pate.nbest_hypotheses import check_public, nbest_hypotheses
    from privasr_k2.pate.shards import read_shards
    from privasr_k2.pate.votes import UTTERANCE, VotesConfig, cast_votes, write_votes
    from privasr_k2.scoring.nbest_lists import read_nbest
    from privasr_k2.training.distributed import choose_device

    config = cli.load(VotesConfig, args)
    torch.set_num_threads(args.num_jobs)
    hypotheses = None
    if config.vote == UTTERANCE:
        if args.in_public_nbest is None:
            place = "the command line"
            raise ConfigError(place, "--in-public-nbest", "none", "give lists, or --set vote=frame")
        check_public(args.in_public_nbest)
        lists, lang = read_nbest(args.in_public_nbest), load_lang(args.in_lang)
        weights = None if args.in_public_weights is None else read_weights(args.in_public_weights)
        hypotheses = nbest_hypotheses(lists, lang, config.max_hyps, weights)
    shards, device = read_shards(args.in_shards), str(choose_device(args.device))
    ensemble = open_ensemble(
        args.in_private_teachers, shards.teachers, device, per_token=config.per_token
    )
    pool = load_cuts(args.in_feats, config.role)
    write_votes(args.out_votes, cast_votes(ensemble, hypotheses, pool, shards, config, device))


if __name__ == "__main__":
    cli.run(main)
