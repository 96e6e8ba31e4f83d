from __future__ import annotations

import math
from pathlib import Path

import pytest

from privasr_k2 import config
from privasr_k2.errors import ConfigError, PrivacyError
from privasr_k2.fileio import read_json, read_lines
from privasr_k2.privacy import release
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.privacy.spending import guarantees
from privasr_k2.text.entities import Entity, TaggedText
from privasr_k2.text.sanitized_release import (
    ABOUT,
    SanitizeConfig,
    guarantee,
    sanitize,
    spending,
    worth,
)
from privasr_k2.text.tagged_files import read_tagged
from tests.support.conf import section

DEFAULTS = section("sanitize")
LISTS = {"PER": ["ann", "bob", "eve"], "LOC": ["bath", "rome", "york", "bonn", "oslo"]}
SIZES = {label: len(words) for label, words in LISTS.items()}
TEXTS = [
    TaggedText(f"id{n}", ("ask", "ann", str(n)), (Entity(1, 2, "PER"),), f"u{n % 5}", "d")
    for n in range(50)
]


def given(*values: str) -> SanitizeConfig:
    return config.load(SanitizeConfig, [DEFAULTS], ["data=toy/train", *values])


def run(folder: Path, options: SanitizeConfig, *, stop: bool = False) -> None:
    found = guarantee(options, SIZES)
    with release.begin(
        folder / "ledger.json",
        beside=folder / "privacy.json",
        spending=spending(options, found),
        fingerprint=release.fingerprint_of(options, []),
        max_epsilon=None,
    ) as begun:
        if not stop:
            sanitize(folder / "out", TEXTS, LISTS, options, begun)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


def test_epsilon_is_that_of_the_longest_list_and_composes():
    options = given("keep_prob=0.2", "mentions=2", "words_per_mention=2")
    found = guarantee(options, SIZES)
    assert found.epsilon_per_word == pytest.approx(math.log(1 + 5 * 0.2 / 0.8))
    about = worth(options, LISTS)
    assert about["epsilon_per_word"] == {
        "PER": pytest.approx(math.log(1 + 3 * 0.2 / 0.8)),
        "LOC": pytest.approx(found.epsilon_per_word),
    }
    assert about["epsilon_per_mention"] == pytest.approx(2 * found.epsilon_per_word)
    assert about["epsilon_per_utterance"] == pytest.approx(4 * found.epsilon_per_word)
    [composed] = guarantees([spending(options, found)])
    assert 0 < composed.epsilon.value <= 4 * found.epsilon_per_word + 1e-9
    assert composed.unit == "utterance" and any("missed" in s for s in composed.does_not_cover)


@pytest.mark.parametrize(
    "values", [("keep_prob=0",), ("method=tag",), ("method=delete",), ("mentions=0",)]
)
def test_what_depends_on_no_word_costs_nothing_and_is_entered_all_the_same(values):
    options = given(*values)
    found = guarantee(options, SIZES if options.method == "replace" else {})
    [composed] = guarantees([spending(options, found)])
    assert composed.epsilon.value == 0
    assert any("was mentioned" in sentence for sentence in composed.does_not_cover)


def test_by_document_the_unit_is_a_document():
    found = guarantee(given("consistency=document"), {"PER": 5})
    assert spending(given("consistency=document"), found).unit == "document"
    assert "epsilon_per_document" in worth(given("consistency=document"), LISTS)


def test_p_of_one_guarantees_nothing_and_is_refused():
    with pytest.raises(PrivacyError, match="below 1"):
        guarantee(given("keep_prob=1"), {"PER": 5})


