"""Several systems on the same utterances in one table: error rates, and every pair tested.

    privasr compare exp/first/score_test exp/lstm/score_test exp/transformer/score_test

For each part: the error rate with its interval over speakers. For each pair: the difference with
its interval (both systems on the same draws) and MAPSSWE's p-value, raw and corrected by Holm for
all comparisons of the table. Systems that were scored on other utterances are refused.
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.fileio import write_text
from privasr_k2.report.compare import comparison_text
from privasr_k2.scoring.corpus_info import read_corpus_info


def main() -> None:
    """Parse, read, compare, write, print."""
    parser = cli.parser(__doc__)
    parser.add_argument(
        "scores", type=Path, nargs="*", metavar="DIR", help="score_<role> folders, two or more"
    )
    cli.add_flags(
        parser,
        in_scores="[DIR...] the same, as stages give them",
        in_manifests="[DIR] with corpus.json",
        out_table="[FILE] Markdown; without it, the terminal only",
    )
    args = cli.parse(parser, config=False)
    folders = [*args.scores, *args.in_scores]
    text = comparison_text(folders, read_corpus_info(args.in_manifests))
    if args.out_table is not None:
        write_text(args.out_table, text)
    print(text)


if __name__ == "__main__":
    cli.run(main)
