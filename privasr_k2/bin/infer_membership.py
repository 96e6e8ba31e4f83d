r"""Infer membership in the training data: of teachers in shards, or of single models.

    privasr verb infer_membership --in-models exp/pate/teachers/{1,2,3} \
        --in-shards exp/pate/shards/shards.json --in-feats data/feats_given \
        --in-lang data/lang_char --out-membership exp/pate/membership_teachers.json \
        --config conf/pate.yaml#membership
    privasr verb infer_membership --in-models exp/pate/student exp/dpsgd/am \
        --in-reference exp/public/am --in-feats data/feats_given --in-others data/feats_given \
        --in-lang data/lang_char --out-membership exp/pate/membership.json \
        --config conf/pate.yaml#membership

With --in-shards the models are the teachers of shards 1, 2, ..., or one folder of train_heads. Else
each model is attacked alone: members are from --in-feats, non-members from --in-others. With
strengths the change of the loss under noise is a second attack; with folds a baseline that sees no
model stands beside both. The attacks give no bound on epsilon. The output is private.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import write_json

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, score, infer, write."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_models="DIR... of train_am, or one of train_heads",
        in_feats="FEATS private speech",
        in_shards="[FILE] shards.json, where models are teachers",
        in_others="[FEATS...] not in training",
        in_reference="[DIR] a public model",
        in_lang="DIR how words are spelled",
        out_membership="FILE JSON",
    )
    if (args.in_shards is None) != bool(args.in_others):
        place = "--in-shards and --in-others"
        raise ConfigError(place, "one of them", "both or none", "see --help: teachers, or models")

    import torch

    from privasr_k2.attack.blind import describe
    from privasr_k2.attack.membership import names_of, of_teachers, unit_losses
    from privasr_k2.attack.occurrences import cuts_of, drawn_cuts
    from privasr_k2.attack.perturbed import loss_rise, noisy
    from privasr_k2.attack.settings import MembershipConfig
    from privasr_k2.attack.studies import Side, study
    from privasr_k2.graph.lang import load_lang
    from privasr_k2.pate.loading import open_models
    from privasr_k2.pate.shards import read_shards
    from privasr_k2.training.distributed import choose_device

    config = cli.load(MembershipConfig, args)
    torch.set_num_threads(args.num_jobs)
    if args.in_shards is not None and (config.strengths or config.folds):
        found, way_out = "strengths or folds", "set strengths=[] folds=0 with --in-shards"
        raise ConfigError("membership in shards", "losses alone", found, way_out)
    device, lang = choose_device(args.device), load_lang(args.in_lang)
    alone = args.in_reference is not None and args.in_shards is None
    reference = [args.in_reference] if alone else []
    folders = [*args.in_models, *reference]
    models = open_models(folders, lang, device)
    if args.in_shards is None and models.num_teachers != len(folders):
        found = "a folder of heads"
        raise ConfigError("--in-models", "whole models", found, "name --in-shards with heads")

    def side(feats: list[Path], roles: list[str]) -> Side:
        cuts = drawn_cuts(cuts_of(feats, roles), config.utterances, config.seed)
        limits = {"unit": config.unit, "max_duration": config.max_duration}
        draws = {"copies": config.copies, "seed": config.seed}
        own = models.hypothesis_scores
        perturbing = [noisy(own, strength=strength, **draws) for strength in config.strengths]
        clean, *perturbed = (
            unit_losses(scores_of, cuts, lang, device, **limits) for scores_of in (own, *perturbing)
        )
        rises = loss_rise(clean, perturbed) if perturbed else None
        return Side(clean, rises, describe(cuts, config.unit) if config.folds else None)

    private = side([args.in_feats], [config.private_role])
    results: dict[str, Any] = {"unit": config.unit}
    if args.in_shards is not None:
        shards = read_shards(args.in_shards)
        if shards.unit != config.unit:
            raise ConfigError("unit", f"{shards.unit}, that of the shards", config.unit, "set it")
        results["teachers"] = of_teachers(private.losses, shards.roster, config)
    else:
        others = side(args.in_others, config.other_roles)
        names = names_of(args.in_models)
        results |= study(private, others, names, config, reference=bool(reference))
    write_json(args.out_membership, results)
    log.info("%s", results)


if __name__ == "__main__":
    cli.run(main)
