r"""Say whose utterances are whose, and in which order they came: the clients of federated marginals.

    python -m privasr_k2.bin.prepare_fmp --in-manifests data/manifests --in-nbest exp/x/nbest_test \
        --out-timeline exp/fmp/timeline_test.jsonl --config conf/fmp.yaml#fmp_timeline --set client=speaker

Text without audio (cuts or tagged text), as lists of one hypothesis each, which --out-nbest gets:

    python -m privasr_k2.bin.prepare_fmp --in-text data/manifests/cuts_test.jsonl.gz \
        --out-nbest exp/fmp/nbest_test/1.jsonl --out-timeline exp/fmp/timeline_test.jsonl \
        --config conf/fmp.yaml#fmp_timeline --set client=prefix

Logs table 1 of [liu2020] for these utterances.
"""

from __future__ import annotations

import logging
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.federated.fmp_timeline import (
    TimelineConfig,
    read_occasions,
    table_1,
    text_lists,
    timeline_of,
    write_timeline,
)
from privasr_k2.scoring.nbest_lists import NbestList, check_nbest_complete, read_nbest, write_nbest

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, order, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-manifests", type=Path, metavar="DIR", help="cuts, for the lists of --in-nbest")
    made.add_argument("--in-nbest", type=Path, metavar="DIR", help="nbest_<role>, with *.jsonl")
    made.add_argument(
        "--in-text", type=Path, nargs="+", metavar="FILE", help="cuts or tagged text, in place of both"
    )
    made.add_argument("--out-nbest", type=Path, metavar="FILE", help="the lists of --in-text")
    made.add_argument("--out-timeline", type=Path, required=True, metavar="FILE", help="*.jsonl")
    cli.add_config(made)
    args = cli.parse(made)
    config = cli.load(TimelineConfig, args)
    lists: list[NbestList]
    given = [value is not None for value in (args.in_manifests, args.in_nbest, args.in_text, args.out_nbest)]
    if given == [True, True, False, False]:
        role, read = args.in_nbest.name.removeprefix("nbest_"), read_nbest(args.in_nbest)
        cuts = args.in_manifests / f"cuts_{role}.jsonl.gz"
        check_nbest_complete(read, cuts)
        lists, occasions = list(read.lists), read_occasions([cuts])
    elif given == [False, False, True, True]:
        occasions = read_occasions(args.in_text)
        lists = text_lists(occasions, args.out_nbest.parent.name.removeprefix("nbest_"))
    else:
        wanted = "--in-manifests with --in-nbest, or --in-text with --out-nbest"
        raise ConfigError("the command line", wanted, "something else", "see --help")
    timeline = timeline_of(lists, occasions, config)
    if args.out_nbest is not None:
        write_nbest(args.out_nbest, lists)
    write_timeline(args.out_timeline, timeline, lists)
    log.info(" ".join(f"{name} {value:,}" for name, value in table_1(timeline, lists).items()))


if __name__ == "__main__":
    cli.run(main)
