r"""Compute for the owner of votes how far teachers agree, and a release's data-dependent epsilon.

    privasr verb vote_costs --in-private-votes exp/pate/votes \
        --out-agreement exp/pate/agreement.json
    privasr verb vote_costs --in-private-votes exp/pate/votes \
        --in-labels exp/pate/gnmax_8/labels --out-costs exp/pate/gnmax_8/costs.json

Both results are the owner's: they are computed from private votes, may tell of a unit, and no
ledger holds them. Publish the epsilon of privacy.json. To publish a data-dependent one, noise would
have to be added by its smooth sensitivity, which no verb does.
"""

from __future__ import annotations

import dataclasses
import logging

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import write_json
from privasr_k2.pate.costs import read_asked, vote_costs
from privasr_k2.pate.votes import agreement, read_votes

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, compute, write."""
    args = cli.arguments(
        __doc__,
        config=False,
        in_private_votes="DIR of cast_votes",
        in_labels="[DIR] of aggregate_votes, for --out-costs",
        out_agreement="[FILE] JSON; private",
        out_costs="[FILE] JSON; private",
    )
    if (args.in_labels is None) != (args.out_costs is None) or not (
        args.out_costs or args.out_agreement
    ):
        expected = "--out-agreement, or --in-labels with --out-costs"
        raise ConfigError("the command line", expected, "neither", "see --help")
    votes = read_votes(args.in_private_votes)
    if args.out_agreement is not None:
        shares = agreement(votes)
        log.warning("not for release: %s", shares)
        write_json(args.out_agreement, {"for_release": False, **shares})
    if args.out_costs is not None:
        labels, asked = read_asked(args.in_labels)
        cost, for_any = vote_costs(votes, labels, asked), labels["epsilon"]["value"]
        text = "not for release: epsilon %.4g for these votes, at delta %g; for any votes %.4g"
        log.warning(text, cost.epsilon, cost.delta, for_any)
        costs = {**dataclasses.asdict(cost), "epsilon_for_any_votes": for_any}
        write_json(args.out_costs, {"for_release": False, **costs})


if __name__ == "__main__":
    cli.run(main)
