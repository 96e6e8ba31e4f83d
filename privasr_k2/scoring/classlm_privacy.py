"""What the report of recipe ``classlm`` says of names and of what sanitizing is worth.

Of what ``report_entities`` has counted it takes how many names were found and how well that agrees with gold
entities. Which words the lists lack and which were changed stays in the owner's own report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from privasr_k2.privacy.ledger import Entry
from privasr_k2.privacy.spending import guarantees, shown
from privasr_k2.scoring.entities import ALL
from privasr_k2.scoring.report import NOTHING, number, table

NOT_PRIVATE = (
    "Counts and rates of names were taken from the texts without noise, as other figures of this file: no "
    "epsilon covers them. Sanitized text is not private: names that were not found stay in it as they were "
    "said."
)
_FOUND = {"mentions": "mentions", "words": "words", "different words": "different_words"}
_GOLD = {
    "gold names": "gold_spans",
    "recall %": "span_recall_percent",
    "precision %": "span_precision_percent",
    "gold words": "gold_words",
    "word recall %": "word_recall_percent",
    "word precision %": "word_precision_percent",
    "residual words": "residual_words",
    "residual %": "residual_percent",
}
_COVERED = {
    "on a public list %": "on_lists",
    "on the list of its class %": "on_own_list",
    "in names of the background %": "in_names",
}


def privacy_blocks(
    entries: Sequence[Entry], entities: Mapping[str, Any], coverage: Mapping[str, Mapping[str, int]]
) -> list[str]:
    """Guarantees with what they do not cover, what was found in the text, and which names test shares.

    Args:
        entries: of the ledger; a release that stands twice counts once.
        entities: the JSON of ``report_entities``; empty: none.
        coverage: of :func:`privasr_k2.text.name_coverage.name_coverage`; empty: unknown.
    """
    spent = list({entry.release: entry.spending for entry in entries}.values())
    if not (spent or entities or coverage):
        return []
    blocks = ["## Names, and what sanitizing is worth\n"]
    for heading, key, columns in (
        ("Found in the text that was sanitized:", "classes", _FOUND),
        ("Against gold entities; residual are gold words in no name that was found:", "gold", _GOLD),
    ):
        if entities.get(key):
            blocks.append(f"{heading}\n\n{table(_rows(entities[key], columns))}")
    if coverage:
        blocks += _covered(coverage)
    if entities or coverage:
        blocks.append(f"{NOT_PRIVATE}\n")
    if spent:
        found = guarantees(spent)
        blocks.append(table([guarantee.row() for guarantee in found]))
        lines = [f"mechanism, {g.data}: {'; '.join(g.released)}" for g in found]
        lines += [f"not covered, {g.data}: {sentence}" for g in found for sentence in g.does_not_cover]
        blocks.append("".join(f"- {line}\n" for line in dict.fromkeys(lines)))
    settings = _settings(entities.get("privacy") or {})
    if settings:
        blocks.append("Set for the replacement:\n\n" + "".join(f"- {line}\n" for line in settings))
    return blocks


def coverage_finding(coverage: Mapping[str, Mapping[str, int]]) -> list[str]:
    """One sentence on where the names of test are found, which explains what sanitizing costs; or none."""
    if not coverage:
        return []
    counts = coverage[ALL]
    listed, seen = (number(100 * counts[key] / counts["words"]) for key in ("on_lists", "in_names"))
    return [
        f"Of the {counts['words']:,} words of test's names {listed} % are on the public lists, which "
        f"sanitized text draws from, and {seen} % stand in names of the background, as it was before. What "
        "the lists hold, sanitizing can give a model; what only the background held, it takes away."
    ]


def _rows(of_classes: Mapping[str, Mapping[str, Any]], columns: Mapping[str, str]) -> list[dict[str, str]]:
    """A row for each class, of those columns that are there."""
    there = {title: key for title, key in columns.items() if any(key in row for row in of_classes.values())}
    return [
        {"class": label} | {title: _cell(row.get(key)) for title, key in there.items()}
        for label, row in of_classes.items()
    ]


def _covered(coverage: Mapping[str, Mapping[str, int]]) -> list[str]:
    rows = [
        {"class": label, "words": f"{counts['words']:,}"}
        | {title: number(100 * counts[key] / counts["words"]) for title, key in _COVERED.items()}
        for label, counts in coverage.items()
    ]
    return [
        f"Where the words of test's names are found:\n\n{table(rows)}",
        "Replacing draws words of names from the public lists: what these hold, sanitized text may still "
        "show to a model; a name of the background that no list holds is lost to it. A class LM adds to a "
        "word LM what the list of a class holds and the names of the background do not.\n",
    ]


def _settings(privacy: Mapping[str, Any]) -> list[str]:
    """How words were replaced and for which epsilons, from what ``report_entities`` took over."""
    keys = ("keep", "consistency", "mentions", "words_per_mention", "utterances_per_user")
    said = [
        f"{key.replace('_', ' ')}: {'no limit' if privacy[key] is None else privacy[key]}"
        for key in keys
        if key in privacy
    ]
    for key, value in privacy.items():
        name = key.replace("_", " ")
        if not key.startswith("epsilon_per_") or value is None:
            continue
        if isinstance(value, Mapping):
            listed = ", ".join(f"{label} {shown(float(epsilon))}" for label, epsilon in value.items())
            said += [f"{name}, by class: {listed}"] if listed else []
        else:
            said.append(f"{name}: {value if isinstance(value, str) else shown(float(value))}")
    return said


def _cell(value: Any) -> str:
    if value is None:
        return NOTHING
    return (
        f"{value:.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    )