def test_with_a_public_number_of_utterances_the_unit_is_a_user(tmp_path):
    options = given("keep_prob=0.2", "utterances_per_user=3")
    sizes = {label: len(words) for label, words in LISTS.items()}
    one, found = guarantee(given("keep_prob=0.2"), sizes), guarantee(options, sizes)
    assert spending(given("keep_prob=0.2"), one).unit == "utterance"
    assert one.epsilon_per_user is None
    assert "epsilon_per_user" not in worth(given("keep_prob=0.2"), LISTS)
    assert spending(options, found).unit == "user"
    about = worth(options, LISTS)
    assert about["epsilon_per_utterance"] == pytest.approx(one.epsilon_per_utterance)
    assert about["epsilon_per_user"] == pytest.approx(3 * one.epsilon_per_utterance)
    assert any("A user: the epsilons" in sentence for sentence in one.does_not_cover)
    run(tmp_path, given("keep_prob=0.999999", "mentions=9", "utterances_per_user=3"))
    kept = [text.words[1] == "ann" for text in read_tagged([tmp_path / "out/sanitized.jsonl.gz"])]
    assert 15 <= sum(kept) < 50, "5 users with 3 utterances each, and some of the rest by chance"
    with pytest.raises(ConfigError, match="utterances_per_user must be null"):
        given("utterances_per_user=3", "consistency=document")


@pytest.mark.parametrize(
    "value",
    [
        "utterances_per_user=0",
        "keep_prob=-0.1",
        "keep_prob=1.5",
        "method=hash",
        "consistency=user",
        "mentions=-1",
        "words_per_mention=0",
    ],
)
def test_bad_settings_are_refused(value):
    with pytest.raises(ConfigError, match=value.partition("=")[0]):
        given(value)


def test_files_are_written_and_the_mapping_is_not(tmp_path):
    run(tmp_path, given())
    made = read_tagged([tmp_path / "out/sanitized.jsonl.gz"])
    lines = [line for _, line in read_lines(tmp_path / "out/text.txt.gz")]
    assert lines == [" ".join(text.words) for text in made]
    assert [line for _, line in read_lines(tmp_path / "out/class_text.txt.gz")] == [
        f"ask <PER> {text.words[2]}" for text in made
    ]
    assert [text.id for text in made] == [f"s{n:06d}" for n in range(1, 51)]
    assert {(text.user, text.document) for text in made} == {("", "")}
    numbers = [int(text.words[2]) for text in made]
    assert sorted(numbers) == list(range(50)) != numbers
    expected = [ABOUT, "class_text.txt.gz", "sanitized.jsonl.gz", "text.txt.gz"]
    assert sorted(content(tmp_path)) == expected
    assert set(read_json(tmp_path / "out" / ABOUT)) >= {
        "release",
        "method",
        "keep_prob",
        "epsilon_per_word",
    }


def test_a_release_is_continued_once_and_a_rerun_is_another(tmp_path):
    run(tmp_path, given(), stop=True)  # killed after it was entered
    run(tmp_path, given())
    first = content(tmp_path)
    run(tmp_path, given())  # finished: nothing is drawn
    assert content(tmp_path) == first
    assert len(Ledger(tmp_path / "privacy.json").entries()) == 1
    run(tmp_path, given("keep_prob=0.2"))
    assert content(tmp_path) != first and len(Ledger(tmp_path / "privacy.json").entries()) == 2


def test_what_a_killed_run_has_left_is_drawn_again_alike(tmp_path, monkeypatch):
    monkeypatch.setattr(release.Release, "finish", lambda self: None)  # killed just before
    run(tmp_path, given())
    first = content(tmp_path)
    for path in (tmp_path / "out").iterdir():
        path.unlink()
    run(tmp_path, given())
    assert content(tmp_path) == first


def test_output_of_another_release_does_not_pass_for_this_one(tmp_path):
    run(tmp_path, given())
    first = content(tmp_path)
    run(
        tmp_path, given("keep_prob=0.2"), stop=True
    )  # killed: the folder is the first release's still
    run(tmp_path, given("keep_prob=0.2"))
    assert content(tmp_path) != first
    assert read_json(tmp_path / "out" / ABOUT)["keep_prob"] == 0.2


def test_a_finished_release_whose_text_is_gone_asks_for_force(tmp_path):
    run(tmp_path, given())
    (tmp_path / "out" / ABOUT).unlink()
    with pytest.raises(PrivacyError, match="--force true"):
        run(tmp_path, given())
