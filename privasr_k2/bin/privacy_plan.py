r"""Print what a setting costs before training, or which noise or how many rounds a target allows.

    privasr plan --privacy-unit speaker --num-units 74 --client-fraction 0.1 --rounds 100 \
        --noise 1.0 --delta 1e-5
    privasr plan --privacy-unit speaker --num-units 74 --client-fraction 0.1 --rounds 100 \
        --epsilon 3 --delta 1e-5
    privasr plan --privacy-unit device --num-units 10000 --person-units 4 \
        --client-fraction 0.01 --rounds 1000 --noise 1.5 --delta 1e-5
    privasr plan --privacy-unit user --num-units 2000 --batches 20 --strategy square_root \
        --rounds 100 --epsilon 3 --delta 1e-5
    privasr plan --kind votes --privacy-unit speaker --num-units 250 --mechanism gnmax \
        --noise 40 --rounds 1000 --delta 1e-5
    privasr plan --kind counts --privacy-unit user --num-units 48 --mechanism discrete_laplace \
        --sensitivity 20 --noise 40 --rounds 5 --delta 1e-5
    privasr plan --kind queries --out-plan exp/pate/plan.json --config conf/pate.yaml#vote_plan \
        --set teachers=[15] classes=500 agreement=[1.0] epsilon=[8] delta=1e-5

Of --noise, --rounds and --epsilon give two: the third follows. Epsilon is printed by Rényi DP (RDP)
and by privacy loss distributions (PLD, tight); smaller is stronger. With --max-epsilon it fails
where it costs more. With --person-units the epsilon of a whole person is printed, too, where a
person is several units. --kind queries takes --config and --set alone. For each number of teachers,
agreement and epsilon it prints the most noise with which the majority still wins in the share
`correct` of the answers, and the queries that the budget allows. In a recipe the same values are
given with --set NAME=VALUE, and --out-plan writes the plan.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from privasr_k2 import config, sections
from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import write_json
from privasr_k2.privacy.plan import PlanRequest, plan
from privasr_k2.privacy.spending import UNITS

_HELP = {
    "kind": "updates (noisy sums; the default), votes (of teachers), counts, queries (per epsilon)",
    "privacy_unit": f"hidden: {', '.join(UNITS)}",
    "num_units": "how many there are",
    "person_units": "the most units that one person is: prints the epsilon of a person, too",
    "relation": "'add or remove one' (without it) or 'replace one'",
    "delta": "must be below 1/num_units",
    "rounds": "rounds, steps, answered queries, or releases of counts",
    "noise": "updates: standard deviation by clip norm; votes and counts: sigma or scale",
    "epsilon": "a target, in place of --noise or --rounds",
    "max_epsilon": "fail where it costs more",
    "client_fraction": "updates: Poisson sampling with this probability",
    "cohort": "updates: fixed cohorts of this many units",
    "batches": "updates: each unit once in this many rounds",
    "strategy": "updates: square_root, blt, tree: noise correlated over rounds; batches in order",
    "bands": "updates: rounds of correlated noise (square_root); without it an epoch's batches",
    "mechanism": "votes: gnmax, lnmax or gumbel_max; counts: discrete_laplace or discrete_gaussian",
    "asked": "votes: queries whose majority is first compared with a threshold",
    "threshold_noise": "votes: standard deviation of the noise in that comparison",
    "units_in_a_shard": "votes: at most; with 1 a unit gives or takes a vote, else it moves one",
    "sensitivity": "counts: how much one unit can change them, in L1 (Laplace) or L2 (Gaussian)",
}
_NEEDED = ("privacy_unit", "num_units", "delta")
#: Old names, with the new ones.
_RENAMED = {"unit": "privacy_unit", "units": "num_units", "rate": "client_fraction"}
_WITHOUT = {"kind": "updates", "relation": "add or remove one"}


def main() -> None:
    """Parse, plan, print, write."""
    parser = cli.parser(__doc__)
    for field in dataclasses.fields(PlanRequest):
        parser.add_argument(_flag(field.name), metavar="X", help=_HELP[field.name])
    cli.add_flags(
        parser,
        in_shards="[FILE+] queries: shards.json of these teachers, which say what one unit changes",
        out_plan="[FILE] the plan as JSON",
    )
    _refuse_old_names(sys.argv[1:])
    args = cli.parse(parser)
    if args.kind == "queries" or (args.kind is None and _names_queries(args.config)):
        _queries(args)
        return
    if args.in_shards:
        raise ConfigError("--in-shards", "--kind queries", "another kind", "leave it out")

    for name in _NEEDED:
        in_settings = args.config or any(value.startswith(f"{name}=") for value in args.set)
        if getattr(args, name) is None and not in_settings:
            flag = _flag(name)
            raise ConfigError(flag, "a value", "none", f"give {flag}: {_HELP[name]}")
    nothing = [f"{name}={_WITHOUT.get(name, 'null')}" for name in _HELP if name not in _NEEDED]
    given = [f"{name}={getattr(args, name)}" for name in _HELP if getattr(args, name) is not None]
    planned = plan(config.load(PlanRequest, args.config, [*nothing, *args.set, *given]))
    if args.out_plan is not None:
        write_json(args.out_plan, planned.to_json())
    print("\n".join(planned.lines()))


def _refuse_old_names(words: Sequence[str]) -> None:
    for old, new in _RENAMED.items():
        for before, now in ((_flag(old), _flag(new)), (f"{old}=", f"{new}=")):
            if any(word == before or word.startswith(f"{before.rstrip('=')}=") for word in words):
                raise ConfigError(before, now, before, f"write {now}: the name has changed")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _names_queries(files: Sequence[Path]) -> bool:
    lines = [line for file in files for line in sections.read(file).splitlines()]
    return any(line.startswith("kind: queries") for line in lines)


def _queries(args: argparse.Namespace) -> None:
    from privasr_k2.pate.plan import VotePlanConfig, plan_votes
    from privasr_k2.pate.shards import read_shards

    given = [name for name in _HELP if name != "kind" and getattr(args, name) is not None]
    if given:
        found, known = " ".join(map(_flag, given)), "--config, --set and --in-shards"
        raise ConfigError("--kind queries", known, found, "give --set NAME=VALUE")
    plan_config = cli.load(VotePlanConfig, args)
    shards = map(read_shards, args.in_shards or ())
    plans = plan_votes(plan_config, {each.teachers: each.units_in_a_shard for each in shards})
    if args.out_plan is not None:
        about = dataclasses.asdict(plan_config)
        write_json(args.out_plan, {"config": about, "plans": [plan.to_json() for plan in plans]})
    print("\n".join(plan.line() for plan in plans))


if __name__ == "__main__":
    cli.run(main)
