"""Paths of manifests; what check_cuts finds is tested with bin.prepare_corpus's library call, where
corpora are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from privasr_k2.corpora.utterances import Utterance, make_cuts
from privasr_k2.data.manifests import check_cuts, load_cuts, roles, save_cuts
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines
from tests.support import trees


def test_own_paths_are_relative_and_foreign_ones_absolute(tmp_path: Path) -> None:
    own = trees.noise(tmp_path / "work" / "data" / "manifests" / "audio" / "a.flac")
    foreign = trees.noise(tmp_path / "corpus" / "b.flac")
    cuts = make_cuts(Utterance(p.stem, "x", "s", "train", p) for p in (own, foreign))
    for name, relative in (("manifests", ""), ("feats_fbank", "../manifests/")):
        path = save_cuts(cuts, tmp_path / "work" / "data" / name, "train")
        records = [json.loads(line) for _, line in read_lines(path)]
        sources = [record["recording"]["sources"][0]["source"] for record in records]
        assert sources == [f"{relative}audio/a.flac", str(foreign)]
    (tmp_path / "work").rename(tmp_path / "elsewhere")
    folder = tmp_path / "elsewhere" / "data" / "feats_fbank"
    assert roles(folder) == ["train"]
    for lazy in (False, True):
        found = list(load_cuts(folder, "train", lazy=lazy))
        assert [cut.load_audio().shape for cut in found] == [(1, 16000), (1, 16000)]


def test_a_folder_that_will_stand_elsewhere_has_relative_paths(tmp_path: Path) -> None:
    foreign = trees.noise(tmp_path / "corpus" / "b.flac")
    cuts = make_cuts([Utterance("b", "x", "s", "train", foreign)])
    final = tmp_path / "work" / "exp" / "part"
    path = save_cuts(cuts, tmp_path / "temporary" / "part", "train", final=final)
    [record] = [json.loads(line) for _, line in read_lines(path)]
    assert record["recording"]["sources"][0]["source"] == "../../../corpus/b.flac"


def test_the_pool_needs_no_texts(tmp_path: Path) -> None:
    def silent(role: str) -> dict[str, object]:
        names = ("train", "test", "pool")
        made = {
            name: Utterance(name, "x", name, name, trees.noise(tmp_path / f"{name}.flac"))
            for name in names
        }
        made[role] = replace(made[role], text="")
        return {name: make_cuts([one]) for name, one in made.items()}

    check_cuts(silent("pool"), sampling_rate=16000)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="empty text of test"):
        check_cuts(silent("test"), sampling_rate=16000)  # type: ignore[arg-type]


def test_no_training_or_no_test_part(tmp_path: Path) -> None:
    cuts = make_cuts([Utterance("a", "x", "s", "train", trees.noise(tmp_path / "a.flac"))])
    with pytest.raises(DataError, match="role test: expected utterances, found none"):
        check_cuts({"train": cuts}, sampling_rate=16000)


def test_a_role_without_cuts(tmp_path: Path) -> None:
    utterances = [
        Utterance(n, "x", n, n, trees.noise(tmp_path / f"{n}.flac")) for n in ("train", "test")
    ]
    train, test = make_cuts(utterances[:1]), make_cuts(utterances[1:])
    with pytest.raises(DataError, match="role dev: expected utterances, found none"):
        check_cuts({"train": train, "dev": make_cuts([]), "test": test}, sampling_rate=16000)


def test_the_densest_text_that_is_believed(tmp_path: Path) -> None:
    cuts = make_cuts(
        Utterance(name, "x" * 30, name, name, trees.noise(tmp_path / f"{name}.flac"))
        for name in ("train", "test")
    )
    by_role = {cut.id: [cut] for cut in cuts}
    check_cuts(by_role, sampling_rate=16000, max_characters_per_second=22.0)
    with pytest.raises(DataError, match="30 characters in train"):
        check_cuts(by_role, sampling_rate=16000, max_characters_per_second=21.9)
