r"""Attack recognizers: exposure of canaries, alone and with an LM, and noise masking of names.

    privasr verb attack_recognizer --in-models exp/redteam/nonprivate/am exp/redteam/dpsgd_8/am \
        --in-reference exp/public/am --in-canaries data/canaries_fbank \
        --in-feats data/sides_fbank/private --in-others data/feats_fbank \
        --in-lang data/lang_char_public --in-lms exp/redteam/lm/nonprivate exp/redteam/lm/8 \
        --in-public-lm exp/redteam/lm/public --out-attacks exp/redteam/attacks.json \
        --config conf/redteam.yaml#attack_recognizer

The models have learned from the features of plant_canaries, the reference has not: its loss is
subtracted from theirs, and it is attacked beside them by its own loss. --in-lms, one for each
model, have read the text of --in-canaries. Names are those that --in-feats has marked; where it has
none, none are masked. --in-others are people in no training, with whose names they are compared.
The output is private.
"""

from __future__ import annotations

import logging

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import read_yaml, write_json

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, attack, write."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_models="DIR... of train_am",
        in_reference="DIR the public model, CTC",
        in_canaries="DIR of plant_canaries",
        in_feats="DIR private speech without canaries",
        in_others="[DIR...] not in training",
        in_lang="DIR how words are spelled",
        in_lms="[LM...] of each model, in their order",
        in_public_lm="[LM] of public text",
        out_attacks="FILE JSON",
    )
    wanted = len(args.in_models) if args.in_public_lm is not None else 0
    if len(args.in_lms) != wanted:
        expected = f"{wanted}, one for each model where --in-public-lm is given"
        raise ConfigError("--in-lms", expected, str(len(args.in_lms)), "give both, or none")

    import torch

    from privasr_k2.attack.membership import names_of
    from privasr_k2.attack.occurrences import cuts_of
    from privasr_k2.attack.recognizers import Attacked, attack_canaries, attack_names
    from privasr_k2.attack.settings import RecognizerAttackConfig
    from privasr_k2.data.features import ABOUT
    from privasr_k2.graph.lang import load_lang
    from privasr_k2.lm.mixtures import open_lm
    from privasr_k2.pate.loading import open_models
    from privasr_k2.training.distributed import choose_device

    config = cli.load(RecognizerAttackConfig, args)
    torch.set_num_threads(args.num_jobs)
    device, lang = choose_device(args.device), load_lang(args.in_lang)
    folders = [*args.in_models, args.in_reference]
    models = open_models(folders, lang, device)
    if models.num_teachers != len(folders) or not hasattr(models.models[-1], "log_probs"):
        expected = "whole models, and a reference of CTC, which aligns words"
        raise ConfigError("--in-models", expected, "others", "give models of --models ctc")
    names = names_of(folders)
    attacked = Attacked(names, models.models, models.hypothesis_scores, lang, device)
    of_lms = [*args.in_lms, *filter(None, [args.in_public_lm])]
    lms = [open_lm(path, args.device) for path in of_lms]
    canaries = attack_canaries(attacked, args.in_canaries, lms, config)
    people = cuts_of([args.in_feats], [config.private_role])
    strangers = cuts_of(args.in_others, config.other_roles)
    kind = read_yaml(args.in_feats / ABOUT)["kind"]
    of_names = attack_names(attacked, people, strangers, kind, config)
    found = {
        name: {**canaries[name], **({"names": of_names[name]} if of_names else {})}
        for name in names
    }
    write_json(args.out_attacks, {"models": found})
    for name, told in found.items():
        log.info("%s: %s", name, told)


if __name__ == "__main__":
    cli.run(main)
