"""The recipe redteam on the tiny corpus: all settings and attacks in one table; what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.data.manifests import load_cuts
from privasr_k2.fileio import read_json, read_jsonl
from privasr_k2.privacy.ledger import Ledger
from tests.support.recipe_tools import assert_up_to_date, check_names, dry_run, recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
EXP = "exp/redteam_char_speaker"
TINY = "mini redteam --preset tiny --nj 1"
SETTINGS = ("public only", "not private", "clip only, no noise", "DP-SGD, epsilon 8",
            "DP-SGD, epsilon 1")  # fmt: skip


@pytest.mark.timeout(1500)  # some thirty stages
def test_all_attacks_at_all_settings_in_one_table(tmp_path: Path) -> None:
    recipe(TINY, "--work-dir", tmp_path)
    exp = tmp_path / EXP
    rows = list(read_jsonl(exp / "results.jsonl"))
    check_names(rows)
    metrics = {label: {r["metric"]: r for r in rows if r["label"] == label} for label in SETTINGS}
    heard = {"canary_exposure", "fused_exposure", "silenced_exposure", "true_name", "wer"}
    members = {"auc", "perturbed_auc", "blind_auc", "beyond_blind", "perturbed_beyond_blind"}
    for label in SETTINGS:
        wanted = heard if label == "public only" else heard | members
        assert wanted <= metrics[label].keys(), label
        for metric in ("audit_broken", "lm_broken"):
            assert (metric in metrics[label]) == (label[-1] in "81"), label
    # The LM without protection has learned the canaries; the public one has not read them.
    fused = {label: metrics[label]["silenced_exposure"]["value"] for label in SETTINGS}
    assert fused["not private"] == metrics["not private"]["canary_possible"]["value"]
    assert fused["public only"] < fused["not private"]
    # One blind baseline for all models.
    assert len({metrics[label]["blind_auc"]["value"] for label in SETTINGS[1:]}) == 1
    text = (exp / "RESULTS.md").read_text()
    [table] = [part for part in text.split("\n## ") if part.startswith("All attacks")]
    assert all(f"| {label}" in table for label in SETTINGS) and "Synthetic speech" in text

    # Canaries are units of what all private models learn, and of nothing that is attacked as real.
    [planted] = tmp_path.glob("data/canaries_*")
    train = {cut.supervisions[0].speaker for cut in load_cuts(planted, "train")}
    real = {
        c.supervisions[0].speaker for c in load_cuts(tmp_path / "data/sides_fbank/private", "train")
    }
    assert train - real == {"canary0000", "canary0001", "canary0002"} and real < train
    members = read_json(exp / "ctc/membership.json")["models"]["nonprivate/am"]["members"]
    assert members == len(real)
    entries = Ledger(tmp_path / "privacy/ledger.json").entries()
    # A recognizer and an LM at each epsilon.
    assert {entry.spending.units for entry in entries} == {len(train)} and len(entries) == 4
    claims = [r["value"] for r in rows if r["metric"] in ("claimed", "lm_claimed")]
    assert max(claims) <= 8 and sum(0.99 < claim <= 1 for claim in claims) >= 2
    assert_up_to_date(TINY, "--work-dir", tmp_path)


def test_other_recipes_models_are_not_replaced(tmp_path: Path) -> None:
    """Only the public model is that of recipe dpsgd: the others learn from canaries, too."""

    def trained(name: str) -> set[str]:
        shown = dry_run(f"mini {name} --preset tiny --token-type char", "--work-dir", tmp_path)
        written = (stage.partition("writes ")[2].split("\n")[0] for stage in shown.values())
        return {path for paths in written for path in paths.split() if path.endswith("/am")}

    assert trained("redteam") & trained("dpsgd") == {"exp/e2e_char/ctc/public/am"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--token-type phone", "--token-type: expected char or bpe_N"),
        ("--models rnnt", "--models: expected"),
        ("--dpsgd-epsilons 0", "--dpsgd-epsilons: expected a number above 0"),
    ],
)
def test_what_cannot_be(options: str, message: str, tmp_path: Path) -> None:
    text = recipe(f"{TINY} {options} --dry-run true", "--work-dir", tmp_path, code=2)
    assert message in text and "way out" in text
