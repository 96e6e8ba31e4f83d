"""Markdown pages: their words, their commands, and the rows that their figures are of."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from privasr_k2.report.results import Row

ROOT = Path(__file__).parents[2]


def words_of(page: str) -> str:
    """A page of the checkout as one line, wherever its lines end."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def rates(rows: Iterable[Row], part: str = "test") -> dict[str, Row]:
    """The WER of each system on all of a part."""
    whole = ("wer", part, "", "")
    return {
        row.system: row for row in rows if (row.metric, row.part, row.group, row.against) == whole
    }


def commands(text: str) -> list[list[str]]:
    """The words of every command of a recipe, ``./run.sh CORPUS RECIPE...``, without comments."""
    joined = re.sub(r"\\\n\s*", " ", text)
    lines = re.findall(r"\./run\.sh +([\w:./-]+ +[\w./-]+[^`\n#]*)", joined)
    return [line.split() for line in lines]
