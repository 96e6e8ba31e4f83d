r"""Say how many votes a budget buys, before a teacher is trained. Nothing is read.

    python -m privasr_k2.bin.plan_votes --out-plan exp/pate/plan.json --config conf/pate.yaml#vote_plan \
        --set teachers=[15] classes=500 agreement=[1.0] correct=0.95 epsilon=[8] delta=1e-5

For each number of teachers, agreement and epsilon: the most noise with which the majority still wins in the
share `correct` of the answers, and how many answers with that noise the budget allows.
"""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.fileio import write_json
from privasr_k2.pate.plan import VotePlanConfig, plan_votes

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, plan, print, write."""
    made = cli.parser(__doc__)
    made.add_argument("--out-plan", type=Path, required=True, metavar="FILE", help="JSON")
    cli.add_config(made)
    args = cli.parse(made)
    config = cli.load(VotePlanConfig, args)
    plans = plan_votes(config)
    for one in plans:
        log.info(one.line())
    write_json(
        args.out_plan, {"config": dataclasses.asdict(config), "plans": [one.to_json() for one in plans]}
    )


if __name__ == "__main__":
    cli.run(main)
