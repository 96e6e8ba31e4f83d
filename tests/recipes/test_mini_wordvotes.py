"""The recipe wordvotes on the tiny corpus: released words, their graph, and one ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.federated.word_release import read_released
from privasr_k2.fileio import read_json, read_jsonl
from privasr_k2.graph.lang import load_lang
from privasr_k2.lm.arpa import read_arpa
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.privacy.lineage import lineage
from tests.support.recipe_tools import assert_up_to_date, check_names, dry_run, recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
#: Three private speakers: only a large epsilon releases a word.
TINY = "mini_pate wordvotes --preset tiny --nj 1 --epsilons 500"
EXP = Path("exp/wordvotes_char_grammars")


@pytest.mark.timeout(900)
def test_from_votes_to_error_rates(tmp_path: Path) -> None:
    more = f"{TINY} --grammars true --students true"
    recipe(more, "--work-dir", tmp_path)
    exp = tmp_path / EXP
    released = read_released(exp / "eps_500/votes")
    candidates = load_lang(tmp_path / "data/lang_char_public_candidates").word_ids
    assert "thirtieth" in candidates
    sides = read_json(tmp_path / "data/sides_fbank/sides.json")
    most = len(sides["private"]["speakers"])
    assert set(released.words) <= set(candidates) and released.words
    assert all(votes <= most + 3 for votes in released.words.values())
    mixed = read_json(exp / "eps_500/mixture.json")
    names = [lm["lm"].rpartition("/")[2] for lm in mixed["lms"]]
    assert names == ["grammars", "public.arpa.gz", "adapted.arpa.gz", "voted.arpa.gz"]

    [entry] = Ledger(tmp_path / "privacy/ledger.json").entries()
    assert (entry.spending.data, entry.spending.unit) == ("mini_pate/train", "speaker")
    made = lineage(exp / "eps_500/graph", tmp_path)
    assert made.is_covered and len(made.spent) == 1, list(made.lines())
    assert not lineage(exp / "nonprivate/graph", tmp_path).is_covered
    assert lineage(exp / "public/graph", tmp_path).is_covered
    taught = lineage(exp / "eps_500_student/am", tmp_path)
    assert taught.is_covered and taught.spent == made.spent
    assert not lineage(exp / "public_student/am", tmp_path).spent
    assert not lineage(exp / "all_speech/am", tmp_path).is_covered
    learned = read_json(exp / "eps_500_student/am/student.json")
    assert learned["candidates"]["self_training"]["utterances"]["unanswered_used"] > 0

    rows = [row for row in read_jsonl(exp / "results.jsonl") if row["part"] == "test"]
    check_names(rows)
    labels = {row["label"] for row in rows if row["metric"] == "wer"}
    taught_by = {"public words", "released words, epsilon 500"}
    students = {f"{label}, student" for label in taught_by}
    private = {"all private words", "all private speech and words"}
    assert labels == taught_by | students | private
    for system in ("eps_500", "eps_500_student"):
        [epsilon] = {
            row["value"]
            for row in read_jsonl(exp / "results.jsonl")
            if row["metric"] == "epsilon" and row["system"] == system and not row["item"]
        }
        assert 490 < epsilon <= 500
    table = (exp / "RESULTS.md").read_text()
    assert "released for each speaker" in table and "Audits" in table
    assert_up_to_date(more, "--work-dir", tmp_path)


def test_without_public_lm_the_graph_has_the_released_words_alone(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("zebra\nquick\n")
    work = tmp_path / "work"
    alone = f"{TINY} --mix false --audit false --max-bigrams 60 --word-list {words}"
    recipe(f"{alone} --stop-stage 7", "--work-dir", work)
    exp = work / "exp/wordvotes_char_alone"
    model, released = read_arpa(exp / "eps_500/voted.arpa.gz"), read_released(exp / "eps_500/votes")
    assert set(model.words[3:]) == set(released.words)
    assert released.bigrams and model.counts[1] == len(released.bigrams)
    assert {"zebra", "quick"} <= set(load_lang(work / "data/lang_char_public_candidates").word_ids)


@pytest.mark.shared_data
def test_real_corpora_fit_together(shared_data: Path, tmp_path: Path) -> None:
    command = f"an4 wordvotes --corpus-dir {shared_data}/an4 --public-dir {shared_data}/LibriSpeech"
    shown = dry_run(f"{command} --epsilons '4 8'", "--work-dir", tmp_path)
    assert {"8 (score eps_4)", "8 (score eps_8)"} <= set(shown)
