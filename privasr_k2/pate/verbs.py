"""What the verbs that release labels have in common."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privasr_k2.errors import ConfigError
from privasr_k2.pate.mechanisms import MechanismConfig, Setting
from privasr_k2.pate.published import published_lines
from privasr_k2.privacy.release import Release
from privasr_k2.privacy.spending import guarantees

log = logging.getLogger(__name__)


def check_flags(config: MechanismConfig, out_privacy: Path | None, ledger: Path | None) -> None:
    """Refuse a release without a ledger, and a ledger without a release.

    Raises:
        ConfigError: flags that do not fit the configuration.
    """
    given = (out_privacy is not None, ledger is not None)
    if config.claims and given != (True, True):
        raise ConfigError("the command line", "--out-privacy and --ledger", "one or none", "give both")
    if not config.claims and given[0]:
        raise ConfigError(
            "epsilon=.inf", "no --out-privacy: there is no guarantee", f"{out_privacy}", "leave it out"
        )
    if config.claims and not config.data:
        raise ConfigError("data", "a corpus and its part", "nothing", "name it: --set data=mini/train")


def print_plan(setting: Setting, what: str) -> None:
    """What will be done and what it costs, before it is."""
    for line in setting.lines(what):
        log.info("plan: %s", line)


def print_result(told: Mapping[str, Any], release: Release | None) -> None:
    """What was asked and answered, the guarantee, and what the paper would have called it."""
    log.info(
        "%s of %s votes answered; %s of %s utterances have a label",
        *(
            told[f"{name}"]
            for name in ("votes_answered", "votes_asked", "utterances_answered", "utterances_asked")
        ),
    )
    if release is None:
        log.warning("no noise: NO GUARANTEE; what is made of these labels may tell of the private data")
        return
    for line in guarantees([release.entry.spending])[0].lines():
        log.info(line)
    for line in published_lines(told["as_published"]):
        log.warning(line)
