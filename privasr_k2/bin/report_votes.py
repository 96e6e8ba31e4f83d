r"""Say how far the teachers agree.

    python -m privasr_k2.bin.report_votes --in-private-votes exp/pate/votes \
        --out-report exp/pate/agreement.json

The report is its owner's: it is made of private votes, and nothing covers it.
"""

from __future__ import annotations

import logging
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.fileio import write_json
from privasr_k2.pate.votes import agreement, read_votes

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, count, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-private-votes", type=Path, required=True, metavar="DIR", help="of cast_votes")
    made.add_argument("--out-report", type=Path, required=True, metavar="FILE", help="JSON; private")
    args = cli.parse(made)
    found = agreement(read_votes(args.in_private_votes))
    log.warning("not for release: %s", found)
    write_json(args.out_report, {"for_release": False, **found})


if __name__ == "__main__":
    cli.run(main)
