r"""Turn Earnings-21 into N-best lists, into references with names, or into the text of clients.

    privasr verb prepare_earnings21 --raw-corpus corpus/earnings21 --out-dir data/earnings21 \
        --config conf/corpora.yaml#earnings21
    privasr verb prepare_earnings21 --raw-corpus corpus/earnings21 \
        --out-clients data/earnings21_clients \
        --config conf/corpora.yaml#earnings21 conf/corpora.yaml#earnings21_clients

--out-references: corpus.json and cuts_<role>.jsonl.gz, a call a cut, with gold words and entities.
--out-dir: corpus.json and <recognizer>/nbest_<role>/1.jsonl for the roles train, dev and test: gold
words as references, recognizers' CTM as lists of one hypothesis. --out-clients:
recognized_<role>.jsonl.gz and gold_<role>.jsonl.gz, and the sentences of both as text, a line each
(.txt.gz). There words get the gold speaker by alignment, and utterances part at pauses.
"""

from __future__ import annotations

import argparse
import logging

from privasr_k2.bin import cli
from privasr_k2.corpora.earnings21 import (
    Earnings21Config,
    corpus_info,
    read_lists,
    read_references,
)
from privasr_k2.corpora.earnings21_clients import DealtClientsConfig, read_clients_of
from privasr_k2.fileio import atomic_path, write_json, write_jsonl, write_text
from privasr_k2.scoring.corpus_info import CORPUS_FILE
from privasr_k2.scoring.nbest_lists import write_nbest

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, read, write."""
    parser = cli.parser(__doc__, raw_corpus="DIR gold/ and ctm_*/")
    out = parser.add_mutually_exclusive_group(required=True)
    cli.add_flags(
        out,
        out_dir="[DIR] corpus.json and the lists",
        out_references="[DIR] corpus.json and calls with gold entities",
        out_clients="[DIR] clients and text",
    )
    args = cli.parse(parser)
    if args.out_references:
        _references(args)
    elif args.out_dir:
        _lists(args)
    else:
        _clients(args)


def _lists(args: argparse.Namespace) -> None:
    recognizers = read_lists(args.raw_corpus, cli.load(Earnings21Config, args))
    with atomic_path(args.out_dir) as temporary:
        temporary.mkdir()
        write_json(temporary / CORPUS_FILE, corpus_info())
        for recognizer, roles in recognizers.items():
            for role, lists in roles.items():
                write_nbest(temporary / recognizer / f"nbest_{role}" / "1.jsonl", lists)
                log.info("%s, %s: %s", recognizer, role, " ".join(one.id for one in lists))


def _references(args: argparse.Namespace) -> None:
    roles = read_references(args.raw_corpus, cli.load(Earnings21Config, args))
    with atomic_path(args.out_references) as temporary:
        temporary.mkdir()
        write_json(temporary / CORPUS_FILE, corpus_info())
        for role, cuts in roles.items():
            write_jsonl(temporary / f"cuts_{role}.jsonl.gz", cuts)


def _clients(args: argparse.Namespace) -> None:
    roles = read_clients_of(args.raw_corpus, cli.load(DealtClientsConfig, args))
    with atomic_path(args.out_clients) as temporary:
        temporary.mkdir()
        for role, kinds in roles.items():
            for kind, lines in kinds.items():
                write_jsonl(temporary / f"{kind}_{role}.jsonl.gz", lines)
                text = "".join(f"{line['words']}\n" for line in lines)
                write_text(temporary / f"{kind}_{role}.txt.gz", text)
                clients = len({line["client"] for line in lines})
                log.info("%s, %s: %d clients, %d utterances", kind, role, clients, len(lines))


if __name__ == "__main__":
    cli.run(main)
