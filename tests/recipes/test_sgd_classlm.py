"""The recipe classlm on dialogues in synthetic voices: names that train lacks, from end to end."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from privasr_k2.fileio import read_jsonl
from privasr_k2.text.hotwords import read_speaker_lists
from privasr_k2.text.tagged_files import read_tagged
from tests.support.recipe_tools import check_names, dry_run, error_counts, recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]
EXP = "exp/classlm_tdnn_phone"


@pytest.mark.shared_data
@pytest.mark.timeout(1500)  # some hundred stages
def test_from_dialogues_to_results(shared_data: Path, tmp_path: Path) -> None:
    folders = f"--corpus-dir {shared_data}/sgd --public-text {shared_data}/ner_text"
    recipe(f"sgd classlm --preset tiny --user-contacts 2 {folders}", "--work-dir", tmp_path)
    parts = tmp_path / "data/text_classlm"
    users = {}
    for part in ("background", "adapt_30", "dev", "test"):
        texts = list(read_tagged([parts / f"{part}.jsonl.gz"]))
        users[part] = {text.user for text in texts}
        assert any(text.entities for text in texts)
    assert sum(map(len, users.values())) == len(set().union(*users.values()))
    # Users of train whom a held-out name brought to test.
    assert any(user.startswith("train-") for user in users["test"])
    # More text than speech, and all of the speech is of that text.
    spoken = list(read_tagged([tmp_path / "data/manifests_spoken/cuts_test.jsonl.gz"]))
    ids = {text.id for text in read_tagged([parts / "test.jsonl.gz"])}
    assert {text.id for text in spoken} < ids and all(text.entities for text in spoken)
    rows = list(read_jsonl(tmp_path / EXP / "results.jsonl"))
    scored = check_names(rows)
    assert {"sanitized/M1", "sanitized/M2", "adapt_30/M2_eq1", "mixed/M1_M2_M4"} <= scored
    assert len(scored) == 24
    # Each speaker's names are on their own list, and found more often than without.
    lists = read_speaker_lists(tmp_path / EXP / "sanitized/M1_contacts/contacts.tsv")
    assert {text.user for text in spoken} <= lists.keys()
    recalled = {
        row["system"]: row["value"]
        for row in rows
        if (row["metric"], row["item"], row["against"]) == ("recall", "", "")
    }
    assert recalled["sanitized/M1_contacts"] > recalled["sanitized/M1"]
    counts = error_counts(tmp_path / EXP / "sanitized/M2/score_test")
    assert 0 < counts["hits"] < counts["hits"] + counts["substitutions"] + counts["deletions"]
    # The class LM against the word LM of the same text, by recall, false alarms and other words.
    compared = {
        row["metric"]
        for row in rows
        if (row["system"], row["against"]) == ("sanitized/M2", "sanitized/M1") and not row["item"]
    }
    assert {"recall", "false_alarm_rate", "name_wer", "other_wer"} <= {
        metric.removesuffix("_difference") for metric in compared
    }


def test_other_recipes_of_the_corpus_keep_their_folders(tmp_path: Path) -> None:
    folders = ("--corpus-dir", tmp_path, "--public-text", tmp_path, "--work-dir", tmp_path)
    shown = dry_run("sgd classlm --preset tiny", *folders)
    text, speech = (
        shlex.split(shown[name]) for name in ("0 (manifests of all text)", "0 (manifests)")
    )
    assert "data/manifests_text" in text and "data/manifests_spoken" in speech
    assert "speech=none" in text and "speech=synthetic" in speech
    (tmp_path / "books.txt").touch()
    books = ("--nnlm-text", tmp_path / "books.txt")
    fedlm = dry_run("sgd fedlm --preset tiny", *folders[:2], *books, "--work-dir", tmp_path)
    manifests = shlex.split(fedlm["0 (manifests)"])
    assert "data/manifests" in manifests and not any("sgd_names" in word for word in manifests)
    # Without speech all of the text is read.
    shown = dry_run("sgd classlm --preset tiny --decode false", *folders)
    assert "data/manifests_text" in shown["0 (manifests)"] and "data/manifests_spoken" not in str(
        shown
    )
