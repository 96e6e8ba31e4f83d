from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import write_jsonl
from privasr_k2.scoring.hypotheses import Weights, check_complete, read_cut_ids, read_decoded


def record(name: str, hyps: dict[tuple[float, float], str], **other: Any) -> dict[str, Any]:
    grid = [
        {"lm_weight": lm, "insertion_penalty": penalty, "words": words}
        for (lm, penalty), words in hyps.items()
    ]
    reference = {"part": "p", "speaker": "s", "ref": "a b"}
    return {"id": name, **reference, "no_path": False, "hyps": grid, **other}


def test_jobs_are_joined_and_sorted_by_id(tmp_path: Path) -> None:
    folder = tmp_path / "decode_dev"
    write_jsonl(folder / "1.jsonl", [record("b", {(0.5, 0.0): "a b"})])
    write_jsonl(folder / "2.jsonl", [record("a", {(0.5, 0.0): "b"})])
    decoded = read_decoded(folder)
    assert [u.id for u in decoded.utterances] == ["a", "b"]
    assert decoded.role == "dev"
    assert decoded.grid == (Weights(0.5, 0.0),)
    assert decoded.utterances[0].hyp(Weights(0.5, 0.0)) == ("b",)


def test_an_utterance_without_a_path_has_no_words_at_any_point(tmp_path: Path) -> None:
    records = [record("a", {}, no_path=True), record("b", {(1.0, 0.0): "a"})]
    write_jsonl(tmp_path / "1.jsonl", records)
    decoded = read_decoded(tmp_path)
    assert decoded.utterances[0].hyp(Weights(1.0, 0.0)) == ()


def test_the_role_in_the_records_wins_over_the_name_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "decode_dev"
    write_jsonl(folder / "1.jsonl", [record("a", {(1.0, 0.0): "a"}, role="test")])
    assert read_decoded(folder).role == "test"


def test_one_utterance_of_two_jobs_is_refused(tmp_path: Path) -> None:
    for job in "12":
        write_jsonl(tmp_path / f"{job}.jsonl", [record("same", {(1.0, 0.0): "a"})])
    with pytest.raises(DataError, match=r"2\.jsonl: .* found same again.*1\.jsonl"):
        read_decoded(tmp_path)


def test_other_grids_are_refused(tmp_path: Path) -> None:
    records = [record("a", {(1.0, 0.0): "a"}), record("b", {(2.0, 0.0): "a"})]
    write_jsonl(tmp_path / "1.jsonl", records)
    with pytest.raises(DataError, match="the 1 LM weights and insertion penalties of a, found b"):
        read_decoded(tmp_path)


def test_two_roles_are_refused(tmp_path: Path) -> None:
    records = [record(role, {(1.0, 0.0): "a"}, role=role) for role in ("dev", "test")]
    write_jsonl(tmp_path / "1.jsonl", records)
    with pytest.raises(DataError, match=r"utterances of one role, found dev .*test"):
        read_decoded(tmp_path)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="decode again"):
        read_decoded(tmp_path)


@pytest.mark.parametrize("key", ["id", "part", "speaker", "ref", "no_path", "hyps"])
def test_a_record_without_one_of_its_keys_names_it(tmp_path: Path, key: str) -> None:
    broken = record("a", {(1.0, 0.0): "a"})
    del broken[key]
    write_jsonl(tmp_path / "1.jsonl", [broken])
    with pytest.raises(DataError, match=f"1.jsonl .*: expected the key '{key}'"):
        read_decoded(tmp_path)


@pytest.mark.parametrize(
    "hyps", [[{"lm_weight": "x", "insertion_penalty": 0, "words": ""}], [3], []]
)
def test_hypotheses_that_are_none_are_refused(tmp_path: Path, hyps: list[Any]) -> None:
    write_jsonl(tmp_path / "1.jsonl", [{**record("a", {}), "hyps": hyps}])
    with pytest.raises(DataError, match=r"1\.jsonl \(a\)"):
        read_decoded(tmp_path)


def test_lost_and_surplus_utterances_are_named(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "decode_dev" / "1.jsonl", [record(n, {(1.0, 0.0): "a"}) for n in "ab"])
    decoded = read_decoded(tmp_path / "decode_dev")

    def check(ids: str) -> None:
        write_jsonl(tmp_path / "cuts_dev.jsonl.gz", [{"id": name} for name in ids])
        check_complete(decoded, tmp_path)

    check("ba")
    with pytest.raises(DataError, match=r"found 4 of 6 missing: c d e \.\.\."):
        check("abcdef")
    with pytest.raises(DataError, match="found 1 others: b"):
        check("a")


def test_ids_of_cuts(tmp_path: Path) -> None:
    path = tmp_path / "cuts_dev.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.write(json.dumps({"id": "u1", "start": 0}) + "\n" + json.dumps({"id": "u2"}) + "\n")
    assert read_cut_ids(path) == ["u1", "u2"]
    write_jsonl(path, [{"start": 0}])
    with pytest.raises(DataError, match="none in cut 1"):
        read_cut_ids(path)
