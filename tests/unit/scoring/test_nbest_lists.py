"""Reading, writing and refusing N-best lists."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import write_jsonl, write_text
from privasr_k2.scoring.nbest_lists import (
    Hypothesis,
    NbestList,
    check_nbest_complete,
    check_vocabulary,
    read_nbest,
    write_nbest,
)

HYPS = (
    Hypothesis(
        1,
        "call anna",
        -12.25,
        {"graph": -3.5, "lstm": -4.125},
        confidences=(0.5, 1.0),
        times=((0.0, 0.25), (0.25, 0.75)),
        classes=((1, 2, "PER"),),
        depths=(1.0, 2.5),
    ),
    Hypothesis(2, "", -20.0, {"graph": -1.0, "lstm": -2.0}, (), (), ()),
    Hypothesis(3, "hall anna", -20.5, {"graph": -1.0, "lstm": -2.0}),
)
FULL = NbestList("u2", "test_other", "s1", "call anna at noon", False, HYPS)
LOST = NbestList("u1", "test_other", "s2", "two words", True, ())


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_nbest(tmp_path / "nbest_test" / "1.jsonl", [FULL])
    write_nbest(tmp_path / "nbest_test" / "2.jsonl", [LOST])
    read = read_nbest(tmp_path / "nbest_test")
    assert read.lists == (LOST, FULL)
    assert read.lm_names == ("graph", "lstm")
    assert read.lines["u2"] == f"{tmp_path / 'nbest_test' / '1.jsonl'}:1"


def changed(**values: Any) -> dict[str, Any]:
    """FULL as plain values with some of its first hypothesis's changed; ``...`` takes a key out."""
    record = copy.deepcopy(FULL.to_dict())
    for key, value in values.items():
        if value is ...:
            del record["hyps"][0][key]
        else:
            record["hyps"][0][key] = value
    return record


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"am_score": ...}, "expected the key 'am_score'"),
        ({"am_score": None}, "expected a finite number as am_score, found None"),
        ({"am_score": "-1"}, "expected a finite number as am_score, found '-1'"),
        ({"am_score": True}, "expected a finite number as am_score, found True"),
        ({"am_score": 10**400}, "expected a finite number as am_score, found 1000"),
        ({"am_score": float("nan")}, "expected a finite number as am_score, found nan"),
        ({"lm_scores": ...}, "expected the key 'lm_scores'"),
        ({"lm_scores": {"graph": -1.0, "lstm": None}}, "number as lm_scores.lstm, found None"),
        ({"rank": 2}, "expected rank 1: 1, 2, 3, ..., found rank 2"),
        ({"rank": True}, "found rank True"),
        ({"words": ["call", "anna"]}, "expected words as one text"),
        ({"confidences": [0.5]}, "expected confidences for each of 2 words, found 1"),
        ({"confidences": [0.5, 1.5]}, "expected confidences from 0 to 1, found 1.5 for 'anna'"),
        ({"confidences": [-0.1, 0.5]}, "found -0.1 for 'call'"),
        ({"confidences": [0.5, float("nan")]}, "a finite number as confidences, found nan"),
        ({"times": [[0, 1]]}, "expected times for each of 2 words, found 1"),
        ({"times": [[0.0, 0.5], [0.6, 0.5]]}, "go forwards, from 0, found 'anna' from 0.6 to 0.5"),
        ({"times": [[0.5, 0.6], [0.4, 0.7]]}, "0.4 to 0.7 after a word that starts at 0.5"),
        ({"times": [[-0.5, 0.6], [0.4, 0.7]]}, "found 'call' from -0.5 to 0.6"),
        ({"times": [[0.5], [0.4, 0.7]]}, "expected start and end of 'call'"),
        ({"classes": [[1, 3, "PER"]]}, "within 2 words, found"),
        ({"classes": [[1, 1, "PER"]]}, "within 2 words, found"),
        ({"classes": [[-1, 1, "PER"]]}, "within 2 words, found"),
        ({"classes": [[0, 1, 7]]}, "within 2 words, found"),
        ({"classes": 3}, "within 2 words, found 3"),
        ({"depths": [1.0]}, "expected depths for each of 2 words, found 1"),
        ({"depths": [1.0, 0.9]}, "expected depths of 1 or more, found 0.9 for 'anna'"),
    ],
)
def test_a_hypothesis_that_is_refused(tmp_path: Path, values: dict[str, Any], message: str) -> None:
    write_jsonl(tmp_path / "1.jsonl", [LOST.to_dict(), changed(**values)])
    with pytest.raises(DataError) as error:
        read_nbest(tmp_path)
    assert message in str(error.value)
    assert str(error.value).startswith(f"{tmp_path}/1.jsonl:2 (u2, hypothesis 1)")


