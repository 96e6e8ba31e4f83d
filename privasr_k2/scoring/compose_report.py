"""The report of recipe ``compose``: error rates of each step, and what is guaranteed to whom.

Every part of the data is used by one step of its own, and nobody is in two parts: guarantees of different
parts stand side by side and are not added up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from privasr_k2.errors import DataError
from privasr_k2.privacy.ledger import Entry
from privasr_k2.privacy.spending import Guarantee, guarantees, shown
from privasr_k2.scoring.corpus_info import CorpusInfo
from privasr_k2.scoring.report import Chosen, ReportOptions, report, table
from privasr_k2.scoring.results import Score

STEPS = {
    "train": "text -> class LM, neural LM, vocabulary",
    "adapt": "recognized words -> neural LM, trained on devices",
    "test": "recognized words -> unigrams of all users",
}
ACOUSTIC_MODELS = ("trained", "brought_along")


@dataclass(frozen=True)
class ComposeReportOptions(ReportOptions):
    """What stands above the tables, and what is known of steps without a release.

    Attributes:
        command: as in :class:`privasr_k2.scoring.report.ReportOptions`.
        corpus: as the ledger names it.
        acoustic_model: ``trained`` on the speech of train, or ``brought_along``.
    """

    corpus: str
    acoustic_model: str

    def __post_init__(self) -> None:
        if self.acoustic_model not in ACOUSTIC_MODELS:
            known = " or ".join(ACOUSTIC_MODELS)
            raise ValueError(f"acoustic_model must be {known}, got {self.acoustic_model!r}")


def compose_report(
    scores: Sequence[Score],
    chosen: Sequence[Chosen],
    baselines: Sequence[Score],
    entries: Sequence[Entry],
    corpus: CorpusInfo,
    options: ComposeReportOptions,
) -> str:
    """The whole of ``RESULTS.md``.

    Args:
        entries: of the ledger, those of the releases of this run; one that stands twice counts once.

    Raises:
        DataError: a release of another part of the data than :data:`STEPS`; and as :func:`report`.
    """
    found = guarantees(list({entry.release: entry.spending for entry in entries}.values()))
    parts = [_part(guarantee, options.corpus) for guarantee in found]
    rows = [
        {"users of": part, "step": STEPS[part], **_cells(guarantee)} for part, guarantee in zip(parts, found)
    ]
    without = dict.fromkeys(("epsilon (RDP)", "epsilon (PLD)"), shown(math.inf))
    rows += [{"users of": part, "step": step, **without} for part, step in _uncovered(options)]
    order = [*STEPS, "dev"]
    rows.sort(key=lambda row: order.index(row["users of"]))
    lines = [f"mechanism, {part}: {'; '.join(g.released)}" for part, g in zip(parts, found)]
    lines += [f"not covered, {part}: {line}" for part, g in zip(parts, found) for line in g.does_not_cover]
    lines += [
        "Nobody is in two parts, so that a row holds whatever the other rows do.",
        f"Whoever is in a row with {shown(math.inf)} epsilon has no guarantee, whatever the other rows say.",
        "Each user's own unigrams and words of test stay on the device.",
        "Error rates were taken from the references without noise: no epsilon covers them.",
    ]
    blocks = ["## What is guaranteed, and to whom\n", table(rows), "".join(f"- {line}\n" for line in lines)]
    return report(scores, chosen, baselines, corpus, options) + "\n" + "\n".join(blocks)


def _part(guarantee: Guarantee, corpus: str) -> str:
    part = guarantee.data.removeprefix(f"{corpus}/").partition("/")[0]
    if part not in STEPS:
        expected = " ".join(f"{corpus}/{one}" for one in STEPS)
        raise DataError(
            "--in-privacy", f"releases of {expected}", guarantee.data, "name those of this recipe"
        )
    return part


def _cells(guarantee: Guarantee) -> dict[str, str]:
    return {name: cell for name, cell in guarantee.row().items() if name != "private data"}


def _uncovered(options: ComposeReportOptions) -> list[tuple[str, str]]:
    rows = [("dev", "words and speech -> weights, lambda, best round")]
    if options.acoustic_model == "trained":
        rows.append(("train", "speech -> acoustic model"))
    return rows
