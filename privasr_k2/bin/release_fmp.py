r"""Release the global marginals of all rounds with a guarantee for each utterance, user or client.

    privasr verb release_fmp --in-private-nbest exp/x/nbest_test \
        --in-private-timeline exp/fmp/timeline_test.jsonl --in-public-lm exp/x/lm/transformer \
        --out-release exp/fmp/user_1/marginals.safetensors \
        --out-privacy exp/fmp/user_1/privacy.json --ledger privacy/ledger.json \
        --config conf/fmp.yaml#fmp_release --set data=mini/test unit=user epsilon=1

Word counts are clipped unit by unit and get discrete noise; the vocabulary is public. The timeline
says what a client is, and who stands behind every unit. personalize --in-release reads the counts.
A run that was killed continues with the same noise and spends no more.

--in-public-background and section fmp_published give eq. 8 and 9 of liu2020 as published, for
comparison. They do not clip: epsilon is infinite, and no --max-epsilon allows it. privacy.json then
says what holds for units of at most ``words`` words, which is far above the published epsilon.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError

if TYPE_CHECKING:
    from privasr_k2.privacy.people import People
    from privasr_k2.privacy.spending import Spending

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, spend, add noise, write."""
    args = cli.arguments(
        __doc__,
        in_private_nbest="DIR with *.jsonl",
        in_private_timeline="FILE of prepare_fmp",
        in_public_lm="LM whose words are counted",
        in_public_background="[FILE] u: eq. 8 and 9 as published",
        out_release="FILE *.safetensors",
        out_privacy="FILE privacy.json",
        ledger="FILE of the private lists",
        max_epsilon="[X] refuse to spend beyond it",
    )

    from privasr_k2.privacy import release
    from privasr_k2.privacy.public_inputs import begin_release
    from privasr_k2.privacy.spending import guarantees

    prepared = _clipped(args) if args.in_public_background is None else _published(args)
    fingerprint = release.fingerprint_of(prepared.config, prepared.inputs)
    with begin_release(args, prepared.spending, fingerprint, prepared.people) as begun:
        prepared.write(begun)
    log.log(prepared.level, prepared.line)
    for line in guarantees([begun.entry.spending])[0].lines():
        log.log(prepared.level, line)


@dataclass(frozen=True)
class _Prepared:
    """A release before it begins: what it spends and reads, how it is written, what is logged."""

    config: Any
    spending: Spending
    people: People | None
    inputs: list[Path]
    write: Callable[[Any], None]
    line: str
    level: int = logging.INFO


def _clipped(args: argparse.Namespace) -> _Prepared:
    from privasr_k2.federated.fmp_release import (
        FmpMechanism,
        FmpReleaseConfig,
        people_of,
        unit_numbers,
        write_release,
    )
    from privasr_k2.federated.fmp_scores import numbers_of_lm
    from privasr_k2.federated.fmp_spoken import spoken_of, unit_name
    from privasr_k2.federated.fmp_timeline import read_timeline
    from privasr_k2.scoring.nbest_lists import read_nbest

    config = _named(cli.load(FmpReleaseConfig, args))
    lists, timeline = read_nbest(args.in_private_nbest), read_timeline(args.in_private_timeline)
    spoken = spoken_of(lists, timeline, numbers_of_lm(args.in_public_lm))
    mechanism = FmpMechanism(config)
    return _Prepared(
        config,
        mechanism.spending(unit_name(spoken, config.unit), unit_numbers(spoken, config.unit)[1]),
        people_of(spoken, config.unit, args.in_private_timeline),
        [args.in_private_nbest, args.in_private_timeline, args.in_public_lm],
        partial(write_release, args.out_release, spoken, mechanism),
        f"noise of a word's running count: {mechanism.errors()[-1]:.3g} words after the last round",
    )


def _published(args: argparse.Namespace) -> _Prepared:
    from privasr_k2.federated.fmp_published import spending_of, write_published
    from privasr_k2.federated.fmp_release import people_of
    from privasr_k2.federated.fmp_scores import numbers_of_lm, read_world
    from privasr_k2.federated.fmp_settings import PublishedConfig
    from privasr_k2.federated.fmp_spoken import unit_name

    config = _named(cli.load(PublishedConfig, args))
    lists, timeline = args.in_private_nbest, args.in_private_timeline
    background = args.in_public_background
    world = read_world(lists, timeline, background, numbers_of_lm(args.in_public_lm))
    unit = unit_name(world.spoken, config.unit)
    return _Prepared(
        config,
        spending_of(config, world.spoken),
        people_of(world.spoken, config.unit, timeline),
        [lists, timeline, args.in_public_lm, background],
        partial(write_published, args.out_release, world.spoken, config, world.background),
        f"published as epsilon {config.epsilon:g}; a {unit} of {config.words:g} words has:",
        logging.WARNING,
    )


def _named(config: Any) -> Any:
    if not config.data:
        expected = "a corpus and its part"
        raise ConfigError("data", expected, "nothing", "name it: --set data=mini/test")
    return config


if __name__ == "__main__":
    cli.run(main)
