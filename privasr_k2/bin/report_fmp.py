r"""The report of recipe fmp: tables 1 to 4 of liu2020 with intervals, tests and guarantees.

    python -m privasr_k2.bin.report_fmp --in-runs exp/fmp/*/run_test.json --in-scores exp/fmp/*/score_test \
        --in-privacy exp/fmp/eps_*/privacy.json --in-timeline exp/fmp/timeline_test.jsonl \
        --in-choice exp/fmp/lambda.json --in-audit exp/fmp/audit.json --in-manifests data/manifests \
        --out-report exp/fmp/RESULTS.md --out-curves exp/fmp/curves.svg --set command='./run.sh mini fmp'

Systems are named by their folders: baseline, T<rounds>, grid_*, eps_*. With --in-audit the report holds what
looks at private data: it is its owner's.
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.federated.fmp_curves import fmp_panels
from privasr_k2.federated.fmp_report import FmpReportOptions, fmp_report, read_systems
from privasr_k2.fileio import read_json, write_text
from privasr_k2.scoring.corpus_info import read_corpus_info
from privasr_k2.scoring.curves import draw
from privasr_k2.scoring.ledger_block import ledger_block


def main() -> None:
    """Parse, read, write, print."""
    made = cli.parser(__doc__)
    made.add_argument("--in-runs", type=Path, nargs="+", required=True, metavar="FILE", help="of run_fmp")
    made.add_argument("--in-scores", type=Path, nargs="*", default=[], metavar="DIR", help="of score")
    made.add_argument("--in-privacy", type=Path, nargs="*", default=[], metavar="FILE", help="privacy.json")
    made.add_argument("--in-timeline", type=Path, required=True, metavar="FILE", help="of what was scored")
    made.add_argument("--in-choice", type=Path, required=True, metavar="FILE", help="of tune_fmp")
    made.add_argument("--in-manifests", type=Path, metavar="DIR", help="with corpus.json")
    made.add_argument("--in-audit", type=Path, metavar="FILE", help="of audit_fmp")
    made.add_argument("--ledger", type=Path, metavar="FILE", help="of the private data: what else was spent")
    made.add_argument("--out-report", type=Path, required=True, metavar="FILE", help="RESULTS.md")
    made.add_argument("--out-curves", type=Path, metavar="SVG", help="results against rounds and epsilon")
    cli.add_config(made)
    args = cli.parse(made)
    options = cli.load(FmpReportOptions, args)
    systems = read_systems(args.in_runs, args.in_scores, args.in_privacy)
    audit = None if args.in_audit is None else read_json(args.in_audit)
    corpus = read_corpus_info(args.in_manifests)
    text = fmp_report(systems, args.in_timeline, read_json(args.in_choice), audit, corpus, options)
    if args.out_curves is not None:
        draw(fmp_panels(systems), args.out_curves)
    text += ledger_block(args.ledger, args.in_privacy)
    write_text(args.out_report, text)
    print(text)


if __name__ == "__main__":
    cli.run(main)
