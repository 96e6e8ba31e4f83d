"""What a release spends, and which releases are summed."""

from __future__ import annotations

import dataclasses
import json
import math
from decimal import Decimal

import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.spending import OnlyFor, Spending, guarantees, shown

AOR, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE
COUNTS = Spending(
    data="mini/train",
    released="word counts",
    unit="user",
    units=48,
    relation=AOR,
    event=events.repeated(events.gaussian(4.0), 10),
    sampling="all units in every round",
    delta=1e-5,
    does_not_cover=("the list of words, which is public",),
)


def spending(**changes):
    """``COUNTS`` with other values."""
    return dataclasses.replace(COUNTS, **changes)


def test_json_returns():
    text = json.dumps(COUNTS.to_json())
    assert Spending.from_json(json.loads(text), "here") == COUNTS


@pytest.mark.parametrize(
    "changes",
    [
        {"unit": "users"},
        {"delta": 0.1},
        {"delta": 0.0},
        {"units": 0},
        {"data": ""},
        {"does_not_cover": ["a list"]},
        {"event": events.randomized_response(0.5, 10)},
        {"event": events.poisson_sampled(0.1, events.gaussian(1.0)), "relation": REPLACE},
    ],
)
def test_what_cannot_be_spent(changes):
    with pytest.raises(PrivacyError):
        spending(**changes)


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.pop("unit"),
        lambda v: v.update(more=1),
        lambda v: v.update(relation="neighbours"),
        lambda v: v["event"].update(count=-1),
    ],
)
def test_json_of_something_else(change):
    value = COUNTS.to_json()
    change(value)
    with pytest.raises(PrivacyError, match=r"^ledger\.json: entry 1"):
        Spending.from_json(value, "ledger.json: entry 1")


def test_releases_of_one_kind_are_composed():
    found = guarantees([COUNTS, spending(event=events.pure(0.5), released="a mean")])
    together = events.composed(COUNTS.event, events.pure(0.5))
    assert len(found) == 1 and found[0].releases == 2
    assert found[0].epsilon == account(together, AOR, 1e-5)
    assert found[0].released == ("word counts", "a mean")
    assert found[0].does_not_cover == COUNTS.does_not_cover


@pytest.mark.parametrize(
    "changes", [{"unit": "utterance"}, {"relation": REPLACE}, {"data": "mini/adapt"}]
)
def test_different_units_relations_and_data_are_never_summed(changes):
    found = guarantees([COUNTS, spending(**changes)])
    assert [g.releases for g in found] == [1, 1]
    assert found[0].epsilon == guarantees([COUNTS])[0].epsilon
    told = any("another unit or relation" in sentence for sentence in found[0].does_not_cover)
    assert told == ("data" not in changes)


def test_delta_is_the_smallest_or_the_one_asked_for():
    releases = [COUNTS, spending(delta=1e-7)]
    assert guarantees(releases)[0].epsilon.delta == 1e-7
    assert guarantees(releases, delta=1e-6)[0].epsilon.delta == 1e-6
    with pytest.raises(PrivacyError, match="1/units"):
        guarantees(releases, delta=0.05)


def test_an_unprotected_release_bares_every_unit_and_relation_of_its_data():
    bare = spending(event=events.unprotected(), released="text as it is")
    [alone] = guarantees([bare])
    assert alone.epsilon.value == math.inf and "infinite" in "\n".join(alone.lines())
    [composed] = guarantees([COUNTS, bare])
    assert composed.epsilon.value == math.inf and composed.releases == 2
    utterance = spending(unit="utterance", relation=REPLACE)
    found = {g.unit: g for g in guarantees([utterance, bare, spending(data="mini/other")])}
    assert found["utterance"].epsilon.value == math.inf and found["utterance"].releases == 2
    assert found["utterance"].released == ("word counts", "text as it is")
    assert not any("text as it is" in sentence for sentence in found["utterance"].does_not_cover)
    other = guarantees([bare, spending(data="mini/other")])[1]
    assert other.data == "mini/other" and other.epsilon == guarantees([COUNTS])[0].epsilon


