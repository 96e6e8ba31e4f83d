r"""Reconstruct the features of words from a model or an ensemble, by gradients or by scores alone.

    privasr verb invert_model --in-models exp/pate/teachers/1 --in-background data/feats_public \
        --in-lang data/lang_char --out-inversion exp/pate/inversion/teacher_1.safetensors \
        --config conf/pate.yaml#inversion --set 'words=[STOP,YES]' attack=white_box

Several models are attacked as an ensemble, by the mean of their probabilities. So are the heads of
a folder of train_heads, or those of --set heads=[K,...]. --set control=true attacks a randomly
initialized model of the same form. --in-background is public speech that the attacker knows. The
output is private, unless the model itself is a release.
"""

from __future__ import annotations

import logging

from privasr_k2.bin import cli

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, attack word by word, write."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_models="DIR... of train_am, or one of train_heads",
        in_background="FEATS public features",
        in_lang="DIR how words are spelled",
        out_inversion="FILE safetensors",
    )

    import torch

    from privasr_k2.attack.background import read_background
    from privasr_k2.attack.inversion import invert
    from privasr_k2.attack.inversion_files import write_inversion
    from privasr_k2.attack.likelihood import attacked, randomly_initialized
    from privasr_k2.attack.settings import InversionConfig
    from privasr_k2.errors import DataError
    from privasr_k2.graph.lang import load_lang
    from privasr_k2.pate.heads import HeadEnsemble
    from privasr_k2.pate.loading import open_models
    from privasr_k2.training.distributed import choose_device

    config = cli.load(InversionConfig, args)
    torch.set_num_threads(args.num_jobs)
    device, lang = choose_device(args.device), load_lang(args.in_lang)
    spelled = {word: lang.encode(word) for word in config.words}
    models = open_models(args.in_models, lang, device, heads=config.heads)
    at_once = models.losses if isinstance(models, HeadEnsemble) else None
    target = attacked(models.models, config.weights, at_once)
    background = read_background(
        args.in_background, config.background_roles, lang, utterances=config.background_utterances
    )
    dim = target.models[0].feature_dim
    if len(background.mean) != dim:
        found = str(len(background.mean))
        raise DataError(args.in_background, f"{dim} features", found, "compute them as the model's")
    if config.control:
        statistics = (background.mean, background.deviation)
        known = (torch.from_numpy(value).to(device) for value in statistics)
        target = randomly_initialized(target.models[0], *known, seed=config.seed)
    inversions = {}
    for word, tokens in spelled.items():
        inversions[word] = best = invert(target, word, tokens, background, config, device)
        found = best.begun_at, best.log_likelihood, len(best.features), best.queries
        log.info("%s: log P from %.2f to %.2f, %d frames, %d queries", word, *found)
    write_inversion(args.out_inversion, inversions, background, config, len(target.models))


if __name__ == "__main__":
    cli.run(main)
