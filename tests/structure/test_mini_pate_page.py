"""What docs/results.md says of mini_pate in a graph is what the committed results have."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

from privasr_k2 import config
from privasr_k2.corpora import mini
from privasr_k2.report.results import Row, read_rows
from tests.support.pages import words_of

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "egs/mini_pate"


def rates(rows: list[Row]) -> dict[str, float]:
    """WER on test by system."""
    return {
        row.system: float(row.value)
        for row in rows
        if row.metric == "wer" and row.part == "test" and not row.group and not row.against
    }


def test_acoustic_models_and_words_in_the_graph() -> None:
    page = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())
    rows = read_rows(FOLDER / "results_dpsgd.jsonl")
    tuned = rates([row for row in rows if row.kind == "score_test"])
    public, began, ended = (tuned[f"ctc/{x}"] for x in ("public", "self_trained", "nonprivate"))
    text = "public {:.2f} %, taught by its own guesses at the pool {:.2f} %, not private {:.2f} %."
    assert text.format(public, began, ended) in page
    budgets = ("1", "4", "8")
    private = [tuned[f"ctc/dpsgd_{epsilon}"] for epsilon in budgets]
    text = "{:.2f} % at epsilon 1, {:.2f} % at epsilon 4, {:.2f} % at epsilon 8, {:.2f} % without"
    assert text.format(*private, tuned["ctc/dpsgd_inf"]) in page
    closed = [math.floor(100 * (began - rate) / (began - ended)) for rate in private]
    text = "250 people close {} % of the gap net of self-training, at 4 {} %, at 8 {} %"
    assert text.format(*closed) in page
    advice = " ".join((ROOT / "docs/pate.md").read_text(encoding="utf-8").split())
    assert f"250 synthetic users close {closed[-1]} % in a" in advice
    pairs = {
        (row.system, row.against): row
        for row in rows
        if row.metric == "wer_difference" and row.system.startswith("ctc/dpsgd_")
    }
    for (system, against), row in pairs.items():
        assert row.p_holm is not None
        gains = against == "ctc/self_trained" and system != "ctc/dpsgd_inf"
        assert (row.p_holm < 0.001) == gains and gains == (row.p_holm < 0.05)
    untaught, clean = pairs["ctc/dpsgd_8", "ctc/public"], pairs["ctc/dpsgd_inf", "ctc/self_trained"]
    assert f"gains {-float(untaught.value):.2f} points (p = {untaught.p_holm:.3f}" in page  # type: ignore[arg-type]
    assert f"no better (p = {clean.p_holm:.3f} against the taught one)" in page
    audits = [
        float(row.value)  # type: ignore[arg-type]
        for epsilon in budgets
        for row in rows
        if (row.system, row.metric) == (f"ctc/dpsgd_{epsilon}", "audit_lower")
    ]
    text = "The audits find {:.2f}, {:.2f} and {:.2f} of the claims of 1, 4 and 8."
    assert text.format(*audits) in page
    deletions = {
        row.system: row.value for row in rows if row.metric == "deletions" and not row.group
    }
    counts = [deletions[f"ctc/dpsgd_{epsilon}"] for epsilon in ("inf", "8")]
    assert "with {:.0f} deletions on test for {:.0f} at epsilon 8".format(*counts) in page
    [spent] = {
        float(row.value)  # type: ignore[arg-type]
        for row in rows
        if row.metric == "epsilon" and row.item.endswith("all in the ledger")
    }
    assert f"All three releases together are epsilon {math.ceil(100 * spent) / 100:.2f}." in page
    words = rates(read_rows(FOLDER / "results_wordvotes.jsonl"))
    names = ("public", "nonprivate", "eps_8")
    text = "public words {:.2f} %, all private words {:.2f} %, words by votes at epsilon 8 {:.2f} %"
    assert text.format(*(words[name] for name in names)) in page


def test_fewer_people_without_a_graph() -> None:
    page = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())
    rows = read_rows(FOLDER / "people.jsonl")
    found = rates([row for row in rows if row.kind == "score_test"])
    for label, kind in (
        ("epsilon 1", "dpsgd_1"),
        ("epsilon 8", "dpsgd_8"),
        ("without noise", "dpsgd_inf"),
        ("not private, all weights", "nonprivate"),
    ):
        cells = [found[f"ctc/{kind}{some}"] for some in ("_25people", "_50people", "")]
        assert f"| {label} | {' | '.join(f'{cell:.2f}' for cell in cells)} |" in page
    began, ended = found["ctc/self_trained"], found["ctc/nonprivate"]
    assert f"has {found['ctc/public']:.2f} %, taught by its own guesses {began:.2f}." in page
    closed = [100 * (began - found[f"ctc/dpsgd_{e}"]) / (began - ended) for e in ("8", "inf")]
    assert "close {:.0f} %, without noise {:.0f} %".format(*closed) in page
    for kind in ("dpsgd_8", "dpsgd_8_50people", "dpsgd_1"):
        [row] = [
            r
            for r in rows
            if r.system == f"ctc/{kind}" and r.against and r.metric == "wer_difference"
        ]
        assert f"{-float(row.value):.2f}" in page  # type: ignore[arg-type]
        assert row.p_holm is not None and (row.p_holm < 0.05) == (kind != "dpsgd_1")


def test_votes_of_single_users() -> None:
    page = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())
    rows = read_rows(FOLDER / "results_pate.jsonl")
    found = rates([row for row in rows if row.kind == "score_test"])
    of = {(row.system, row.metric): row.value for row in rows if row.kind == "labels"}
    for label, kind in (
        ("votes, epsilon 1", "gumbel_max_250_1"),
        ("votes, epsilon 8", "gumbel_max_250_8"),
        ("votes without noise", "clean_250"),
    ):
        answered, labels = (int(of[f"ctc/{kind}", name]) for name in ("votes_answered", "labels"))  # type: ignore[arg-type]
        assert f"| {label} | {found[f'ctc/{kind}']:.2f} | {answered:,} | {labels:,} |" in page
    began, ended = found["ctc/self_trained"], found["ctc/nonprivate"]
    assert f"| public, taught by its own guesses | {began:.2f} |" in page
    assert f"| not private | {ended:.2f} |" in page
    closed = 100 * (began - found["ctc/clean_250"]) / (began - ended)
    assert f"Without any noise they close {closed:.0f} % of the gap" in page
    alone = [found[f"ctc/teacher_250_{k}"] for k in (1, 2, 3)]
    assert f"worse than the public model: {min(alone):.2f} to {max(alone):.2f} %" in page
    [pair] = [
        row
        for row in rows
        if (row.system, row.against) == ("ctc/gumbel_max_250_8", "ctc/self_trained")
        and row.metric == "wer_difference"
    ]
    assert f"is {-float(pair.value):.2f} points better" in page  # type: ignore[arg-type]
    assert f"(p = {pair.p_holm:.2f} after Holm)".replace("0.", ".") in page


def test_the_papers_headline_beside_ours() -> None:
    page = " ".join((ROOT / "docs/pate.md").read_text(encoding="utf-8").split())
    votes, steps = (
        rates([row for row in read_rows(FOLDER / name) if row.kind == "score_test"])
        for name in ("results_pate.jsonl", "people.jsonl")
    )
    text = f"PATE has {votes['ctc/gumbel_max_250_8']:.2f} % and DP-SGD of norms and biases "
    assert f"{text}{steps['ctc/dpsgd_8']:.2f}." in page


def test_words_that_votes_cannot_release() -> None:
    """Of the texts of both corpora, which their settings determine."""
    public, private = said_words("public_conf"), said_words("conf")
    known = {word for said in public["train"].values() for word in said}
    speakers = Counter(word for said in private["train"].values() for word in {*said})
    test = [word for said in private["test"].values() for word in said]
    unknown = [word for word in test if word not in known]
    page = words_of("docs/results.md")
    assert f"the {len(known)} candidates were the words of public text" in page
    assert f"which lacks {100 * len(unknown) / len(test):.2f} % of test's" in page
    most = max(count for word, count in speakers.items() if word not in known)
    assert f"the most common has {most} of the 250 users" in page
    often = sum(speakers[word] >= 8 for word in unknown) / len(test)
    assert f"those of 8 users or more are {100 * often:.2f} % of test's" in page
    [threshold] = [
        float(row.value)
        for row in read_rows(FOLDER / "results_wordvotes.jsonl")
        if row.metric == "threshold" and row.system == "eps_8"
    ]
    assert f"must exceed {threshold:.2f}" in page and threshold > most


def said_words(section: str) -> dict[str, dict[str, list[str]]]:
    """Part -> user -> the words of all that the user says."""
    layers = ["conf/corpora.yaml#mini", f"egs/mini_pate/corpus.yaml#{section}.mini"]
    settings = config.load(mini.MiniConfig, [Path(f"{ROOT}/{layer}") for layer in layers])
    texts = mini.write_texts(settings, mini.public_lists(settings))
    normalize = mini.CORPUS.normalize
    return {
        part: {
            user: [word for sentence in said for word in normalize(sentence.text).split()]
            for user, said in users.items()
        }
        for part, users in texts.items()
    }
