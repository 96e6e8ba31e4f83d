"""What docs/results.md says of class LMs on SGD is what the results have."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from privasr_k2.report.results import Row, read_rows

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/results.md").read_text(encoding="utf-8")
FILES = {
    "short": "egs/sgd/results_classlm.jsonl",
    "long": "egs/sgd/results_classlm_lists.jsonl",
    "any order": "egs/sgd/results_classlm_any_order.jsonl",
    "text": "egs/sgd/results_classlm_text.jsonl",
}
SPOKEN = ("short", "long", "any order")
MEASURES = ("ppl", "wer", "name_wer", "recall", "false_alarm_rate")
LINES = [
    ("short", "M1", "short", "word trigram, M1"),
    ("short", "M2", "short", "class trigram, M2"),
    ("long", "M1", "long", "word trigram, M1"),
    ("long", "M2", "long", "class trigram, M2"),
    ("any order", "M2", "long, words in any order", "class trigram, M2"),
]
CONTACTS = "sanitized/M1_contacts"
Values = dict[tuple[str, str, str], Row]


@pytest.fixture(scope="module")
def found() -> dict[str, Values]:
    """Of each file: system, metric and what it is compared with -> row of test, of all names."""
    return {
        name: {
            (row.system, row.metric, row.against): row
            for row in read_rows(ROOT / file)
            if row.item in ("", "all") and not row.group and row.part in ("", "test")
        }
        for name, file in FILES.items()
    }


@pytest.fixture(scope="module")
def section() -> str:
    [found] = [part for part in PAGE.split("\n## ") if part.startswith("SGD: class LMs")]
    return " ".join(found.split())


def value(rows: Values, system: str, metric: str) -> float:
    number = rows[system, metric, ""].value
    assert number is not None
    return number


def test_the_table(found: dict[str, Values], section: str) -> None:
    for file, model, lists, label in LINES:
        cells = [f"{value(found[file], f'sanitized/{model}', name):.2f}" for name in MEASURES]
        assert f"| {lists} | {label} | {' | '.join(cells)} |" in section
    row = [value(found["short"], "sanitized/M1", "ppl")]
    row += [value(found["short"], CONTACTS, name) for name in MEASURES[1:]]
    cells = " | ".join(f"{number:.2f}" for number in row)
    assert f"| short, and the speaker's contacts | word trigram, M1 | {cells} |" in section


def difference(rows: Values, metric: str, system: str = "sanitized/M2") -> Row:
    return rows[system, f"{metric}_difference", "sanitized/M1"]


def ends(row: Row) -> str:
    assert row.low is not None and row.high is not None
    return f"{row.low:+.2f} to {row.high:+.2f}"


def test_the_recall(found: dict[str, Values], section: str) -> None:
    for file in SPOKEN:
        row = difference(found[file], "recall")
        assert row.value is not None and row.p_holm is not None
        assert f"{row.value:+.2f} ({ends(row)})" in section
        assert row.p_holm > 0.05


def test_the_word_errors(found: dict[str, Values], section: str) -> None:
    rows = found["long"]
    wer, names = difference(rows, "wer"), difference(rows, "name_wer")
    assert wer.p_holm is not None and wer.p_holm < 0.001
    assert f"inside names {names.value:+.2f} points ({ends(names)})" in section
    alarms, others = difference(rows, "false_alarm_rate"), difference(rows, "other_wer")
    assert f"{alarms.value:+.2f} false alarms in 1,000 words ({ends(alarms)})" in section
    assert others.high is not None and others.high < 0
    original = found["short"]["sanitized/M1", "wer_difference", "original/M1"]
    assert f"(difference {original.value:+.2f}, {ends(original)})" in section


def test_contacts(found: dict[str, Values], section: str) -> None:
    rows = found["short"]
    wer, recall = (difference(rows, metric, CONTACTS) for metric in ("wer", "recall"))
    assert wer.value is not None and wer.low is not None and wer.high is not None
    few = f"{-wer.value:.2f} points fewer errors ({-wer.low:.2f} to {-wer.high:.2f})"
    assert few in section
    assert f"{recall.value:+.2f} points more name words ({ends(recall)})" in section
    alarms = [value(rows, system, "false_alarm_rate") for system in (CONTACTS, "sanitized/M1")]
    assert 0.45 < alarms[0] / alarms[1] < 0.55
    page = " ".join((ROOT / "docs/classlm.md").read_text(encoding="utf-8").split())
    both = [value(rows, system, "wer") for system in ("sanitized/M1", CONTACTS)]
    assert "WER falls from {:.2f} to {:.2f} %".format(*both) in page


def test_sizes_of_adaptation(found: dict[str, Values], section: str) -> None:
    rows = found["text"]
    first, last = (value(rows, f"{name}/M1", "ppl") for name in ("sanitized", "original"))
    assert f"({first:.2f} against {last:.2f})" in section
    for system, text in (
        ("adapt_{}/M1_eq1", "Equation 1 wins back {:.0f}, {:.0f} and {:.0f} %"),
        ("direct_{}/M1", "training from the start {:.0f}, {:.0f} and {:.0f} %"),
    ):
        models = [system.format(size) for size in (12, 15, 20)]
        left = [first - value(rows, model, "ppl") for model in models]
        assert text.format(*(100 * part / (first - last) for part in left)) in section


def test_adaptation(found: dict[str, Values], section: str) -> None:
    rows = found["short"]
    first, last = (value(rows, f"{name}/M1", "ppl") for name in ("sanitized", "original"))
    assert f"perplexity of all text is {first:.2f} against {last:.2f}" in section
    for system, text in (
        ("adapt_12/M1_eq1", "wins back {:.0f} % of that perplexity"),
        ("direct_12/M1", "from the start M1 wins back {:.0f} %"),
        ("mixed/M1_M2", "the mixture of adapted M1 and M2 {:.0f} %"),
    ):
        share = 100 * (first - value(rows, system, "ppl")) / (first - last)
        assert text.format(share) in section
    together = [value(rows, "mixed/M1_M2_M4", metric) for metric in ("ppl", "wer")]
    assert (
        "have {:.2f}, and the fewest errors without contacts: {:.2f} %".format(*together) in section
    )
    wers = [
        row.value
        for (system, metric, other), row in rows.items()
        if metric == "wer" and not other and system != CONTACTS
    ]
    assert min(number for number in wers if number is not None) == together[1]


def test_what_the_recipes_page_says(found: dict[str, Values]) -> None:
    page = " ".join((ROOT / "docs/classlm.md").read_text(encoding="utf-8").split())
    wers = {
        (file, model): f"{value(found[file], f'sanitized/{model}', 'wer'):.2f}"
        for file in ("short", "long")
        for model in ("M1", "M2")
    }
    assert f"the class LM has {wers['long', 'M2']} % WER" in page
    assert f"the word LM of the same text {wers['long', 'M1']} %" in page
    assert f"with short lists {wers['short', 'M2']} and {wers['short', 'M1']}" in page
    tree, any_order = (
        value(found[name], "sanitized/M2", "dev_wer") for name in ("long", "any order")
    )
    assert any_order < tree


def test_lists_and_epsilons(found: dict[str, Values], section: str) -> None:
    for file in ("short", "long"):
        [share] = [row for (_, metric, _), row in found[file].items() if metric == "on_lists"]
        assert f"{share.value:.1f} % are on short" in section or file == "long"
        assert f"{share.value:.1f} % on long" in section or file == "short"
    for file, text in (("short", "30.0 for the names"), ("long", "40.7 with long ones")):
        [row] = [row for (_, metric, _), row in found[file].items() if metric == "only_for"][:1]
        assert (
            row.epsilon is not None and f"{math.ceil(10 * row.epsilon) / 10:.1f}" == text.split()[0]
        )
        assert text in section and row.person_epsilon == float("inf")
