"""Names of parts, as lhotse's and icefall's recipes write them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from privasr_k2.corpora.parts import by_role, given_parts, named_parts, role_of
from privasr_k2.errors import DataError


def touch(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()
    return folder


def shown(parts) -> dict[str, dict[str, list[str]]]:
    return {
        role: {part.name: [path.name for path in part.files] for part in of_role}
        for role, of_role in parts.items()
    }


def test_roles_by_the_beginning_of_names() -> None:
    names = {"train_si284": "train", "TRAIN": "train", "valid": "dev", "dev-clean": "dev"}
    names |= {"eval92": "test", "test-other": "test", "adapt": "adapt", "pool": "pool"}
    assert {name: role_of(name) for name in names} == names
    assert role_of("XL") is role_of("clean-train") is None


def test_all_beside_its_pieces_is_left_out() -> None:
    pieces = ["train-clean-100", "train-other-500"]
    assert by_role(["train-all-shuf", *pieces]) == {"train": pieces}
    assert by_role(["train-all-shuf", "test"]) == {"train": ["train-all-shuf"], "test": ["test"]}
    assert by_role(["train", "train-alley"]) == {"train": ["train", "train-alley"]}


def test_lhotses_pairs_and_icefalls_cuts(tmp_path: Path) -> None:
    kinds = ("recordings", "supervisions")
    names = [
        f"librispeech_{kind}_{p}.jsonl.gz"
        for kind in kinds
        for p in ("train-clean-5", "test-clean")
    ]
    manifests = touch(tmp_path / "data/manifests", *names, "musan_recordings_music.jsonl.gz")
    expected = {
        role: {part: [f"librispeech_{kind}_{part}.jsonl.gz" for kind in kinds]}
        for role, part in (("train", "train-clean-5"), ("test", "test-clean"))
    }
    assert shown(named_parts(manifests)) == shown(named_parts(tmp_path)) == expected
    cuts = [f"librispeech_cuts_{part}.jsonl.gz" for part in ("train-clean-5", "test-clean")]
    touch(tmp_path / "data/fbank", *cuts, "musan_cuts.jsonl.gz")  # they have the features
    assert shown(named_parts(tmp_path)) == {
        "train": {"train-clean-5": cuts[:1]}, "test": {"test-clean": cuts[1:]},
    }  # fmt: skip
    plain = touch(
        tmp_path / "plain", "cuts_train.jsonl.gz", "cuts_valid.jsonl", "cuts_eval.jsonl.gz"
    )
    assert list(named_parts(plain)) == ["train", "dev", "test"]
    assert named_parts(touch(tmp_path / "empty")) == {}


def test_names_that_tell_no_role(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = touch(tmp_path, "cuts_XL.jsonl.gz", "cuts_DEV.jsonl.gz", "cuts_TEST.jsonl.gz")
    with pytest.raises(DataError, match=r"found DEV TEST XL\n.*--train FILE --dev FILE"):
        named_parts(folder)
    touch(folder, "cuts_train.jsonl.gz")
    with caplog.at_level(logging.WARNING):
        assert list(named_parts(folder)) == ["train", "dev", "test"]
    assert "left out: XL" in caplog.text


def test_two_files_for_one_part(tmp_path: Path) -> None:
    folder = touch(tmp_path, "ihm_cuts_train.jsonl.gz", "sdm_cuts_train.jsonl.gz")
    with pytest.raises(DataError, match=r"one file with the cuts of train, found ihm_cuts_train"):
        named_parts(folder)


def test_files_that_are_given(tmp_path: Path) -> None:
    names = [
        "a_cuts_train-x.jsonl.gz", "a_recordings_y.jsonl.gz", "a_supervisions_y.jsonl.gz",
        "mine.jsonl.gz", "people.jsonl",
    ]  # fmt: skip
    folder = touch(tmp_path, *names)
    kaldi = touch(tmp_path / "train_si84")
    parts = given_parts([kaldi, *(folder / name for name in names)], "train")
    assert shown({"train": parts})["train"] == {
        "train_si84": ["train_si84"], "train-x": names[:1], "y": names[1:3], "train": names[3:],
    }  # fmt: skip
