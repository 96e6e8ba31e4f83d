r"""Prepare federated marginals: the clients and the order of utterances, or background unigrams.

    privasr verb prepare_fmp --in-manifests data/manifests --in-nbest exp/x/nbest_test \
        --out-timeline exp/fmp/timeline_test.jsonl --config conf/fmp.yaml#fmp_timeline \
        --set client=speaker
    privasr verb prepare_fmp --in-text data/manifests/cuts_test.jsonl.gz \
        --out-nbest exp/fmp/nbest_test/1.jsonl --out-timeline exp/fmp/timeline_test.jsonl \
        --config conf/fmp.yaml#fmp_timeline --set client=prefix

--out-timeline assigns utterances to clients, in order of time. The utterances are those of N-best
lists, or of text without audio (cuts or tagged text). Without --in-manifests the order is that of
the ids, and clients are speakers, parts or prefixes. --out-nbest gets such text as lists of one
hypothesis each. The log shows table 1 of [liu2020] for these utterances.

    privasr verb prepare_fmp --in-manifests data/manifests --in-lm exp/fmp/lm/transformer \
        --out-background exp/fmp/background.safetensors --config conf/fmp.yaml#fmp_background

--out-background holds the unigrams u of [liu2020, eq. 2]. Their text is read as by train_lm: the
cuts of the role train and lm_text.txt.gz, or --raw-text, or the files of --in-text. It should be
the training text of the language model. The vocabulary is the model's; other words count as <unk>
where it has that.
"""

from __future__ import annotations

import argparse
import logging

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.scoring.nbest_lists import NbestList, check_nbest_complete, read_nbest, write_nbest

log = logging.getLogger(__name__)

#: Which flags go together.
_USES = (
    {"out_timeline", "in_manifests", "in_nbest"},
    {"out_timeline", "in_nbest"},
    {"out_timeline", "in_text", "out_nbest"},
    {"out_background", "in_lm", "in_manifests"},
    {"out_background", "in_lm", "in_manifests", "raw_text"},
    {"out_background", "in_lm", "in_manifests", "in_text"},
    {"out_background", "in_lm", "in_text"},
)


def main() -> None:
    """Parse, order or count, write."""
    args = cli.arguments(
        __doc__,
        in_manifests="[DIR] cuts, maybe lm_text.txt.gz",
        in_text="[FILE+] text in place of the corpus's",
        in_nbest="[DIR] nbest_<role>, with *.jsonl",
        out_nbest="[FILE] the lists of --in-text",
        out_timeline="[FILE] *.jsonl",
        raw_text="[PATH] a normalized sentence a line, in place of lm_text.txt.gz",
        in_lm="[LM] of train_lm, or an ARPA file",
        out_background="[FILE] *.safetensors",
    )
    given = {name for name in set().union(*_USES) if getattr(args, name) is not None}
    if given not in _USES:
        wanted = (
            "--out-timeline with --in-nbest, maybe --in-manifests, or with --in-text and "
            "--out-nbest; or --out-background with --in-lm and text"
        )
        raise ConfigError("the command line", wanted, "something else", "see --help")
    if args.out_background:
        _background(args)
    else:
        _timeline(args)


def _timeline(args: argparse.Namespace) -> None:
    from privasr_k2.federated.fmp_timeline import (
        TimelineConfig,
        occasions_of,
        read_occasions,
        table_1,
        text_lists,
        timeline_of,
        write_timeline,
    )

    config = cli.load(TimelineConfig, args)
    lists: list[NbestList]
    if args.in_nbest is not None:
        role, read = args.in_nbest.name.removeprefix("nbest_"), read_nbest(args.in_nbest)
        lists, occasions = list(read.lists), occasions_of(read.lists)
        if args.in_manifests is not None:
            cuts = args.in_manifests / f"cuts_{role}.jsonl.gz"
            check_nbest_complete(read, cuts)
            occasions = read_occasions([cuts])
    else:
        occasions = read_occasions(args.in_text)
        lists = text_lists(occasions, args.out_nbest.parent.name.removeprefix("nbest_"))
    timeline = timeline_of(lists, occasions, config)
    if args.out_nbest is not None:
        write_nbest(args.out_nbest, lists)
    write_timeline(args.out_timeline, timeline, lists)
    log.info(" ".join(f"{name} {value:,}" for name, value in table_1(timeline, lists).items()))


def _background(args: argparse.Namespace) -> None:
    from privasr_k2.federated.fmp_background import BackgroundConfig, write_background
    from privasr_k2.federated.fmp_scores import numbers_of_lm
    from privasr_k2.federated.marginals import background_unigrams
    from privasr_k2.lm.train import training_text

    config, numbers = cli.load(BackgroundConfig, args), numbers_of_lm(args.in_lm)
    text = training_text(config, args.in_manifests, args.in_text, args.raw_text)
    if not any(text):
        place = args.in_manifests or args.in_text[0]
        raise DataError(place, "a text of one word or more", "none", "choose another text")
    write_background(
        args.out_background, background_unigrams(text, numbers, config.prior_words), numbers
    )
    log.info("%d words of %d sentences", sum(map(len, text)), len(text))


if __name__ == "__main__":
    cli.run(main)
