"""Steps that ``aggregate_votes`` and ``vote_tokens`` share."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from privasr_k2.errors import ConfigError
from privasr_k2.pate.mechanisms import MechanismConfig, Setting
from privasr_k2.pate.published import published_lines
from privasr_k2.pate.releases import spending_of
from privasr_k2.privacy import public_inputs
from privasr_k2.privacy.people import People
from privasr_k2.privacy.release import Release, fingerprint_of
from privasr_k2.privacy.spending import guarantees

log = logging.getLogger(__name__)


def check_flags(config: MechanismConfig, out_privacy: Path | None, ledger: Path | None) -> None:
    """Refuse a release without a ledger, and a ledger without a release.

    Raises:
        ConfigError: flags that do not fit the configuration.
    """
    given = (out_privacy is not None, ledger is not None)
    if config.claims and given != (True, True):
        flags = "--out-privacy and --ledger"
        raise ConfigError("the command line", flags, "one or none", "give both")
    if not config.claims and given[0]:
        expected = "no --out-privacy: there is no guarantee"
        raise ConfigError("epsilon=.inf", expected, f"{out_privacy}", "leave it out")
    if config.claims and not config.data:
        way_out = "name it: --set data=mini/train"
        raise ConfigError("data", "a corpus and its part", "nothing", way_out)


@contextmanager
def begin_release(
    args: argparse.Namespace,
    config: MechanismConfig,
    setting: Setting,
    who: Mapping[str, Any],
    inputs: Sequence[Path],
    people: People,
) -> Iterator[Release | None]:
    """The release that a configuration claims, entered in the ledger; None without noise.

    Args:
        args: of the verb: inputs, ``out_privacy``, ``ledger`` and ``max_epsilon``.
        who: keywords of :func:`privasr_k2.pate.releases.spending_of`.
        inputs: files and folders that the release depends on.
        people: behind the units of the shards.
    """
    if not config.claims:
        yield None
        return
    spending = spending_of(config, setting, **who)
    fingerprint = fingerprint_of(config, inputs)
    with public_inputs.begin_release(args, spending, fingerprint, people) as release:
        yield release


def print_plan(setting: Setting, what: str) -> None:
    """Log the settings and their cost, before anything is drawn; ``what`` is voted on."""
    for line in setting.lines(what):
        log.info("plan: %s", line)


def print_result(summary: Mapping[str, Any], release: Release | None) -> None:
    """Log how many votes were answered, the guarantee, and the epsilon as published."""
    keys = [f"{of}_{what}" for of in ("votes", "utterances") for what in ("answered", "asked")]
    numbers = [summary[key] for key in keys]
    log.info("%s of %s votes answered; %s of %s utterances have a label", *numbers)
    if release is None:
        log.warning("no noise: NO GUARANTEE; what is made of these labels may reveal private data")
        return
    for line in guarantees([release.entry.spending])[0].lines():
        log.info(line)
    published = summary["as_published"]
    for line in published_lines(published) if published is not None else ():
        log.warning(line)
