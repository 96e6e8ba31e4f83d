"""Earnings-21 as N-best lists, on a made corpus and on the real one."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from privasr_k2 import config
from privasr_k2.corpora.base import CorpusInput
from privasr_k2.corpora.earnings21 import (
    CORPUS,
    Earnings21Config,
    adapting,
    corpus_info,
    deal,
    read_gold,
    read_lists,
    read_recognized,
    read_references,
)
from privasr_k2.corpora.prepare import prepare
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.text.entities import Entity
from privasr_k2.text.tagged_files import read_tagged
from tests.support.conf import section
from tests.support.ctm_corpus import ctm_corpus, write
from tests.support.verbs import call

SHARES = Earnings21Config(train=0.4, dev=0.2, adapt=0.2, seed=1)


def test_lists_of_all_recognizers(tmp_path: Path) -> None:
    lists = read_lists(ctm_corpus(tmp_path / "c"), SHARES)
    assert list(lists) == ["bad", "good"] and list(lists["good"]) == ["train", "dev", "test"]
    assert [len(lists["good"][role]) for role in lists["good"]] == [2, 1, 3]
    good, bad = (
        {nbest.id: role for role, nbests in lists[name].items() for nbest in nbests}
        for name in ("good", "bad")
    )
    assert good == bad
    nbest = lists["good"]["test"][0]
    assert nbest.speaker == nbest.id and nbest.part == "test" and len(nbest.ref.split()) == 120
    assert nbest.hyps[0].confidences is not None and len(nbest.hyps[0].confidences) == 120


def test_calls_are_dealt_by_the_seed_alone() -> None:
    calls = [f"c{n}" for n in range(38)]
    found = deal(calls, SHARES)
    assert found == deal(calls[::-1], SHARES) != deal(calls, dataclasses.replace(SHARES, seed=2))
    expected = [8, 15, 15]
    assert sorted(list(found.values()).count(role) for role in ("train", "dev", "test")) == expected
    assert set(
        deal(["a", "b", "c"], dataclasses.replace(SHARES, train=0.01, dev=0.01)).values()
    ) == {
        "train",
        "dev",
        "test",
    }
    with pytest.raises(DataError, match="three calls or more"):
        deal(["a", "b"], SHARES)
    with pytest.raises(ConfigError, match="leave something to test"):
        config.load(Earnings21Config, [], ["train=0.9", "dev=0.1", "adapt=0.2", "seed=1"])
    with pytest.raises(ConfigError, match="adapt must be below 1, got 1"):
        config.load(Earnings21Config, [], ["train=0.4", "dev=0.1", "adapt=1", "seed=1"])


def test_calls_to_adapt_on_are_some_of_train() -> None:
    dealt = deal([f"c{n}" for n in range(38)], SHARES)
    found = adapting(dealt, SHARES)
    moved = {call for call in dealt if found[call] != dealt[call]}
    assert len(moved) == 3 and {dealt[call] for call in moved} == {"train"}
    assert {found[call] for call in moved} == {"adapt"}
    assert adapting(dealt, dataclasses.replace(SHARES, adapt=0.0)) == dealt
    everything = adapting(dealt, dataclasses.replace(SHARES, adapt=0.999))
    assert list(everything.values()).count("train") == 1


def test_sentences_of_calls_are_a_corpus_of_text(tmp_path: Path) -> None:
    pytest.importorskip("lhotse")
    header = "idx\ttoken\tspeaker\tpunct\tentities\n"
    for number in range(6):
        rows = ["0\tPay\t0\t\t", "1\t$40\t0\t\t1:MONEY", "2\tmillion\t0\t\t1:MONEY",
                "3\tto\t0\t\t", "4\tAnn\t0\t\t2:PERSON", "5\tLee\t0\t.\t2:PERSON 3:FALLBACK",
                "6\t--\t1\t\t", "7\tYes\t2\t.\t"]  # fmt: skip
        write(tmp_path / f"c/gold/{number}.tsv.gz", header + "\n".join(rows) + "\n")
    files = (section("earnings21"),)
    given = CorpusInput(tmp_path / "c", tmp_path / "manifests", {"adapt": "0.5"}, files, 1)
    about = prepare(CORPUS, given)
    sizes = {role: of_role["utterances"] for role, of_role in about["roles"].items()}
    assert sizes == {"train": 2, "adapt": 2, "dev": 2, "test": 6}
    assert about["roles"]["test"]["text_only"] and about["roles"]["test"]["speakers"] == 6
    assert about["scored_units"]["uh"] == ""
    [first, second] = read_tagged([tmp_path / "manifests/cuts_dev.jsonl.gz"], nested=True)
    assert " ".join(first.words) == "pay forty million dollars to ann lee"
    assert first.cased == "Pay $40 million to Ann Lee."
    expected = (Entity(1, 4, "MONEY"), Entity(5, 7, "PERSON"), Entity(6, 7, "FALLBACK"))
    assert first.entities == expected
    assert first.user == f"{first.document}_0" and second.words == ("yes",)


def test_calls_are_references_with_gold_names(tmp_path: Path) -> None:
    made = ctm_corpus(tmp_path / "c")
    header = "idx\ttoken\tspeaker\tpunct\tentities\n"
    rows = ["0\tPay\t0\t\t", "1\t$40\t0\t\t1:MONEY", "2\tmillion\t0\t.\t1:MONEY",
            "3\t--\t1\t\t2:FALLBACK", "4\tGonna\t1\t\t", "5\tAnn\t1\t\t3:PERSON",
            "6\tLee\t1\t.\t3:PERSON"]  # fmt: skip
    write(made / "gold/call3.tsv.gz", header + "\n".join(rows) + "\n")
    cuts = {cut["id"]: (role, cut)
            for role, of in read_references(made, SHARES).items() for cut in of}  # fmt: skip
    roles = deal([f"call{n}" for n in range(6)], SHARES)
    assert {name: role for name, (role, _) in cuts.items()} == roles
    for name, (role, cut) in cuts.items():
        [said] = cut["supervisions"]
        assert said["text"].split() == read_gold(made / f"gold/{name}.tsv.gz")
        assert (cut["custom"]["part"], said["speaker"]) == (role, name)
    # "million" owes "dollars"; a mark has no word, and "gonna" two.
    [said] = cuts["call3"][1]["supervisions"]
    assert said["text"] == "pay forty million dollars going to ann lee"
    assert said["custom"]["entities"] == [[1, 4, "MONEY"], [6, 8, "PERSON"]]
    lists = read_lists(made, SHARES)["good"]
    assert {n.id: n.ref for of in lists.values() for n in of} == {
        name: cut["supervisions"][0]["text"] for name, (_, cut) in cuts.items()
    }


def test_references_are_cuts(tmp_path: Path) -> None:
    lhotse = pytest.importorskip("lhotse")
    call("prepare_earnings21 --raw-corpus", ctm_corpus(tmp_path / "c"), "--out-references",
         tmp_path / "gold", "--config", section("earnings21"))  # fmt: skip
    cuts = list(lhotse.load_manifest(tmp_path / "gold/cuts_test.jsonl.gz"))
    assert len(cuts) == 3 and all(cut.supervisions[0].custom["entities"] for cut in cuts)


def test_a_line_of_several_words_and_of_none(tmp_path: Path) -> None:
    lines = (
        "c A 1.0 0.4 LONG-TERM 0.8\nc A 1.4 0.1 <unk> 0.3\nc A 1.5 0.3 gonna 0.9\nc A 2 1 q3 0.5\n"
    )
    write(tmp_path / "c.ctm.gz", lines)
    hyp = read_recognized(tmp_path / "c.ctm.gz", "c")
    assert hyp.words == "long term going to q three"
    assert hyp.confidences == (0.8, 0.8, 0.9, 0.9, 0.5, 0.5)
    assert hyp.times is not None and hyp.times[:2] == ((1.0, 1.2), (1.2, 1.4))
    assert corpus_info()["scored_units"]["uh"] == ""  # type: ignore[index]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("other A 1 1 word 0.5\n", "words of c, found words of other"),
        ("c A 1 1 word\n", "a confidence for each word, found none"),
        ("c A 1 1 word 1.5\n", "c.ctm.gz:1"),
    ],
)
def test_ctm_that_is_refused(tmp_path: Path, lines: str, message: str) -> None:
    write(tmp_path / "c.ctm.gz", lines)
    with pytest.raises(DataError, match=message):
        read_recognized(tmp_path / "c.ctm.gz", "c")


def test_a_corpus_that_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found no gold words"):
        read_lists(tmp_path, SHARES)
    made = ctm_corpus(tmp_path / "c")
    (made / "ctm_bad/call3.ctm.gz").unlink()
    with pytest.raises(DataError, match="found a difference in call3"):
        read_lists(made, SHARES)
    rows = "idx\ttoken\tspeaker\tpunct\tentities\n0\tfour columns\t0\t\n"
    write(made / "gold/call1.tsv.gz", rows)
    with pytest.raises(DataError, match=r"call1.tsv.gz:2: expected the columns"):
        read_gold(made / "gold/call1.tsv.gz")
    for folder in (made / "ctm_bad", made / "ctm_good"):
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    with pytest.raises(DataError, match="found no recognizer"):
        read_lists(made, SHARES)


@pytest.mark.shared_data
def test_the_real_corpus(shared_data: Path) -> None:
    words = read_gold(shared_data / "earnings21/gold/4386541.tsv.gz")
    hyp = read_recognized(shared_data / "earnings21/ctm_kaldi_rev/4386541.ctm.gz", "4386541")
    assert 2000 < len(words) < 6000 and not any(c.isdigit() for word in words for c in word)
    assert 0.9 < len(hyp.words.split()) / len(words) < 1.1
