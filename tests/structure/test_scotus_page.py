"""What docs/results.md says of SCOTUS is what the results have."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from privasr_k2.report.results import Row, read_rows
from tests.support.pages import rates

ROOT = Path(__file__).parents[2]
FROM_DEV = "fl_all_from_dev_lora_noise_"
PAGE = " ".join((ROOT / "docs/results.md").read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read_rows(ROOT / "egs/scotus/results_fedlm.jsonl")


def test_the_table(rows: list[Row]) -> None:
    ppl = {row.system: float(row.value) for row in rows if row.metric == "ppl" and not row.group}  # type: ignore[arg-type]
    # Shown as in tables: rounded up.
    [bound] = {
        row.person_epsilon
        for row in rows
        if row.system == "fl_all_noise_1.5" and row.metric == "ppl"
    }
    epsilon = f"{math.ceil(100 * bound) / 100:.2f}"
    first = ppl.pop("pretrained")
    assert f"| pre-trained on books | {first:.1f} | | |" in PAGE
    shown = {
        "dev": "trained on half of public dev, 89 people",
        "fl_all_noise_1.5": "federated, noise 1.5, clip 0.5, 1,000 rounds",
        "fl_all": "federated without noise, 400 rounds",
        "server_all": "on the server, 5 epochs",
    }
    assert ppl.keys() == shown.keys()
    for system, label in shown.items():
        change = 100 * (ppl[system] / first - 1)
        cell = f" {epsilon}" if "noise" in system else ""
        assert f"| {label} | {ppl[system]:.1f} | {change:.1f} |{cell} |" in PAGE


def test_the_comparisons(rows: list[Row]) -> None:
    pairs = {
        (row.system, row.against): row
        for row in rows
        if row.against and row.metric.startswith("ppl")
    }
    private = "fl_all_noise_1.5"
    assert pairs[private, "pretrained"].p < 0.001 > pairs[private, "dev"].p
    worse = [pairs[private, "dev"].value, pairs["fl_all", "server_all"].value]
    assert f"It is {worse[0]:.0f} % worse than what half" in PAGE
    assert f"is {worse[1]:.0f} % behind the server" in PAGE


def test_without_noise() -> None:
    rows = read_rows(ROOT / "egs/scotus/results_fedlm_no_noise.jsonl")
    ppl = {row.system: float(row.value) for row in rows if row.metric == "ppl" and not row.group}  # type: ignore[arg-type]
    first = ppl.pop("pretrained")
    assert f"| pre-trained on books | {first:.1f} | |" in PAGE
    shown = {
        "dev": "trained on half of public dev",
        "fl_all": "federated without noise, 1,000 rounds",
        "server_all": "on the server, 5 epochs",
    }
    assert ppl.keys() == shown.keys()
    for system, label in shown.items():
        change = 100 * (ppl[system] / first - 1)
        assert f"| {label} | {ppl[system]:.1f} | {change:.1f} |" in PAGE
    [pair] = [row for row in rows if (row.system, row.against) == ("fl_all", "server_all")]
    behind = (
        f"is {pair.value:.1f} % behind the server** (interval {pair.low:.1f} to {pair.high:.1f})"
    )
    assert f"Federated training {behind}" in PAGE


def test_from_the_model_of_public_dev() -> None:
    rows = read_rows(ROOT / "egs/scotus/results_fedlm_from_dev.jsonl")
    weak = read_rows(ROOT / "egs/scotus/results_fedlm_noise_0.2.jsonl")
    both = [row for row in (*rows, *weak) if row.system in ("pretrained", "dev")]
    for name in ("pretrained", "dev"):  # the same models
        assert len({row.value for row in both if (row.system, row.metric) == (name, "ppl")}) == 1
    own = [row for row in weak if row.system == f"{FROM_DEV}0.2"]
    ppl = {row.system: float(row.value) for row in rows if row.metric == "ppl" and not row.group}  # type: ignore[arg-type]
    assert len(ppl) == 4
    ppl |= {row.system: float(row.value) for row in own if row.metric == "ppl" and not row.group}  # type: ignore[arg-type]
    first, begun = ppl["pretrained"], ppl["dev"]
    assert f"| pre-trained on books | {first:.1f} | | |" in PAGE
    label = "trained on half of public dev, 89 people"
    assert f"| {label} | {begun:.1f} | {100 * (begun / first - 1):.1f} | |" in PAGE
    better = {
        "1.5": "Noise {noise} is {by:.1f} % better than the model that it begins with",
        "0.5": "Noise {noise} is {by:.1f} % better",
        "0.2": "Noise {noise} is {by:.1f} % better",
    }
    for noise, claimed in better.items():
        system = f"{FROM_DEV}{noise}"
        of_system = [row for row in (*rows, *own) if row.system == system]
        [bound] = {row.person_epsilon for row in of_system if row.metric == "ppl"}
        digits = 2 if bound < 10 else 1
        epsilon = f"{math.ceil(10**digits * bound) / 10**digits:.{digits}f}"
        change = 100 * (ppl[system] / first - 1)
        label = f"from there: adapters, noise {noise}, clip 0.3, 1,000 rounds"
        assert f"| {label} | {ppl[system]:.1f} | {change:.1f} | {epsilon} |" in PAGE
        [pair] = [row for row in of_system if row.against == "dev" and "ppl" in row.metric]
        assert pair.p < 0.001
        shown = claimed.format(noise=noise, by=-pair.value)
        assert f"{shown}** (interval {-pair.high:.1f} to {-pair.low:.1f}" in PAGE
        assert f"at epsilon {epsilon} a person" in PAGE
    spent = {
        row.item.rpartition(": ")[2]: math.ceil(10 * float(row.value)) / 10  # type: ignore[arg-type]
        for row in rows
        if row.system == "ledger" and row.metric == "epsilon"
    }
    assert (
        f"Both releases of the first run together are epsilon {spent['all of this report']:.1f}."
        in PAGE
    )
    assert f"and has {spent['all in the ledger']:.1f} in all" in PAGE
    tried = {
        row.item: float(row.value)  # type: ignore[arg-type]
        for row in rows
        if row.metric == "dev_ppl" and row.system == f"{FROM_DEV}1.5"
    }
    assert min(tried, key=lambda item: tried[item]) == "550"
    assert f"is {tried['50']:.1f} after 50 rounds, {tried['550']:.1f} there" in PAGE
    assert f"and {tried['1000']:.1f} in the end" in PAGE


def test_three_sizes() -> None:
    rows = read_rows(ROOT / "egs/scotus/results_fedlm_parts.jsonl")
    server = read_rows(ROOT / "egs/scotus/results_fedlm_no_noise.jsonl")
    [last] = [float(r.value) for r in server if (r.system, r.metric) == ("server_all", "ppl")]  # type: ignore[arg-type]
    of = {row.system: row for row in rows if row.metric == "ppl" and not row.group}
    ppl = {name: float(row.value) for name, row in of.items()}  # type: ignore[arg-type]
    noises, start = ("1.5", "0.5", "0.2"), "fl_all_from_dev_"
    bounds = [of[f"{start}noise_{noise}"].person_epsilon or 0.0 for noise in noises]
    shown = [f"{math.ceil(100 * bound) / 100:.2f}" for bound in bounds[:2]]
    shown.append(f"{math.ceil(10 * bounds[2]) / 10:.1f}")
    assert "| epsilon {} | epsilon {} | epsilon {} |".format(*shown) in PAGE
    for part, label, size in (
        ("lora_", "adapters (LoRA) of the softmax's first words", "41,560"),
        ("output_", "the softmax", "1,038,752"),
        ("", "all weights", "1,170,848"),
    ):
        cells = [f"{ppl[f'{start}{part}noise_{noise}']:.1f}" for noise in noises]
        assert f"| {label} | {size} | {' | '.join(cells)} |" in PAGE
    for noise in noises:
        parts = [ppl[f"{start}{part}noise_{noise}"] for part in ("", "lora_", "output_")]
        assert min(parts) == parts[0]
    changes = {
        row.system: row for row in rows if row.against == "dev" and row.metric.startswith("ppl")
    }
    gained = {name: float(row.value) for name, row in changes.items() if name.startswith(start)}  # type: ignore[arg-type]
    worse = gained.pop(f"{start}output_noise_1.5")
    assert f"epsilon {shown[0]}, by {worse:.1f} %" in PAGE
    least, most = -max(gained.values()), -min(gained.values())
    assert f"by {least:.1f} to {most:.1f} % (p = .004 after Holm for each)" in PAGE
    assert {f"{row.p_holm:.3f}" for name, row in changes.items() if name in gained} == {"0.004"}
    first, begun, best = ppl["pretrained"], ppl["dev"], ppl[f"{start}noise_1.5"]
    way = [100 * (first - x) / (first - last) for x in (best, begun)]
    assert "gone {:.0f} % at epsilon 0.44, but public dev alone {:.0f} %".format(*way) in PAGE
    assert f"they close {100 * (begun - best) / (begun - last):.0f} %" in PAGE


def test_all_weights() -> None:
    rows = read_rows(ROOT / "egs/scotus/results_fedlm_all.jsonl")
    lora = read_rows(ROOT / "egs/scotus/results_fedlm_from_dev.jsonl")
    server = read_rows(ROOT / "egs/scotus/results_fedlm_no_noise.jsonl")
    [last] = [float(r.value) for r in server if (r.system, r.metric) == ("server_all", "ppl")]  # type: ignore[arg-type]
    of = {row.system: row for row in rows if row.metric == "ppl" and not row.group}
    ppl = {name: float(row.value) for name, row in of.items()}  # type: ignore[arg-type]
    [other] = [row.value for row in lora if (row.system, row.metric) == ("dev", "ppl")]
    assert other == ppl["dev"]  # adapters began with the same model
    private = "fl_all_from_dev_noise_1.5"
    first, begun, best = ppl["pretrained"], ppl["dev"], ppl[private]
    epsilon = f"{math.ceil(100 * (of[private].person_epsilon or 0.0)) / 100:.2f}"
    label = "from there: all weights, noise 1.5, clip 0.5, 1,000 rounds"
    change = 100 * (best / first - 1)
    assert f"| {label} | {best:.1f} | {change:.1f} | {epsilon} |" in PAGE
    [pair] = [r for r in rows if (r.system, r.against) == (private, "dev") and "ppl" in r.metric]
    assert pair.p_holm < 0.001
    interval = f"(interval {-pair.high:.1f} to {-pair.low:.1f}, p < .001)"
    start = f"At epsilon {epsilon} a person it is {-pair.value:.1f} % better than the model that it"
    assert f"{start} begins with** {interval}" in PAGE
    way = [100 * (first - x) / (first - last) for x in (best, begun)]
    assert "it has gone {:.0f} %**, where public dev alone has {:.0f} %".format(*way) in PAGE
    assert f"it closes {100 * (begun - best) / (begun - last):.0f} %" in PAGE
    tried = {r.item: float(r.value) for r in rows if r.metric == "dev_ppl" and r.system == private}  # type: ignore[arg-type]
    assert min(tried, key=lambda item: tried[item]) == "1000"
    assert f"is {tried['150']:.1f} after 150 rounds and {tried['1000']:.1f} after 1,000" in PAGE


def test_confidences() -> None:
    """Perplexities, changes and bounds of the part in synthetic voices."""
    rows = read_rows(ROOT / "egs/scotus/results_fedlm_speech.jsonl")
    ppl = {row.system: float(row.value) for row in rows if row.metric == "ppl" and not row.group}  # type: ignore[arg-type]
    pairs = {
        (row.system, row.against): row for row in rows if row.against and row.metric == "ppl_change"
    }
    published = {"pretrained": " 109.4", "fl_all": " 32.0", "fl_hard": " 31.2",
                 "fl_utterance": " 30.8", "fl_token": " 30.3", "fl_all_noise_1.5": " 56.7",
                 "fl_token_noise_1.5": " 56.3"}  # fmt: skip
    labels = {
        "pretrained": "none: pre-trained on books",
        "dev": "half of public dev, on the server",
        "fl_all": "all utterances, federated",
        "fl_hard": "sentences of mean confidence 0.6 and above",
        "fl_utterance": "weighted by the utterance's confidence",
        "fl_token": "weighted by each word's confidence",
        "fl_all_noise_1.5": "all utterances, noise 1.5, epsilon 7.56 for each person",
        "fl_token_noise_1.5": "weighted by each word's confidence, noise 1.5, epsilon 7.56",
    }
    for system, label in labels.items():
        change = ""
        if (system, "fl_all") in pairs and "noise" not in system:
            pair = pairs[system, "fl_all"]
            change = f" {pair.value:+.1f}{' (n. s.)' if pair.p_holm > 0.05 else ''}"
        shown = published.get(system, "")
        assert f"| {label} | {ppl[system]:.1f} |{change} |{shown} |" in PAGE, system
    weighted = [pairs[f"fl_{use}", "fl_all"] for use in ("utterance", "token")]
    assert {round(pair.p_holm, 3) for pair in weighted} == {0.009}
    assert pairs["server_utterance", "server_all"].p_holm < 0.01
    assert pairs["server_token", "server_all"].p_holm > 0.05
    gains = [-pairs[f"server_{use}", "server_all"].value for use in ("utterance", "token")]
    assert [f"{gain:.1f}" for gain in gains] == ["1.1", "0.6"]
    private = [system for system in ppl if "noise" in system]
    assert all(pairs[system, "pretrained"].p_holm == 1 for system in private)
    assert all(pairs[system, "dev"].value > 0 for system in private)
    bounds = {row.person_epsilon for row in rows if row.system in private and row.metric == "ppl"}
    assert {math.ceil(100 * bound) / 100 for bound in bounds} == {7.56}
    assert f"a WER of {rates(rows)['no_nnlm'].value:.1f} % on test" in PAGE
    wer = [row.value for row in rates(rows).values() if row.system not in ("no_nnlm", "ngram")]
    assert f"{max(wer):.2f}" == f"{rates(rows)['pretrained'].value:.2f}" == "42.93"
    assert f"{min(wer):.2f} to {max(wer):.2f} for all others" in PAGE
    clusters = {row.system: row.clusters for row in rows if row.metric == "ppl"}
    assert set(clusters.values()) == {13}
