"""The verb that releases words, and the people whom it counts in the ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.federated.word_release import read_released
from privasr_k2.fileio import read_json, write_jsonl, write_text
from privasr_k2.privacy.ledger import Ledger, entries_beside
from privasr_k2.privacy.spending import guarantees
from privasr_k2.publish.card import bounds_of
from privasr_k2.report.readers import attacks, privacy
from tests.support.conf import section
from tests.support.made_recipe import context
from tests.support.verbs import call, refused
from tests.support.word_votes import write_texts

SETTINGS = ("data=tiny/train", "epsilon=4", "max_words=2", "threshold=6")


def vote(folder: Path, *more: str, name: str = "votes", words: Path | None = None) -> Path:
    """Release the words of the folder's private side."""
    call(
        "vote_words", "--in-private-manifests", folder / "private", "--in-public-words",
        words or folder / "words.txt", "--out-dir", folder / name, "--out-privacy",
        folder / f"{name}.json", "--ledger", folder / "privacy/ledger.json", "--config",
        section("vote_words"), "--set", *SETTINGS, *more,
    )  # fmt: skip
    return folder / name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Eighty speakers say two words of a list."""
    texts = {f"s{number}": [["stop", "now"], ["private"]] for number in range(80)}
    write_texts(tmp_path / "private", texts)
    write_text(tmp_path / "words.txt", "go\nstop now\nleft right\nstop\n")
    return tmp_path


def test_a_rerun_is_the_same_release_and_another_setting_a_second_one(folder: Path) -> None:
    found = read_released(vote(folder))
    assert set(found.words) == {"stop", "now"}  # "private" is on no list
    before = (folder / "votes/words.tsv").read_bytes()
    assert read_released(vote(folder)) == found
    assert (folder / "votes/words.tsv").read_bytes() == before
    [entry] = entries_beside(folder / "votes.json")
    assert (entry.spending.unit, entry.spending.units) == ("speaker", 80)
    [alone] = guarantees([entry.spending])
    assert 3.99 < alone.epsilon.value <= 4.0 and alone.person.value == alone.epsilon.value
    about = read_json(folder / "votes/votes.json")
    assert about["candidates"] == 5 and about["release"] == entry.release
    vote(folder, "max_bigrams=2", name="pairs")
    entries = Ledger(folder / "privacy/ledger.json").entries()
    [both] = guarantees(one.spending for one in entries)
    assert both.releases == 2 and both.epsilon.value > 4.0


def test_an_audit_needs_the_release_alone(folder: Path) -> None:
    votes = vote(folder)
    call(
        "audit", "--in-votes", votes, "--out-audit", folder / "audit.json", "--config",
        section("audit_votes"), "--set", "trials=100",
    )  # fmt: skip
    [bound] = bounds_of(read_json(folder / "audit.json"))
    assert bound["claimed_epsilon"] == pytest.approx(4.0, abs=0.01)
    readings = attacks.audit(str(folder / "audit.json"), context([])).measures
    shown = {of.metric: of.value for of in readings}
    assert shown["audit_lower"] == bound["epsilon_lower"]["sound"] < shown["claimed"]
    told = {of.metric: of.value for of in privacy.votes(str(votes), context([])).measures}
    assert told["candidates"] == 5 and told["released_words"] == 2


def test_what_may_not_be(folder: Path) -> None:
    with refused("a corpus and its part"):
        vote(folder, "data=''")
    write_text(folder / "none.txt", "\n")
    with refused("no candidate"):
        vote(folder, words=folder / "none.txt")
    write_text(folder / "marks.txt", "stop </s>\n")
    with refused("</s>"):
        vote(folder, words=folder / "marks.txt")
    with refused("--public-from-private"):
        vote(folder, words=folder / "private/cuts_train.jsonl.gz")
    assert not (folder / "privacy/ledger.json").exists()


def test_a_limit_is_kept_before_anything_is_drawn(folder: Path) -> None:
    with refused("--max-epsilon"):
        vote(folder, "--max-epsilon", "3")
    assert not (folder / "votes").exists()


def vote_text(folder: Path, *more: str | Path) -> Path:
    """Release words of the users of tagged text."""
    call(
        "vote_words", "--in-private-text", folder / "text.jsonl", "--out-dir", folder / "votes",
        "--out-privacy", folder / "votes.json", "--ledger", folder / "privacy/ledger.json",
        "--config", section("vote_words"), *more, "--set", *SETTINGS,
    )  # fmt: skip
    return folder / "votes"


def test_users_of_text_vote_for_names_on_public_lists(tmp_path: Path) -> None:
    texts = [
        {
            "id": f"t{n}",
            "user": f"u{n // 2}",
            "text": "ask leila jones",
            "entities": [[1, 3, "PER"]],
        }
        for n in range(160)
    ]
    write_jsonl(tmp_path / "text.jsonl", texts)
    write_text(tmp_path / "lists/per.txt", "Leila Smith\t0.25\nBen\t0.75\n")
    write_text(tmp_path / "words.txt", "ask\n")
    public = ["--in-public-lists", tmp_path / "lists", "--in-public-words", tmp_path / "words.txt"]
    found = read_released(vote_text(tmp_path, *public))
    assert set(found.words) == {"leila", "ask"}  # "jones" is on no list
    assert read_json(tmp_path / "votes/votes.json")["candidates"] == 4
    [entry] = entries_beside(tmp_path / "votes.json")
    # Two texts of a user are one vote.
    spent = entry.spending
    assert (spent.unit, spent.units, spent.person_units) == ("user", 80, 1)
    assert "of each user" in entry.spending.released


def test_votes_need_users(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "text.jsonl", [{"id": "t1", "text": "ask leila", "entities": []}])
    write_text(tmp_path / "words.txt", "ask\n")
    words = ["--in-public-words", tmp_path / "words.txt"]
    with refused("votes need users"):
        vote_text(tmp_path, *words)
    with refused("--in-private-manifests or --in-private-text"):
        vote_text(tmp_path, *words, "--in-private-manifests", tmp_path)
    write_text(tmp_path / "text.jsonl", '{"id": "t1", "user": "u1", "te')
    with refused("text.jsonl:1"):
        vote_text(tmp_path, *words)
    assert not (tmp_path / "privacy/ledger.json").exists()
