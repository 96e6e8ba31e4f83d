"""Limits of epsilon hold for people, and for the finest unit, over all releases about them."""

from __future__ import annotations

import dataclasses
import re

import pytest

from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.keys import seal_of
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.privacy.people import People, PeopleFile
from privasr_k2.privacy.spending import OnlyFor
from tests.support.made_spending import COUNTS
from tests.support.releases import BARE, UTTERANCE, enter, refuse, spent


@pytest.fixture
def ledger(tmp_path):
    """Where the ledger goes; nothing is there yet."""
    return tmp_path / "privacy" / "ledger.json"


def test_budget(ledger, tmp_path):
    for name in ("one", "two"):
        enter(ledger, tmp_path / name, max_epsilon=2.5)
    refuse("2 before it", ledger, tmp_path / "three", max_epsilon=2.5)
    assert spent(ledger) == 2 and not (tmp_path / "three").exists()
    # What was entered before the limit became smaller is continued: it is spent already.
    assert enter(ledger, tmp_path / "one", max_epsilon=0.1).is_continued


FIVE = [f"speaker-{n}" for n in range(5)]


def people_in(*units_of_each: int, names=FIVE):
    """Speakers, each alone in so many units."""
    pairs = [(f"{name}-{n}", name) for name, size in zip(names, units_of_each) for n in range(size)]
    return People.of(pairs, source="clients")


def test_another_unit_has_no_budget_of_its_own(ledger, tmp_path):
    """Four releases about five speakers, each for a unit of another name."""
    each = {"people": people_in(1, 1, 1, 1, 1), "max_epsilon": 1.05}
    units = ("meeting", "call", "user", "utterance")
    spendings = [dataclasses.replace(COUNTS, unit=unit, units=None) for unit in units]
    enter(ledger, tmp_path / "0", spending=spendings[0], **each)
    for number, spending in enumerate(spendings[1:], start=1):
        refuse("for each person", ledger, tmp_path / str(number), spending=spending, **each)
    assert spent(ledger) == 1
    assert enter(ledger, tmp_path / "0", spending=spendings[0], **each).is_continued


def test_a_mention_inside_a_document_has_no_budget_of_its_own(ledger, tmp_path):
    event = events.randomized_response(0.5, 10)
    epsilon = account(event, Relation.REPLACE_ONE, COUNTS.delta).value
    names = dataclasses.replace(COUNTS, relation=Relation.REPLACE_ONE, event=event, units=None)
    limit = {"people": people_in(1, 1), "max_epsilon": 1.1 * epsilon}
    document, mention = (dataclasses.replace(names, unit=unit) for unit in ("document", "mention"))
    enter(ledger, tmp_path / "one", spending=document, **limit)
    refuse("1 before it", ledger, tmp_path / "two", spending=mention, **limit)


def test_the_same_people_under_another_name_of_data(ledger, tmp_path):
    """Devices dealt anew from the same utterances, a subset, a copy: related by their people."""
    dealt = [dataclasses.replace(COUNTS, data=f"mini/adapt/devices_{n}") for n in (40, 41)]
    enter(ledger, tmp_path / "40", spending=dealt[0], people=people_in(1, 1, 1), max_epsilon=1.5)
    subset = {"people": people_in(1), "max_epsilon": 1.5}
    refuse("1 before it", ledger, tmp_path / "41", spending=dealt[1], **subset)
    others = {"people": people_in(1, names=FIVE[3:]), "max_epsilon": 1.5}
    enter(ledger, tmp_path / "others", spending=dealt[0], **others)


def test_a_person_on_several_devices(ledger, tmp_path):
    devices = dataclasses.replace(COUNTS, unit="device")
    refuse("4.00 at", ledger, tmp_path / "a", spending=devices, people=people_in(4), max_epsilon=3)
    refuse("infinite", ledger, tmp_path / "a", spending=devices, max_epsilon=3)  # how many?
    made = enter(ledger, tmp_path / "a", spending=devices, people=people_in(3), max_epsilon=4)
    assert made.entry.spending.person_units == 4 and made.entry.people


