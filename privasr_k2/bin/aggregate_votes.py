r"""Release labels of public utterances: noisy answers to the teachers' votes, with a guarantee.

    privasr verb aggregate_votes --in-private-votes exp/pate/votes --in-lang data/lang_char \
        --in-public-nbest exp/pate/public/nbest_pool --out-dir exp/pate/gnmax_8 \
        --out-privacy exp/pate/gnmax_8_privacy.json --ledger privacy/ledger.json \
        --config conf/pate.yaml#pate --set data=mini/train mechanism=gnmax epsilon=8 max_answers=50

The plan and its cost are printed before noise is drawn. --out-dir gets labels.jsonl, labels.json
and answers-0.safetensors. Answers are drawn once: an interrupted run continues with them. With
epsilon=.inf there is no noise and no guarantee; then omit --out-privacy and --ledger. The epsilon
"as published" is no guarantee.
"""

from __future__ import annotations

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError


def main() -> None:
    """Parse, plan, spend, draw, write."""
    args = cli.arguments(
        __doc__,
        in_private_votes="DIR of cast_votes",
        in_lang="DIR the teachers' language folder",
        in_public_nbest="[DIR] what was voted for",
        out_dir="DIR the labels",
        out_privacy="[FILE] privacy.json, where there is noise",
        ledger="[FILE] of the private data, where there is noise",
        max_epsilon="[X] refuse to spend beyond it",
    )

    from privasr_k2.graph.lang import load_lang
    from privasr_k2.pate.aggregate import AggregateConfig, settle, write_release
    from privasr_k2.pate.nbest_hypotheses import check_public, nbest_hypotheses
    from privasr_k2.pate.verbs import begin_release, check_flags, print_plan, print_result
    from privasr_k2.pate.votes import UTTERANCE, read_votes
    from privasr_k2.scoring.nbest_lists import read_nbest

    config = cli.load(AggregateConfig, args)
    check_flags(config, args.out_privacy, args.ledger)
    votes = read_votes(args.in_private_votes)
    hypotheses, inputs = None, [args.in_private_votes, args.in_lang]
    if votes.vote == UTTERANCE:
        if args.in_public_nbest is None:
            place = "the command line"
            raise ConfigError(place, "--in-public-nbest", "none", "give what was voted for")
        check_public(args.in_public_nbest)
        lists, lang = read_nbest(args.in_public_nbest), load_lang(args.in_lang)
        hypotheses = nbest_hypotheses(lists, lang, votes.max_hyps)
        inputs.append(args.in_public_nbest)
    asked = settle(votes, hypotheses, config)
    who = {"vote": votes.vote, "unit": votes.unit, "units": votes.units, "teachers": votes.teachers}
    pool = f"{len(asked.places):,} of {len(votes.ids):,} utterances ({votes.vote})"
    print_plan(asked.setting, pool)
    with begin_release(args, config, asked.setting, who, inputs, votes.people) as release:
        print_result(write_release(args.out_dir, votes, hypotheses, asked, release), release)


if __name__ == "__main__":
    cli.run(main)
