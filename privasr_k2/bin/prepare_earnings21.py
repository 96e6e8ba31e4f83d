"""Turn Earnings-21 into N-best lists: gold words as references, recognizers' CTM as lists of one hypothesis.

    python -m privasr_k2.bin.prepare_earnings21 --raw-corpus corpus/earnings21 --out-dir data/earnings21 \\
        --config conf/corpora.yaml#earnings21

Writes corpus.json and <recognizer>/nbest_<role>/1.jsonl for the roles train, dev and test.
"""

from __future__ import annotations

import logging
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.corpora.earnings21 import Earnings21Config, corpus_info, read_lists
from privasr_k2.fileio import atomic_path, write_json
from privasr_k2.scoring.corpus_info import CORPUS_FILE
from privasr_k2.scoring.nbest_lists import write_nbest

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, read, write."""
    made = cli.parser(__doc__)
    made.add_argument("--raw-corpus", type=Path, required=True, metavar="DIR", help="gold/ and ctm_*/")
    made.add_argument("--out-dir", type=Path, required=True, metavar="DIR", help="corpus.json and the lists")
    cli.add_config(made)
    args = cli.parse(made)
    recognizers = read_lists(args.raw_corpus, cli.load(Earnings21Config, args))
    with atomic_path(args.out_dir) as temporary:
        temporary.mkdir()
        write_json(temporary / CORPUS_FILE, corpus_info())
        for recognizer, roles in recognizers.items():
            for role, lists in roles.items():
                write_nbest(temporary / recognizer / f"nbest_{role}" / "1.jsonl", lists)
                log.info("%s, %s: %s", recognizer, role, " ".join(one.id for one in lists))


if __name__ == "__main__":
    cli.run(main)
