"""Sphinx's settings for the reference that local/api_reference.sh builds from docstrings."""

from __future__ import annotations

import re
from typing import Any

import privasr_k2

project = "privasr_k2"
version = release = privasr_k2.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
autodoc_member_order = "bysource"
napoleon_use_ivar = True
# Several modules have a class or a field of the same short name.
suppress_warnings = ["ref.python"]

_SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields|Example|Examples|Note):$")


def as_restructured_text(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Keep docstrings as they are: equations are indented, a verb's text is its help."""
    found, before, section = lines[:1], "", False
    if name.startswith("privasr_k2.bin.") and what == "module":
        lines[:] = [*found, "", "::", "", *(f"    {line}" for line in lines[1:])]
        return
    for line in lines[1:]:
        indent = len(line) - len(line.lstrip())
        if line and indent == 0:
            section = bool(_SECTION.match(line))
        if (
            line
            and indent >= 4
            and not section
            and not found[-1]
            and not before.startswith((" ", "-", "1."))
        ):
            found += ["::", ""]
        found.append(line)
        before = line or before
    lines[:] = found


def setup(app: Any) -> None:
    """Called by Sphinx; before napoleon reads the docstrings."""
    app.connect("autodoc-process-docstring", as_restructured_text, priority=100)