def test_ranks_and_words_and_scores_of_a_list(tmp_path: Path) -> None:
    def refused(record: dict[str, Any]) -> str:
        write_jsonl(tmp_path / "1.jsonl", [LOST.to_dict(), record])
        with pytest.raises(DataError) as error:
            read_nbest(tmp_path)
        return str(error.value)

    record = changed()
    record["hyps"][1]["rank"] = 1
    message = refused(record)
    assert "1.jsonl:2 (u2, hypothesis 2): expected rank 2: 1, 2, 3, ..., found rank 1" in message
    record = changed()
    del record["hyps"][1]
    assert "(u2, hypothesis 2): expected rank 2: 1, 2, 3, ..., found rank 3" in refused(record)
    record = changed()
    record["hyps"][2]["words"] = "call  anna"
    message = refused(record)
    assert "(u2, hypothesis 3): expected hypotheses with different words, found those of" in message
    record = changed()
    del record["hyps"][2]["lm_scores"]["lstm"]
    message = refused(record)
    assert "LM scores graph lstm, as the hypotheses before have, found graph" in message
    assert "hypotheses, or else no_path, found 3 hypotheses and no_path true" in refused(
        {**changed(), "no_path": True}
    )
    assert "found 0 hypotheses and no_path false" in refused({**changed(), "hyps": []})
    assert "expected text for the key 'ref', found 7" in refused({**changed(), "ref": 7})
    assert "u1 again, which" in refused(LOST.to_dict())


def test_lines_that_are_no_records(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected \*.jsonl files"):
        read_nbest(tmp_path)
    write_text(tmp_path / "1.jsonl", f"{json.dumps(LOST.to_dict())}\n\n[1]\n")
    with pytest.raises(DataError, match=r"1.jsonl:3: expected one JSON object, found a list"):
        read_nbest(tmp_path)
    for line in ('{"id": "a"\n', f'{{"id": {"1" * 5000}}}\n', '{"id": 1e400}\n'):
        write_text(tmp_path / "1.jsonl", line)
        with pytest.raises(DataError, match=r"1.jsonl:1: expected (one JSON object|text)"):
            read_nbest(tmp_path)


def test_references_without_hypotheses_and_the_reverse(tmp_path: Path) -> None:
    write_nbest(tmp_path / "nbest_test" / "1.jsonl", [FULL, LOST])
    lists, cuts = read_nbest(tmp_path / "nbest_test"), tmp_path / "cuts_test.jsonl.gz"
    write_jsonl(cuts, [{"id": "u1"}, {"id": "u2"}])
    check_nbest_complete(lists, cuts)
    write_jsonl(cuts, [{"id": "u1"}, {"id": "u2"}, {"id": "u3"}])
    with pytest.raises(DataError, match="found 1 of 3 missing: u3"):
        check_nbest_complete(lists, cuts)
    write_jsonl(cuts, [{"id": "u2"}])
    with pytest.raises(DataError, match=r"1.jsonl:2: expected only .*, found 1 others: u1"):
        check_nbest_complete(lists, cuts)


def test_unknown_words_are_named_with_their_line(tmp_path: Path) -> None:
    write_nbest(tmp_path / "1.jsonl", [LOST, FULL])
    lists = read_nbest(tmp_path)
    check_vocabulary(lists, {"call", "hall", "anna"}, "lm/words.txt")
    place = r"1.jsonl:2 \(u2, hypothesis 1\): expected the words of lm/words.txt"
    with pytest.raises(DataError, match=f"{place}, found 1 .*: anna"):
        check_vocabulary(lists, {"call", "hall"}, "lm/words.txt")
    with pytest.raises(DataError, match=r"hypothesis 3\): .* found 1 others in .*: hall"):
        check_vocabulary(lists, {"call", "anna"}, "lm/words.txt")
