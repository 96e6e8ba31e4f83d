"""The table of results, as Markdown, in a file and on the terminal.

  python -m privasr_k2.bin.report --in-scores exp/ctc/score_dev exp/ctc/score_test \\
    --in-weights exp/ctc/weights.json --in-manifests data/manifests \\
    --out-report exp/ctc/RESULTS.md --set command='./run.sh mini ctc'

With --in-baselines it adds MAPSSWE p-values against other systems on the same parts.
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.fileio import read_json, write_text
from privasr_k2.scoring.corpus_info import read_corpus_info
from privasr_k2.scoring.report import ReportOptions, read_chosen, report
from privasr_k2.scoring.results import read_score


def main() -> None:
    """Parse, read, write, print."""
    made = cli.parser(__doc__)
    made.add_argument(
        "--in-scores", type=Path, nargs="+", required=True, metavar="DIR", help="score_<role> folders"
    )
    made.add_argument(
        "--in-weights", type=Path, nargs="*", default=[], metavar="FILE", help="weights.json files"
    )
    made.add_argument(
        "--in-baselines", type=Path, nargs="*", default=[], metavar="DIR", help="score_<role> folders"
    )
    made.add_argument("--in-manifests", type=Path, metavar="DIR", help="with corpus.json")
    made.add_argument("--out-report", type=Path, required=True, metavar="FILE", help="RESULTS.md")
    cli.add_config(made)
    args = cli.parse(made)
    text = report(
        scores=[read_score(folder) for folder in args.in_scores],
        chosen=[read_chosen(path, read_json(path)) for path in args.in_weights],
        baselines=[read_score(folder) for folder in args.in_baselines],
        corpus=read_corpus_info(args.in_manifests),
        options=cli.load(ReportOptions, args),
    )
    write_text(args.out_report, text)
    print(text)


if __name__ == "__main__":
    cli.run(main)
