r"""Reconstruct the features of words from models, or compare what was found with private speech.

    privasr verb invert_model --in-models exp/pate/teachers/1 --in-background data/feats_public \
        --in-lang data/lang_char --out-inversion exp/pate/inversion/teacher_1.safetensors \
        --config conf/pate.yaml#inversion --set 'words=[STOP,YES]' attack=white_box
    privasr verb invert_model --in-inversions exp/inversion/{teacher_1,control}.safetensors \
        --in-members exp/shards/shard_1 --in-others data/feats_given --in-lang data/lang_char \
        --out-values exp/inversion/inversion.json --out-picture exp/inversion/figure7.svg \
        --config conf/pate.yaml#compare_inversion

The attack is by gradients or by scores alone. Several models are attacked as an ensemble, by the
mean of their probabilities. So are the heads of a folder of train_heads, or those of --set
heads=[K,...]. --set control=true attacks a randomly initialized model of the same form.
--in-background is public speech that the attacker knows. The output is private, unless the model
itself is a release.

--in-inversions are compared with the same words of others. --in-members: who is in the model's
training, one features folder for all inversions, or one for each. --in-others: people not in
training. --in-aligner: a public CTC model that cuts the words out of longer utterances; without it
they count only where they are all that was said. The picture shows private speech: both files are
for the owner.
"""

from __future__ import annotations

import argparse
import logging

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import read_yaml, write_json

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, attack word by word or compare, write."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_lang="DIR how words are spelled",
        in_models="[DIR+] of train_am, or one of train_heads",
        in_background="[FEATS] public features",
        out_inversion="[FILE] safetensors",
        in_inversions="[FILE+] what was found",
        in_members="[FEATS+] in the training",
        in_others="[FEATS+] not in the training",
        in_aligner="[DIR] a public CTC model",
        out_values="[FILE] JSON, for report",
        out_picture="[FILE] features side by side, SVG",
    )
    attack = [args.in_models, args.in_background, args.out_inversion]
    compare = [args.in_inversions, args.in_members, args.in_others, args.out_values]
    if not any([*compare, args.in_aligner, args.out_picture]) and all(attack):
        _invert(args)
    elif not any(attack) and all(compare):
        _compare(args)
    else:
        wanted = "--in-models --in-background --out-inversion, or --in-inversions --in-members"
        wanted += " --in-others --out-values"
        raise ConfigError("the command line", wanted, "something else", "see --help")


def _invert(args: argparse.Namespace) -> None:
    import torch

    from privasr_k2.attack.background import read_background
    from privasr_k2.attack.inversion import invert
    from privasr_k2.attack.inversion_files import write_inversion
    from privasr_k2.attack.likelihood import attacked, randomly_initialized
    from privasr_k2.attack.settings import InversionConfig
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


def _compare(args: argparse.Namespace) -> None:
    import torch

    from privasr_k2.am.checkpoints import load_model
    from privasr_k2.attack.inversion_files import read_inversion
    from privasr_k2.attack.inversion_report import examine, panels, report_values
    from privasr_k2.attack.occurrences import cuts_of, find_occurrences
    from privasr_k2.attack.pictures import draw_side_by_side, picture_axis
    from privasr_k2.attack.settings import InversionReportConfig
    from privasr_k2.data.features import ABOUT
    from privasr_k2.graph.lang import check_same_tokens, load_lang

    config = cli.load(InversionReportConfig, args)
    torch.set_num_threads(args.num_jobs)
    inversions, lang = list(map(read_inversion, args.in_inversions)), load_lang(args.in_lang)
    if len(args.in_members) not in (1, len(inversions)):
        found = str(len(args.in_members))
        place = "--in-members"
        raise ConfigError(place, f"1 folder or {len(inversions)}", found, "one an inversion")
    aligner = None if args.in_aligner is None else load_model(args.in_aligner)
    if aligner is not None:
        check_same_tokens(aligner.tokens, lang.tokens, model=args.in_aligner, graph=args.in_lang)
    words = sorted({word for inversion in inversions for word in inversion.words})
    by_folder = {
        folder: find_occurrences(cuts_of([folder], [config.member_role]), words, lang, aligner)
        for folder in dict.fromkeys(args.in_members)
    }
    members = [by_folder[folder] for folder in args.in_members]
    if len(members) == 1:
        members *= len(inversions)
    others = find_occurrences(cuts_of(args.in_others, config.other_roles), words, lang, aligner)
    results = examine(inversions, members, others, config)
    write_json(args.out_values, report_values(results, config))
    if args.out_picture is not None:
        rows = panels(inversions, members, config)
        about = args.in_members[0] / ABOUT
        kind = read_yaml(about)["kind"] if about.is_file() else ""
        axis = picture_axis(kind, config.mel_bins)
        draw_side_by_side(rows, inversions[0].frame_shift, args.out_picture, axis=axis)


if __name__ == "__main__":
    cli.run(main)
