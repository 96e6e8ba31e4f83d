"""Hypotheses of public models may be voted for; lists shaped by private data are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import write_json, write_text
from privasr_k2.graph.lang import load_lang
from privasr_k2.pate.nbest_hypotheses import check_public, nbest_hypotheses
from privasr_k2.scoring.hypotheses import Weights
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList, read_nbest, write_nbest
from tests.support.small_pate import write_lists


@pytest.fixture
def lang(tmp_path: Path) -> Path:
    folder = tmp_path / "lang"
    write_text(folder / "tokens.txt", "<blk> 0\na 1\nb 2\nc 3\n▁ 4\n")
    write_text(folder / "words.txt", "<eps> 0\nab 1\n#0 2\n")
    write_text(folder / "lexicon.txt", "ab ▁ a b\n")
    return folder


def nbest(name: str, *texts: str) -> NbestList:
    hyps = tuple(Hypothesis(rank, text, -1.5 * rank, {}) for rank, text in enumerate(texts, 1))
    return NbestList(name, "pool", "", "", not hyps, hyps)


def test_words_that_nobody_has_said_are_spelled(lang, tmp_path):
    lists = [
        nbest("u0", "ab", "ca ab", "x", ""),
        nbest("u1", "x", "ab"),
        nbest("u2"),
        nbest("u3", "ab"),
    ]
    write_nbest(tmp_path / "nbest" / "1.jsonl", lists)
    found = nbest_hypotheses(read_nbest(tmp_path / "nbest"), load_lang(lang), 8)
    assert found.words == {"u0": ("ab", "ca ab", "")}
    assert found.tokens == {"u0": ((4, 1, 2), (4, 3, 1, 4, 1, 2), ())}
    assert found.margins == {"u0": 1.5} and sorted(found.single) == ["u1", "u2", "u3"]
    fewer = nbest_hypotheses(read_nbest(tmp_path / "nbest"), load_lang(lang), 2)
    assert fewer.words == {"u0": ("ab", "ca ab")} and fewer.digest(["u0"]) != found.digest(["u0"])
    write_nbest(tmp_path / "alone" / "1.jsonl", [nbest("u0", "ab")])
    with pytest.raises(DataError, match="two or more hypotheses"):
        nbest_hypotheses(read_nbest(tmp_path / "alone"), load_lang(lang), 8)


def test_the_graphs_lm_weighs_as_the_public_model_found_best_on_dev(lang, tmp_path):
    hyps = tuple(
        Hypothesis(rank, words, am, {"graph": lm, "lstm": -99.0})
        for rank, words, am, lm in ((1, "ab ab", -4.0, -10.0), (2, "ab", -6.0, -7.0))
    )
    write_nbest(tmp_path / "nbest/1.jsonl", [NbestList("u0", "pool", "", "", False, hyps)])
    lists, folder = read_nbest(tmp_path / "nbest"), load_lang(lang)
    assert nbest_hypotheses(lists, folder, 8).lm_scores == {"u0": (0.0, 0.0)}
    found = nbest_hypotheses(lists, folder, 8, Weights(0.5, 2.0))
    assert found.lm_scores == {"u0": (-9.0, -5.5)}  # 0.5 lm - 2 for each word
    assert found.margins == {"u0": pytest.approx((-4.0 - 9.0) - (-6.0 - 5.5))}


def stage(work: Path, number: int, command: str, output: str = "") -> None:
    """The stamp of a stage that has run; its output is the command's last word."""
    words = command.split()
    output = output or words[-1]
    stamp = {"number": number, "title": words[0], "fingerprint": "f", "command": words}
    folder, name = Path(output).parent, Path(output).name
    write_json(work / folder / ".stages" / f"{name}.json", {**stamp, "outputs": {output: "0"}})


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A work folder: shards of private data, their teachers, and a public model."""
    work = tmp_path / "work"
    write_text(work / ".stages" / "lock", "")
    for part in ("private", "public"):
        stage(work, 1, f"compute_features --in-manifests data/m --out-dir data/{part}")
    stage(work, 2, "train_am --in-feats data/public --out-dir exp/public")
    shards = "make_shards --in-private-feats data/private --in-public-dev data/public"
    stage(work, 3, f"{shards} --out-dir exp/shards")
    teacher = "train_am --in-feats exp/shards/shard_1 --in-init exp/public"
    stage(work, 4, f"{teacher} --out-dir exp/teachers/1")
    return work


def decoded(work: Path, model: str) -> Path:
    """Lists that a model proposed."""
    command = f"decode --in-model {model} --in-feats data/public --out-nbest exp/nbest/1.jsonl"
    stage(work, 5, command)
    write_lists(work / "exp" / "nbest")
    return work / "exp" / "nbest"


def test_a_public_model_may_propose(work):
    assert check_public(decoded(work, "exp/public"))


def test_a_teacher_may_not(work):
    with pytest.raises(DataError, match=r"stage 3 \(make_shards\).*data/private"):
        check_public(decoded(work, "exp/teachers/1"))


def test_a_model_of_the_private_data_may_not(work):
    stage(work, 2, "train_am --in-feats data/private --out-dir exp/all")
    with pytest.raises(DataError, match=r"stage 2 \(train_am\).*data/private"):
        check_public(decoded(work, "exp/all"))


def test_a_model_of_the_whole_corpus_may_not(work):
    split = "split_corpus --in-feats data/feats --in-public-train data/public"
    stage(work, 1, f"{split} --out-dir data/private")
    stage(work, 2, "train_am --in-feats data/feats --out-dir exp/recipe_ctc")
    with pytest.raises(DataError, match=r"stage 2 \(train_am\).*data/feats"):
        check_public(decoded(work, "exp/recipe_ctc"))
    assert check_public(decoded(work, "exp/public"))


def test_a_student_of_released_labels_may(work):
    stage(work, 5, "cast_votes --in-private-teachers exp/teachers --out-votes exp/votes/1")
    release = "aggregate_votes --in-private-votes exp/votes --out-dir exp/labels"
    stage(work, 6, release)
    student = "train_student --in-labels exp/labels/labels.jsonl --in-feats data/public"
    stage(work, 7, f"{student} --out-dir exp/student")
    with pytest.raises(DataError, match=r"stage 6 \(aggregate_votes\)"):  # without noise
        check_public(decoded(work, "exp/student"))
    stage(work, 6, f"{release} --out-privacy exp/privacy.json", "exp/labels")
    assert check_public(decoded(work, "exp/student"))


def test_what_a_stage_declares_public_is_taken_at_its_word(work):
    init = "--in-public-init exp/teachers/1"
    stage(work, 2, f"train_am --in-feats data/public {init} --out-dir exp/other")
    assert check_public(decoded(work, "exp/other"))


def test_lists_from_elsewhere_cannot_be_checked(tmp_path, caplog):
    write_lists(tmp_path / "nbest")
    assert not check_public(tmp_path / "nbest")
    assert "it is unknown" in caplog.text
