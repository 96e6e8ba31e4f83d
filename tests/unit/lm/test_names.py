"""Text with names marked or as tags, and lists of names; more in tests/unit/text."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.lm.names import (
    check_spoken,
    list_places,
    mentions,
    read_lists,
    read_text,
    read_texts,
    read_words,
)
from privasr_k2.text.entities import TaggedText
from privasr_k2.text.normalize import normalize_english
from privasr_k2.text.tags import with_tags

RECORDS: list[object] = [
    {"id": "1", "user": "u", "text": "ask ann lee about york"}
    | {"entities": [[4, 5, "LOC"], [1, 3, "PER"]]},
    {"id": "2", "user": "u", "text": "yes"},
    {"id": "3", "user": "u", "text": "", "entities": []},
    {"id": "4", "user": "v", "text": "ann lee", "entities": [[0, 2, "PER"]]},
]


def write(path: Path, records: list[object]) -> Path:
    text = "".join(json.dumps(record) + "\n" for record in records)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def tagged(texts: list[TaggedText]) -> list[str]:
    return [" ".join(with_tags(text).words) for text in texts]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_records(tmp_path: Path, name: str) -> None:
    found = read_text(write(tmp_path / name, RECORDS), ["PER", "LOC"])
    assert tagged(found) == ["ask <PER> about <LOC>", "yes", "<PER>"]
    assert found[0].words == ("ask", "ann", "lee", "about", "york")
    assert mentions(found) == {"LOC": {("york",): 1}, "PER": {("ann", "lee"): 2}}


def test_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("ask <PER> now\n\n<unk> it is\n<UNK> too\n")
    found = read_text(path, ["PER"])
    assert tagged(found) == ["ask <PER> now", "<unk> it is", "<UNK> too"]
    assert mentions(found) == {}


@pytest.mark.parametrize("name", ["<ORG>", "<ORG> lee", "ann <PER>"])
def test_a_tag_inside_a_name_is_refused(tmp_path: Path, name: str) -> None:
    record = {"id": "9", "text": f"ask {name}", "entities": [[1, 1 + len(name.split()), "PER"]]}
    with pytest.raises(DataError) as caught:
        read_text(write(tmp_path / "a.jsonl", [*RECORDS, record]), ["PER", "ORG", "LOC"])
    assert caught.value.place == f"{tmp_path / 'a.jsonl'}:{len(RECORDS) + 1} (9)"
    assert caught.value.found == name and "not nested" in str(caught.value)


def test_a_span_that_is_its_own_tag_is_the_class_and_no_name(tmp_path: Path) -> None:
    record = {"id": "9", "text": "ask <PER>", "entities": [[1, 2, "PER"]]}
    [text] = read_text(write(tmp_path / "a.jsonl", [record]), ["PER"])
    assert tagged([text]) == ["ask <PER>"] and mentions([text]) == {}


def test_several_files(tmp_path: Path) -> None:
    """Records, cuts and plain text, one after the other; one id may stand in several files."""
    records = write(tmp_path / "a.jsonl.gz", RECORDS)
    said = {"text": "call ann", "speaker": "u", "custom": {"entities": [[1, 2, "PER"]]}}
    cuts = write(tmp_path / "cuts_dev.jsonl.gz", [{"id": "1", "supervisions": [said]}])
    (tmp_path / "b.txt").write_text("ask <PER>\n\nno\n")
    paths = [records, tmp_path / "b.txt", cuts, cuts]
    expected = ["ask ann lee about york", "yes", "ann lee", "ask <PER>", "no", *["call ann"] * 2]
    assert [" ".join(words) for words in read_words(paths)] == expected
    assert tagged(read_texts(paths, ["PER", "LOC"])[-2:]) == ["call <PER>"] * 2
    with pytest.raises(DataError, match="found LOC"):
        read_texts(paths, ["PER"])


@pytest.mark.parametrize(
    "record",
    [{"id": "9", "text": "a b", "entities": [[0, 1, "ORG"]]}, {"id": "9", "text": "a <ORG>"}],
)
def test_a_class_without_a_place_is_named(tmp_path: Path, record: object) -> None:
    path = write(tmp_path / "a.jsonl", [*RECORDS, record])
    with pytest.raises(DataError) as caught:
        read_text(path, ["PER", "LOC"])
    assert (caught.value.place, caught.value.found) == (f"{path}:{len(RECORDS) + 1} (9)", "ORG")
    assert len(read_text(path)) == 4


def test_wrong_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a b\na <ORG> b\n")
    with pytest.raises(DataError, match=r"a.txt:2: expected the classes PER, found ORG"):
        read_text(tmp_path / "a.txt", ["PER"])
    with pytest.raises(DataError, match="no such file"):
        read_text(tmp_path / "b.txt")


def test_lists_of_names(tmp_path: Path) -> None:
    (tmp_path / "per.txt").write_text("Ann Lee\n\nO'Neil-Smith\n")
    (tmp_path / "loc.txt").write_text("York\t0.75\nRome\t0.25\n")
    assert read_lists(tmp_path, normalize_english) == {
        "LOC": {("york",): 0.75, ("rome",): 0.25},
        "PER": {("ann", "lee"): 0.5, ("o'neil", "smith"): 0.5},
    }
    (tmp_path / "loc.txt").write_text("York\t0.75\nRome\t0.5\n")
    with pytest.raises(DataError, match="sum to 1"):
        read_lists(tmp_path, normalize_english)


def test_names_that_nobody_can_say_are_named_with_file_and_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "per.txt").write_text("Ann\n\nZoe Quux\n")
    places = list_places(tmp_path, normalize_english)
    path = tmp_path / "per.txt"
    assert places == {"PER": {("ann",): f"{path}:1", ("zoe", "quux"): f"{path}:3"}}
    names = {("old",): 0.25, ("zoe", "quux"): 0.25, ("ann",): 0.5}
    check_spoken("PER", names, {"ann", "zoe", "quux", "old"}, places["PER"])
    assert not caplog.text
    check_spoken("PER", names, {"ann", "zoe"}, places["PER"])
    assert "2 of 3 names (50.0 % in mass)" in caplog.text
    assert f"{path}:3: 'zoe quux' (quux); the text: 'old' (old)" in caplog.text
    message = r"per.txt:1: expected a name of PER .* found .*'ann' \(ann\)"
    with pytest.raises(DataError, match=message):
        check_spoken("PER", names, {"zoe"}, places["PER"])
