r"""Compute what a release of labels cost for the votes as they were: the data-dependent epsilon of PATE.

    python -m privasr_k2.bin.vote_costs --in-private-votes exp/pate/votes \
        --in-labels exp/pate/gnmax_8/labels --out-costs exp/pate/gnmax_8/costs.json

The result is the owner's. It is computed from private votes and may itself tell of a unit; no ledger holds
it. Publish the epsilon of privacy.json. To publish a data-dependent one, noise would have to be added by its
smooth sensitivity, which no verb does.
"""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.fileio import write_json
from privasr_k2.pate.costs import read_asked, vote_costs
from privasr_k2.pate.votes import read_votes

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, compute, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-private-votes", type=Path, required=True, metavar="DIR", help="of cast_votes")
    made.add_argument("--in-labels", type=Path, required=True, metavar="DIR", help="of aggregate_votes")
    made.add_argument("--out-costs", type=Path, required=True, metavar="FILE", help="JSON; private")
    args = cli.parse(made)
    told, asked = read_asked(args.in_labels)
    found = vote_costs(read_votes(args.in_private_votes), told, asked)
    log.warning(
        "not for release: epsilon %.4g for these votes, at delta %g; for any votes %.4g",
        found.epsilon,
        found.delta,
        told["epsilon"]["value"],
    )
    independent = {"epsilon_for_any_votes": told["epsilon"]["value"]}
    write_json(args.out_costs, {"for_release": False, **dataclasses.asdict(found), **independent})


if __name__ == "__main__":
    cli.run(main)
