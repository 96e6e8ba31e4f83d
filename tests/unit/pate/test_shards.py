"""Whose data are in which shard, and what one unit can change there."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json, write_text
from privasr_k2.pate.shards import ShardsConfig, check_shard, deal, make_shards, read_shards
from privasr_k2.privacy.pate.sensitivity import Change
from tests.support.small_pate import pool

pytest.importorskip("lhotse")


@pytest.fixture(scope="module")
def feats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pool(tmp_path_factory.mktemp("shards"))[0]


@pytest.fixture(scope="module")
def speakers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("roster") / "speakers"
    write_text(path, "".join(f"s{n}\n" for n in range(6)))
    return path


@pytest.fixture(scope="module")
def utt2spk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("roster") / "utt2spk"
    write_text(path, "".join(f"train-{n} s{n % 6}\n" for n in range(12)))
    return path


def shard_digests(folder: Path, teachers: int) -> list[str]:
    paths = [folder / f"shard_{k}" / "cuts_train.jsonl.gz" for k in range(1, teachers + 1)]
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]


def without(feats: Path, folder: Path, speaker: str) -> Path:
    """The same features without one speaker's utterances."""
    from privasr_k2.data.manifests import load_cuts, save_cuts

    kept = [cut for cut in load_cuts(feats, "train") if cut.supervisions[0].speaker != speaker]
    save_cuts(kept, folder, "train")
    return folder


def test_every_unit_is_in_one_shard_and_shards_are_even():
    dealt = deal([f"s{n}" for n in range(20)], 6, seed=3)
    sizes = [list(dealt.values()).count(k) for k in range(1, 7)]
    assert sorted(sizes) == [3, 3, 3, 3, 4, 4] and len(dealt) == 20
    assert deal(sorted(dealt, reverse=True), 6, seed=3) == dealt != deal(dealt, 6, seed=4)


@pytest.mark.parametrize("teachers", [3, 6])  # of 6: one shard is empty without a speaker
def test_the_data_of_one_unit_are_in_one_shard_whichever_it_is(feats, speakers, tmp_path, teachers):
    from privasr_k2.data.manifests import load_cuts

    config = ShardsConfig(teachers, "speaker", 1)
    make_shards(feats, feats, tmp_path / "whole", config, speakers)
    whole = shard_digests(tmp_path / "whole", teachers)
    about = (tmp_path / "whole" / "shards.json").read_text()
    for number in range(6):
        fewer = without(feats, tmp_path / f"without_{number}" / "feats", f"s{number}")
        shards = make_shards(fewer, feats, tmp_path / "other", config, speakers)
        pairs = enumerate(zip(whole, shard_digests(tmp_path / "other", teachers)), 1)
        changed = [k for k, (before, after) in pairs if before != after]
        assert changed == [shards.roster[f"s{number}"]]
        # What is written of all of them does not tell.
        assert (tmp_path / "other" / "shards.json").read_text() == about
        left = len(load_cuts(tmp_path / "other" / f"shard_{changed[0]}", "train"))
        assert left == (0 if teachers == 6 else 2)


def test_shards_say_what_one_unit_changes(feats, speakers, utt2spk, tmp_path):
    def made(teachers, unit, roster):
        config = ShardsConfig(teachers, unit, 1)
        shards = make_shards(feats, feats, tmp_path / "shards", config, roster)
        written = read_json(tmp_path / "shards" / "shards.json")
        assert written["units_in_a_shard"] == shards.units_in_a_shard
        return shards

    alone, shared = made(6, "speaker", speakers), made(5, "speaker", speakers)
    assert (alone.units_in_a_shard, alone.change) == (1, Change.GIVEN)
    assert (shared.units_in_a_shard, shared.change) == (2, Change.MOVES)
    for shards in (alone, shared):
        assert shards.people.names == {f"s{n}" for n in range(6)}
        assert shards.people.most_units == 1
    # A person of several utterances has a vote in each of their shards, and no more than there are.
    several = made(12, "utterance", utt2spk)
    assert several.change is Change.GIVEN and set(several.persons.values()) == {2}
    assert several.people.names == {f"s{n}" for n in range(6)} and several.people.most_units == 2
    few = made(3, "utterance", utt2spk)
    assert max(few.persons.values()) == few.people.most_units == 2
    write_text(tmp_path / "alone", "".join(f"train-{n} s0\n" for n in range(12)))
    assert made(3, "utterance", tmp_path / "alone").people.most_units == 3  # not 4


