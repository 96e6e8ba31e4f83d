r"""The report of recipe classlm: the five tables of turan2022 with tests, in a file and on the terminal.

    python -m privasr_k2.bin.report_classlm --in-texts data/text \
        --in-perplexity exp/classlm/perplexity_test.json --in-scores exp/classlm/*/*/score_test \
        --in-choices exp/classlm/adapt_12/lm/M1_eq1.json --in-privacy exp/classlm/sanitized_privacy.json \
        --in-entities exp/classlm/entities.json --in-public-lists data/lists --in-manifests data/manifests \
        --out-report exp/classlm/RESULTS.md --set command='./run.sh ami classlm' \
        acoustic_model=CTC tagger=spacy

Settings and systems are read from the paths: <setting>/lm/<system>* in the perplexities, and
<setting>/<system>/score_test. Without --in-scores the tables have perplexities only. With --in-public-lists
the report says which words of test's names the lists hold, and which the background's names. Its figures were
taken from private text without noise: whoever publishes it releases them.
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json, write_text
from privasr_k2.privacy.ledger import entries_beside
from privasr_k2.scoring.classlm_choices import read_choices
from privasr_k2.scoring.classlm_report import ClassLmInputs, ClassLmReportOptions, classlm_report
from privasr_k2.scoring.classlm_results import read_perplexities, read_systems, read_texts
from privasr_k2.scoring.corpus_info import read_corpus_info
from privasr_k2.scoring.ledger_block import ledger_block
from privasr_k2.text.name_coverage import name_coverage
from privasr_k2.text.name_lists import read_name_lists, words_of
from privasr_k2.text.normalize import normalize_english
from privasr_k2.text.tagged_files import read_tagged


def main() -> None:
    """Parse, read, write, print."""
    made = cli.parser(__doc__)
    made.add_argument("--in-texts", type=Path, required=True, metavar="DIR", help="of split_text")
    made.add_argument(
        "--in-perplexity", type=Path, required=True, metavar="FILE", help="of perplexity, on test"
    )
    made.add_argument(
        "--in-scores", type=Path, nargs="*", default=[], metavar="DIR", help="score_test folders"
    )
    made.add_argument(
        "--in-choices", type=Path, nargs="*", default=[], metavar="FILE",
        help="of adapt_lm, interpolate_lms, tune_weights, tune_rescoring",
    )  # fmt: skip
    made.add_argument("--in-privacy", type=Path, nargs="*", default=[], metavar="FILE", help="privacy.json")
    made.add_argument("--in-entities", type=Path, metavar="FILE", help="JSON of report_entities")
    made.add_argument(
        "--in-public-lists", type=Path, metavar="DIR", help="name lists that names were drawn from"
    )
    made.add_argument("--in-manifests", type=Path, metavar="DIR", help="with corpus.json")
    made.add_argument("--ledger", type=Path, metavar="FILE", help="of the private data: what else was spent")
    made.add_argument("--out-report", type=Path, required=True, metavar="FILE", help="RESULTS.md")
    cli.add_config(made)
    args = cli.parse(made)
    options = cli.load(ClassLmReportOptions, args)
    given = ClassLmInputs(
        texts=read_texts(args.in_texts),
        perplexities=read_perplexities(args.in_perplexity),
        systems=read_systems(args.in_scores),
        choices=read_choices(args.in_choices),
        entries=[entry for path in args.in_privacy for entry in entries_beside(path)],
        entities={} if args.in_entities is None else _entities(args.in_entities),
        coverage={} if args.in_public_lists is None else _coverage(args.in_texts, args.in_public_lists),
        corpus=read_corpus_info(args.in_manifests),
    )
    text = classlm_report(given, options)
    text += ledger_block(args.ledger, args.in_privacy)
    write_text(args.out_report, text)
    print(text)


def _coverage(texts: Path, folder: Path) -> dict[str, dict[str, int]]:
    """Of the names of test, in the parts of ``split_text``."""
    lists = words_of(read_name_lists(folder, normalize_english), normalize_english)
    test, background = (read_tagged([texts / f"{part}.jsonl.gz"]) for part in ("test", "background"))
    return name_coverage(test, background, lists)


def _entities(path: Path) -> dict:
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("classes"), dict):
        raise DataError(path, "what report_entities writes", "something else", "make it again")
    return content


if __name__ == "__main__":
    cli.run(main)
