from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from lhotse.recipes.timit import get_phonemes, get_speakers

from privasr_k2.corpora.base import CorpusInput
from privasr_k2.corpora.prepare import prepare
from privasr_k2.corpora.timit import (
    CORPUS,
    PHONES_48,
    PHONES_48_TO_39,
    lexicon,
    read,
)
from privasr_k2.data.manifests import check_cuts
from privasr_k2.errors import DataError
from tests.support import trees


def tree(root: Path, *, upper: bool, file_format: str) -> Path:
    def case(name: str) -> str:
        return name.upper() if upper else name.lower()

    speakers = {"fcjf0": "train", "faks0": "test", "mdab0": "test", "maaa0": "test"}
    phones = ("0 4000 h#", "4000 5000 sh", "5000 6000 ix", "6000 6100 q", "6100 7000 dcl")
    for speaker, part in speakers.items():
        folder = root / case(part) / case("dr1") / case(speaker)
        for sentence in ("sa1", "sx127"):
            trees.noise(folder / case(f"{sentence}.wav"), 1.0, file_format=file_format)
            trees.lines(folder / case(f"{sentence}.phn"), *phones)
    return root


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("file_format", ["NIST", "WAV"])
def test_both_cases_and_both_formats(tmp_path: Path, upper: bool, file_format: str) -> None:
    raw = tree(tmp_path / "LDC93S1" / "TIMIT", upper=upper, file_format=file_format).parent
    cuts = read(CorpusInput(raw, tmp_path / "out", {}, (), num_jobs=1))
    ids = {role: [cut.id for cut in of_role] for role, of_role in cuts.items()}
    assert ids == {"train": ["fcjf0_sx127"], "dev": ["faks0_sx127"], "test": ["mdab0_sx127"]}
    assert cuts["test"][0].supervisions[0].text == "sil sh ix vcl"
    assert cuts["test"][0].custom["part"] == "core_test"
    assert cuts["test"][0].load_audio().shape == (1, 16000)
    check_cuts(cuts, sampling_rate=CORPUS.sampling_rate)


def test_as_many_phones_as_fast_speech_has(tmp_path: Path) -> None:
    raw = tree(tmp_path / "TIMIT", upper=False, file_format="WAV")
    phones = ["h#", *["tcl", "t", "ix", "gcl", "g", "eh"] * 3, "h#"]  # 20 in a second
    times = [f"{800 * n} {800 * (n + 1)} {phone}" for n, phone in enumerate(phones)]
    for part in ("train/dr1/fcjf0", "test/dr1/mdab0"):
        trees.lines(raw / part / "sx127.phn", *times)
    given = CorpusInput(raw, tmp_path / "manifests", {}, (), num_jobs=1)
    assert prepare(CORPUS, given)["roles"]["train"]["utterances"] == 1


def test_the_standard_lists() -> None:
    dev, core_test = map(frozenset, get_speakers())
    assert (len(core_test), len(dev)) == (24, 50)
    assert not core_test & dev
    assert len(set(PHONES_48)) == 48
    assert set(PHONES_48_TO_39) == set(PHONES_48)
    assert len(set(PHONES_48_TO_39.values())) == 39


def test_lhotse_maps_phones_as_lee_and_hon() -> None:
    to_48, to_39 = get_phonemes(48), get_phonemes(39)
    assert {*to_48.values()} == {*PHONES_48, ""}
    assert {p: PHONES_48_TO_39.get(to_48[p], "") for p in to_48} == to_39 | {"q": ""}
    folded = {"ax-h": "ax", "axr": "er", "em": "m", "eng": "ng", "hv": "hh", "nx": "n", "ux": "uw"}
    folded |= {"h#": "sil", "pau": "sil", "q": ""}
    folded |= {f"{p}cl": "vcl" for p in "bdg"} | {f"{p}cl": "cl" for p in "ptk"}
    assert folded.items() <= to_48.items()
    assert {p for p in to_48 if to_48[p] != p} == {*folded}


def test_every_phone_is_in_the_lexicon() -> None:
    lines = lexicon(CorpusInput(None, Path(), {}, (), 1)).read_text().splitlines()
    assert [line.split() for line in lines] == [[phone, phone] for phone in PHONES_48]


@pytest.mark.parametrize(
    ("name", "content", "place", "found"),
    [
        ("SX127.PHN", ["0 10 h#", "10 20 xx"], "SX127.PHN:2", "'10 20 xx'"),
        ("SX127.PHN", ["0 10 h#", ""], "SX127.PHN:2", "''"),
        ("SX127.TXT", ["The words alone."], "SX127.TXT:1", "'The words alone.'"),
        ("SX127.WAV", ["no audio"], "SX127.WAV", "no readable audio"),
    ],
)
def test_files_that_lhotse_cannot_read(
    tmp_path: Path, name: str, content: list[str], place: str, found: str
) -> None:
    raw = tree(tmp_path / "TIMIT", upper=True, file_format="WAV")
    path = trees.lines(raw / "TRAIN" / "DR1" / "FCJF0" / name, *content)
    with pytest.raises(DataError) as caught:
        read(CorpusInput(raw, tmp_path / "out", {}, (), num_jobs=1))
    assert str(caught.value).startswith(f"{path.parent / place}: expected")
    assert found in str(caught.value)


def test_a_part_of_timit(tmp_path: Path) -> None:
    raw = tree(tmp_path / "TIMIT", upper=True, file_format="WAV")
    (raw / "TRAIN" / "DR1" / "FCJF0" / "SX127.WAV").unlink()
    shutil.rmtree(raw / "TEST" / "DR1" / "FAKS0")
    with pytest.raises(DataError) as caught:
        read(CorpusInput(raw, tmp_path / "out", {}, (), num_jobs=1))
    assert "SX127.WAV: expected audio, found no such file" in str(caught.value)
    assert "expected utterances of the dev speakers, found none" in str(caught.value)


def test_converted_audio_beside_the_original(tmp_path: Path) -> None:
    raw = tree(tmp_path / "TIMIT", upper=True, file_format="NIST")
    path = trees.noise(raw / "TRAIN/DR1/FCJF0/SX127.WAV.wav", 1.0, file_format="WAV")
    cuts = read(CorpusInput(raw, tmp_path / "out", {}, (), num_jobs=1))
    assert cuts["train"][0].recording.sources[0].source == str(path)
    path.write_bytes(b"")
    with pytest.raises(DataError, match=r"SX127.WAV.wav: expected audio, found an empty file"):
        read(CorpusInput(raw, tmp_path / "out", {}, (), num_jobs=1))


def test_another_folder(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    with pytest.raises(DataError, match="TRAIN and TEST"):
        read(CorpusInput(tmp_path / "raw", tmp_path / "out", {}, (), num_jobs=1))