def test_people_that_are_gone_are_noticed(ledger, tmp_path):
    made = enter(ledger, tmp_path / "one", people=people_in(1, 1), finish=True)
    file = PeopleFile(ledger, made.entry.release)
    assert "speaker" not in file.path.read_text()
    file.path.unlink()
    refuse("the people of a release", ledger, tmp_path / "two", max_epsilon=9)


def test_an_entry_of_before_is_continued(ledger, tmp_path):
    """Entries that do not say how many units a person is are those of the same release."""
    devices = dataclasses.replace(COUNTS, unit="device")
    first = enter(ledger, tmp_path / "one", spending=devices, finish=True)
    again = enter(ledger, tmp_path / "one", spending=devices, people=people_in(4), max_epsilon=1)
    assert again.is_finished and again.entry == first.entry


SHORT = OnlyFor("each utterance of at most 7 words", events.laplace_vector(0.1))
UNCLIPPED = dataclasses.replace(
    UTTERANCE,
    event=events.unprotected(),
    only_for=SHORT,
    does_not_cover=("a utterance of more than 7 words: nothing is clipped",),
)


def test_no_limit_allows_what_holds_for_small_units_alone(ledger, tmp_path):
    refuse("found infinite", ledger, tmp_path / "one", spending=UNCLIPPED, max_epsilon=1e9)
    enter(ledger, tmp_path / "one", spending=UNCLIPPED, finish=True)
    refuse("1 before it", ledger, tmp_path / "two", spending=UTTERANCE, max_epsilon=1e9)


def test_an_entry_from_before_only_for_is_continued_and_infinite(ledger, tmp_path, monkeypatch):
    before = dataclasses.replace(UNCLIPPED, event=SHORT.event, only_for=None)
    with monkeypatch.context() as earlier:
        earlier.setattr("privasr_k2.privacy.spending._UNCLIPPED", re.compile("(?!)"))
        made = enter(ledger, tmp_path / "one", spending=before, finish=True)
    assert enter(ledger, tmp_path / "one", spending=UNCLIPPED).is_finished
    [entry] = Ledger(ledger, seal_of(ledger)).entries()
    assert entry == dataclasses.replace(made.entry, spending=UNCLIPPED)
    refuse("1 before it", ledger, tmp_path / "two", spending=UTTERANCE, max_epsilon=1e9)
    enter(ledger, tmp_path / "two", spending=UTTERANCE)  # the ledger is written anew
    assert [e.spending for e in Ledger(ledger, seal_of(ledger)).entries()] == [UNCLIPPED, UTTERANCE]


def test_no_limit_allows_what_is_unprotected(ledger, tmp_path):
    match = r"(?s)found infinite.*unprotected text"
    refuse(match, ledger, tmp_path / "one", spending=BARE, max_epsilon=1e9)
    assert spent(ledger) == 0
    for _ in range(2):  # continued, not spent again
        enter(ledger, tmp_path / "one", spending=BARE, finish=True)
    assert spent(ledger) == 1
    # Other units of the same data are bare, too; other data are not.
    devices = dataclasses.replace(COUNTS, data=f"{COUNTS.data}/devices")
    for spending in (UTTERANCE, devices):
        match = r"(?s)infinite.*1 before it"
        refuse(match, ledger, tmp_path / "two", spending=spending, max_epsilon=5)
    other = dataclasses.replace(COUNTS, data="mini/other")
    enter(ledger, tmp_path / "three", spending=other, max_epsilon=5)


@pytest.mark.parametrize("limit", [float("nan"), 0.0, -1.0])
def test_limits_that_are_none(ledger, tmp_path, limit):
    refuse("max_epsilon", ledger, tmp_path / "exp", max_epsilon=limit)
    assert not (tmp_path / "exp").exists()
