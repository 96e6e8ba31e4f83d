"""Commands in Markdown pages."""

from __future__ import annotations

import re


def commands(text: str) -> list[list[str]]:
    """The words of every command of a recipe, ``./run.sh CORPUS RECIPE...``, without comments."""
    joined = re.sub(r"\\\n\s*", " ", text)
    lines = re.findall(r"\./run\.sh +([\w:./-]+ +[\w./-]+[^`\n#]*)", joined)
    return [line.split() for line in lines]
