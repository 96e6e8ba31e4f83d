"""Roles that a corpus lacks, cut from train by whole speakers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from privasr_k2.corpora.utterances import split_by_speaker
from privasr_k2.errors import DataError

if TYPE_CHECKING:
    from lhotse import CutSet

    from privasr_k2.corpora.base import CorpusInput

OPTIONS = ("dev_fraction", "test_fraction", "adapt_fraction", "split_seed")
"""Options of :func:`complete`: 0.09, 0.1, 0 (no such role) and 0."""


def refuse_missing_test(
    roles: Mapping[str, object], given: CorpusInput, *, place: str, there: str, way_out: str
) -> None:
    """Raise DataError where there is no test part, and nobody has asked for one from train.

    Args:
        there: what is there besides the roles, for the message.
        way_out: how to name the test part.
    """
    if "test" not in roles and "test_fraction" not in given.options:
        way_out += ", or make speakers of train the test part: --corpus-options test_fraction=0.1"
        found = f"only {' '.join(roles)}{there}"
        raise DataError(place, "test beside train", found, way_out)


def complete(cuts: Mapping[str, CutSet], given: CorpusInput) -> dict[str, CutSet]:
    """All roles: test, dev and, where that is asked for, adapt are cut from train."""
    seed, cuts = int(given.number("split_seed", 0)), dict(cuts)
    for role, fraction in (("test", 0.1), ("dev", 0.09), ("adapt", 0.0)):
        share = given.number(f"{role}_fraction", fraction)
        if role not in cuts and (share or role != "adapt"):
            cuts["train"], cuts[role] = _split(cuts["train"], role, share, seed)
    return cuts


def _split(cuts: CutSet, part: str, fraction: float, seed: int) -> tuple[CutSet, CutSet]:
    at_least = 2 if len({cut.supervisions[0].speaker for cut in cuts}) > 4 else 1
    rest, taken = split_by_speaker(cuts, fraction=fraction, at_least=at_least, seed=seed)
    for cut in taken:  # tables name parts: this one was never trained on
        cut.custom["part"] = part
    return rest, taken
