"""Sphinx's settings for the site that ``privasr docs`` builds."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any

import privasr_k2

project = "privasr_k2"
version = release = privasr_k2.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "privasr_k2"
html_show_sphinx = html_show_copyright = html_copy_source = False
root_doc = "docs/index"
include_patterns = [
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "docs/*.ipynb"),
    "docs/reference/*.md",
    *("egs/*/RESULTS*.md", "benchmarks/RESULTS.md"),
]
exclude_patterns = ["egs/*/exp", "egs/*/data", "egs/*/corpus"]
myst_heading_anchors = 4

# The notebook is committed without outputs: what it prints on the site was computed for it.
nb_execution_mode = "force"
nb_execution_raise_on_error = True

# Packages that an environment may lack.
_OPTIONAL = "k2 spacy ctranslate2 tokenizers onnx onnxruntime sherpa_onnx presidio_analyzer"
autodoc_mock_imports = [name for name in _OPTIONAL.split() if find_spec(name) is None]
autodoc_member_order = "bysource"
napoleon_use_ivar = True
suppress_warnings = [
    "ref.python",  # several modules have a class or a field of one name
    "toc.not_included",  # tables of results are linked where they are told of
    "misc.highlighting_failure",  # lexicons and lattices are in no language that is known
]

_SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields|Example|Examples|Note):$")


def as_restructured_text(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Keep docstrings as they are: equations are indented, a verb's text is its help."""
    found, before, section = lines[:1], "", False
    if name.startswith("privasr_k2.bin.") and what == "module" and len(lines) > 2:
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
            and not before.endswith("::")
        ):
            found += ["::", ""]
        found.append(line)
        before = line or before
    lines[:] = found


def as_signature(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: Any
) -> tuple[str | None, Any]:
    """Sphinx cannot parse a starred argument within an annotation."""
    return signature and signature.replace("one_of(*", "one_of("), returns


def setup(app: Any) -> None:
    """Called by Sphinx; before napoleon reads the docstrings."""
    app.connect("autodoc-process-signature", as_signature)
    app.connect("autodoc-process-docstring", as_restructured_text, priority=100)
