"""Problems of a corpus by kind, with the way out of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.data import problems
from privasr_k2.data.problems import CorpusProblems, Problem, report

MIXED = [
    *(Problem(f"{i}.wav", "audio of 16000 Hz", "8000 Hz", problems.RATE) for i in range(15)),
    *(Problem(f"wav.scp:{i}", "a file name", "'cat x |'", problems.PIPE) for i in range(9)),
    Problem("meeting", "headsets 0 to 3", "0 1"),
]


def caught(found: list[Problem]) -> CorpusProblems:
    with pytest.raises(CorpusProblems) as error:
        report(found, place="corpus", way_out="mend it")
    return error.value


def test_each_kind_is_counted_with_its_way_out_and_three_examples() -> None:
    said = str(caught(MIXED))
    assert said.startswith("corpus: expected a corpus without problems, found 25:\n")
    assert "15 x other sampling rate: resample" in said and "sampling_rate=HZ" in said
    assert "9 x command in wav.scp: run them once with --allow-pipes true" in said
    assert "1 x other\n    meeting: expected headsets" in said and said.endswith("mend it")
    assert said.count("8000 Hz") == 3 and "... and 12 more" in said and "... and 6 more" in said


def test_few_problems_are_all_shown() -> None:
    assert str(caught(MIXED[:15])).count("8000 Hz") == 15


def test_one_problem_has_the_way_out_of_its_kind() -> None:
    assert str(caught(MIXED[-2:-1])).endswith(problems.ADVICE[problems.PIPE])
    assert caught(MIXED[-1:]).way_out == "mend it"


def test_no_problem_is_no_error() -> None:
    report([], place="corpus", way_out="mend it")


def test_the_file_holds_all_a_line_each(tmp_path: Path) -> None:
    path = tmp_path / "problems.tsv"
    odd = Problem("a\tb.wav", "words", "two\nlines", problems.NO_WORDS)
    error = caught([*MIXED, odd]).write(path)
    lines = path.read_text().splitlines()
    assert len(lines) == 1 + len(MIXED) + 1 and str(path) in str(error)
    assert lines[-1].split("\t") == ["no words", "a b.wav", "words", "two lines"]


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        ("no such file", problems.MISSING_AUDIO),
        ("a truncated file: 12 bytes by its header, 9 there", problems.TRUNCATED),
        ("2 channels, but channel 3 is wanted", problems.CHANNELS),
        ("1.00 s of audio, but 2 to 3 s are wanted", problems.TIMES),
        ("no readable audio (Format not recognised)", problems.UNREADABLE),
        ("an empty file", problems.UNREADABLE),
    ],
)
def test_what_is_wrong_with_audio_has_a_kind(found: str, kind: str) -> None:
    assert Problem("x.wav", "audio for x", found).sort == kind and kind in problems.ADVICE
