"""From N-best lists and scores to hypotheses that wer reads, through the command line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.decoding.lm_scores import read_lm_scores, sentences_of, write_lm_scores
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json, read_jsonl, write_json, write_jsonl
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList, read_nbest, write_nbest
from tests.support.conf import section
from tests.support.verbs import run

GRID = ("interpolation=linear", "lm_weights=[0.0,1.0]", "insertion_penalties=[0.0]", "steps=2")


def nbest(folder: Path) -> Path:
    """Three utterances: the first pass is wrong in one, right in one, and lost in one."""

    def hyps(*words: str) -> tuple[Hypothesis, ...]:
        return tuple(Hypothesis(n + 1, w, -float(n), {"graph": -1.0}) for n, w in enumerate(words))

    lists = [
        NbestList("u1", "dev", "s1", "call ann", False, hyps("call and", "call ann", "coal ann")),
        NbestList("u2", "dev", "s2", "stop", False, hyps("stop", "shop")),
        NbestList("u3", "dev", "s2", "go on", True, ()),
    ]
    write_nbest(folder / "1.jsonl", lists)
    return folder


def scores(path: Path, name: str, folder: Path, liked: str) -> Path:
    """Scores of an LM that likes one word and the sentence end, and dislikes all others alike."""
    lists = read_nbest(folder)
    words = [word for nbest in sentences_of(lists) for hyp in nbest for word in (*hyp, "</s>")]
    values = [-0.1 if word in (liked, "</s>") else -3.0 for word in words]
    write_lm_scores(path, name, lists, np.array(values))
    return path


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    """A folder with lists of dev and the scores of two LMs."""
    folder = nbest(tmp_path / "nbest_dev")
    scores(tmp_path / "good.safetensors", "good", folder, "ann")
    scores(tmp_path / "bad.safetensors", "bad", folder, "shop")
    return tmp_path


def test_chosen_on_dev_and_applied(dev: Path) -> None:
    both = (dev / "good.safetensors", dev / "bad.safetensors")
    run(
        f"tune_weights --in-nbest {dev}/nbest_dev --in-scores",
        *both,
        f"--out-weights {dev}/rescoring.json --set",
        *GRID,
    )
    chosen = read_json(dev / "rescoring.json")
    # The two words of the utterance without a path are lost at every point.
    assert (chosen["errors"], chosen["lm_weight"], chosen["ref_words"]) == (2, 1.0, 5)
    assert len(chosen["grid"]) == 6
    assert chosen["lms"] == ["good", "bad"]
    assert chosen["lambdas"][0] > 0
    run(
        f"select_nbest --in-nbest {dev}/nbest_dev --in-scores",
        *both,
        f"--in-weights {dev}/rescoring.json --out-hyps {dev}/sys/decode_dev/1.jsonl",
    )
    records = list(read_jsonl(dev / "sys/decode_dev/1.jsonl"))
    assert [r["hyps"][0]["words"] for r in records] == ["call ann", "stop", ""]
    assert [r["no_path"] for r in records] == [False, False, True]


def arpa(path: Path, *words: str) -> Path:
    """A model in which all words are alike."""
    unigrams = "".join(f"-1\t{word}\t0\n" for word in ("<s>", "</s>", *words))
    bigram = f"\\2-grams:\n-1\t<s> {words[-1]}\n\n"
    counts = f"\\data\\\nngram 1={len(words) + 2}\nngram 2=1\n\n"
    path.write_text(f"{counts}\\1-grams:\n{unigrams}\n{bigram}\\end\\\n")
    return path


def test_words_that_the_lm_does_not_know_are_named(dev: Path) -> None:
    given = (
        f"lm_scores --in-nbest {dev}/nbest_dev --out-scores {dev}/new.safetensors"
        f" --config {section('lm_scores')}"
    )
    shown = run(given, "--in-lm", arpa(dev / "open.arpa", "call", "ann", "and", "stop", "<unk>"))
    assert "2 of 8 words of the hypotheses" in shown
    scored = read_lm_scores([dev / "new.safetensors"], read_nbest(dev / "nbest_dev"))
    assert scored["open"].shape == (13,)
    foreign = run(given, "--in-lm", arpa(dev / "foreign.arpa", "call", "<unk>"), code=2)
    assert "1.jsonl:1 (u1, hypothesis 1): expected the words of" in foreign
    advised = re.search(r"75 % of the words can count as <unk>: --set (\S+)", foreign)
    assert advised is not None
    run(given, "--in-lm", dev / "foreign.arpa", "--set", advised[1])
    closed = arpa(dev / "closed.arpa", "call", "ann", "and", "stop")
    shown = run(given, "--in-lm", closed, code=2)
    place = "1.jsonl:1 .u1, hypothesis 3.: expected the words of .*closed.arpa"
    assert re.search(f"{place}, found 2 others.*coal shop", shown)


def test_two_lms_of_one_name_are_refused(dev: Path) -> None:
    scores(dev / "again.safetensors", "good", dev / "nbest_dev", "shop")
    both = (dev / "good.safetensors", dev / "again.safetensors")
    flags = ("--in-nbest", dev / "nbest_dev", "--out-weights", dev / "r.json", "--set", *GRID)
    shown = run("tune_weights", "--in-scores", *both, *flags, code=2)
    assert "found good twice" in shown and "lm_scores --set name=NAME" in shown


def test_lists_that_lack_an_utterance_are_refused(dev: Path) -> None:
    manifests = dev / "manifests"
    cuts = [{"id": name, "type": "MonoCut"} for name in ("u1", "u2", "u3", "u4")]
    write_jsonl(manifests / "cuts_dev.jsonl.gz", cuts)
    about = {"name": "x", "synthetic": False, "scored_units": {"ann": "", "and": ""}}
    write_json(manifests / "corpus.json", about)
    common = ("--in-nbest", dev / "nbest_dev", "--in-manifests", manifests)
    tune = (
        "tune_weights",
        *common,
        f"--in-scores {dev}/good.safetensors --out-weights {dev}/r.json --set",
        *GRID,
    )
    assert "1 of 4 missing: u4" in run(*tune, code=2)
    assert "1 of 4 missing: u4" in run(
        "select_nbest", *common, f"--out-hyps {dev}/o/1.jsonl", code=2
    )
    write_jsonl(manifests / "cuts_dev.jsonl.gz", cuts[:3])
    run(*tune)
    chosen = read_json(dev / "r.json")
    assert (chosen["errors"], chosen["ref_words"]) == (2, 4)  # "ann" and "and" are not scored


def test_scores_of_lms_travel_in_kaldis_archives(dev: Path) -> None:
    scored = ("--in-scores", dev / "good.safetensors", dev / "bad.safetensors")
    run("export", "--in-nbest", dev / "nbest_dev", *scored, "--out-kaldi", dev / "kaldi")
    costs = dict(line.split() for line in (dev / "kaldi/lm_cost.good").read_text().splitlines())
    # "call and", "call ann", ...: 3 a word, 0.1 for what it likes and for the end.
    assert {key: round(float(cost), 3) for key, cost in costs.items()} == {
        "u1-1": 6.1, "u1-2": 3.2, "u1-3": 3.2, "u2-1": 3.1, "u2-2": 3.1,
    }  # fmt: skip
    assert (dev / "kaldi/lm_cost").read_text().count("\n") == 5
    assert (dev / "kaldi/lm_cost.bad").is_file()


def test_the_oracle_needs_no_scores(dev: Path) -> None:
    run(f"select_nbest --in-nbest {dev}/nbest_dev --out-hyps {dev}/oracle/decode_dev/1.jsonl")
    records = list(read_jsonl(dev / "oracle/decode_dev/1.jsonl"))
    assert [r["hyps"][0]["words"] for r in records] == ["call ann", "stop", ""]


def test_nothing_is_tuned_on_test(dev: Path) -> None:
    folder = nbest(dev / "nbest_test")
    text = run(
        f"tune_weights --in-nbest {folder} --in-scores {dev}/good.safetensors"
        f" --out-weights {dev}/w.json --set",
        *GRID,
        code=2,
    )
    assert "choose on dev" in text and not (dev / "w.json").exists()


def test_scores_of_other_lists_are_refused(dev: Path) -> None:
    lists = read_nbest(dev / "nbest_dev")
    write_nbest(dev / "nbest_dev" / "2.jsonl", [NbestList("u9", "dev", "s9", "a", True, ())])
    with pytest.raises(DataError, match="those of others"):
        read_lm_scores([dev / "good.safetensors"], read_nbest(dev / "nbest_dev"))
    with pytest.raises(DataError, match="good twice"):
        read_lm_scores([dev / "good.safetensors"] * 2, lists)
    write_lm_scores(dev / "few.safetensors", "few", lists, np.zeros(12))
    with pytest.raises(
        DataError, match=r"few.safetensors: expected 13 scores, .*, found .* shape .12,."
    ):
        read_lm_scores([dev / "few.safetensors"], lists)
    (dev / "bad.safetensors").write_bytes(b"not this")
    with pytest.raises(DataError, match="lm_scores"):
        read_lm_scores([dev / "bad.safetensors"], lists)


def test_weights_of_other_lms_are_refused(dev: Path) -> None:
    run(
        f"tune_weights --in-nbest {dev}/nbest_dev --in-scores {dev}/good.safetensors"
        f" --out-weights {dev}/rescoring.json --set",
        *GRID,
    )
    text = run(
        f"select_nbest --in-nbest {dev}/nbest_dev --in-scores {dev}/bad.safetensors"
        f" --in-weights {dev}/rescoring.json --out-hyps {dev}/x.jsonl",
        code=2,
    )
    assert "scores of good" in text
    text = run(f"select_nbest --in-nbest {dev}/nbest_dev --in-weights w --out-hyps x", code=2)
    assert "--in-scores with --in-weights" in text
