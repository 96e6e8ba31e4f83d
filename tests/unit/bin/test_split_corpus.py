"""split_corpus from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from privasr_k2.fileio import read_json, write_jsonl
from privasr_k2.text.tagged_files import read_tagged
from tests.support.conf import section
from tests.support.sides import corpus
from tests.support.verbs import call, refused


def cut(
    name: str, user: str, text: str = "a b c d", *, entities: Any = (), **custom: object
) -> dict[str, Any]:
    """A cut of 30 s as it stands in its file."""
    own = {"entities": list(entities)} if entities is not None else {}
    supervision = {"text": text, "speaker": user, "custom": own}
    return {
        "id": name,
        "duration": 30.0,
        "custom": {"part": "x", **custom},
        "supervisions": [supervision],
    }


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    """24 users of train, two of them with a copy at another speed; one of each other role."""
    train = [cut(f"t{n}", f"t{n}") for n in range(24)]
    train += [cut(f"t{n}_sp0.9", f"t{n}", original_id=f"t{n}") for n in range(2)]
    write_jsonl(tmp_path / "m/cuts_train.jsonl.gz", train)
    for role in ("adapt", "dev", "test"):
        write_jsonl(
            tmp_path / f"m/cuts_{role}.jsonl.gz", [cut(role, role, entities=[[0, 1, "PER"]])]
        )
    return tmp_path / "m"


def test_parts_and_what_is_said_of_them(manifests: Path) -> None:
    out, written = manifests.parent / "split", manifests.parent / "written.jsonl"
    write_jsonl(written, [{"id": "w", "user": "t3", "text": "e f g h", "entities": []}])
    config = ("--config", section("split_text"), "--set", "sizes=[4,12]", "tolerance=3")
    call(
        "split_corpus", "--in-manifests", manifests, "--in-text", written, "--out-dir", out, *config
    )
    names = ("background", "adapt_4", "adapt_12", "dev", "test")
    assert {path.name for path in out.iterdir()} == {
        "about.json",
        *(f"{name}.jsonl.gz" for name in names),
    }
    parts = {name: read_tagged([out / f"{name}.jsonl.gz"]) for name in names}
    assert [text.id for text in parts["adapt_4"]] == ["adapt"]
    users = {text.user for text in parts["adapt_12"]}
    assert "adapt" in users and not users & {text.user for text in parts["background"]}
    ids = [text.id for text in (*parts["background"], *parts["adapt_12"])]
    assert sorted(ids) == sorted([*(f"t{n}" for n in range(24)), "w", "adapt"]), "no copies"
    about = read_json(out / "about.json")
    assert about["parts"]["dev"]["minutes"] == 0.5
    assert about["parts"]["dev"]["entities"]["PER"]["mentions"] == 1
    assert about["sizes"]["adapt_12"]["users_with_speech_in_train"] == sorted(users - {"adapt"})
    assert about["parts"]["adapt_12"]["minutes"] == 0.5 * len(users)


def test_speech_of_other_manifests_counts(manifests: Path, tmp_path: Path) -> None:
    text_only = [cut(f"t{n}", f"t{n}", text_only=True) for n in range(24)]
    write_jsonl(tmp_path / "text/cuts_train.jsonl.gz", text_only)
    config = ("--config", section("split_text"), "--set", "sizes=[12]", "tolerance=3")
    flags = ("--in-manifests", tmp_path / "text", "--out-dir", tmp_path / "split", *config)
    call("split_corpus", *flags)
    about = read_json(tmp_path / "split/about.json")
    assert about["parts"]["background"]["minutes"] is None
    assert about["sizes"]["adapt_12"]["users_with_speech_in_train"] == []
    assert (
        len(about["sizes"]["adapt_12"]["users_of_train"]) == about["parts"]["adapt_12"]["users"] > 0
    )
    call("split_corpus", *flags, "--in-spoken", manifests)
    about = read_json(tmp_path / "split/about.json")
    assert (
        about["parts"]["background"]["minutes"] == 0.5 * about["parts"]["background"]["utterances"]
    )
    assert len(about["sizes"]["adapt_12"]["users_with_speech_in_train"]) > 0


def test_what_is_refused_leaves_nothing(manifests: Path) -> None:
    out = manifests.parent / "split"
    flags = ("--in-manifests", manifests, "--out-dir", out, "--config", section("split_text"))
    write_jsonl(manifests / "cuts_test.jsonl.gz", [cut("x", "y", entities=None)])
    with refused("bin.tag_entities"):
        call("split_corpus", *flags)
    (manifests / "cuts_train.jsonl.gz").unlink()
    with refused("cuts of the role train, found adapt dev test"):
        call("split_corpus", *flags)
    assert not out.exists()


def test_speech_gets_sides(tmp_path: Path) -> None:
    pytest.importorskip("lhotse")
    feats = corpus(tmp_path, "own", [f"s{number}" for number in range(10)])
    other = corpus(tmp_path, "other", ["o1"])
    given = ("--in-feats", feats, "--in-public-train", other, "--out-dir", tmp_path / "sides")
    config = ("--config", section("split_speech"), "--set", "pool_share=0.2")
    with refused("--in-text, --in-spoken without --in-feats"):
        call("split_corpus", *given, *config, "--in-spoken", feats)
    call("split_corpus", *given, *config)
    told = read_json(tmp_path / "sides/sides.json")
    assert told["unit"] == "speaker" and told["public"]["speakers"] == ["o1"]
    assert [len(told[side]["speakers"]) for side in ("private", "pool")] == [8, 2]
