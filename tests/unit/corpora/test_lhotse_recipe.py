"""Any recipe of lhotse, on tiny trees in the official layouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.corpora import librispeech
from privasr_k2.corpora.base import CorpusInput
from privasr_k2.corpora.lhotse_recipe import CORPUS, read, recipe_of
from privasr_k2.corpora.prepare import prepare
from privasr_k2.data.manifests import check_cuts
from privasr_k2.errors import ConfigError, DataError
from tests.support import trees


def given(raw: Path, recipe: str, **options: str) -> CorpusInput:
    return CorpusInput(raw, raw.parent / "out", {"recipe": recipe, **options}, (), num_jobs=1)


def texts(cuts) -> dict[str, dict[str, tuple]]:
    return {
        role: {c.id: (c.supervisions[0].text, c.supervisions[0].speaker, c.duration) for c in of}
        for role, of in cuts.items()
    }


PARTS = ("train-clean-100", "dev-clean", "test-clean", "test-other")


def test_librispeech_is_what_its_own_module_reads(tmp_path: Path) -> None:
    raw = trees.librispeech(tmp_path / "raw", PARTS, speakers=2)
    cuts = read(given(raw, "librispeech"))
    own = librispeech.read(CorpusInput(raw, tmp_path, {}, (), num_jobs=1))
    assert texts(cuts) == texts(own)
    assert {cut.custom["part"] for cut in cuts["test"]} == {"test-clean", "test-other"}


def test_roles_that_options_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    raw = trees.librispeech(tmp_path / "raw", PARTS, speakers=2)
    chosen = {"train": "test-clean,test-other", "test": "train-clean-100"}
    cuts = read(given(raw, "librispeech", **chosen))
    assert {role: len(of) for role, of in cuts.items()} == {"train": 8, "dev": 4, "test": 4}
    assert {cut.custom["part"] for cut in cuts["dev"]} == {"dev-clean"}
    with pytest.raises(ConfigError, match="found train-clean-360"):
        read(given(raw, "librispeech", train="train-clean-360"))
    only = read(given(raw, "librispeech", dataset_parts="train-clean-100,test-clean"))
    assert len(only["test"]) == 4 and "audio files are in no part that is used" in caplog.text


def test_one_part_is_split_and_a_missing_test_is_said(tmp_path: Path) -> None:
    raw = trees.librispeech(tmp_path / "raw", ["train-clean-100"], speakers=6)
    cuts = read(given(raw, "librispeech"))
    check_cuts(cuts, 16000)
    assert sum(map(len, cuts.values())) == 12
    raw = trees.librispeech(tmp_path / "two", ["train-clean-100", "dev-clean"])
    with pytest.raises(DataError, match=r"found only train dev of dev-clean .*\n.*test=PART"):
        read(given(raw, "librispeech"))
    raw = trees.librispeech(tmp_path / "none", ["dev-clean", "test-clean"])
    with pytest.raises(DataError, match=r"whose name begins with train, found dev-clean"):
        read(given(raw, "librispeech"))


def test_yesno_has_no_speakers_and_another_rate(tmp_path: Path) -> None:
    raw = trees.yesno(tmp_path / "waves_yesno")
    with pytest.raises(DataError, match=r"expected a speaker of .*found none"):
        read(given(raw, "yesno"))
    options = {"speaker": "recording", "split_seed": "1"}
    with pytest.raises(DataError, match="expected audio of 16000 Hz, found 8000 Hz"):
        prepare(CORPUS, given(raw, "yesno", **options))
    about = prepare(CORPUS, given(raw, "yesno", **options, sampling_rate="8000", name="yesno"))
    assert (about["name"], about["sampling_rate"]) == ("yesno", 8000)
    sizes = {role: of["utterances"] for role, of in about["roles"].items()}
    assert sizes["test"] == 30 and sizes["train"] + sizes["dev"] == 30


def test_audio_that_is_missing_or_damaged(tmp_path: Path) -> None:
    raw = trees.librispeech(tmp_path / "raw")
    (raw / "train-clean-100/1/9/1-9-0000.flac").unlink()
    with pytest.raises(DataError, match=r"no warning of lhotse.recipes.prepare_librispeech, found"):
        read(given(raw, "librispeech"))
    assert len(read(given(raw, "librispeech", warnings="accept"))["test"]) == 8
    path = raw / "train-clean-100/2/9/2-9-0001.flac"
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(DataError, match=rf"{path}: expected audio, found no readable audio"):
        read(given(raw, "librispeech", warnings="accept"))


def test_another_folder_and_options_that_it_has_not(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    with pytest.raises(
        DataError, match=r"what lhotse.recipes.prepare_yesno reads as its corpus_dir, found Ass"
    ):
        read(given(tmp_path / "raw", "yesno"))
    with pytest.raises(ConfigError, match=r"alignments_dir .*found 'aligments_dir'"):
        read(given(tmp_path / "raw", "librispeech", aligments_dir="x"))
    with pytest.raises(DataError, match="--corpus-dir"):
        read(CorpusInput(None, tmp_path, {"recipe": "yesno"}, (), num_jobs=1))


def test_names_of_recipes() -> None:
    assert recipe_of("timit").__name__ == "prepare_timit"
    with pytest.raises(ConfigError, match=r"found 'librispech'\n.*did you mean .*librispeech"):
        recipe_of("librispech")
    with pytest.raises(ConfigError, match="it has: adept aishell"):
        recipe_of("qqqq")


@pytest.mark.shared_data
def test_the_real_librispeech(shared_data: Path, tmp_path: Path) -> None:
    raw = shared_data / "LibriSpeech"
    cuts = read(CorpusInput(raw, tmp_path, {"recipe": "librispeech"}, (), num_jobs=2))
    assert len(cuts["train"]) + len(cuts["dev"]) == 425 + 57 and len(cuts["test"]) == 50
