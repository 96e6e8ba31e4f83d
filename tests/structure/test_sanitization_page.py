"""The tables and figures of docs/sanitization.md are those of the committed result file."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.report.measures import text_of
from privasr_k2.report.results import Row, read_rows

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/sanitization.md").read_text(encoding="utf-8")
TEXTS = {
    "earnings21": "Earnings-21 test",
    "sgd": "SGD test",
    "wikigold": "wikigold",
    "emerging": "WNUT17 test",
}
TAGGERS = {
    "spacy": "spaCy",
    "gazetteer": "gazetteer",
    "spacy+gazetteer": "both",
    "presidio": "Presidio",
}
NAMES = ("spacy", "spacy_gazetteer", "presidio")
FLAT = " ".join(PAGE.split())
CLASSES = ("PER", "ORG", "LOC", "MISC")
RATES = ("gold_recall", "gold_precision", "gold_f1", "residual")
KINDS = ("listed_once", "listed_often", "unlisted_once", "unlisted_often")
Found = dict[tuple[str, str, str], Row]


@pytest.fixture(scope="module")
def found() -> Found:
    return figures()


def figures() -> Found:
    """System, metric and item -> row; comparisons by ``change`` and ``p``."""
    rows = read_rows(ROOT / "egs/earnings21/results_classlm_names.jsonl")
    return {
        (row.system, f"{row.metric} against" if row.against else row.metric, row.item): row
        for row in rows
    }


def systems(found: Found, method: str) -> dict[str, Row]:
    """A row of each system, in the order in which they were declared."""
    return {row.system: row for row in found.values() if row.method == method}


def within(row: Row) -> str:
    """A figure with its interval."""
    assert row.low is not None and row.high is not None
    return f"{row.value:.1f} ({row.low:.1f} to {row.high:.1f})"


def all_classes(found: Found) -> list[str]:
    """Recall, precision, F1 and residual of all names."""
    lines = []
    for text, title in TEXTS.items():
        for seen in ("as written", "restored"):
            for tagger, name in TAGGERS.items():
                for system, row in systems(found, "tagger").items():
                    if (row.facts["measured"], row.facts["seen"], row.label) == (
                        text,
                        seen,
                        tagger,
                    ):
                        cells = [within(found[system, rate, ""]) for rate in RATES]
                        lines.append(" | ".join([f"| {title}", seen, name, *cells]) + " |")
    return lines


def by_class(found: Found) -> list[str]:
    """Recall / precision of each class, of text as it was written."""
    lines = []
    for text, title in TEXTS.items():
        for tagger, name in TAGGERS.items():
            system = f"{text}/{tagger.replace('+', '_')}_as_written"
            cells = [
                " / ".join(f"{found[system, rate, label].value:.1f}" for rate in RATES[:2])
                for label in CLASSES
            ]
            lines.append(" | ".join([f"| {title}", name, *cells]) + " |")
    return lines


def planted(found: Found) -> list[str]:
    """Perplexity, epsilons, their lower bounds, and exposures of each model."""
    lines = []
    for system, row in systems(found, "names").items():
        change = found.get((system, "ppl_change against", ""))
        cells = [row.label, f"{row.facts['keep_prob']:g}" if "keep_prob" in row.facts else "–"]
        cells += [f"{found[system, 'ppl', ''].value:.1f}"]
        cells += ["–" if change is None else f"{change.value:+.1f}"]
        for often in ("once", "often"):
            epsilon = found.get((system, f"epsilon_{often}", ""))
            cells += ["–" if epsilon is None else text_of("epsilon", epsilon.value)]
            cells += [f"{found[system, f'lower_{often}', ''].value:.1f}"]
        cells += [within(found[system, kind, ""]) for kind in KINDS]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def test_tables(found: Found) -> None:
    tables = all_classes(found), by_class(found), planted(found)
    assert [len(lines) for lines in tables] == [4 * 4 + 2 * 2, 4 * 4, 2 + 5 * 3]
    for line in (line for lines in tables for line in lines):
        assert line in PAGE


def test_findings_about_taggers(found: Found) -> None:
    def all_of(metric: str, tagger: str, item: str = "") -> dict[str, float]:
        return {text: found[f"{text}/{tagger}_as_written", metric, item].value for text in TEXTS}  # type: ignore[misc]

    f1, left = ({n: all_of(m, n) for n in NAMES} for m in ("gold_f1", "residual"))
    assert all(f1["spacy_gazetteer"][text] < f1["spacy"][text] for text in TEXTS)
    less = max(left["spacy"][text] - left["spacy_gazetteer"][text] for text in TEXTS)
    both, alone = (all_of("gold_precision", name, "PER")["sgd"] for name in NAMES[1::-1])
    said = f"up to {less:.1f} points less; on SGD {both:.1f} % of its persons are right, of spaCy's"
    assert f"{said} {alone:.1f} %" in FLAT
    apart = max(abs(f1["presidio"][text] - f1["spacy"][text]) for text in TEXTS)
    assert f"Their F1 differ by {apart:.1f} points at most" in FLAT
    assert all(left["presidio"][text] > left["spacy"][text] for text in TEXTS)
    restored = [
        found[f"{text}/spacy_restored", "gold_precision", ""].value
        for text in ("earnings21", "sgd")
    ]
    assert all(20 < value < 30 for value in restored)  # about one of four is right


def test_findings_about_models(found: Found) -> None:
    def of(system: str, metric: str) -> float:
        return found[f"names/{system}", metric, ""].value  # type: ignore[return-value]

    assert {of("original", kind) for kind in KINDS} == {8.0}
    assert max(of("unseen", kind) for kind in KINDS) < 1
    costs = [of(f"gold_{keep}", "ppl_change against") for keep in ("0", "0.1", "0.5")]
    bits = [of(f"gold_{keep}", "listed_often") for keep in ("0.1", "0.5")]
    assert f"and perplexity is {costs[0]:.1f} % higher" in FLAT
    said = f"wins {costs[0] - costs[1]:.1f} points back, and a listed name that is said often has"
    assert (
        f"{said} {bits[0]:.1f} bits. Keeping 0.5 leaves {costs[2]:.1f} %, and {bits[1]:.1f}" in FLAT
    )
    missed = [
        of("spacy_0", metric) for metric in ("unlisted_once", "unlisted_often", "lower_often")
    ]
    said = "still have {:.1f} bits, or {:.1f} if said often, and the ranks prove epsilon {:.1f} at"
    assert said.format(*missed) in FLAT
    assert f"By Presidio it is {of('presidio_0', 'lower_often'):.1f}." in FLAT
    assert of("gazetteer_0", "unlisted_often") == 8.0
    proven, claimed = (of("gold_0.5", f"{name}_often") for name in ("lower", "epsilon"))
    assert f"{proven:.1f} of {text_of('epsilon', claimed)} at most" in FLAT


def test_no_bound_exceeds_the_epsilon_of_annotated_names(found: Found) -> None:
    for system in systems(found, "names"):
        if "/gold_" in system:
            for often in ("once", "often"):
                lower, epsilon = (found[system, f"{k}_{often}", ""] for k in ("lower", "epsilon"))
                assert lower.value <= epsilon.value  # type: ignore[operator]
