from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from privasr_k2.corpora.base import CorpusInput
from privasr_k2.corpora.librispeech import CORPUS, lm_text, read
from privasr_k2.corpora.prepare import prepare
from privasr_k2.errors import DataError
from tests.support import trees


def given(raw: Path, **options: str) -> CorpusInput:
    return CorpusInput(raw, raw.parent / "out", options, (), num_jobs=1)


def speakers(cuts) -> set[str]:
    return {cut.supervisions[0].speaker for cut in cuts}


def test_official_parts_become_roles(tmp_path: Path) -> None:
    parts = {
        "train": ["train-clean-100", "train-other-500"],
        "dev": ["dev-clean", "dev-other"],
        "test": ["test-clean", "test-other"],
    }
    all_parts = [part for of_role in parts.values() for part in of_role]
    raw = trees.librispeech(tmp_path / "raw", all_parts, speakers=2)
    cuts = read(given(raw))
    for role, names in parts.items():
        assert {cut.custom["part"].replace("_", "-") for cut in cuts[role]} == set(names)
    assert cuts["train"][0].id == "1-9-0000"


def test_dev_is_cut_from_train_by_speakers_and_never_from_recovered_ones(tmp_path: Path) -> None:
    raw = trees.librispeech(tmp_path / "raw", speakers=8)
    recovered = [f"{speaker}-9-0000" for speaker in range(1, 7)]
    trees.lines(raw / "recovered_transcripts.txt", *recovered)
    cuts = read(given(raw, dev_min_speakers="2"))
    assert speakers(cuts["dev"]) == {"7", "8"}
    assert speakers(cuts["train"]) == {"1", "2", "3", "4", "5", "6"}
    assert speakers(read(given(raw, dev_fraction="0.01"))["dev"]) == {"7"}


def test_audio_without_transcripts_is_a_pool(tmp_path: Path) -> None:
    raw = trees.librispeech(tmp_path / "raw")
    for name in ("900-1-0000", "901-1-0003"):
        trees.noise(tmp_path / "more" / "flac" / f"{name}.flac")
    cuts = prepare(CORPUS, given(raw, unlabelled=str(tmp_path / "more"), drop_empty="true"))
    assert cuts["roles"]["pool"]["speakers"] == cuts["roles"]["pool"]["utterances"] == 2
    with pytest.raises(DataError, match="correct unlabelled=DIR"):
        read(given(raw, unlabelled=str(tmp_path / "none")))


def test_what_lhotse_would_leave_out_or_fail_on(
    tmp_path: Path, capfd: pytest.CaptureFixture
) -> None:
    raw = trees.librispeech(tmp_path / "raw")
    chapter = raw / "train-clean-100" / "1" / "9"
    (chapter / "1-9-0000.flac").unlink()
    (raw / "train-clean-100" / "2" / "9" / "2-9-0001.flac").write_bytes(b"fLaC")
    trees.noise(chapter / "1-9-0007.flac")
    trees.noise(chapter / "1-9-0002.flac")
    lines = ("1-9-0000 IT'S A DOG", "1-9-0001 YES", "1-9-0002", "", "1-9-0001 NO")
    trees.lines(chapter / "1-9.trans.txt", *lines)
    with pytest.raises(DataError) as caught:
        read(given(raw))
    assert [
        place
        for place in (
            "1-9-0000.flac: expected audio for 1-9-0000, found no such file",
            "2-9-0001.flac: expected audio for 2-9-0001",
            "1-9-0007.flac: expected its transcript",
            "1-9.trans.txt:3: expected an utterance id",
            "1-9.trans.txt:4: expected an utterance id",
            "1-9.trans.txt:5: expected an id that stands once",
        )
        if place not in str(caught.value)
    ] == []
    assert "found 7:" in str(caught.value)  # the line without words, and its audio
    read(given(trees.librispeech(tmp_path / "good")))
    assert capfd.readouterr() == ("", "")  # no progress bars


def test_speech_of_another_rate_is_named_by_its_file(tmp_path: Path) -> None:
    raw = trees.librispeech(tmp_path / "raw")
    path = trees.noise(raw / "test-other" / "101" / "9" / "101-9-0000.flac", 1.0, 8000)
    with pytest.raises(DataError, match=f"{path}: expected audio of 16000 Hz, found 8000 Hz"):
        prepare(CORPUS, given(raw))


def test_text_for_language_models(tmp_path: Path) -> None:
    raw = tmp_path / "LibriSpeech"
    raw.mkdir()
    assert lm_text(given(raw)) == lm_text(replace(given(raw), raw_dir=None)) == []
    books = trees.gzipped(tmp_path / "books" / "books.txt.gz", "a")
    assert lm_text(given(raw)) == [books]
    official = trees.gzipped(raw / "librispeech-lm-norm.txt.gz", "a")
    assert lm_text(given(raw)) == [official]


def test_another_folder(tmp_path: Path) -> None:
    (tmp_path / "raw" / "LibriSpeech").mkdir(parents=True)
    with pytest.raises(DataError, match="found LibriSpeech"):
        read(given(tmp_path / "raw"))


@pytest.mark.shared_data
def test_the_real_subset(shared_data: Path, tmp_path: Path) -> None:
    cuts = read(CorpusInput(shared_data / "LibriSpeech", tmp_path, {}, (), num_jobs=2))
    assert len(cuts["train"]) + len(cuts["dev"]) == 425 + 57
    assert len(cuts["test"]) == 50
    assert len(speakers(cuts["dev"])) == 1
    assert len(speakers(cuts["train"])) == 6 + 57
    assert not speakers(cuts["dev"]) & speakers(cuts["train"])