@pytest.mark.parametrize("data", ["mini", "mini/train/devices", "mini/train and mini/adapt"])
def test_an_unprotected_release_bares_what_its_data_hold_and_are_part_of(data):
    bare = spending(data=data, event=events.unprotected(), released="text as it is")
    found = {g.data: g for g in guarantees([bare, COUNTS, spending(data="mini/training")])}
    assert found["mini/train"].epsilon.value == math.inf and found["mini/train"].releases == 2
    told = "\n".join(found["mini/train"].does_not_cover)
    assert "same people" not in told, "it is counted, so that it need not be named"
    assert (found["mini/training"].epsilon.value == math.inf) == (data == "mini")


def test_releases_under_related_names_are_named_and_not_summed():
    devices = spending(data="mini/train/devices", released="rounds of training")
    found = guarantees([COUNTS, devices])
    assert [g.epsilon for g in found] == [guarantees([COUNTS])[0].epsilon] * 2
    told = ["\n".join(guarantee.does_not_cover) for guarantee in found]
    assert "mini/train/devices" in told[0] and "rounds" in told[0] and "word counts" in told[1]


@pytest.mark.parametrize(
    "epsilon", [1e-7, 0.00123, 0.9175, 0.99999, 1.0, 7.0499, 9.9999, 228.74, 12345.6]
)
def test_what_is_shown_is_never_smaller(epsilon):
    text = shown(epsilon)
    assert Decimal(epsilon) <= Decimal(text) <= Decimal(epsilon) * Decimal("1.01")


def test_lines_and_row_carry_everything():
    (found,) = guarantees([COUNTS])
    text = "\n".join(found.lines())
    parts = ("mini/train", "user of 48", "1e-05", "RDP", "PLD", AOR.value, "all units", "public")
    assert all(part in text for part in parts)
    row = found.row()
    assert row["unit"] == "user" and row["delta"] == "1e-05" and row["neighbours"] == AOR.value
    assert float(row["epsilon (RDP)"]) >= float(row["epsilon (PLD)"])


SHORT = OnlyFor("each utterance of at most 7 words", events.repeated(events.laplace_vector(0.1), 3))
UNCLIPPED = spending(unit="utterance", event=events.unprotected(), only_for=SHORT)


def test_what_holds_for_small_units_alone_is_no_guarantee():
    [found] = guarantees([UNCLIPPED])
    assert found.epsilon.value == found.person.value == math.inf
    assert found.only_for == (SHORT.units,) and found.only_for_epsilon is not None
    assert found.only_for_epsilon == account(SHORT.event, AOR, 1e-5)
    assert SHORT.units in "\n".join(found.lines()) and SHORT.units in found.row().values()
    [twice] = guarantees([UNCLIPPED, spending(unit="utterance")])
    together = events.composed(SHORT.event, COUNTS.event)
    assert twice.only_for_epsilon == account(together, AOR, 1e-5)
    [bare] = guarantees([UNCLIPPED, spending(unit="utterance", event=events.unprotected())])
    assert bare.only_for_epsilon is None
    of_user, of_utterance = guarantees([COUNTS, UNCLIPPED])
    assert math.isinf(of_user.epsilon.value)
    assert not of_user.only_for and of_user.only_for_epsilon is None  # they are no users
    assert of_utterance.only_for == found.only_for
    with pytest.raises(PrivacyError, match="only_for"):
        spending(only_for=SHORT)


def test_json_of_what_holds_for_small_units():
    values = json.loads(json.dumps(UNCLIPPED.to_json()))
    assert Spending.from_json(values, "here") == UNCLIPPED
    values["only_for"] = {"units": "all"}
    with pytest.raises(PrivacyError, match="only_for"):
        Spending.from_json(values, "here")


def test_an_entry_from_before_only_for_holds_for_small_units_alone():
    sentence = "a utterance of more than 7 words: nothing is clipped"
    changes = {"unit": "utterance", "event": SHORT.event, "does_not_cover": (sentence,)}
    before = spending(**changes).to_json()
    assert "only_for" not in before
    found = Spending.from_json(before, "here")
    assert found == spending(**{**changes, "event": events.unprotected(), "only_for": SHORT})
    assert Spending.from_json(found.to_json(), "here") == found
