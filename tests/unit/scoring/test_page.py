"""Several reports on one page."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.recipe.history import History
from privasr_k2.scoring.page import PageReport, as_html, page

HISTORY = History(tasks=3, seconds=90.0, codes=("0.1.0 abc", "0.1.0 def+"))


@pytest.fixture
def made(tmp_path: Path) -> PageReport:
    folder = tmp_path / "a run"
    folder.mkdir()
    (folder / "RESULTS.md").write_text("# One\n\n```bash\n# not a heading\n```\n\n| a |\n|---|\n| <PER> |\n")
    (folder / "curves.svg").write_text("<svg/>")
    return PageReport(folder / "RESULTS.md", (folder / "curves.svg",), HISTORY)


def test_headings_figures_and_what_made_them(made: PageReport, tmp_path: Path) -> None:
    text = page([made, made], "mini", tmp_path / "exp")
    assert text.splitlines()[0] == "# mini" and text.count("\n## One\n") == 2
    assert "\n# not a heading\n" in text
    assert "Made by 3 tasks in 1.5 min of their time, code `0.1.0 abc`, `0.1.0 def+`." in text
    assert "![curves](../a%20run/curves.svg)" in text
    with pytest.raises(DataError, match="run a recipe first"):
        page([], "mini", tmp_path)
    with pytest.raises(DataError, match=r"a figure, .svg or .png, found '.pdf'"):
        PageReport(made.path, (Path("a.pdf"),), HISTORY)


def test_html_needs_no_other_file(made: PageReport, tmp_path: Path) -> None:
    (tmp_path / "exp").mkdir()
    text = as_html(page([made], "mini & more", tmp_path / "exp"), tmp_path / "exp")
    assert "<title>mini &amp; more</title>" in text
    assert "<td>&lt;PER&gt;</td>" in text  # as it was written, not as a tag
    assert text.count("<img ") == 1 and 'src="data:image/svg+xml;base64,PHN2Zy8+"' in text
    assert "curves.svg" not in text and "# not a heading" in text
