r"""The report of recipe fedlm: tables in the shape of those of liu2021 with tests, in a file and on the
terminal.

    python -m privasr_k2.bin.report_fedlm --in-perplexity exp/fedlm/perplexity_test.json \
        --in-scores exp/fedlm/*/score_test exp/fedlm/no_nnlm/score_adapt \
        --in-clients exp/fedlm/clients.jsonl.gz --in-test-clients exp/fedlm/test.jsonl.gz \
        --in-privacy exp/fedlm/fl_all_noise_0.5_privacy.json \
        --in-audits exp/fedlm/fl_all_noise_0.5_audit.json --in-weights exp/fedlm/fl_all/rescoring.json \
        --in-logs exp/fedlm/lm/fl_all --in-manifests data/manifests --out-report exp/fedlm/RESULTS.md \
        --out-curves exp/fedlm/curves.svg --config conf/fedlm_report.yaml

Systems are read from the paths (privasr_k2/scoring/fedlm_results.py). Without --in-scores the tables have
perplexities only. Table 1 and audits are the owner's: no guarantee covers them.
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import read_json, write_text
from privasr_k2.scoring import fedlm_results
from privasr_k2.scoring.corpus_info import read_corpus_info
from privasr_k2.scoring.fedlm_curves import draw_curves, read_curves
from privasr_k2.scoring.fedlm_report import FedLmInputs, FedLmReportOptions, fedlm_report
from privasr_k2.scoring.ledger_block import ledger_block
from privasr_k2.scoring.report import read_chosen


def main() -> None:
    """Parse, read, write, print."""
    made = cli.parser(__doc__)
    made.add_argument("--in-perplexity", type=Path, required=True, metavar="FILE", help="on test")
    made.add_argument(
        "--in-scores", type=Path, nargs="*", default=[], metavar="DIR", help="score_<role> folders"
    )
    made.add_argument("--in-clients", type=Path, metavar="FILE", help="adaptation text, for Table 1")
    made.add_argument("--in-test-clients", type=Path, metavar="FILE", help="test text, for Table 1")
    made.add_argument("--in-privacy", type=Path, nargs="*", default=[], metavar="FILE", help="privacy.json")
    made.add_argument("--in-audits", type=Path, nargs="*", default=[], metavar="FILE", help="of audit_fedlm")
    made.add_argument("--in-weights", type=Path, nargs="*", default=[], metavar="FILE", help="rescoring.json")
    made.add_argument("--in-logs", type=Path, nargs="*", default=[], metavar="DIR", help="folders of models")
    made.add_argument("--in-lang", type=Path, metavar="DIR", help="the vocabulary of all models")
    made.add_argument("--in-rates", type=Path, nargs="*", default=[], metavar="FILE", help="of tune_fedlm")
    made.add_argument("--in-manifests", type=Path, metavar="DIR", help="with corpus.json")
    made.add_argument("--ledger", type=Path, metavar="FILE", help="of the private data: what else was spent")
    made.add_argument("--out-report", type=Path, required=True, metavar="FILE", help="RESULTS.md")
    made.add_argument("--out-curves", type=Path, metavar="FILE", help="SVG of perplexities by round")
    cli.add_config(made)
    args = cli.parse(made)
    if (args.out_curves is None) != (not args.in_logs):
        raise ConfigError("the command line", "--in-logs with --out-curves, or neither", "one", "see --help")
    options = cli.load(FedLmReportOptions, args)

    from privasr_k2.federated.clients import read_clients, table
    from privasr_k2.federated.train import paper_epsilon

    test, adapt = fedlm_results.read_scores(args.in_scores)
    entries = fedlm_results.read_entries(args.in_privacy)
    texts = {
        name: read_clients(path)
        for name, path in (("adaptation", args.in_clients), ("test", args.in_test_clients))
        if path is not None
    }
    said = [one.confidences is None for client in texts.get("adaptation", ()) for one in client.utterances]
    plans = {}
    for name, entry in entries.items():
        system = fedlm_results.parse_system(name, args.in_perplexity)
        # Where clients come in an order the multiplier is that of all rounds together: no plan of samples.
        if system is not None and system.noise is not None and not system.ordered:
            plans[name] = paper_epsilon(system.noise, entry.spending.delta)
    given = FedLmInputs(
        perplexities=fedlm_results.read_perplexities(args.in_perplexity),
        scores=test,
        adapt=adapt,
        texts={name: table(clients) for name, clients in texts.items()},
        entries=entries,
        plans=plans,
        audits=fedlm_results.read_audits(args.in_audits),
        chosen=[read_chosen(path, read_json(path)) for path in args.in_weights],
        corpus=read_corpus_info(args.in_manifests),
        trainings=fedlm_results.read_trainings(args.in_logs),
        recognized=not (said and all(said)),
        tuned=bool(args.in_rates),
        words=None if args.in_lang is None else fedlm_results.read_words(args.in_lang),
    )
    text = fedlm_report(given, options)
    if args.out_curves is not None:
        draw_curves(read_curves(args.in_logs), args.out_curves)
        text += f"\nPerplexity of dev by round: `{args.out_curves.name}`.\n"
    text += ledger_block(args.ledger, args.in_privacy)
    write_text(args.out_report, text)
    print(text)


if __name__ == "__main__":
    cli.run(main)
