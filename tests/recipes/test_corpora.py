"""The first stages of the recipe ctc on every corpus but mini: up to a graph."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from lhotse import Recording, RecordingSet

from privasr_k2.data.manifests import load_cuts
from privasr_k2.fileio import read_json
from tests.support import trees
from tests.support.recipe_tools import recipe

pytestmark = [pytest.mark.k2, pytest.mark.recipe]


def reaches_a_graph(work: Path, command: str) -> None:
    """The recipe runs stages 0 to 4."""
    recipe(f"{command} --preset tiny --stop-stage 4", "--work-dir", work)
    assert (work / "data/graph_phone/HLG.safetensors").is_file()


def test_timit(tmp_path: Path) -> None:
    corpus = trees.timit(tmp_path / "TIMIT")
    reaches_a_graph(tmp_path / "work", f"timit ctc --corpus-dir {corpus}")
    words = (tmp_path / "work/data/lang_phone/words.txt").read_text().split()
    assert {"sil", "sh", "ix", "vcl"} <= set(words)


def test_noisy_and_reverberant_copies_are_in_train_alone(tmp_path: Path) -> None:
    corpus = trees.timit(tmp_path / "TIMIT")
    audio = sorted(corpus.rglob("*.WAV"))[:2] or sorted(corpus.rglob("*.wav"))[:2]
    files = {}
    for name in ("noise", "rirs"):
        files[name] = tmp_path / f"{name}_recordings.jsonl.gz"
        RecordingSet.from_recordings(map(Recording.from_file, audio)).to_file(files[name])
    given = f"--noise-manifest {files['noise']} --rirs {files['rirs']} --speed-perturb true"
    work = tmp_path / "work"
    recipe(f"timit ctc --corpus-dir {corpus} --preset tiny {given} --stop-stage 1",
           "--work-dir", work)  # fmt: skip
    counts, spoken = (
        {role: len(list(load_cuts(work / folder, role))) for role in ("train", "dev")}
        for folder in ("data/feats_fbank", "data/manifests")
    )
    assert counts == {"train": 5 * spoken["train"], "dev": spoken["dev"]}


def test_all_of_timit_is_private_and_the_pool_is_of_librispeech(tmp_path: Path) -> None:
    """Condition 2 of yang2022, up to the plan of queries."""
    names = [f"F{letter}JF0" for letter in "BCDEGHKLMN"]
    corpus = trees.timit(tmp_path / "TIMIT", names)
    public = trees.librispeech(tmp_path / "LibriSpeech", speakers=8)
    command = f"timit pate --corpus-dir {corpus} --public-dir {public} --preset tiny"
    work = tmp_path / "work"
    recipe(f"{command} --stop-stage 3", "--work-dir", work)
    sides = read_json(work / "data/sides_fbank/sides.json")
    assert sides["private"]["speakers"] == sorted(map(str.lower, names))
    assert {side: len(sides[side]["speakers"]) for side in ("public", "pool")} == {
        "public": 5, "pool": 2,
    }  # fmt: skip
    dealt = read_json(work / "exp/shards_speaker/10/shards.json")
    assert (dealt["teachers"], dealt["units_in_a_shard"]) == (10, 1)


def test_files_of_each_role(tmp_path: Path) -> None:
    """icefall's cuts with features for train, a Kaldi directory for test."""
    from lhotse import CutSet, Fbank, LilcomChunkyWriter
    from lhotse.recipes import prepare_librispeech

    from privasr_k2.data.manifests import load_cuts

    part, features = "train-clean-5", tmp_path / "fbank"
    trees.librispeech(tmp_path / "LibriSpeech", [part])
    test = trees.kaldi(tmp_path, "eval", ["t1", "t2"])
    made = prepare_librispeech(tmp_path / "LibriSpeech", dataset_parts=[part])[part]
    cuts = CutSet.from_manifests(made["recordings"], made["supervisions"])
    cuts += cuts.perturb_speed(0.9)
    stored = dict(storage_path=features, storage_type=LilcomChunkyWriter)
    cuts.compute_and_store_features(Fbank(), **stored).to_file(tmp_path / "cuts.jsonl.gz")
    arpa = trees.lines(
        tmp_path / "lower.arpa", "\\data\\", "ngram 1=6", "", "\\1-grams:", "-99 <s>", "-0.7 </s>",
        "-0.7 <unk>", "-0.7 hello", "-0.7 world", "-0.7 dog", "", "\\end\\",
    )  # fmt: skip
    command = f"data:mine ctc --train {tmp_path}/cuts.jsonl.gz --test {test} --feature fbank"
    reaches_a_graph(tmp_path / "work", f"{command} --text-case upper --arpa {arpa}")
    words = (tmp_path / "work/data/lang_phone/words.txt").read_text().split()
    assert {"DOG", "IT'S"} <= set(words) and not {"dog", "it's"} & set(words)
    with gzip.open(tmp_path / "work/data/lm/phone.arpa.gz", "rt") as file:
        assert "DOG" in file.read()
    sizes = read_json(tmp_path / "work/data/manifests/corpus.json")
    assert sizes["name"] == "mine"
    assert {role: of["utterances"] for role, of in sizes["roles"].items()} == {
        "train": 12, "dev": 2, "test": 4,
    }  # fmt: skip
    trees.kaldi(tmp_path, "eval", ["1"])  # a speaker of train
    text = recipe(f"{command} --preset tiny --force true", "--work-dir", tmp_path / "w2", code=2)
    assert "speaker 1: expected a speaker in one role only" in text
    cut = load_cuts(tmp_path / "work/data/feats_fbank", "dev")[0]
    assert cut.num_features == 80


def test_a_recipe_of_lhotse_by_its_name(tmp_path: Path) -> None:
    corpus = trees.yesno(tmp_path / "waves_yesno")
    options = "speaker=recording sampling_rate=8000 train=test test=train dev_fraction=0.2"
    command = f"lhotse:yesno ctc --corpus-dir {corpus} --corpus-options '{options}'"
    reaches_a_graph(tmp_path / "work", command)
    sizes = read_json(tmp_path / "work/data/manifests/corpus.json")
    assert (sizes["name"], sizes["roles"]["test"]["parts"]) == ("yesno", {"train": 30})
    assert "sampling_rate: 8000" in (tmp_path / "work/data/feats_fbank/features.yaml").read_text()
    command = command.replace("lhotse:yesno", "lhotse:yesnp")
    text = recipe(f"{command} --preset tiny", "--work-dir", tmp_path / "w2", code=2)
    assert "did you mean yesno?" in text


@pytest.mark.shared_data
def test_ami_spoken_by_synthetic_voices(shared_data: Path, tmp_path: Path) -> None:
    reaches_a_graph(tmp_path, f"ami ctc --corpus-dir {shared_data}/ami --speech synthetic")


@pytest.mark.shared_data
def test_a_kaldi_folder_with_features(shared_data: Path, tmp_path: Path) -> None:
    reaches_a_graph(tmp_path, f"data:{shared_data}/an4 ctc")
    assert "kind: given" in (tmp_path / "data/feats_auto/features.yaml").read_text()
