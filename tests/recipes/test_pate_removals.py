"""Whoever of the private people is missing, all stages end, with the same guarantee.

A stage that ended with an error where one person is missing would tell who is there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.data.manifests import load_cuts, save_cuts
from privasr_k2.fileio import read_json, read_jsonl, read_yaml, write_text
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.training.weights import read_header
from tests.support.recipe_tools import recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
COMMON = "--preset tiny --nj 1 --token-type char --heads true --vote token --public-threshold 0.8"
COMMON += " --top-k 4 --teachers 4 --epsilons 8 --mechanisms gnmax --audit false --score-teachers 0"
PEOPLE = ("user1000", "user1001", "user1002", "user1003")
LABELS = "exp/pate_char_speaker_token_heads/ctc/gnmax_4_8/labels/labels.json"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two corpora and their features, of all people."""
    work = tmp_path_factory.mktemp("removals")
    recipe("mini_pate pate --preset tiny --nj 1 --stop-stage 2", "--work-dir", work)
    found = {cut.supervisions[0].speaker for cut in load_cuts(work / "data/manifests", "train")}
    assert found == set(PEOPLE)
    write_text(work / "roster", "".join(f"{name}\n" for name in PEOPLE))
    return work


@pytest.mark.timeout(600)
@pytest.mark.parametrize("missing", PEOPLE)
def test_any_of_them_may_be_missing(base: Path, tmp_path: Path, missing: str) -> None:
    corpus, work = tmp_path / "corpus", tmp_path / "work"
    for role in ("train", "dev", "test", "pool"):
        kept = load_cuts(base / "data/manifests", role).to_eager()
        save_cuts([cut for cut in kept if cut.supervisions[0].speaker != missing], corpus, role)
    given = ["--roster", base / "roster", "--public-feats", base / "data/public/feats_fbank"]
    recipe(f"data:{corpus} pate {COMMON}", *given, "--work-dir", work)
    shards = read_json(work / "exp/shards_speaker/4/shards.json")
    assert set(shards["roster"]) == set(PEOPLE) and shards["units_in_a_shard"] == 1
    about = read_json(work / LABELS)
    assert about["sensitivity"] == {"l1": 1, "l2": 1.0}
    exp = (work / LABELS).parents[1]
    header = read_header(exp.parent / "teachers_4/heads.safetensors")
    assert header["abstaining"] == [shards["roster"][missing]]
    assert read_yaml(exp / "am/model.yaml")["kind"] == "ctc"
    [entry] = Ledger(work / "privacy/ledger.json").entries()
    assert (entry.spending.units, entry.spending.person_units) == (4, 1)
    rows = [row for row in read_jsonl(exp.parents[1] / "results.jsonl") if row["metric"] == "wer"]
    assert "GNMax, 4 teachers, epsilon 8" in {row["label"] for row in rows}
