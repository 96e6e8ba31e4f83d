r"""The report of recipes pate and dpsgd: error rates with both epsilons and tests, in a file and on the
terminal.

    python -m privasr_k2.bin.report_pate --in-scores exp/pate/rnnt/*/score_test \
        --in-privacy exp/pate/rnnt/gnmax_15_8/privacy.json --in-labels exp/pate/rnnt/gnmax_15_8/labels \
        --in-manifests data/manifests --out-report exp/pate/RESULTS.md --out-curves exp/pate/epsilon.svg \
        --out-teachers exp/pate/teachers.svg --config conf/pate_report.yaml

Models and systems are read from the paths (privasr_k2/scoring/pate_results.py). With --in-agreement
(<model>/agreement_<I>.json of report_votes) it tells how far teachers agree, and with --in-membership and
--in-inversions (<model>/membership*.json, <model>/*/inversion.json) what attacks found on them and on
students: it is then its owner's. --in-audits are <model>/<system>/audit.json. With --set phones=true a phone
error rate of the words stands beside that of words.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.data.sides import side_rows
from privasr_k2.fileio import write_text
from privasr_k2.scoring.corpus_info import read_corpus_info
from privasr_k2.scoring.curves import draw
from privasr_k2.scoring.ledger_block import ledger_block
from privasr_k2.scoring.pate_attacks import Attacks, read_audits, read_inversions, read_memberships
from privasr_k2.scoring.pate_curves import epsilon_panels, teacher_panels
from privasr_k2.scoring.pate_phones import PhoneRate, phone_rates, words_of
from privasr_k2.scoring.pate_report import PateInputs, PateReportOptions, exact_epsilons, pate_report
from privasr_k2.scoring.pate_results import Name, read_agreement, read_entries, read_scores, read_votes
from privasr_k2.scoring.results import Score


def _phones(scores: Mapping[Name, Score], options: PateReportOptions) -> dict[Name, dict[str, PhoneRate]]:
    from privasr_k2.corpora.timit import PHONES_48_TO_39
    from privasr_k2.graph.lexicon import cmudict_path, spell_in_phones

    said, recognized = words_of(scores.values())
    cmudict = cmudict_path(options.cmudict)
    found = spell_in_phones(said, recognized, corpus_lexicon=None, cmudict=cmudict, g2p=options.g2p).variants
    spoken = {
        word: [PHONES_48_TO_39[phone.lower()] for phone in first] for word, (first, *_) in found.items()
    }
    return {name: phone_rates(score, spoken) for name, score in scores.items()}


def main() -> None:
    """Parse, read, write, print."""
    made = cli.parser(__doc__)
    made.add_argument(
        "--in-scores", type=Path, nargs="+", required=True, metavar="DIR", help="score_test folders"
    )
    made.add_argument("--in-privacy", type=Path, nargs="*", default=[], metavar="FILE", help="privacy.json")
    made.add_argument(
        "--in-labels", type=Path, nargs="*", default=[], metavar="DIR", help="of aggregate_votes"
    )
    made.add_argument(
        "--in-agreement", type=Path, nargs="*", default=[], metavar="FILE", help="of report_votes; private"
    )
    for flag, what in (
        ("--in-audits", "of audit_pate and audit_dpsgd"),
        ("--in-membership", "of infer_membership; private"),
        ("--in-inversions", "of report_inversion; private"),
    ):
        made.add_argument(flag, type=Path, nargs="*", default=[], metavar="FILE", help=what)
    made.add_argument("--in-manifests", type=Path, metavar="DIR", help="with corpus.json")
    made.add_argument("--in-sides", type=Path, metavar="FILE", help="sides.json of split_speech")
    made.add_argument("--ledger", type=Path, metavar="FILE", help="of the private data: what else was spent")
    made.add_argument("--out-report", type=Path, required=True, metavar="FILE", help="RESULTS.md")
    made.add_argument("--out-curves", type=Path, metavar="FILE", help="SVG: error rate against epsilon")
    made.add_argument("--out-teachers", type=Path, metavar="FILE", help="SVG: against the number of teachers")
    cli.add_config(made)
    args = cli.parse(made)
    options = cli.load(PateReportOptions, args)
    audits, inversions = read_audits(args.in_audits), read_inversions(args.in_inversions)
    scores = read_scores(args.in_scores)
    given = PateInputs(
        scores=scores,
        entries=read_entries(args.in_privacy),
        votes=read_votes(args.in_labels),
        agreement=read_agreement(args.in_agreement),
        corpus=read_corpus_info(args.in_manifests),
        attacks=Attacks(audits, *read_memberships(args.in_membership), inversions),
        phones=_phones(scores, options) if options.phones else {},
        sides=side_rows(args.in_sides) if args.in_sides else (),
    )
    text = pate_report(given, options)
    exact = exact_epsilons(given.entries)
    for path, panels, what in (
        (args.out_curves, epsilon_panels(given.scores, exact), "exact epsilon"),
        (args.out_teachers, teacher_panels(given.scores), "number of teachers"),
    ):
        if path is not None:
            draw(panels, path)
            text += f"\nError rates against {what}: `{path.name}`.\n"
    text += ledger_block(args.ledger, args.in_privacy)
    write_text(args.out_report, text)
    print(text)


if __name__ == "__main__":
    cli.run(main)
