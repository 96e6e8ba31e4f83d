"""Who is private and who public, and that nobody is both."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from privasr_k2.data.features import load_features
from privasr_k2.data.manifests import load_cuts, roles, save_cuts
from privasr_k2.data.private_public_split import FILE, SplitConfig, split_speakers, split_speech
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json, write_text
from privasr_k2.report.measures import Context
from privasr_k2.report.readers.data import sides
from tests.support.sides import corpus, speakers
from tests.support.sides import feats as feats  # a fixture

pytest.importorskip("lhotse")
NONE = Context((), 1, 0.95, 1, ())
SHARES = {"public_share": 0.25, "pool_share": 0.25, "pool_of_public": 0.0}
DRAWN = SplitConfig([], [], **SHARES, public_names="shared", most_private=0, seed=1)


def test_everybody_is_on_one_side_and_the_file_names_them(feats: Path, tmp_path: Path) -> None:
    made = split_speech(feats, tmp_path / "sides", DRAWN, public_feats=None)
    assert [len(names) for names in made.values()] == [4, 2, 2]
    assert sorted(name for names in made.values() for name in names) == sorted(
        speakers(feats, "train")
    )
    told = read_json(tmp_path / "sides" / FILE)
    for side, role in (("private", "train"), ("public", "train"), ("pool", "pool")):
        assert (
            speakers(tmp_path / "sides" / side, role)
            == set(made[side])
            == set(told[side]["speakers"])
        )
        assert told[side].get("utterances") == (None if side == "private" else 2 * len(made[side]))
    assert roles(tmp_path / "sides/private") == roles(tmp_path / "sides/public") == ["dev", "train"]
    assert roles(tmp_path / "sides/pool") == ["pool"]
    # The draw is of the names and the seed.
    assert split_speech(feats, tmp_path / "again", DRAWN, public_feats=None) == made
    assert (
        split_speech(feats, tmp_path / "other", replace(DRAWN, seed=2), public_feats=None) != made
    )


def test_nobody_changes_sides_where_somebody_has_no_data(feats: Path, tmp_path: Path) -> None:
    write_text(tmp_path / "roster", "".join(f"s{number}\n" for number in range(8)))
    write_text(
        tmp_path / "utt2spk",
        "".join(f"{cut.id} {cut.supervisions[0].speaker}\n" for cut in load_cuts(feats, "train")),
    )
    cuts = list(load_cuts(feats, "train"))
    for roster in ("roster", "utt2spk"):
        given = {"public_feats": None, "roster": tmp_path / roster}
        save_cuts(cuts, feats, "train")
        made = split_speech(feats, tmp_path / "whole", DRAWN, **given)
        for speaker in made["private"]:
            left = [cut for cut in cuts if cut.supervisions[0].speaker != speaker]
            save_cuts(left, feats, "train")
            assert split_speech(feats, tmp_path / "fewer", DRAWN, **given) == made
            names = ["sides.json", "roster_speaker.txt"] + ["roster_utterance.txt"] * (
                roster == "utt2spk"
            )
            for name in names:
                same = (tmp_path / folder / name for folder in ("whole", "fewer"))
                assert len({path.read_bytes() for path in same}) == 1
    # By who is in the data, as before, others would be dealt elsewhere.
    alone = split_speech(feats, tmp_path / "alone", DRAWN, public_feats=None)
    assert {name for side in alone.values() for name in side} < set(map("s{}".format, range(8)))


def test_a_roster_is_of_all_that_the_manifests_have(feats: Path, tmp_path: Path) -> None:
    cuts = list(load_cuts(feats, "train"))
    save_cuts(cuts, tmp_path / "manifests", "train")
    whole = split_speech(feats, tmp_path / "sides", DRAWN, public_feats=None)
    gone = whole["private"][0]  # whose features were left out
    left = [cut for cut in cuts if cut.supervisions[0].speaker != gone]
    save_cuts(left, feats, "train")
    given = {"public_feats": None, "manifests": tmp_path / "manifests"}
    assert split_speech(feats, tmp_path / "sides", DRAWN, **given) == whole
    assert gone in (tmp_path / "sides" / "roster_utterance.txt").read_text()
    write_text(tmp_path / "roster", "s0\ns1\n")
    with pytest.raises(DataError, match="complete the roster"):
        split_speech(feats, tmp_path / "x", DRAWN, public_feats=None, roster=tmp_path / "roster")


def test_a_report_tells_of_private_people_how_many_they_are(feats: Path, tmp_path: Path) -> None:
    split_speech(feats, tmp_path / "sides", DRAWN, public_feats=None)
    told = {
        (m.item.partition(",")[0], m.metric): m.value
        for m in sides(str(tmp_path / "sides" / FILE), NONE).measures
    }
    assert told["private", "speakers"] == 4 and ("private", "utterances") not in told
    assert told["public", "speakers"] == 2 and told["public", "utterances"] == 4
    write_text(tmp_path / "other.json", "{}")
    with pytest.raises(DataError, match=r"sides\.json"):
        sides(str(tmp_path / "other.json"), NONE)


def test_the_pool_has_no_texts_and_the_others_keep_theirs(feats: Path, tmp_path: Path) -> None:
    split_speech(feats, tmp_path / "work/exp/sides", DRAWN, public_feats=None)
    assert {
        cut.supervisions[0].text for cut in load_cuts(tmp_path / "work/exp/sides/pool", "pool")
    } == {""}
    before = {
        cut.id: (cut.supervisions[0].text, load_features(cut).shape)
        for cut in load_cuts(feats, "train")
    }
    for side in ("private", "public"):
        for cut in load_cuts(tmp_path / "work/exp/sides" / side, "train"):
            assert before[cut.id] == (cut.supervisions[0].text, load_features(cut).shape)


def test_the_pool_may_be_of_the_public_corpus_and_all_of_train_private(
    feats: Path, tmp_path: Path
) -> None:
    other = corpus(tmp_path, "other", [f"o{number}" for number in range(6)])
    config = replace(DRAWN, pool_of_public=0.3)
    made = split_speech(feats, tmp_path / "sides", config, public_feats=other)
    assert made["private"] == sorted(speakers(feats, "train"))
    assert [len(made[side]) for side in ("public", "pool")] == [4, 2]
    assert sorted([*made["public"], *made["pool"]]) == [f"o{number}" for number in range(6)]
    pool = load_cuts(tmp_path / "sides/pool", "pool")
    assert {cut.supervisions[0].text for cut in pool} == {""}
    again = replace(config, seed=2)
    assert split_speech(feats, tmp_path / "again", again, public_feats=other) != made


def test_fewer_private_people_are_a_part_of_more(feats: Path, tmp_path: Path) -> None:
    everybody = split_speech(feats, tmp_path / "all", DRAWN, public_feats=None)
    made = [
        split_speech(
            feats, tmp_path / f"{most}", replace(DRAWN, most_private=most), public_feats=None
        )
        for most in (1, 3)
    ]
    one, three = (set(names["private"]) for names in made)
    assert (len(one), len(three)) == (1, 3) and one < three < set(everybody["private"])
    assert all(names["public"] == everybody["public"] for names in made)
    assert set(speakers(tmp_path / "3/private", "train")) == three
    roster = (tmp_path / "3/roster_speaker.txt").read_text(encoding="utf-8").split()
    assert set(roster) == three


def test_names_of_a_public_corpus_may_be_its_own(feats: Path, tmp_path: Path) -> None:
    """There s3 is another person, who may be public while s3 of train is private."""
    from lhotse import CutSet
    from lhotse.utils import fastcopy

    other = tmp_path / "other"
    renamed = []
    for cut in load_cuts(feats, "train"):
        if cut.supervisions[0].speaker == "s3":
            again = fastcopy(cut.supervisions[0], id=f"other-{cut.id}")
            renamed.append(fastcopy(cut, id=f"other-{cut.id}", supervisions=[again]))
    save_cuts(CutSet.from_cuts(renamed), other, "train")
    shutil.copyfile(feats / "features.yaml", other / "features.yaml")
    named = replace(DRAWN, pool_speakers=["s0"])
    with pytest.raises(DataError, match="found s3 in"):
        split_speech(feats, tmp_path / "sides", named, public_feats=other)
    own = replace(named, public_names="own")
    made = split_speech(feats, tmp_path / "sides", own, public_feats=other)
    assert made["public"] == ["s3"] and "s3" in made["private"] and made["pool"] == ["s0"]
    again = replace(own, pool_of_public=0.5, pool_speakers=[])
    with pytest.raises(DataError, match="two speakers of the public corpus"):
        split_speech(feats, tmp_path / "sides", again, public_feats=other)


def test_without_a_pool_everybody_else_is_private(feats: Path, tmp_path: Path) -> None:
    made = split_speech(
        feats, tmp_path / "sides", replace(DRAWN, pool_share=0.0), public_feats=None
    )
    assert [len(made[side]) for side in ("private", "public", "pool")] == [6, 2, 0]
    assert not (tmp_path / "sides/pool").exists()


@pytest.mark.parametrize("problem", ["no such corpus", "another pool", "two speakers"])
def test_a_pool_of_the_public_corpus_needs_one(problem: str, feats: Path, tmp_path: Path) -> None:
    config = replace(DRAWN, pool_of_public=0.5)
    if problem == "another pool":
        config = replace(config, pool_speakers=["s1"])
    names = ["o1"] if problem == "two speakers" else ["o1", "o2"]
    public = None if problem == "no such corpus" else corpus(tmp_path, "other", names)
    with pytest.raises(DataError, match=problem):
        split_speech(feats, tmp_path / "sides", config, public_feats=public)
    assert not (tmp_path / "sides").exists()


def test_copies_at_other_speeds_are_no_questions(feats: Path, tmp_path: Path) -> None:
    from lhotse.utils import fastcopy

    cuts = list(load_cuts(feats, "train"))
    copies = [fastcopy(cut, id=f"{cut.id}_sp0.9", custom={"original_id": cut.id}) for cut in cuts]
    save_cuts([*cuts, *copies], feats, "train")
    split_speech(feats, tmp_path / "sides", DRAWN, public_feats=None)
    assert len(load_cuts(tmp_path / "sides/pool", "pool")) == 4
    assert len(load_cuts(tmp_path / "sides/private", "train")) == 16


def test_named_speakers_another_corpus_and_a_pool_of_its_own(feats: Path, tmp_path: Path) -> None:
    other = corpus(tmp_path, "other", ["o1", "o2"])
    named = replace(DRAWN, pool_speakers=["s3", "s1"])
    made = split_speech(feats, tmp_path / "sides", named, public_feats=other)
    assert made == {
        "private": ["s0", "s2", "s4", "s5", "s6", "s7"],
        "public": ["o1", "o2"],
        "pool": ["s1", "s3"],
    }
    # Of another corpus's speech, train's own public speakers are told apart; here there are none.
    assert speakers(tmp_path / "sides/own", "train") == {"o1", "o2"}
    own = replace(named, public_speakers=["s5"])
    split_speech(feats, tmp_path / "sides", own, public_feats=other)
    assert speakers(tmp_path / "sides/own", "train") == {"s5"}
    assert speakers(tmp_path / "sides/public", "train") == {"o1", "o2", "s5"}
    # What the corpus calls its pool is taken, and no share is drawn besides.
    save_cuts(load_cuts(other, "train"), feats, "pool")
    made = split_speech(feats, tmp_path / "own_pool", DRAWN, public_feats=None)
    assert made["pool"] == ["o1", "o2"] and len(made["private"]) == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(pool_speakers=["s1", "x9"]), "expected speakers of train, found x9"),
        (dict(pool_speakers=["s1"], public_speakers=["s1"]), "a speaker in one of them, found s1"),
        (dict(most_private=9), "most_private: expected 9 private speakers, found"),
        (dict(public_share=0.0), "the public side: expected a speaker"),
        (
            dict(public_speakers=["s0", "s1", "s2", "s3", "s4", "s5"], pool_speakers=["s6", "s7"]),
            "the private side: expected a speaker",
        ),
    ],
)
def test_sides_that_cannot_be(changes: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        names = [f"s{number}" for number in range(8)]
        split_speakers(names, replace(DRAWN, **changes), public=False, pool=False)


def test_a_person_on_two_sides(feats: Path, tmp_path: Path) -> None:
    other = corpus(tmp_path, "other", ["s5", "o2"])
    named = replace(DRAWN, pool_speakers=["s0"])
    with pytest.raises(DataError, match="on one side only, found s5 in private and public"):
        split_speech(feats, tmp_path / "sides", named, public_feats=other)
    for role in ("dev", "test"):
        save_cuts(load_cuts(feats, "train"), feats, role)
        with pytest.raises(DataError, match=f"in (private|pool|public) and {role}"):
            split_speech(feats, tmp_path / "sides", DRAWN, public_feats=None)
        save_cuts(load_cuts(other, "dev"), feats, "dev")
    assert not (tmp_path / "sides").exists()


def test_features_of_two_forms(feats: Path, tmp_path: Path) -> None:
    other = corpus(tmp_path, "other", ["o1"], dim=13)
    with pytest.raises(DataError, match=r"expected 5 features each 0.01 s, .*found 13"):
        split_speech(feats, tmp_path / "sides", DRAWN, public_feats=other)


def test_shares_that_leave_nobody() -> None:
    with pytest.raises(ValueError, match="leave somebody private"):
        replace(DRAWN, public_share=0.5, pool_share=0.5)
    with pytest.raises(ValueError, match="pool_share must be"):
        replace(DRAWN, pool_share=-0.1)
