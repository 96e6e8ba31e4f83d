from __future__ import annotations

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_jsonl, write_jsonl, write_text
from privasr_k2.text.entities import Entity, TaggedText
from privasr_k2.text.tagged_files import (
    needs_entities,
    read_sentences,
    read_tagged,
    with_entities,
    write_tagged,
)

FULL = TaggedText("a-1", ("ask", "ann"), (Entity(1, 2, "PER"),), "ann", "a", "Ask Ann.")


def test_what_is_written_is_read(tmp_path):
    texts = [FULL, TaggedText("b", ("yes",), ()), TaggedText("c", ("no",), None)]
    write_tagged(tmp_path / "t.jsonl.gz", texts)
    assert read_tagged([tmp_path / "t.jsonl.gz"]) == texts


def test_a_cut_is_a_tagged_text_and_gets_its_entities_back(tmp_path):
    custom = {"cased": "Ask Ann.", "document": "a"}
    supervision = {"text": "ask ann", "speaker": "ann", "custom": custom}
    cut = {"id": "a-1", "recording": {"sources": ["x"]}, "supervisions": [supervision]}
    write_jsonl(tmp_path / "cuts_train.jsonl.gz", [with_entities(cut, FULL)])
    assert read_tagged([tmp_path / "cuts_train.jsonl.gz"]) == [FULL]
    [made] = read_jsonl(tmp_path / "cuts_train.jsonl.gz")
    assert made["recording"] == cut["recording"]
    assert made["supervisions"][0]["custom"]["cased"] == "Ask Ann."
    assert "entities" not in supervision["custom"], "the cut that was given stays as it is"


def test_plain_text_is_read_by_lines(tmp_path):
    write_text(tmp_path / "t.txt", "Ask  Ann.\n\n...\nYes!\n")
    texts = read_sentences(
        tmp_path / "t.txt", lambda tokens: [t.strip(".!").lower() for t in tokens if t != "..."]
    )
    expected = [("t.txt:1", ("ask", "ann"), "Ask Ann.", None), ("t.txt:4", ("yes",), "Yes!", None)]
    assert [(t.id, t.words, t.cased, t.entities) for t in texts] == expected


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"id": "1", "text": "a"}\n{"id": "1", "text": "b"}', "t.jsonl:2: .* once.*t.jsonl:1"),
        ('{"id": "1"}', r"t.jsonl:1: expected an id and a text"),
        ('{"text": "a"}', r"t.jsonl:1: expected an id and a text"),
        ('{"id": "1", "text": "a", "entities": [[0, 2, "PER"]]}', r":1 \(1\).*within 1 words"),
        (
            '{"id": "1", "text": "a b", "entities": [[0, 2, "PER"], [1, 2, "LOC"]]}',
            r"t.jsonl:1.*overlap",
        ),
        ('{"id": "1", "supervisions": []}', r"t.jsonl:1.*one supervision"),
        ("", "a text in each line"),
    ],
)
def test_bad_lines_are_named(tmp_path, lines, message):
    write_text(tmp_path / "t.jsonl", lines)
    with pytest.raises(DataError, match=message):
        read_tagged([tmp_path / "t.jsonl"])


def test_text_that_was_never_tagged_is_refused():
    needs_entities([FULL], "--in-text")
    with pytest.raises(DataError, match=r"--in-text \(c\).*\n.*bin.tag_entities"):
        needs_entities([FULL, TaggedText("c", ("no",), None)], "--in-text")
