"""Kaldi data directories and lhotse manifests, good and bad."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import kaldi_native_io
import numpy as np
import pytest

from privasr_k2.corpora.base import CorpusInput
from privasr_k2.corpora.data_dir import CORPUS, lexicon, read
from privasr_k2.corpora.prepare import prepare
from privasr_k2.data.features import load_features
from privasr_k2.data.manifests import check_cuts, save_cuts
from privasr_k2.data.problems import CorpusProblems
from privasr_k2.errors import ConfigError, DataError
from tests.support import trees


def given(raw: Path, **options: str) -> CorpusInput:
    return CorpusInput(raw, raw.parent / "out", options, (), num_jobs=2)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    trees.kaldi(tmp_path / "raw", "train", [f"s{i}" for i in range(9)])
    trees.kaldi(tmp_path / "raw", "test", ["t1"])
    return tmp_path / "raw"


def test_a_missing_file_has_a_way_out(raw: Path) -> None:
    for part in ("train", "test"):
        (raw / part / "utt2spk").unlink()
    with pytest.raises(CorpusProblems, match=r"utt2spk: expected a file") as caught:
        read(given(raw))
    assert {problem.sort for problem in caught.value.problems} == {"missing file"}


def test_train_and_test_with_dev_cut_by_speakers(raw: Path) -> None:
    before = trees.listing(raw)
    cuts = read(given(raw))
    expected = {"train": 14, "dev": 4, "test": 2}
    assert {role: len(of_role) for role, of_role in cuts.items()} == expected
    assert cuts["test"][0].load_audio().shape == (1, 16000)
    check_cuts(cuts, sampling_rate=16000)
    assert trees.listing(raw) == before
    assert lexicon(given(raw)) is None


def test_one_directory_is_split(raw: Path) -> None:
    cuts = read(replace(given(raw / "train"), files={"train": ()}))  # none named
    check_cuts(cuts, sampling_rate=16000)
    assert sum(map(len, cuts.values())) == 18
    for role, of_role in cuts.items():  # what is held out is not called train in tables
        assert {cut.custom["part"] for cut in of_role} == {role}


def test_a_missing_test_part_is_cut_only_where_that_is_asked_for(raw: Path) -> None:
    (raw / "test").rename(raw / "eval")
    with pytest.raises(DataError, match=r"test beside train, found only train among eval, train"):
        read(given(raw))
    cuts = read(given(raw, test_fraction="0.3"))
    parts = {role: {cut.custom["part"] for cut in of_role} for role, of_role in cuts.items()}
    assert parts == {role: {role} for role in ("train", "test", "dev")}


def test_speakers_to_adapt_to_are_cut_from_train_where_that_is_asked_for(raw: Path) -> None:
    asked = read(given(raw / "train", adapt_fraction="0.3"))
    plain = read(given(raw / "train"))
    assert set(asked) == {*plain, "adapt"}
    check_cuts(asked, sampling_rate=16000)
    for role in ("dev", "test"):
        assert [cut.id for cut in asked[role]] == [cut.id for cut in plain[role]]


def test_a_missing_file_is_one_problem(raw: Path) -> None:
    (raw / "train" / "utt2spk").unlink()
    with pytest.raises(DataError) as caught:
        read(given(raw))
    assert "utt2spk" in str(caught.value) and str(caught.value).count("train") < 4


def test_segments(raw: Path) -> None:
    trees.lines(raw / "test" / "wav.scp", "rec wav/t1-0.wav")
    trees.lines(raw / "test" / "segments", "t1-0 rec 0.00 0.40", "t1-1 rec 0.25 1.20")
    cuts = read(given(raw))["test"]
    # Up to half a second beyond the end is cut off, as in Kaldi.
    assert [(cut.start, cut.duration) for cut in cuts] == [(0.0, 0.4), (0.25, 0.75)]
    assert cuts[1].load_audio().shape == (1, 12000)
    trees.lines(raw / "test" / "segments", "t1-0 rec 0.00 0.40", "t1-1 rec 0.25 -1")
    assert [cut.duration for cut in read(given(raw))["test"]] == [0.4, 0.75]
    trees.lines(raw / "test" / "segments", "t1-0 rec 0.00 0.40", "t1-1 rec 0.25 2.00")
    with pytest.raises(DataError, match=r"1.00 s of audio, but 0.25 to 2 s are wanted"):
        check_cuts(read(given(raw)), sampling_rate=16000)


@pytest.mark.parametrize(
    ("name", "content", "place", "found"),
    [
        ("text", ["t1-1 A", "t1-0 B"], "text:2", "sorted"),
        ("text", ["t1-0 A", "t1-0 B", "t1-1 C"], "text:2", "stands once"),
        ("text", ["t1-0 A", "", "t1-1 C"], "text:2", "an empty line"),
        ("utt2spk", ["t1-0", "t1-1 t1"], "utt2spk:1", "an id and its value"),
        ("utt2spk", ["t1-0 t1"], "text:2", "'t1-1' also in utt2spk"),
        ("wav.scp", ["t1-0 wav/t1-0.wav"], "text:2", "'t1-1' also in wav.scp"),
        ("wav.scp", ["t1-0 cat x.wav |", "t1-1 wav/t1-1.wav"], "wav.scp:1", "--allow-pipes true"),
        ("wav.scp", ["t1-0 none.wav", "t1-1 wav/t1-1.wav"], "none.wav", "no such file"),
        ("utt2spk", [], "utt2spk", "an empty file"),
        ("spk2gender", ["t2 f"], "utt2spk:2", "'t1' also in spk2gender"),
        ("segments", ["t1-0 rec 0 1", "t1-1 t1-0 0.5 0.25"], "segments:2", "START < END"),
        ("segments", ["t1-0 rec 0 1", "t1-1 t1-0 0.5 0.75"], "segments:1", "'rec' also in wav.scp"),
    ],
)
def test_malformed_files_are_named_with_their_line(
    raw: Path, name: str, content: list[str], place: str, found: str
) -> None:
    trees.lines(raw / "test" / name, *content)
    with pytest.raises(DataError) as error:
        read(given(raw))
    assert f"test/{place}: expected" in str(error.value)
    assert found in str(error.value)


def test_audio_of_another_kind(raw: Path) -> None:
    path = trees.noise(raw / "test" / "wav" / "t1-0.wav", 1.0, 8000, file_format="WAV")
    with pytest.raises(DataError, match=rf"{path}: expected audio of 16000 Hz .*found 8000 Hz"):
        read(given(raw))


def test_durations_are_whole_samples_and_texts_as_found(raw: Path) -> None:
    trees.noise(raw / "test" / "wav" / "t1-0.wav", 15999 / 16000, file_format="WAV")
    trees.lines(raw / "test" / "text", "t1-0", "t1-1\tHello,  World ")
    trees.lines(raw / "test" / "spk2gender", "t1 f")
    cuts = read(given(raw))["test"]
    assert [cut.num_samples for cut in cuts] == [15999, 16000]
    assert [cut.recording.num_samples for cut in cuts] == [15999, 16000]
    assert [cut.supervisions[0].text for cut in cuts] == ["", "Hello,  World"]
    assert {cut.supervisions[0].gender for cut in cuts} == {"f"}


def test_problems_of_all_roles_are_told_at_once(raw: Path) -> None:
    for role, name in (("train", "s0-0"), ("test", "t1-0")):
        (raw / role / "wav" / f"{name}.wav").unlink()
    with pytest.raises(DataError, match="found 2:") as error:
        read(given(raw))
    assert all(name in str(error.value) for name in ("train/wav/s0-0.wav", "test/wav/t1-0.wav"))


def test_audio_of_another_rate_where_all_of_it_has_that(tmp_path: Path) -> None:
    for role, speaker in (("train", "s"), ("dev", "d"), ("test", "t")):
        trees.kaldi(tmp_path / "raw", role, [speaker])
        for path in (tmp_path / "raw" / role / "wav").iterdir():
            trees.noise(path, rate=8000, file_format="WAV")
    about = prepare(CORPUS, given(tmp_path / "raw", sampling_rate="8000"))
    assert about["sampling_rate"] == 8000 and about["roles"]["test"]["utterances"] == 2
    with pytest.raises(DataError, match="sampling_rate=HZ"):
        prepare(CORPUS, given(tmp_path / "raw"))


def test_pipes_where_they_are_allowed(raw: Path) -> None:
    source = raw / "test" / "wav" / "t1-0.wav"
    trees.lines(raw / "test" / "wav.scp", f"t1-0 cat {source} | cat |", "t1-1 wav/t1-1.wav")
    cuts = read(given(raw, allow_pipes="true"))["test"]
    np.testing.assert_array_equal(cuts[0].load_audio(), cuts[1].load_audio())
    trees.lines(raw / "test" / "wav.scp", "t1-0 cat nowhere.wav |", "t1-1 wav/t1-1.wav")
    with pytest.raises(
        DataError, match=r"wav.scp:1: .* command that succeeds, found exit status 1"
    ) as failed:
        read(given(raw, allow_pipes="true"))
    assert "unreadable audio" not in str(failed.value)  # the file that it left


@pytest.mark.parametrize("compressed", [False, True])
def test_features(raw: Path, compressed: bool) -> None:
    drawn = (np.random.default_rng(i).normal(0, 1, (90 + i, 13)) for i in range(2))
    values = {f"t1-{i}": matrix.astype(np.float32) for i, matrix in enumerate(drawn)}
    folder = raw / "test"
    (folder / "wav.scp").unlink()
    specifier = f"ark,scp:{folder}/feats.ark,{folder}/feats.scp"
    if compressed:
        with kaldi_native_io.CompressedMatrixWriter(specifier) as writer:
            for key, value in values.items():
                writer.write(key, value, kaldi_native_io.CompressionMethod.kSpeechFeature)
    else:
        with kaldi_native_io.FloatMatrixWriter(specifier) as writer:
            for key, value in values.items():
                writer.write(key, value)
    scp = (folder / "feats.scp").read_text().replace(f"{folder}/", "")
    (folder / "feats.scp").write_text(scp)
    cuts = read(given(raw))["test"]
    for cut in cuts:
        atol = 0.1 if compressed else 0
        np.testing.assert_allclose(load_features(cut), values[cut.id], atol=atol)
    trees.lines(folder / "utt2dur", "t1-0 long", "t1-1 0.9")
    with pytest.raises(DataError, match=r"utt2dur:1: expected UTTERANCE SECONDS, found 'long'"):
        read(given(raw))
    trees.lines(folder / "feats.scp", "t1-0 feats.ark:3", "t1-1 other.ark:5")
    with pytest.raises(DataError) as error:
        read(given(raw))
    assert "feats.scp:1: expected a matrix" in str(error.value)
    assert "feats.scp:2: expected ARCHIVE:OFFSET, found no file" in str(error.value)


def test_lhotse_manifests(raw: Path, tmp_path: Path) -> None:
    cuts = read(given(raw))
    for role, of_role in cuts.items():
        save_cuts(of_role, tmp_path / "lhotse", role)
    again = read(given(tmp_path / "lhotse"))
    for role, of_role in cuts.items():
        assert [c.id for c in again[role]] == [c.id for c in of_role]
        assert again[role][0].load_audio().shape == (1, 16000)
    check_cuts(again, sampling_rate=16000)


def test_files_for_roles_take_the_place_of_the_folders(raw: Path, tmp_path: Path) -> None:
    for role, of_role in read(given(raw)).items():
        save_cuts(of_role, tmp_path / "lhotse", role)
    files = {role: tmp_path / f"lhotse/cuts_{role}.jsonl.gz" for role in ("train", "dev")}
    named = {"train": (files["train"],), "dev": (files["dev"],), "test": (raw / "test",)}
    for folder in (None, tmp_path, raw):
        cuts = read(replace(given(raw), raw_dir=folder, files=named))
        assert {role: len(of_role) for role, of_role in cuts.items()} == {
            "train": 14, "dev": 4, "test": 2,
        }  # fmt: skip
        check_cuts(cuts, sampling_rate=16000)
    two = {"train": (files["train"], files["dev"]), "test": (raw / "test",)}
    cuts = read(replace(given(raw, dev_fraction="0.3"), files=two))
    assert len(cuts["train"]) + len(cuts["dev"]) == 18 and len(cuts["test"]) == 2
    with pytest.raises(DataError, match="test beside train, found only train among"):
        read(replace(given(raw), files={"train": two["train"]}))
    with pytest.raises(ConfigError, match="--train FILE --dev FILE --test FILE"):
        read(replace(given(raw), raw_dir=None, files={"test": named["test"]}))
    alone = read(replace(given(raw), files={"test": (tmp_path / "lhotse/cuts_test.jsonl.gz",)}))
    assert len(alone["test"]) == 2 and len(alone["train"]) + len(alone["dev"]) == 18


def test_speakers_who_are_held_out_lose_their_perturbed_copies(raw: Path, tmp_path: Path) -> None:
    from lhotse import CutSet

    plain = CutSet.from_cuts(
        cut for role in ("train", "dev") for cut in read(given(raw))[role].drop_features()
    )
    save_cuts(plain + plain.perturb_speed(0.9) + plain.perturb_speed(1.1), tmp_path / "l", "train")
    save_cuts(read(given(raw))["test"], tmp_path / "l", "test")
    cuts = read(given(tmp_path / "l", adapt_fraction="0.3"))
    sizes = {role: len(of_role) for role, of_role in cuts.items()}
    assert sizes == {"train": 30, "dev": 4, "test": 2, "adapt": 4}
    check_cuts(cuts, sampling_rate=16000)  # nobody has two roles
    for role in ("dev", "adapt"):
        assert not any("_sp" in cut.id for cut in cuts[role])
    originals = {cut.custom.get("original_id", cut.id) for cut in cuts["train"]}
    assert len(originals) == 10


def test_pickled_features_are_refused(raw: Path, tmp_path: Path) -> None:
    cuts = read(given(raw))
    for role, of_role in cuts.items():
        save_cuts(of_role, tmp_path / "lhotse", role)
    path = tmp_path / "lhotse" / "cuts_test.jsonl.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    features = (
        '"features": {"type": "x", "num_frames": 100, "num_features": 2, "frame_shift": 0.01, '
        '"sampling_rate": 16000, "start": 0, "duration": 1.0, "storage_type": "memory_raw", '
        '"storage_path": "", "storage_key": "gAQu", "channels": 0}, "recording"'
    )
    path.write_bytes(gzip.compress(text.replace('"recording"', features).encode()))
    with pytest.raises(DataError, match="memory_raw, which may hold pickles"):
        read(given(tmp_path / "lhotse"))


def test_lhotse_manifests_without_train(raw: Path, tmp_path: Path) -> None:
    save_cuts(read(given(raw))["test"], tmp_path / "lhotse", "test")
    with pytest.raises(DataError, match="lhotse manifests of train, found only those of test"):
        read(given(tmp_path / "lhotse"))


def test_nothing_that_can_be_read(tmp_path: Path) -> None:
    trees.lines(tmp_path / "raw" / "readme.txt", "x")
    with pytest.raises(DataError, match=r"found readme\.txt"):
        read(given(tmp_path / "raw"))


@pytest.mark.shared_data
def test_an4(shared_data: Path, tmp_path: Path) -> None:
    cuts = read(CorpusInput(shared_data / "an4", tmp_path, {}, (), num_jobs=1))
    assert len(cuts["train"]) + len(cuts["dev"]) == 948
    assert len(cuts["test"]) == 91
    assert load_features(cuts["test"][0]).shape == (79, 13)
    check_cuts(cuts, sampling_rate=CORPUS.sampling_rate)
    assert lexicon(given(shared_data / "an4")) == shared_data / "an4" / "lexicon.txt"


def test_the_language_of_the_corpus(raw: Path) -> None:
    assert prepare(CORPUS, given(raw, language="de"))["language"] == "de"
    assert "language" not in prepare(CORPUS, given(raw))  # English
    with pytest.raises(ConfigError, match="language=Deutsch"):
        prepare(CORPUS, given(raw, language="Deutsch"))
