"""Checks that several readers share; those of transcripts are tested with LibriSpeech's reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.corpora.layouts import (
    audio_problems,
    cuts_of_transcripts,
    shown,
    without_transcripts,
)
from privasr_k2.errors import DataError
from tests.support import trees


def test_the_first_names_are_shown(tmp_path: Path) -> None:
    assert shown(tmp_path) == "an empty folder"
    for name in "jihgfedcba":
        (tmp_path / name).touch()
    assert shown(tmp_path) == "a, b, c, d, e, f, g, h"


def test_only_what_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    good = trees.noise(tmp_path / "good.flac")
    bad, missing = tmp_path / "bad.flac", tmp_path / "missing.flac"
    bad.write_bytes(b"fLaC")
    expected = {good: "audio for g", bad: "audio for b", missing: "audio for m"}
    found = {problem.place: problem.expected for problem in audio_problems(expected, 1)}
    assert found == {str(bad): "audio for b", str(missing): "audio for m"}


def test_a_part_of_train_and_one_of_test_must_be_there(tmp_path: Path) -> None:
    trees.librispeech(tmp_path, ["a"])
    roles = {"train": ("a",), "dev": ("b",), "test": ("c", "d")}
    with pytest.raises(DataError, match="utterances in a folder of test: c, found a"):
        cuts_of_transcripts(lambda *_, **__: {}, tmp_path, roles, 1)


def test_audio_alone_is_of_the_speaker_in_its_name(tmp_path: Path) -> None:
    path = trees.noise(tmp_path / "x/y/7-1-0002.flac")
    [utterance] = without_transcripts(tmp_path, "more")
    assert (utterance.speaker, utterance.text, utterance.part) == ("7", "", "more")
    assert utterance.audio == path
    with pytest.raises(DataError, match="correct more=DIR"):
        without_transcripts(tmp_path / "none", "more")
