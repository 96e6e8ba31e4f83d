"""What docs/results.md says of language models on Earnings-21 is what the results have."""

from __future__ import annotations

import math
from pathlib import Path

from privasr_k2.report.results import read_rows

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/results.md").read_text(encoding="utf-8")
ROWS = read_rows(ROOT / "egs/earnings21/results_classlm.jsonl")
[SECTION] = [
    " ".join(part.split())
    for part in PAGE.split("\n## ")
    if part.startswith("Earnings-21, language models")
]
PPL = {row.system: row.value or 0.0 for row in ROWS if row.metric == "ppl" and not row.group}
MODELS = {"M1": "M1_eq1", "M2": "M2_eq1", "M3": "M3", "M4": "M4"}


def loss(model: str) -> float:
    return PPL[f"sanitized/{model}"] / PPL[f"original/{model}"] - 1


def regained(system: str, model: str) -> float:
    """The share of a model's loss, in percent."""
    first = PPL[f"sanitized/{model}"]
    return 100 * (first - PPL[system]) / (first - PPL[f"original/{model}"])


def test_the_table() -> None:
    for model, adapted in MODELS.items():
        of = (f"adapt_12/{adapted}", f"adapt_20/{adapted}", f"direct_12/{model}")
        cells = [f"{PPL[f'{name}/{model}']:.1f}" for name in ("original", "sanitized")]
        cells += [f"{100 * loss(model):+.1f}", *(f"{PPL[name]:.1f}" for name in of)]
        assert f"| {model} | {' | '.join(cells)} |" in SECTION


def test_the_losses() -> None:
    assert loss("M1") == max(map(loss, MODELS)) and loss("M2") == min(map(loss, MODELS))
    assert f"{100 * loss('M1'):.1f} and {100 * loss('M2'):.1f} % of perplexity" in SECTION
    assert PPL["sanitized/M2"] < PPL["sanitized/M1"] and PPL["original/M2"] > PPL["original/M1"]
    behind = 100 * (PPL["sanitized/M3"] / PPL["sanitized/M1"] - 1)
    assert f"LSTM is {behind:.1f} % worse than M1" in SECTION
    mixed = [PPL[f"mixed/{name}"] for name in ("M1_M2", "M1_M2_M3")]
    assert "M1 + M2 have {:.1f}, with M3 {:.1f}".format(*mixed) in SECTION


def test_adaptation() -> None:
    for model, text in (("M1", "{:.0f} to {:.0f} % of M1's"), ("M2", "{:.0f} to {:.0f} % of M2's")):
        shares = [regained(f"adapt_{part}/{model}_eq1", model) for part in (12, 15, 20)]
        assert text.format(min(shares), max(shares)) in SECTION
        assert all(regained(f"adapt_{part}/{model}_eq2", model) < 0 for part in (12, 15, 20))
    tuned = [regained(f"adapt_20/{model}", model) for model in ("M4", "M3")]
    assert "gain {:.0f} and {:.0f} % of their loss from 20 %".format(*tuned) in SECTION
    for model, adapted in MODELS.items():
        for part in (12, 15, 20):
            assert PPL[f"direct_{part}/{model}"] < PPL[f"adapt_{part}/{adapted}"]
            assert (
                part == 20 or model in ("M1", "M2") or regained(f"adapt_{part}/{model}", model) < 0
            )


def test_mixtures_lists_and_epsilon() -> None:
    best = PPL["mixed/M1_M2_M4"]
    assert f"is best by far, {best:.1f}" in SECTION and best == min(PPL.values())
    exact = [PPL[f"mixed/{name}"] for name in ("M1_M2_exact", "M1_M2")]
    assert "({:.1f} and {:.1f})".format(*exact) in SECTION
    of_all = {row.metric: row.value for row in ROWS if row.item == "all"}
    assert f"{of_all['on_lists']:.1f} % of the words of test's names" in SECTION
    assert f"{of_all['in_names']:.1f} % in names of the background" in SECTION
    [row] = [row for row in ROWS if row.metric == "epsilon" and row.system == "sanitized_text"]
    assert row.epsilon is not None and row.person_epsilon == math.inf
    assert (
        f"epsilon {math.ceil(10 * row.epsilon) / 10:.1f} for the names of an utterance" in SECTION
    )
