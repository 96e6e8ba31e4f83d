"""Several reports on one page: Markdown with its figures, and the same as HTML that needs no other file."""

from __future__ import annotations

import base64
import html
import os
import re
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines
from privasr_k2.recipe.history import History

FIGURES = {".svg": "image/svg+xml", ".png": "image/png"}
_IMAGE = re.compile(r'<img src="([^"]+)"')
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; }
body { max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto; margin: 1rem 0; }
th, td { border: 1px solid #ccc; padding: 0.2rem 0.5rem; white-space: nowrap; }
th { background: #f2f2f2; }
pre { background: #f6f6f6; padding: 0.6rem; overflow-x: auto; }
img { max-width: 100%; }
h2 { border-bottom: 2px solid #888; margin-top: 3rem; }
""".strip()


@dataclass(frozen=True)
class PageReport:
    """One report of a recipe.

    Attributes:
        path: its ``RESULTS.md``.
        figures: images that stand below it.
        history: of the stages behind it.
    """

    path: Path
    figures: tuple[Path, ...]
    history: History

    def __post_init__(self) -> None:
        for figure in self.figures:
            if figure.suffix not in FIGURES:
                kinds = " or ".join(FIGURES)
                raise DataError(figure, f"a figure, {kinds}", repr(figure.suffix), "leave it out")


def page(reports: Sequence[PageReport], title: str, place: Path) -> str:
    """All reports as one Markdown text: headings a level lower, what made each report, and its figures.

    Args:
        place: the folder that the text will stand in; paths of figures are relative to it.

    Raises:
        DataError: no report.
    """
    if not reports:
        raise DataError("--in-reports", "RESULTS.md of recipes", "none", "run a recipe first")
    blocks = [f"# {title}\n"]
    for report in reports:
        blocks += ["".join(_lowered(report.path)), _made_by(report.history)]
        for figure in report.figures:
            where = Path(os.path.relpath(figure, place)).as_posix()
            blocks.append(f"![{figure.stem}]({urllib.parse.quote(where)})\n")
    return "\n".join(blocks)


def _lowered(path: Path) -> Iterator[str]:
    inside = False
    for _, line in read_lines(path):
        inside ^= line.startswith("```")
        yield f"#{line}\n" if line.startswith("#") and not inside else f"{line}\n"


def _made_by(history: History) -> str:
    codes = ", ".join(f"`{code}`" for code in history.codes) or "unknown"
    return f"Made by {history.tasks:,} tasks in {history.seconds / 60:.1f} min of their time, code {codes}.\n"


def as_html(markdown: str, place: Path) -> str:
    """The page as HTML, figures and style inside.

    >>> "<td>" in as_html("# A\\n\\n| b |\\n|---|\\n| c |\\n", Path())
    True
    """
    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    body = _IMAGE.sub(
        lambda found: f'<img src="{_data_of(place / urllib.parse.unquote(html.unescape(found[1])))}"', body
    )
    title = html.escape(markdown.partition("\n")[0].lstrip("# "))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f"<style>\n{_STYLE}\n</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )


def _data_of(path: Path) -> str:
    return f"data:{FIGURES[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"
