r"""Several systems on the same utterances in one table: error rates, and every pair tested.

    privasr compare exp/first/score_test exp/lstm/score_test exp/transformer/score_test

For each part: the error rate with its interval over speakers. For each pair: the difference with
its interval (both systems on the same draws) and MAPSSWE's p-value, raw and corrected by Holm for
all comparisons of the table. Where names are annotated, the same of the words inside and outside
names. Systems that were scored on other utterances are refused.

    privasr verb compare --in-scores exp/x/none/score_test exp/x/cache/score_test \
        --out-wins exp/x/wins.json --config conf/personal.yaml#wins

--out-wins counts for whom each system is the best, and better than the first, by how many words
people said. With --in-runs, files of personalize with perplexities, people are clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.federated.wins import WinsConfig, of_run, of_scores, wins
from privasr_k2.fileio import write_json, write_text
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
        in_runs="[FILE...] run_<role>.json of personalize, for --out-wins",
        in_manifests="[DIR] with corpus.json",
        out_table="[FILE] Markdown; without it, the terminal only",
        out_wins="[FILE] for whom each is the best, JSON",
    )
    args = cli.parse(parser)
    folders = [*args.scores, *args.in_scores]
    if args.out_wins is not None:
        _count_wins(args.in_runs, folders, cli.load(WinsConfig, args), args.out_wins)
        return
    text = comparison_text(folders, read_corpus_info(args.in_manifests))
    if args.out_table is not None:
        write_text(args.out_table, text)
    print(text)


def _count_wins(
    runs: Sequence[Path], folders: Sequence[Path], config: WinsConfig, out: Path
) -> None:
    if bool(runs) == bool(folders):
        found = "both" if runs else "none"
        raise ConfigError("the command line", "--in-runs or --in-scores", found, "give one")
    figures = {str(path): of_run(path) for path in runs}
    figures |= {str(path): of_scores(path) for path in folders}
    groups = min(config.groups, len(next(iter(figures.values()))))
    found_wins = [asdict(of) for of in wins(figures, groups)]
    write_json(out, {"of": "clients" if runs else "speakers", "groups": found_wins})


if __name__ == "__main__":
    cli.run(main)
