"""The table of recipe compose: error rates of each step, and a guarantee for each part of the data.

    python -m privasr_k2.bin.report_compose --in-scores exp/compose/{first_pass,federated}/score_test \\
        --in-baselines exp/compose/first_pass/score_test --in-privacy exp/compose/federated_privacy.json \\
        --out-report exp/compose/RESULTS.md \\
        --set command='./run.sh mini compose' corpus=mini acoustic_model=trained
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.fileio import read_json, write_text
from privasr_k2.privacy.ledger import only_entry
from privasr_k2.scoring.compose_report import ComposeReportOptions, compose_report
from privasr_k2.scoring.corpus_info import read_corpus_info
from privasr_k2.scoring.ledger_block import ledger_block
from privasr_k2.scoring.report import read_chosen
from privasr_k2.scoring.results import read_score


def main() -> None:
    """Parse, read, write, print."""
    made = cli.parser(__doc__)
    made.add_argument(
        "--in-scores", type=Path, nargs="+", required=True, metavar="DIR", help="score_test folders"
    )
    made.add_argument("--in-weights", type=Path, nargs="*", default=[], metavar="FILE", help="chosen on dev")
    made.add_argument(
        "--in-baselines", type=Path, nargs="*", default=[], metavar="DIR", help="score_test folders"
    )
    made.add_argument(
        "--in-privacy", type=Path, nargs="+", required=True, metavar="FILE", help="privacy.json"
    )
    made.add_argument("--in-manifests", type=Path, metavar="DIR", help="with corpus.json")
    made.add_argument("--ledger", type=Path, metavar="FILE", help="of the private data: what else was spent")
    made.add_argument("--out-report", type=Path, required=True, metavar="FILE", help="RESULTS.md")
    cli.add_config(made)
    args = cli.parse(made)
    text = compose_report(
        scores=[read_score(folder) for folder in args.in_scores],
        chosen=[read_chosen(path, read_json(path)) for path in args.in_weights],
        baselines=[read_score(folder) for folder in args.in_baselines],
        entries=[only_entry(path) for path in args.in_privacy],
        corpus=read_corpus_info(args.in_manifests),
        options=cli.load(ComposeReportOptions, args),
    )
    text += ledger_block(args.ledger, args.in_privacy)
    write_text(args.out_report, text)
    print(text)


if __name__ == "__main__":
    cli.run(main)
