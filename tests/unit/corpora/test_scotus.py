"""Oral arguments: roles as they are given, turns in pieces, people who are spoken whole."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from privasr_k2.corpora.base import CorpusInput
from privasr_k2.corpora.prepare import prepare
from privasr_k2.corpora.scotus import CORPUS, read
from privasr_k2.corpora.utterances import CHARACTERS_PER_SECOND, MAX_SECONDS
from privasr_k2.data.manifests import load_cuts
from privasr_k2.errors import DataError
from tests.support.conf import section

LAYERS = (section("scotus"),)
LONG = "That is the question , and it is before the Court . " * 9
ROWS = {
    "adapt": [("ann_lee", "1.1", "Section 328."), ("ann_lee", "1.1", LONG), ("bo", "1.2", "Yes.")],
    "dev": [("cy", "2.1", "No, sir.")],
    "test": [("di", "3.1", "(Laughter)"), ("di", "3.1", "--")],
}


def given(raw: Path, **options: str) -> CorpusInput:
    return CorpusInput(raw, raw.parent / "data" / "manifests", options, LAYERS, num_jobs=1)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "scotus"
    folder.mkdir()
    for role, rows in ROWS.items():
        write(folder / f"{role}.tsv.gz", [("speaker", "hearing", "text"), *rows])
    return folder


def write(path: Path, rows: list[tuple[str, ...]]) -> None:
    text = "".join("\t".join(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()))


def test_turns_in_pieces_by_speaker_and_hearing(raw: Path) -> None:
    about = prepare(CORPUS, given(raw))
    cuts = {role: load_cuts(raw.parent / "data/manifests", role) for role in ROWS}
    assert about["roles"]["adapt"]["speakers"] == 2 and about["license"].startswith("CC BY-NC")
    said = [cut.supervisions[0] for cut in cuts["adapt"]]
    assert said[0].text == "section three hundred twenty eight"
    of_long = [s.text for s in said if s.id.startswith("ann_lee-1.1-00003-")]
    assert " ".join(of_long).split() == LONG.lower().replace(",", "").replace(".", "").split()
    assert len(of_long) > 1
    assert all(len(text) <= MAX_SECONDS * CHARACTERS_PER_SECOND for text in of_long)
    assert {s.speaker: s.custom["document"] for s in said} == {"ann_lee": "1.1", "bo": "1.2"}
    # A turn of signs alone is no utterance.
    assert [cut.supervisions[0].text for cut in cuts["test"]] == ["laughter"]


def test_bad_tables_and_missing_parts(raw: Path) -> None:
    write(raw / "dev.tsv.gz", [("speaker", "hearing", "text"), ("cy", "2.1"), ("cy", "", "No")])
    with pytest.raises(DataError, match=r"2 x malformed line(.|\n)*dev.tsv.gz:2(.|\n)*:3"):
        read(given(raw))
    (raw / "test.tsv.gz").unlink()
    with pytest.raises(DataError, match="no test"):
        read(given(raw))


def test_people_are_spoken_whole_up_to_the_hours(raw: Path) -> None:
    people = [(f"p{n}", f"h{n}", f"{word} number {n}.") for n in range(6) for word in ("A", "B")]
    write(raw / "adapt.tsv.gz", [("speaker", "hearing", "text"), *people])
    hours = f"{3 * 22 / CHARACTERS_PER_SECOND / 3600}"  # of three people with 22 characters each
    cuts = read(given(raw, speech="synthetic", max_hours_adapt=hours))
    spoken = Counter(cut.supervisions[0].speaker for cut in cuts["adapt"])
    assert len(spoken) == 3 and set(spoken.values()) == {2}
    assert all(cut.has_recording and cut.custom["synthetic"] for cut in cuts["adapt"])
