r"""Count tagged, sanitized and missed names, for the owner of the text.

    privasr verb report_entities --in-text data/tagged/dev.jsonl.gz \
        --in-gold data/gold/dev.jsonl.gz --in-sanitized exp/sanitized \
        --in-privacy exp/sanitized_privacy.json --out-report exp/entities.json

Missed names are counted by the gold entities of --in-gold. --in-scored and --in-public-lists count
the words of names that the lists hold. Sanitized text has new ids and a random order, so that texts
are compared by their words that are not replaced. The counts come from private text without noise;
no release covers them. With --config conf/classlm.yaml#report_entities rates have intervals: whole
documents (calls, dialogues) are drawn with replacement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privasr_k2.bin import cli
from privasr_k2.constraints import Checked, Count, Natural, ShareBelowOne
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import read_json, write_json
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.randomness import stream
from privasr_k2.scoring.bootstrap import clusters_of, ratio_interval
from privasr_k2.text.agreement import Counts, agreement, count_by_document, sums
from privasr_k2.text.name_coverage import name_coverage
from privasr_k2.text.name_lists import read_name_lists, words_of
from privasr_k2.text.normalize import normalize_english
from privasr_k2.text.sanitize_report import NOTE, entity_counts, privacy_of
from privasr_k2.text.sanitized_release import ABOUT, SANITIZED
from privasr_k2.text.tagged_files import needs_entities, read_tagged


@dataclass(frozen=True)
class IntervalConfig(Checked):
    """How documents are drawn again; defaults in ``conf/classlm.yaml#report_entities``.

    Args:
        num_replicates: how often all documents are drawn.
        confidence: of the intervals.
        seed: of the draws.
    """

    num_replicates: Count
    confidence: ShareBelowOne
    seed: Natural


def intervals(
    by_document: Mapping[str, Counts], config: IntervalConfig
) -> dict[str, dict[str, Any]]:
    """Class -> ``RATE_percent`` -> ends of its interval, whole documents drawn with replacement.

    ``RATE_documents`` says from how many documents, those whose denominator is not 0. With fewer
    than :data:`~privasr_k2.scoring.bootstrap.MIN_CLUSTERS` of them the ends are ``None``.

    Args:
        by_document: of :func:`privasr_k2.text.agreement.count_by_document`.

    >>> from collections import Counter
    >>> counts = Counter({("gold_spans", "PER"): 4, ("agreed_spans", "PER"): 3})
    >>> config = IntervalConfig(num_replicates=99, confidence=0.95, seed=1)
    >>> of_class = intervals({str(n): counts for n in range(6)}, config)["PER"]
    >>> of_class["span_recall_percent"], of_class["span_recall_documents"]
    ([75.0, 75.0], 6)
    """
    made: dict[str, dict[str, Any]] = {}
    for label, rates in sums(by_document).items():
        made[label] = {}
        for rate, (part, whole) in rates.items():
            rng = stream(config.seed, "documents", rate)
            times, share = config.num_replicates, config.confidence
            found = ratio_interval(part, whole, rng, num_replicates=times, confidence=share)
            ends = None if found is None else [100 * found.low, 100 * found.high]
            made[label] |= {f"{rate}_percent": ends, f"{rate}_documents": clusters_of(whole)}
    return made


def main() -> None:
    """Parse, count, write."""
    args = cli.arguments(
        __doc__,
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
    drawn = cli.load(IntervalConfig, args) if args.config or args.set else None
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
        gold = read_tagged(args.in_gold)
        agreed = agreement(gold, texts, "--in-gold")
        report["gold"] = {label: of_class.to_dict() for label, of_class in agreed.items()}
        if drawn is not None:
            by_document = count_by_document(gold, texts, "--in-gold")
            for label, ends in intervals(by_document, drawn).items():
                report["gold"][label]["intervals"] = ends
    write_json(args.out_report, report)


if __name__ == "__main__":
    cli.run(main)