def test_a_shard_is_known_by_its_folder(feats, speakers, tmp_path):
    make_shards(feats, feats, tmp_path / "shards", ShardsConfig(2, "speaker", 1), speakers)
    about = tmp_path / "shards" / "shards.json"
    check_shard(tmp_path / "shards" / "shard_2", about)
    for other in (tmp_path / "shards" / "shard_3", feats, tmp_path / "shard_1"):
        with pytest.raises(DataError, match="a shard of"):
            check_shard(other, about)


def test_shards_are_features_folders_that_may_be_moved(feats, speakers, tmp_path):
    from privasr_k2.data.manifests import load_cuts

    tree = tmp_path / "tree"
    shutil.copytree(feats, tree / "feats")
    config = ShardsConfig(2, "speaker", 1)
    made = make_shards(tree / "feats", tree / "feats", tree / "exp" / "shards", config, speakers)
    shards = tree / "exp" / "shards"
    assert read_shards(shards) == made == read_shards(shards / "shards.json")
    moved = tree.rename(tmp_path / "moved")
    found = set()
    for k in (1, 2):
        folder = moved / "exp" / "shards" / f"shard_{k}"
        for cut in load_cuts(folder, "train"):
            found.add(cut.id)
            assert made.roster[cut.supervisions[0].speaker] == k
            assert cut.load_features().shape[1] == 5
        assert len(load_cuts(folder, "dev")) == 6
    assert found == {f"train-{n}" for n in range(12)}


def test_utterances_may_be_the_units(feats, utt2spk, tmp_path):
    made = make_shards(feats, feats, tmp_path / "shards", ShardsConfig(4, "utterance", 1), utt2spk)
    assert sorted(made.roster) == sorted(f"train-{n}" for n in range(12))


def test_what_cannot_be_dealt_is_refused(feats, speakers, tmp_path):
    out, dev = tmp_path / "shards", tmp_path / "dev"
    write_text(tmp_path / "fewer", "s0\ns1\n")
    shutil.copytree(feats, dev)
    shutil.copyfile(dev / "cuts_train.jsonl.gz", dev / "cuts_dev.jsonl.gz")
    for public, teachers, roster, message in (
        (feats, 7, speakers, "7 units or more"),
        (feats, 2, tmp_path / "fewer", "every unit of the data"),
        (dev, 2, speakers, "none of the private speakers"),
    ):
        with pytest.raises(DataError, match=message):
            make_shards(feats, public, out, ShardsConfig(teachers, "speaker", 1), roster)
    assert not out.exists()
    with pytest.raises(DataError, match="run make_shards"):
        read_shards(out)
    for bad in ({"teachers": 1}, {"unit": "call"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            ShardsConfig(**{"teachers": 2, "unit": "speaker", "seed": 1, **bad})


def test_an_utterance_at_several_speeds_is_one_unit(feats, utt2spk, tmp_path):
    from lhotse.utils import fastcopy

    from privasr_k2.data.manifests import load_cuts, save_cuts

    cuts = list(load_cuts(feats, "train"))
    faster = [fastcopy(cut, id=f"{cut.id}_sp1.1", custom={"original_id": cut.id}) for cut in cuts]
    both = Path(shutil.copytree(feats, tmp_path / "feats"))
    save_cuts([*cuts, *faster], both, "train", final=both)
    made = make_shards(both, feats, tmp_path / "shards", ShardsConfig(4, "utterance", 1), utt2spk)
    assert sorted(made.roster) == sorted(cut.id for cut in cuts)
    for k in range(1, 5):
        ids = {cut.id for cut in load_cuts(tmp_path / "shards" / f"shard_{k}", "train")}
        own = [unit for unit, shard in made.roster.items() if shard == k]
        assert ids == {*own, *(f"{unit}_sp1.1" for unit in own)}
