r"""Turn Earnings-21 into the text of clients: a recognizer's words by call and speaker, and the gold words.

    python -m privasr_k2.bin.prepare_earnings21_clients --raw-corpus corpus/earnings21 \
        --out-dir data/earnings21_clients \
        --config conf/corpora.yaml#earnings21 conf/corpora.yaml#earnings21_clients

Writes recognized_<role>.jsonl.gz and gold_<role>.jsonl.gz for the roles train, dev and test, and the
sentences of both as text, a line each (.txt.gz). Words get the gold speaker by alignment; utterances part at
pauses.
"""

from __future__ import annotations

import logging
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.corpora.earnings21_clients import DealtClientsConfig, read_clients_of
from privasr_k2.fileio import atomic_path, write_jsonl, write_text

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, align, write."""
    made = cli.parser(__doc__)
    made.add_argument("--raw-corpus", type=Path, required=True, metavar="DIR", help="gold/ and ctm_*/")
    made.add_argument("--out-dir", type=Path, required=True, metavar="DIR", help="clients and text")
    cli.add_config(made)
    args = cli.parse(made)
    found = read_clients_of(args.raw_corpus, cli.load(DealtClientsConfig, args))
    with atomic_path(args.out_dir) as temporary:
        temporary.mkdir()
        for role, kinds in found.items():
            for kind, lines in kinds.items():
                write_jsonl(temporary / f"{kind}_{role}.jsonl.gz", lines)
                text = "".join(f"{line['words']}\n" for line in lines)
                write_text(temporary / f"{kind}_{role}.txt.gz", text)
                clients = len({line["client"] for line in lines})
                log.info("%s, %s: %d clients, %d utterances", kind, role, clients, len(lines))


if __name__ == "__main__":
    cli.run(main)
