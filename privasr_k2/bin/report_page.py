"""All reports of a corpus on one page: RESULTS.md, and report.html, which needs no other file.

    python -m privasr_k2.bin.report_page --in-reports egs/mini/exp/{ctc,fmp}_*/RESULTS.md \\
        --in-figures egs/mini/exp/fmp_*/curves.svg --out-report egs/mini/exp/RESULTS.md \\
        --out-page egs/mini/exp/report.html --set title=mini

Below each report stand the figures of its folder, the commits behind it and the time it took.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.fileio import write_text
from privasr_k2.privacy.lineage import work_dir_of
from privasr_k2.recipe.history import history
from privasr_k2.scoring.page import PageReport, as_html, page


@dataclass(frozen=True)
class PageOptions:
    """What stands above all reports."""

    title: str


def main() -> None:
    """Read, join, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-reports", type=Path, nargs="+", required=True, metavar="FILE", help="RESULTS.md")
    made.add_argument(
        "--in-figures", type=Path, nargs="*", default=[], metavar="FILE", help="*.svg or *.png beside them"
    )
    made.add_argument("--out-report", type=Path, required=True, metavar="FILE", help="RESULTS.md of all")
    made.add_argument("--out-page", type=Path, required=True, metavar="FILE", help="report.html")
    cli.add_config(made)
    args = cli.parse(made)
    options = cli.load(PageOptions, args)
    reports = []
    for path in args.in_reports:
        figures = tuple(figure for figure in args.in_figures if figure.parent == path.parent)
        reports.append(PageReport(path, figures, history(path, work_dir_of(path))))
    place = args.out_report.parent
    text = page(reports, options.title, place)
    write_text(args.out_report, text)
    write_text(args.out_page, as_html(text, place))


if __name__ == "__main__":
    cli.run(main)
