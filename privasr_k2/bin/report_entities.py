r"""Count tagged, sanitized and missed names, for the owner of the text.

    privasr verb report_entities --in-text data/tagged/dev.jsonl.gz \
        --in-gold data/gold/dev.jsonl.gz --in-sanitized exp/sanitized \
        --in-privacy exp/sanitized_privacy.json --out-report exp/entities.json

Missed names are counted by the gold entities of --in-gold. --in-scored and --in-public-lists count
the words of names that the lists hold. Sanitized text has new ids and a random order, so that texts
are compared by their words that are not replaced. The counts come from private text without noise;
no release covers them.
"""

from __future__ import annotations

from typing import Any

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import read_json, write_json
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.text.agreement import agreement
from privasr_k2.text.name_coverage import name_coverage
from privasr_k2.text.name_lists import read_name_lists, words_of
from privasr_k2.text.normalize import normalize_english
from privasr_k2.text.sanitize_report import NOTE, entity_counts, privacy_of
from privasr_k2.text.sanitized_release import ABOUT, SANITIZED
from privasr_k2.text.tagged_files import needs_entities, read_tagged


def main() -> None:
    """Parse, count, write."""
    args = cli.arguments(
        __doc__,
        config=False,
        in_text="FILE... tagged",
        in_gold="[FILE+] the same texts, annotated",
        in_sanitized="[DIR] of sanitize_text",
        in_privacy="[FILE] privacy.json of sanitize_text",
        in_public_lists="[DIR] name lists",
        out_report="FILE JSON",
        in_scored="[FILE] tagged text of test",
    )
    if bool(args.in_sanitized) != bool(args.in_privacy):
        place = "the command line"
        raise ConfigError(place, "--in-sanitized and --in-privacy", "one alone", "give both")
    texts = read_tagged(args.in_text)
    needs_entities(texts, "--in-text")
    sanitized, lists = None, None
    report: dict[str, Any] = {"note": NOTE}
    if args.in_sanitized:
        about = read_json(args.in_sanitized / ABOUT)
        report["method"] = about["method"]
        report["privacy"] = privacy_of(about, Ledger(args.in_privacy).entries())
        if about["method"] == "replace":
            sanitized = read_tagged([args.in_sanitized / SANITIZED])
    if args.in_public_lists:
        lists = words_of(
            read_name_lists(args.in_public_lists, normalize_english), normalize_english
        )
        if args.in_scored:
            report["coverage"] = name_coverage(read_tagged([args.in_scored]), texts, lists)
    report["classes"] = entity_counts(texts, sanitized, lists)
    if args.in_gold:
        agreed = agreement(read_tagged(args.in_gold), texts, "--in-gold")
        report["gold"] = {label: of_class.to_dict() for label, of_class in agreed.items()}
    write_json(args.out_report, report)


if __name__ == "__main__":
    cli.run(main)
