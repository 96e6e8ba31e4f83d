"""The report of recipe fedlm from made results: rows, baselines, claims, audits, sentences."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest

from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.fileio import write_json, write_jsonl
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.ledger import Entry
from privasr_k2.privacy.spending import Spending, shown
from privasr_k2.scoring.corpus_info import CorpusInfo
from privasr_k2.scoring.fedlm_curves import draw_curves, read_curves
from privasr_k2.scoring.fedlm_report import FedLmInputs, FedLmReportOptions, fedlm_report
from privasr_k2.scoring.fedlm_results import (
    Words,
    baselines_of,
    label_of,
    parse_system,
    read_audits,
    read_entries,
    read_perplexities,
    read_scores,
    read_trainings,
    read_words,
)
from privasr_k2.scoring.report import NOTHING
from tests.unit.scoring.test_report import _write as write_score

OPTIONS = FedLmReportOptions(command="./run.sh x fedlm", num_replicates=500, confidence=0.95, seed=1)
MARKS: dict[str, Any] = {
    "claimed_epsilon": 2.5, "delta": 1e-5, "largest_possible": 4.0, "trials": 20,
    "epsilon_lower": {"sound": 0.25, "broken": 3.75, "noise_free": 4.0},
    "confidence": 0.95, "verdict": "consistent",
}  # fmt: skip
EXPOSED = {
    "mean_exposure": 1.0,
    "largest_exposure": 2.0,
    "largest_possible_exposure": 4.3,
    "epsilon_lower": 0.1,
}
ATTACKED = {"exposure": EXPOSED, "membership": {"auc": 0.6, "auc_interval": [0.4, 0.8]}}
AUDIT = {"without_privacy": ATTACKED, "with_privacy": ATTACKED, "marks": MARKS}


def perplexity_file(path: Path, ppls: dict[str, float], *, groups: bool = True) -> Path:
    records = []
    for name, ppl in ppls.items():
        nats = math.log(ppl)
        # The same groups for all, harder and easier by as much.
        of_groups = {f"c{n}": [10 * (nats + (n - 2) / 10), 10] for n in range(5)}
        records.append(
            {
                "lm": f"exp/lm/{name}", "ppl": ppl, "ppl_with_oov": ppl,
                "words": 40, "sentences": 10, "oov": 0,
                **({"groups": of_groups} if groups else {}),
            }
        )  # fmt: skip
    write_json(path, {"treatment": "closed", **({"by": "call"} if groups else {}), "lms": records})
    return path


def entry(noise: float) -> Entry:
    event = events.repeated(events.poisson_sampled(0.05, events.gaussian(noise)), 10)
    spending = Spending(
        data="x/adapt", released="a model", unit="user", units=350, relation=Relation.ADD_OR_REMOVE_ONE,
        event=event, sampling="Poisson, rate 0.05", delta=1e-5, does_not_cover=("the rest",),
    )  # fmt: skip
    return Entry(f"{noise:032.3f}", "f", spending, "code", "time")


def inputs(tmp_path: Path, ppls: dict[str, float], **more: Any) -> FedLmInputs:
    given: dict[str, Any] = {
        "perplexities": read_perplexities(perplexity_file(tmp_path / "p.json", ppls)),
        "scores": {}, "adapt": {}, "texts": {}, "entries": {}, "plans": {}, "audits": {}, "chosen": [],
        "corpus": CorpusInfo(name="x", synthetic=False, scored_units={}),
        "trainings": [], "recognized": True, "tuned": False, "words": None,
    }  # fmt: skip
    return FedLmInputs(**{**given, **more})


def line_of(text: str, beginning: str) -> list[str]:
    """The cells of the first row of a table that begins so."""
    return next(
        [c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith(beginning)
    )


def test_perplexities_alone(tmp_path: Path) -> None:
    ppls = {"pretrained": 100.0, "server_all": 50.0, "fl_all": 52.0, "fl_token": 51.0, "fl_scratch_all": 80.0}
    text = fedlm_report(inputs(tmp_path, ppls), OPTIONS)
    assert "WER" not in text.replace("paper: WER", "") and "Table 5" not in text
    row = line_of(text, "| FL-finetuned NNLM (all utts)")
    # Every replicate has the same difference, so that the interval of the change is a point.
    assert row[1] == "52.00" and row[3] == "-48.00" and row[-2:] == ["32.0", "7.79"]
    low, high = map(float, row[2].split(" to "))
    assert low < 52 < high and low > 52 * math.exp(-0.2) - 0.01
    compared = " ".join(text[text.index("Perplexities compared") :].split())
    assert "+4.00 | +4.00 to +4.00" in compared
    assert "is within 5 % of server training: its perplexity is +4.0 % away" in text
    assert "has a lower perplexity than all transcripts (51.00 and 52.00)" in text
    assert "Table 4" in text and "draws of calls" in text


def test_what_does_not_hold_is_said(tmp_path: Path) -> None:
    ppls = {"pretrained": 60.0, "server_all": 50.0, "fl_all": 53.0, "fl_hard": 54.0, "fl_all_noise_1.5": 61.0}
    text = fedlm_report(inputs(tmp_path, ppls), OPTIONS)
    assert "is not within 5 %" in text and "has no lower perplexity" in text
    assert "Not every model with a claim beats no adaptation: FL-finetuned NNLM (all utts, noise 1.5)" in text


def test_a_claim_with_its_audit_and_the_papers_plan(tmp_path: Path) -> None:
    one = entry(0.5)
    cost = account(one.spending.event, one.spending.relation, 1e-5)
    plan = account(events.gaussian(7.0), Relation.ADD_OR_REMOVE_ONE, 1e-5)
    name = "fl_all_noise_0.5"
    more = {"entries": {name: one}, "plans": {name: plan}, "audits": {name: AUDIT}}
    text = fedlm_report(inputs(tmp_path, {"pretrained": 100.0, name: 70.0}, **more), OPTIONS)
    claims = text[text.index("neighbours") - 200 :]
    row = line_of(claims, "| FL-finetuned NNLM (all utts, noise 0.5) ")
    assert cost.pld is not None and plan.pld is not None
    assert row[1:4] == ["user", "add or remove one", shown(cost.rdp)] and row[4] == shown(cost.pld)
    assert row[5:8] == ["1e-05", "Poisson, rate 0.05", "350"]
    assert row[8:] == [shown(plan.rdp), shown(plan.pld), "14.2"]
    lines = claims.splitlines()
    at = next(
        n for n, line in enumerate(lines) if line.startswith("| FL-finetuned NNLM (all utts, noise 0.5) ")
    )
    assert "lower bound by audit" in lines[at + 1] and "0.25" in lines[at + 1] and "3.75" in lines[at + 2]
    assert "verdict: consistent" in text and "no adaptation, 1 of 1 significantly" in text


def test_error_rates_against_the_right_baseline(tmp_path: Path) -> None:
    said = {
        "no_nnlm": ["a x x d"] * 6,
        "pretrained": ["a x c d"] * 6,
        "fl_all": ["a b c d"] * 5 + ["a x c d"],
    }
    folders = [tmp_path / name / "score_test" for name in said]
    for folder, hyps in zip(folders, said.values()):
        write_score(folder, list(hyps))
    write_score(tmp_path / "no_nnlm/score_adapt", ["a b x x"], role="adapt")
    scores, adapt = read_scores([*folders, tmp_path / "no_nnlm/score_adapt"])
    more = {"scores": scores, "adapt": adapt, "texts": {"adaptation": {"clients": 7, "words": 1200}}}
    text = fedlm_report(inputs(tmp_path, {"pretrained": 9.0, "fl_all": 8.0}, **more), OPTIONS)
    first, base, ours = (line_of(text, f"| {label_of(name)}") for name in said)
    rates = [row[5] for row in (first, base, ours)]
    assert rates == ["50.00", "25.00", "4.17"]
    assert ours[7] == "-83.33" and ours[9] == label_of("pretrained") and base[9] == "No NNLM"
    assert "1,200" in text and "WER of the adaptation part (test_x, No NNLM): 50.00 %" in text


def test_what_models_and_clients_are_made_of_is_said(tmp_path: Path) -> None:
    ppls = {"pretrained": 100.0, "fl_all": 52.0}
    plain = fedlm_report(inputs(tmp_path, ppls), OPTIONS)
    assert "Vocabulary" not in plain and "no recognition errors" not in plain
    assert "this run has tried no others" in plain
    (tmp_path / "lang.yaml").write_text("num_words: 1234\ntrain_words: false\n")
    assert read_words(tmp_path) == Words(1234, public=True)
    more = {"words": read_words(tmp_path), "recognized": False, "tuned": True}
    text = fedlm_report(inputs(tmp_path, ppls, **more), OPTIONS)
    assert "Vocabulary: 1,234 words, of public text alone" in text
    assert "there are no recognition errors, and all confidences are 1" in text
    assert "chosen on clients of dev" in text
    (tmp_path / "lang.yaml").write_text("num_words: 12\n")
    mixed = fedlm_report(inputs(tmp_path, ppls, words=read_words(tmp_path)), OPTIONS)
    assert "12 words, among them those of the corpus's part train" in mixed
    (tmp_path / "lang.yaml").write_text("- 1\n")
    with pytest.raises(DataError, match="names and values"):
        read_words(tmp_path)


def test_rates_and_rounds(tmp_path: Path) -> None:
    folder = tmp_path / "fl_all_noise_0.5_ordered"
    write_json(folder / "federated.json", {"rounds": 60, "kept_round": 45})
    (folder / "config.yaml").write_text("client:\n  lr: 1.0\nserver:\n  lr: 0.003\n")
    found = read_trainings([folder])
    label = "FL-finetuned NNLM (all utts, noise 0.5, ordered)"
    assert found == [{"system": label, "client lr": "1", "server lr": "0.003", "rounds": "60", "kept": "45"}]
    text = fedlm_report(inputs(tmp_path, {"pretrained": 9.0, "fl_all": 8.0}, trainings=found), OPTIONS)
    assert line_of(text, f"| {label}")[1:] == ["1", "0.003", "60", "45"]
    (folder / "config.yaml").write_text("client: {}\n")
    with pytest.raises(DataError, match="what train_fedlm writes"):
        read_trainings([folder])


def test_a_claim_in_a_fixed_order_names_it_and_has_no_plan(tmp_path: Path) -> None:
    name = "fl_all_noise_0.5_ordered"
    said = "each unit once in every 9 rounds (in the same order); noise by square_root of 9 bands"
    base = entry(0.5)
    one = dataclasses.replace(base, spending=dataclasses.replace(base.spending, sampling=said))
    text = fedlm_report(inputs(tmp_path, {"pretrained": 100.0, name: 70.0}, entries={name: one}), OPTIONS)
    row = line_of(
        text[text.index("neighbours") - 200 :], "| FL-finetuned NNLM (all utts, noise 0.5, ordered)"
    )
    assert row[6] == said and "paper's plan: epsilon" not in text
    # The paper has no such row.
    assert line_of(text, "| FL-finetuned NNLM (all utts, noise 0.5, ordered)")[-2:] == [NOTHING, NOTHING]


def test_names() -> None:
    system = parse_system("fl_scratch_token_noise_0.25", Path("x"))
    assert system is not None and system.scratch and system.noise == 0.25
    assert not system.ordered and parse_system("fl_all_noise_1_ordered", Path("x")).ordered  # type: ignore[union-attr]
    assert baselines_of("fl_all_noise_1_ordered") == ("pretrained", "fl_all")
    assert baselines_of("server_all") == ("pretrained",)
    assert baselines_of("fl_scratch_token") == ("server_scratch_all", "fl_token")
    assert baselines_of("server_scratch_all") == ("server_all",)
    assert baselines_of("no_nnlm") == ()
    with pytest.raises(DataError, match="a system"):
        parse_system("fl_some", Path("x"))


def test_bad_input(tmp_path: Path) -> None:
    path = perplexity_file(tmp_path / "p.json", {"pretrained": 9.0})
    write_json(path, {"treatment": "t", "lms": [{"lm": "pretrained"}]})
    with pytest.raises(DataError, match="what perplexity writes"):
        read_perplexities(path)
    with pytest.raises(PrivacyError, match="the ledger of one release"):
        read_entries([tmp_path / "fl_all_noise_1_privacy.json"])
    write_json(tmp_path / "fl_all_noise_1_audit.json", {"marks": {}})
    with pytest.raises(DataError, match="what audit_fedlm writes"):
        read_audits([tmp_path / "fl_all_noise_1_audit.json"])
    write_json(tmp_path / "fl_all_audit.json", AUDIT)
    with pytest.raises(DataError, match="noise_X_audit"):
        read_audits([tmp_path / "fl_all_audit.json"])


def test_curves(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    records = [{"epoch": 1, "step": 10, "dev_ppl": 9.0}, {"epoch": 2, "step": 20, "dev_ppl": 7.0}]
    write_jsonl(tmp_path / "fl_all/train_log.jsonl", records)
    write_jsonl(tmp_path / "fl_token/train_log.jsonl", [{"epoch": 1, "step": 10}])
    curves = read_curves([tmp_path / "fl_all", tmp_path / "fl_token"])
    assert curves == {"fl_all": [(10, 9.0), (20, 7.0)], "fl_token": []}
    draw_curves(curves, tmp_path / "a.svg")
    draw_curves(curves, tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
