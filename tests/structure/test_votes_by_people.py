"""The tables of docs/wordvotes.md are those of committed result files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/wordvotes.md").read_text(encoding="utf-8")


def read(name: str) -> list[dict[str, Any]]:
    lines = (ROOT / "egs/an4" / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_error_rates() -> None:
    rows = read("results_wordvotes.jsonl")
    found = {
        row["label"]: f"{row['value']:.2f}"
        for row in rows
        if (row["metric"], row["part"], row["item"], row["against"]) == ("wer", "test", "", "")
        and row["kind"] == "score_test" and not row["group"]
    }  # fmt: skip
    shown = re.findall(r"^\| ([\w, ]+) \| ([\d.–]+) \| ([\d.–]+) \|$", PAGE, re.M)
    assert len(shown) == 6
    for label, alone, student in shown:
        label = label.removesuffix(", no guarantee")
        for name, value in ((label, alone), (f"{label}, student", student)):
            if label == "all private speech and words":
                name = label
            assert value == "–" or found[name] == value


@pytest.mark.parametrize("bigrams", [False, True])
def test_people(bigrams: bool) -> None:
    by_epsilon = {
        f"{row['released_at_epsilon']:g}": row
        for row in read("votes_by_people.jsonl")
        if row["lm"] == "votes" and bool(row["max_bigrams"]) == bigrams
    }
    line = r"^\| ([\d,]+)(?: \(with bigrams ([\d,]+)\))? \| ([\d., ]+) \| (\d+) \| ([\d.]+) \|"
    line += r" ([\d.]+) \| (\d+), (\d+) \| ([\d.]+) \|$"
    shown = re.findall(line, PAGE, re.M)
    assert len(shown) == 5
    for people, others, epsilons, words, ppl, wer, own_words, pairs, own_ppl in shown:
        row = by_epsilon[epsilons.split(", ")[-1 if bigrams else 0]]
        count = others if bigrams and others else people
        assert int(count.replace(",", "")) == row["people_at_epsilon_8"]
        if bigrams:
            told = (own_words, pairs, own_ppl)
            assert told == (str(row["words"]), str(row["bigrams"]), f"{row['dev_ppl']:.1f}")
        else:
            told = (words, ppl, wer)
            figures = (str(row["words"]), f"{row['dev_ppl']:.1f}", f"{row['test_wer']:.2f}")
            assert told == figures
