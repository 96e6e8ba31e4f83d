r"""Compare what invert_model found with private speech, and with the same words of other people.

    privasr verb report_inversion --in-inversions exp/inversion/{teacher_1,control}.safetensors \
        --in-members exp/shards/shard_1 --in-others data/feats_given --in-lang data/lang_char \
        --out-values exp/inversion/inversion.json --out-picture exp/inversion/figure7.svg \
        --config conf/pate.yaml#report_inversion

--in-members: who is in the model's training, one features folder for all inversions, or one for
each. --in-others: people not in training. --in-aligner: a public CTC model that cuts the words out
of longer utterances; without it they count only where they are all that was said. The picture shows
private speech: both files are for the owner.
"""

from __future__ import annotations

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import write_json


def main() -> None:
    """Parse, compare, write."""
    args = cli.arguments(
        __doc__,
        in_inversions="FILE...",
        in_members="FEATS...",
        in_others="FEATS...",
        in_lang="DIR how words are spelled",
        in_aligner="[DIR] a public CTC model",
        out_values="FILE JSON, for report",
        out_picture="[FILE] spectrograms side by side, SVG",
    )

    import torch

    from privasr_k2.am.checkpoints import load_model
    from privasr_k2.attack.inversion_files import read_inversion
    from privasr_k2.attack.inversion_report import examine, panels, report_values
    from privasr_k2.attack.occurrences import cuts_of, find_occurrences
    from privasr_k2.attack.pictures import draw_side_by_side
    from privasr_k2.attack.settings import InversionReportConfig
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
        draw_side_by_side(rows, inversions[0].frame_shift, args.out_picture)


if __name__ == "__main__":
    cli.run(main)
