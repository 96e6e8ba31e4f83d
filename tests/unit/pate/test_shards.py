"""Whose data are in which shard, and what one unit can change there."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import write_text
from privasr_k2.pate.shards import ShardsConfig, deal, make_shards, read_shards
from tests.support.small_pate import pool

pytest.importorskip("lhotse")


@pytest.fixture(scope="module")
def feats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pool(tmp_path_factory.mktemp("shards"))[0]


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


def test_the_data_of_one_unit_are_in_one_shard_whichever_it_is(feats, tmp_path):
    write_text(tmp_path / "roster", "".join(f"s{n}\n" for n in range(6)))
    config = ShardsConfig(3, "speaker", 1)
    make_shards(feats, feats, tmp_path / "whole", config, tmp_path / "roster")
    whole = shard_digests(tmp_path / "whole", 3)
    for number in range(6):
        fewer = without(feats, tmp_path / f"without_{number}" / "feats", f"s{number}")
        shards = make_shards(fewer, feats, tmp_path / "other", config, tmp_path / "roster")
        pairs = enumerate(zip(whole, shard_digests(tmp_path / "other", 3)), 1)
        changed = [k for k, (before, after) in pairs if before != after]
        assert changed == [shards.roster[f"s{number}"]]


def test_shards_are_features_folders_that_may_be_moved(feats, tmp_path):
    from privasr_k2.data.manifests import load_cuts

    tree = tmp_path / "tree"
    shutil.copytree(feats, tree / "feats")
    config = ShardsConfig(2, "speaker", 1)
    made = make_shards(tree / "feats", tree / "feats", tree / "exp" / "shards", config, None)
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


def test_utterances_may_be_the_units(feats, tmp_path):
    made = make_shards(feats, feats, tmp_path / "shards", ShardsConfig(4, "utterance", 1), None)
    assert sorted(made.roster) == sorted(f"train-{n}" for n in range(12))


def test_what_cannot_be_dealt_is_refused(feats, tmp_path):
    out, dev = tmp_path / "shards", tmp_path / "dev"
    write_text(tmp_path / "more", "".join(f"s{n}\n" for n in range(60)))
    write_text(tmp_path / "fewer", "s0\ns1\n")
    shutil.copytree(feats, dev)
    shutil.copyfile(dev / "cuts_train.jsonl.gz", dev / "cuts_dev.jsonl.gz")
    for public, teachers, roster, message in (
        (feats, 7, None, "7 units or more"),
        (feats, 20, tmp_path / "more", "data of one unit at least"),
        (feats, 2, tmp_path / "fewer", "every unit of the data"),
        (dev, 2, None, "none of the private speakers"),
    ):
        with pytest.raises(DataError, match=message):
            make_shards(feats, public, out, ShardsConfig(teachers, "speaker", 1), roster)
    assert not out.exists()
    with pytest.raises(DataError, match="run make_shards"):
        read_shards(out)
    for bad in ({"teachers": 1}, {"unit": "call"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            ShardsConfig(**{"teachers": 2, "unit": "speaker", "seed": 1, **bad})


def test_an_utterance_at_several_speeds_is_one_unit(feats, tmp_path):
    from lhotse.utils import fastcopy

    from privasr_k2.data.manifests import load_cuts, save_cuts

    cuts = list(load_cuts(feats, "train"))
    faster = [fastcopy(cut, id=f"{cut.id}_sp1.1", custom={"original_id": cut.id}) for cut in cuts]
    both = Path(shutil.copytree(feats, tmp_path / "feats"))
    save_cuts([*cuts, *faster], both, "train", final=both)
    made = make_shards(both, feats, tmp_path / "shards", ShardsConfig(4, "utterance", 1), None)
    assert sorted(made.roster) == sorted(cut.id for cut in cuts)
    for k in range(1, 5):
        ids = {cut.id for cut in load_cuts(tmp_path / "shards" / f"shard_{k}", "train")}
        own = [unit for unit, shard in made.roster.items() if shard == k]
        assert ids == {*own, *(f"{unit}_sp1.1" for unit in own)}
