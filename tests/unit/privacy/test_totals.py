"""Totals over releases of different units about the same people."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import dp_accounting as dp
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import brentq
from scipy.stats import norm

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.groups import for_group
from privasr_k2.privacy.spending import Spending
from privasr_k2.privacy.totals import PERSON, Spent, Total, joint_guarantee, ledger_totals, totals

ADD, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE
NOISE = events.gaussian(2.0)
DELTA = 1e-5


def spent(
    unit: str,
    people: str | None = "ab",
    *,
    event: events.Event = NOISE,
    relation: Relation = ADD,
    data: str = "mini/test",
    person_units: int | None = None,
) -> Spent:
    spending = Spending(
        data=data,
        released="something",
        unit=unit,
        units=1000,
        relation=relation,
        event=event,
        sampling="all units in every round",
        delta=DELTA,
        does_not_cover=(),
        person_units=person_units,
    )
    return Spent(spending, None if people is None else frozenset(people))


def by_level(new: Spent, *before: Spent) -> dict[str, Total]:
    return {total.level: total for total in totals(new, before)}


def epsilon(*of: events.Event, relation: Relation = ADD) -> float:
    return account(events.composed(*of), relation, DELTA).value


def test_of_a_single_release() -> None:
    found = by_level(spent("user"))
    assert {level: total.releases for level, total in found.items()} == {PERSON: 1, "user": 1}
    assert found[PERSON].epsilon.value == found["user"].epsilon.value == epsilon(NOISE)


def test_units_of_one_person_are_a_group() -> None:
    found = by_level(spent("device", person_units=4))
    assert found["device"].epsilon.value == epsilon(NOISE)
    assert found[PERSON].epsilon.value == epsilon(for_group(NOISE, 4))
    assert math.isinf(by_level(spent("device"))[PERSON].epsilon.value)


def test_other_units_of_the_same_people_count() -> None:
    before = [spent("user"), spent("meeting", person_units=2)]
    found = by_level(spent("utterance", person_units=8), *before)
    assert found[PERSON].releases == found["utterance"].releases == 3
    whole = epsilon(NOISE, for_group(NOISE, 2), for_group(NOISE, 8))
    assert found[PERSON].epsilon.value == pytest.approx(whole)
    # Without one utterance the data of a user, or of a meeting, are others: removed, and added.
    inside = epsilon(NOISE, for_group(NOISE, 2), for_group(NOISE, 2))
    assert found["utterance"].epsilon.value == pytest.approx(inside)


def test_a_unit_that_is_no_part_counts_for_the_person_alone() -> None:
    found = by_level(spent("device", person_units=1), spent("call", person_units=1))
    [unit] = found.keys() - {PERSON}
    assert found[PERSON].releases == 2 and found[unit].releases == 1
    assert found[unit].epsilon.value == epsilon(NOISE)


@pytest.mark.parametrize(
    ("people", "data", "related"),
    [
        ("bc", "other/name", True),  # the same person under another name of data
        ("cd", "mini/test", False),  # other people, whatever the data are called
        (None, "mini/test/part", True),  # not known: the name tells
        (None, "mini/train", False),
    ],
)
def test_who_is_related(people: str | None, data: str, related: bool) -> None:
    found = by_level(spent("user", "ab"), spent("user", people, data=data))
    assert found[PERSON].releases == 1 + related


def test_the_person_in_most_releases_counts() -> None:
    found = by_level(
        spent("user", "abc"), spent("user", "a"), spent("user", "bc"), spent("user", "c")
    )
    assert found[PERSON].releases == 3
    assert found[PERSON].epsilon.value == pytest.approx(epsilon(NOISE, NOISE, NOISE))


def test_names_count_among_each_other_and_never_for_the_person() -> None:
    replaced = events.randomized_response(0.9, 50)
    names = {"event": replaced, "relation": REPLACE, "person_units": 1}
    found = by_level(spent("document", **names), spent("mention", **names))
    assert found["mention"].epsilon.value == epsilon(replaced, replaced, relation=REPLACE)
    # What is released of all that a person says counts for the names, whichever comes first.
    text, other = spent("mention", **names), spent("user")
    first, last = by_level(text, other), by_level(other, text)
    assert first.keys() == last.keys() == {PERSON, "mention"}
    for level, total in first.items():
        assert total.releases == last[level].releases == 2
        assert total.epsilon.value == pytest.approx(last[level].epsilon.value)
    [alone, of_names] = ledger_totals([spent("user"), spent("mention", **names)])
    assert (alone.totals[0].releases, of_names.totals[0].releases) == (1, 2)


def test_a_large_delta_of_the_last_release_loosens_nothing() -> None:
    loose = spent("user")
    loose = replace(loose, spending=replace(loose.spending, delta=5e-4))
    [person, _] = totals(loose, [spent("user")])
    assert person.epsilon.delta == DELTA
    assert person.epsilon.value == epsilon(NOISE, NOISE)


def test_both_relations_together() -> None:
    sampled = events.repeated(events.poisson_sampled(0.1, NOISE), 5)
    replace = spent("user", event=events.gaussian(4.0), relation=REPLACE)
    doubled = by_level(spent("user"), replace)[PERSON]
    assert doubled.relation is REPLACE
    assert doubled.epsilon.value == epsilon(NOISE, events.gaussian(4.0), relation=REPLACE)
    # No bound for replacing with Poisson samples: by the triangle inequality of (epsilon, delta).
    found = by_level(spent("user", event=sampled), replace)[PERSON].epsilon.value
    assert epsilon(events.gaussian(4.0), relation=REPLACE) + 2 * epsilon(sampled) < found < 20


def test_unprotected_text_is_infinite_for_all() -> None:
    found = by_level(spent("user"), spent("user", event=events.unprotected()))
    assert math.isinf(found[PERSON].epsilon.value)


def test_of_a_whole_ledger() -> None:
    names = {"event": events.randomized_response(0.9, 50), "relation": REPLACE}
    book = [
        spent("user", "ab"),
        spent("user", "cd"),
        spent("device", "bc", person_units=2),
        spent("mention", "a", person_units=1, **names),
        spent("utterance", "xy", data="ami/train", person_units=4),
    ]
    mini, of_names, ami = ledger_totals(book)
    assert [found.data for found in (mini, of_names, ami)] == [("mini/test",)] * 2 + [
        ("ami/train",)
    ]
    assert [found.names_alone for found in (mini, of_names, ami)] == [False, True, False]
    # b, and c, are in two releases; nobody is in three.
    person, unit = mini.totals
    assert (person.level, person.releases, unit.level) == (PERSON, 2, "device")
    assert person.epsilon.value == pytest.approx(epsilon(NOISE, for_group(NOISE, 2)))
    assert unit.epsilon.value == pytest.approx(epsilon(NOISE, for_group(NOISE, 2)))
    assert of_names.totals[1].level == "mention"
    assert ami.totals[0].epsilon.value == pytest.approx(epsilon(for_group(NOISE, 4)))


def test_of_a_ledger_is_what_a_limit_is_held_against() -> None:
    book = [spent("user", "ab"), spent("meeting", None, person_units=2), spent("user", "b")]
    [found] = ledger_totals(book, delta=DELTA)
    assert {t.level: t.epsilon for t in found.totals} == {
        level: total.epsilon for level, total in by_level(book[2], *book[:2]).items()
    }


def test_units_of_one_rank_have_totals_of_their_own() -> None:
    book = [spent("call", event=events.gaussian(1.0)), spent("device"), spent("user")]
    [found] = ledger_totals(book)
    assert found.totals[1].level == "call"
    inside = epsilon(events.gaussian(1.0), for_group(NOISE, 2))
    assert found.totals[1].epsilon.value == pytest.approx(inside)
    for new in range(3):  # whichever comes last, the limit is held against the same
        before = [*book[:new], *book[new + 1 :]]
        assert by_level(book[new], *before)["call"].epsilon.value == pytest.approx(inside)
    assert ledger_totals([]) == []


def joint_by_dp_accounting(delta: float, *of: tuple[float, int]) -> tuple[float, float]:
    """Epsilon by RDP and by PLD of Gaussian mechanisms (noise multiplier, how often) together."""
    accountants = (RdpAccountant(), PLDAccountant())
    for accountant in accountants:
        for noise, times in of:
            accountant.compose(dp.GaussianDpEvent(noise), times)
    by_rdp, by_pld = (accountant.get_epsilon(delta) for accountant in accountants)
    return float(by_rdp), float(by_pld)


@pytest.mark.parametrize("data", ["mini/test", "mini/test/part"])
def test_two_releases_have_one_epsilon_as_dp_accounting_composes_them(data: str) -> None:
    labels = spent("speaker", event=events.repeated(events.gaussian(37.5), 1951)).spending
    words = spent("speaker", event=events.repeated(events.gaussian(4.0), 40), data=data).spending
    joint = joint_guarantee([labels, words])
    by_rdp, by_pld = joint_by_dp_accounting(DELTA, (37.5, 1951), (4.0, 40))
    assert joint.epsilon.pld == pytest.approx(by_pld, rel=1e-3)
    assert joint.epsilon.value == pytest.approx(min(by_rdp, by_pld), rel=1e-3)
    assert joint.epsilon.rdp <= by_rdp * 1.001
    alone = [joint_guarantee([one]).epsilon.value for one in (labels, words)]
    # More than each, less than the sum that one would write by hand.
    assert max(alone) < joint.epsilon.value < 0.95 * sum(alone)
    assert (joint.unit, joint.releases, joint.person_units) == ("speaker", 2, 1)
    assert joint.person.value == pytest.approx(joint.epsilon.value)


def test_labels_and_words_share_epsilon_8_as_the_docs_say() -> None:
    """Gaussian mechanisms compose like one (Dong et al. 2022, corollary 2)."""

    def delta(mu: float, epsilon: float) -> float:
        below = norm.cdf(-epsilon / mu - mu / 2)
        return float(norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * below)

    own = [brentq(lambda mu, e=e: delta(mu, e) - DELTA, 1e-3, 10.0) for e in (4.0, 6.0)]
    exact = brentq(lambda epsilon: delta(math.hypot(*own), epsilon) - DELTA, 0.0, 50.0)
    spendings = [spent("speaker", event=events.gaussian(1 / mu)).spending for mu in own]
    found = joint_guarantee(spendings).epsilon.value
    assert found == pytest.approx(exact, abs=2e-3)
    page = (Path(__file__).parents[3] / "docs/pate.md").read_text(encoding="utf-8")
    assert f"come to {exact:.2f} with Gaussian noise" in " ".join(page.split())


def test_a_joint_guarantee_of_two_units_is_for_the_finer_one_and_for_the_person() -> None:
    utterances, words = spent("utterance", person_units=8), spent("speaker")
    joint = joint_guarantee([utterances.spending, words.spending])
    assert (joint.unit, joint.releases, joint.person_units) == ("utterance", 2, 8)
    # Without one utterance a speaker's votes are others: removed, and added.
    assert joint.epsilon.value == pytest.approx(epsilon(NOISE, for_group(NOISE, 2)))
    assert joint.person.value == pytest.approx(epsilon(NOISE, for_group(NOISE, 8)))


def test_a_joint_guarantee_with_replaced_names_is_for_names() -> None:
    replaced = events.randomized_response(0.9, 50)
    names = spent("mention", event=replaced, relation=REPLACE, person_units=4).spending
    joint = joint_guarantee([names, spent("user").spending])
    assert joint.names_alone and (joint.unit, joint.releases) == ("mention", 2)
    alone = account(events.repeated(replaced, 4), REPLACE, DELTA).value
    assert alone < joint.person.value < math.inf
    # A name that is another one makes a user's data others: replaced, once.
    assert joint.epsilon.value == pytest.approx(epsilon(replaced, NOISE, relation=REPLACE))
    assert joint.epsilon.value < joint.person.value


def test_releases_about_others_have_no_joint_guarantee() -> None:
    here, there = (spent("user", data=data).spending for data in ("mini/train", "mini/test"))
    with pytest.raises(PrivacyError, match="mini/train, mini/test"):
        joint_guarantee([here, there])
    with pytest.raises(PrivacyError, match="no release"):
        joint_guarantee([])
