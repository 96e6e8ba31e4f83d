"""The README: its figures are those of committed results, and so are the figures of ``docs/``."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from privasr_k2 import config
from privasr_k2.report.figures import svg_of
from privasr_k2.report.layout import Layout
from privasr_k2.report.page import page_plots
from privasr_k2.report.results import Row, read_rows

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
TABLE = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("|") and line.count("|") == 8 and not line.startswith(("| you", "|--"))
]


class Shown(NamedTuple):
    """A row of the table: files of results below ``egs/`` and systems of them."""

    file: str
    public: str
    private: str = ""
    not_private: str = ""
    other: str = ""  # the file that the last one is in


SHOWN = [
    Shown(
        "speechocean762/results_dpsgd",
        *(f"whisper/{x}" for x in ("public", "dpsgd_8", "nonprivate")),
    ),
    Shown("an4_prompts/results_dpsgd", *(f"ctc/{x}" for x in ("public", "dpsgd_8", "nonprivate"))),
    Shown("an4/mechanisms", *(f"ctc/{x}" for x in ("public", "gumbel_max_42_8", "nonprivate"))),
    Shown("an4/results_wordvotes", "public", "eps_8", "nonprivate"),
    Shown(
        "scotus/results_fedlm_all",
        *("dev", "fl_all_from_dev_noise_1.5", "server_all", "scotus/results_fedlm_no_noise"),
    ),
    Shown("scotus/results_personal", "shared", "cache"),
    Shown("speechocean762/results_encoder", "whisper"),
]


def rate_of(file: str, system: str) -> Row:
    """The system's word error rate or perplexity of test."""
    rows = read_rows(ROOT / f"egs/{file}.jsonl")
    [row] = [
        row
        for row in rows
        if row.system == system and row.metric in ("wer", "ppl") and row.part in ("", "test")
        if not row.against and not row.group
    ]
    return row


@pytest.mark.parametrize(("cells", "shown"), list(zip(TABLE, SHOWN)), ids=lambda part: str(part[0]))
def test_a_row_of_the_table(cells: list[str], shown: Shown) -> None:
    systems = (shown.public, shown.private, shown.not_private)
    files = (shown.file, shown.file, shown.other or shown.file)
    rows = [rate_of(file, name) if name else None for file, name in zip(files, systems)]
    expected = ["–" if row is None else f"{row.value:.2f}" for row in rows]
    assert [cell.removesuffix(" (n. s.)") for cell in cells[4:]] == expected
    private = rows[1]
    if private is None or not math.isfinite(private.person_epsilon or math.inf):
        assert "epsilon" not in cells[2]
        return
    assert cells[2].startswith("epsilon ")
    claimed = float(cells[2].removeprefix("epsilon "))
    assert private.person_epsilon <= claimed < private.person_epsilon + 0.01
    against = shown.public
    [test] = [
        row
        for row in read_rows(ROOT / f"egs/{shown.file}.jsonl")
        if row.system == shown.private and row.against == against and row.part in ("", "test")
        if row.metric.startswith(("wer", "ppl")) and row.p_holm is not None and not row.group
    ]
    assert ("(n. s.)" in cells[5]) == (test.p_holm > 0.05)


def test_the_table_is_whole() -> None:
    assert len(TABLE) == len(SHOWN)
    assert len(TEXT.splitlines()) <= 120


def test_the_other_search_of_whisper() -> None:
    row = rate_of("speechocean762/results_dpsgd", "whisper/imported")
    [found] = re.findall(r"with ours it has ([0-9.]+) %", " ".join(TEXT.split()))
    assert found == f"{row.value:.2f}"


def test_figures_are_those_of_the_results() -> None:
    """Where matplotlib is of the version that drew them."""
    import matplotlib as mpl

    layouts = {}
    for path in sorted((ROOT / "conf/reports").glob("*.yaml")):
        layout = config.load(Layout, [Path(f"{ROOT}/conf/common.yaml#report"), path])
        layouts |= {name: layout for name in (layout.recipe, *layout.shared_by)}
    files = sorted(ROOT.glob("egs/*/results*.jsonl"))
    recipes = [(layouts[rows[0].recipe], rows) for rows in map(read_rows, files)]
    plots = dict(page_plots(recipes))
    drawn = {
        path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs/figures").iterdir()
    }
    assert drawn.keys() == plots.keys()
    if not all(f"Matplotlib v{mpl.__version__}," in text for text in drawn.values()):
        pytest.skip(f"drawn with another matplotlib than {mpl.__version__}")
    assert {name for name, plot in plots.items() if svg_of(plot) != drawn[name]} == set()
