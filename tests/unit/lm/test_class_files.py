"""Training a class LM and its folder."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privasr_k2 import config
from privasr_k2.errors import ConfigError, DataError, GraphError
from privasr_k2.fileio import read_json, write_json, write_jsonl
from privasr_k2.lm.class_files import ClassLmConfig, load_class_lm, save_class_lm, train_class_lm
from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.mixtures import open_lm
from privasr_k2.lm.names import read_texts
from privasr_k2.text.entities import Entity, TaggedText
from privasr_k2.text.tagged_files import to_record
from tests.support.conf import section

CONF = section("class_lm")
WORDS = ["call", "now", "ann", "lee", "bob", "york"]
TEXT = [
    TaggedText("1", ("call", "ann", "lee", "now"), (Entity(1, 3, "PER"),)),
    TaggedText("2", ("call", "bob"), (Entity(1, 2, "PER"),)),
    TaggedText("3", ("call", "zoe"), (Entity(1, 2, "PER"),)),
    TaggedText("4", ("york", "now"), (Entity(0, 1, "LOC"),)),
]


def settings(*more: str) -> ClassLmConfig:
    chosen = ["classes=[PER,LOC]", "discounting=witten_bell", *more]
    return config.load(ClassLmConfig, [CONF], chosen)


@pytest.fixture
def lm() -> ClassLm:
    config = settings("list_weight=0.5", "cut_history=true")
    return train_class_lm(TEXT, WORDS, {"PER": {("bob",): 1.0}}, config)


def test_names_of_text_and_lists(lm: ClassLm, caplog: pytest.LogCaptureFixture) -> None:
    # Text: a third each; zoe is no word of words.txt; bob has the list's half besides.
    names = lm.sub_lms["PER"]
    assert math.exp(names.log_prob(("ann", "lee"))) == pytest.approx((1 / 6) / (5 / 6))
    assert math.exp(names.log_prob(("bob",))) == pytest.approx((4 / 6) / (5 / 6))
    assert lm.root.word_ids.keys() == {"<s>", "</s>", "<unk>", *WORDS, "<PER>", "<LOC>"}
    with caplog.at_level(logging.WARNING):
        train_class_lm(TEXT, WORDS, {}, settings())
    assert "1 of 3 names" in caplog.text and "zoe" in caplog.text
    # The root model is that of the tagged text: <PER> follows "call" in all three sentences.
    call = lm.root.word_ids["call"] + 1
    prob = 10 ** lm.root.log10_conditional(np.array([call]), np.array([lm.root.word_ids["<PER>"]]))
    assert prob[0] > 0.7


def test_names_of_text_that_nobody_can_say_have_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where they are marked first; a name of a list has its line there."""
    path = tmp_path / "a.jsonl"
    write_jsonl(path, [to_record(text) for text in (*TEXT, replace(TEXT[2], id="5"))])
    texts = read_texts([path])
    assert texts[:4] == TEXT and texts[2].place == f"{path}:3"
    with caplog.at_level(logging.WARNING):
        train_class_lm(texts, WORDS, {}, settings())
    assert f"{path}:3: 'zoe' (zoe)" in caplog.text
    with caplog.at_level(logging.WARNING):
        lists = {"PER": {("zoe",): 1.0}}
        train_class_lm(texts, WORDS, lists, settings(), places={"PER": {("zoe",): "per.txt:9"}})
    assert "left out: per.txt:9: 'zoe' (zoe)" in caplog.text
    with pytest.raises(
        DataError, match=r"a.jsonl:1: expected a name of PER .*'ann lee' \(ann lee\)"
    ):
        train_class_lm(texts, ["call", "now", "york"], {}, settings())


def test_written_is_read_again(tmp_path: Path, lm: ClassLm) -> None:
    save_class_lm(tmp_path / "lm", lm)
    again = open_lm(tmp_path / "lm")
    assert isinstance(again, ClassLm)
    assert again.same_names(load_class_lm(tmp_path / "lm"))
    assert (again.cut_history, again.name) == (True, str(tmp_path / "lm"))
    text = [["call", "ann", "lee", "now"], ["york"], ["call", "zoe"]]
    np.testing.assert_allclose(again.token_log_probs(text), lm.token_log_probs(text), atol=1e-5)
    nodes, states = again.sums()
    assert max(np.abs(nodes - 1).max(), np.abs(states - 1).max()) < 1e-5
    spec = read_json(tmp_path / "lm" / "class_lm.json")
    sizes = {"states": 4, "arcs": 3, "words": 3, "unknown_names": False}
    assert spec["classes"]["PER"] == {"tag": "<PER>", "sub_lm": "sub/PER.txt", **sizes}
    assert (spec["order"], spec["cut_history"], spec["root"]) == (3, True, "root.arpa.gz")
    save_class_lm(tmp_path / "lm2", again)
    for name in ("class_lm.json", "sub/PER.txt", "sub/LOC.txt"):
        assert (tmp_path / "lm2" / name).read_bytes() == (tmp_path / "lm" / name).read_bytes()


def test_a_class_without_names() -> None:
    with pytest.raises(DataError, match=r"class ORG: expected names"):
        train_class_lm(TEXT, WORDS, {}, settings("classes=[PER,LOC,ORG]"))
    with pytest.raises(DataError, match=r"the text: expected a name of PER .*'bob' \(bob\)"):
        train_class_lm(TEXT, ["call", "now", "york"], {}, settings())
    message = r"per.txt:7: expected a name of PER .*per.txt:7: 'eve' \(eve\)"
    chosen, places = settings("list_weight=0.5"), {"PER": {("eve",): "per.txt:7"}}
    lists = {"PER": {("eve",): 1.0}}
    with pytest.raises(DataError, match=message):
        train_class_lm(TEXT, ["call", "now", "york"], lists, chosen, places=places)


def test_folders_that_do_not_fit(tmp_path: Path, lm: ClassLm) -> None:
    with pytest.raises(DataError, match="a class LM"):
        load_class_lm(tmp_path)
    folder = tmp_path / "lm"
    save_class_lm(folder, lm)
    spec = read_json(folder / "class_lm.json")
    for change, error, message in (
        ({"classes": {"PER": {}}}, GraphError, "found none for <LOC>"),
        ({"classes": {**spec["classes"], "ORG": {}}}, DataError, r"ORG.txt: .* no such file"),
        ({"format": "other"}, DataError, "another file"),
    ):
        write_json(folder / "class_lm.json", {**spec, **change})
        with pytest.raises(error, match=message):
            load_class_lm(folder)


def test_an_unknown_word_in_capitals_is_no_class(tmp_path: Path) -> None:
    spoken = [*WORDS, "<UNK>"]
    save_class_lm(tmp_path / "lm", train_class_lm(TEXT, spoken, {}, settings()))
    assert "<UNK>" in load_class_lm(tmp_path / "lm").root.words


@pytest.mark.parametrize(
    "value",
    [
        *("list_weight=1.1", "unknown_mass=1", "sub_lm=trie", "discounting=none", "order=0"),
        *("classes=[]", "classes=[PER,PER]", "classes=[per]", "classes=[PER,UNK]"),
    ],
)
def test_values_out_of_range(value: str) -> None:
    with pytest.raises(ConfigError):
        settings(value)
