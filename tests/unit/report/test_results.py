"""Tidy rows: figures, epsilons, paired tests of one family, and the ledger."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.fileio import read_json, write_json
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.ledger import entries_beside
from privasr_k2.privacy.people import People
from privasr_k2.privacy.spending import OnlyFor
from privasr_k2.report.readers.privacy import ledger_measures
from privasr_k2.report.results import Row, collect, read_rows, with_holm, write_rows
from privasr_k2.scoring.holm import holm
from privasr_k2.scoring.matched_pairs import compare
from tests.support.made_recipe import (
    REFS,
    changed,
    context,
    figure,
    hyps,
    origin,
    pate,
    perplexities,
    rows_of,
    spend,
    system,
)
from tests.support.made_scores import write_score


def test_figures_and_epsilons(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, pate(tmp_path))
    assert figure(rows, "gnmax", "wer").value == pytest.approx(10.0)
    assert figure(rows, "gnmax", "substitutions").value == 12
    cost = account(events.gaussian(2.0), Relation.ADD_OR_REMOVE_ONE, 1e-5)
    private = figure(rows, "gnmax", "wer")
    assert private.epsilon == private.person_epsilon == pytest.approx(cost.value)
    assert (private.unit, private.delta, private.sampling) == ("speaker", 1e-5, "all")
    assert private.accountant == ("PLD" if cost.pld is not None and cost.pld <= cost.rdp else "RDP")
    assert figure(rows, "public", "wer").epsilon is None
    assert figure(rows, "all_data", "wer").epsilon == math.inf
    assert private.facts["teachers"] == 40 and private.commit == "0.1.0 abc"


def _epsilon(*of: events.Event) -> float:
    return account(events.composed(*of), Relation.ADD_OR_REMOVE_ONE, 1e-5).value


def _spent_row(folder: Path, spent: Path, **more: Any) -> Row:
    one = system(folder, "fl", "fedlm", 3, artifacts={"privacy": str(spent)}, **more)
    return figure(rows_of(folder, [one]), "fl", "wer")


@pytest.mark.parametrize("unit", ["device", "utterance", "meeting"])
def test_a_person_of_unknown_units_has_no_bound(tmp_path: Path, unit: str) -> None:
    row = _spent_row(tmp_path, spend(tmp_path / "fl", 2.0, unit=unit))
    assert row.epsilon == _epsilon(events.gaussian(2.0))
    assert row.person_epsilon == math.inf and row.person_units is None


def test_a_person_is_several_units(tmp_path: Path) -> None:
    pairs = [(f"d{n}", "anna") for n in range(3)] + [("d3", "bob")]
    people = People.of(pairs, source="clients")
    protects = "each {unit} of toy"
    spent = spend(tmp_path / "fl", 4.0, unit="device", people=people)
    row = _spent_row(tmp_path, spent, protects=protects)
    assert row.epsilon == _epsilon(events.gaussian(4.0))
    assert row.person_units == 4 and row.protects == "each device of toy"
    assert row.person_epsilon == pytest.approx(_epsilon(events.gaussian(1.0)))


def test_a_user_is_a_person(tmp_path: Path) -> None:
    row = _spent_row(tmp_path, spend(tmp_path / "fl", 2.0, unit="user"))
    assert row.person_epsilon == row.epsilon and row.person_units == 1


def test_replaced_names_are_not_the_person(tmp_path: Path) -> None:
    names = {"relation": Relation.REPLACE_ONE, "event": events.randomized_response(0.9, 50)}
    people = People.of([(f"m{n}", "anna") for n in range(4)], source="text")
    spent = spend(tmp_path / "fl", 2.0, unit="mention", people=people, **names)
    row = _spent_row(tmp_path, spent)
    assert row.person_epsilon == math.inf and row.person_units == 4
    rows = rows_of(tmp_path, [system(tmp_path, "a", "x", artifacts={"privacy": str(spent)})])
    of_names = figure(rows, "a", "names_epsilon", item="").value
    four = events.repeated(events.randomized_response(0.9, 50), 4)
    assert of_names == pytest.approx(account(four, Relation.REPLACE_ONE, 1e-5).value)


def test_several_releases_of_a_row_have_one_epsilon(tmp_path: Path) -> None:
    spent = [spend(tmp_path / name, noise) for name, noise in (("labels", 2.0), ("words", 4.0))]
    more = spend(tmp_path / "more", 8.0)
    both = {"privacy": str(spent[0]), "privacy_words": str(spent[1])}
    alone = system(tmp_path, "alone", "pate", 5, artifacts={"privacy": str(spent[0])})
    joint = system(tmp_path, "joint", "pate", 3, artifacts=both, protects="each {unit} of toy")
    twice = system(tmp_path, "twice", "pate", 4, artifacts={**both, "privacy_again": str(spent[0])})
    rows = rows_of(tmp_path, [alone, joint, twice])
    parts = [events.gaussian(2.0), events.gaussian(4.0)]
    row = figure(rows, "joint", "wer")
    assert row.epsilon == row.person_epsilon == pytest.approx(_epsilon(*parts))
    assert row.protects == "each speaker of toy" and row.delta == 1e-5
    assert figure(rows, "alone", "wer").epsilon == pytest.approx(_epsilon(parts[0]))
    assert figure(rows, "twice", "wer").epsilon == row.epsilon  # one release is not two
    of = [r for r in rows if (r.system, r.kind, r.metric) == ("joint", "privacy", "epsilon_rdp")]
    items = {r.item: r.value for r in of}
    assert list(items) == ["", "all 2 together", "1: labels", "2: labels"]
    assert items["2: labels"] == account(parts[1], Relation.ADD_OR_REMOVE_ONE, 1e-5).rdp
    assert figure(rows, "joint", "releases", item="").value == 2
    # The ledger has each release once, whatever rows it is in.
    known = [r for r in rows if (r.kind, r.metric) == ("ledger", "releases")]
    assert {r.value for r in known if "of this report" in r.item} == {2}
    assert {r.value for r in known if "in the ledger" in r.item} == {3} and more.is_file()


def test_releases_about_others_are_no_row(tmp_path: Path) -> None:
    spent = [spend(tmp_path / name, 2.0, data=f"toy/{name}") for name in ("train", "test")]
    both = {"privacy": str(spent[0]), "privacy_words": str(spent[1])}
    with pytest.raises(PrivacyError, match="toy/train, toy/test"):
        rows_of(tmp_path, [system(tmp_path, "a", "pate", 3, artifacts=both)])
    lacks = system(tmp_path, "b", "pate", 3, artifacts={"privacy_words": str(spent[1])})
    with pytest.raises(DataError, match=r"privacy\.json of what it protects"):
        rows_of(tmp_path, [lacks])


def test_what_holds_for_small_units_alone_is_infinite(tmp_path: Path) -> None:
    short = OnlyFor("each utterance of at most 7 words", events.laplace_vector(0.1))
    bare = {"event": events.unprotected(), "only_for": short}
    spent = spend(tmp_path / "as_published", 2.0, unit="utterance", **bare)
    found = system(tmp_path, "a", "fmp", 3, artifacts={"privacy": str(spent)})
    rows = rows_of(tmp_path, [found])
    assert figure(rows, "a", "wer").epsilon == math.inf == figure(rows, "a", "wer").person_epsilon
    assert figure(rows, "a", "only_for").value == short.units
    assert figure(rows, "a", "only_for_epsilon").value == pytest.approx(10.0, rel=1e-3)


def test_rows_of_before_say_nothing_of_units(tmp_path: Path) -> None:
    row = figure(rows_of(tmp_path, pate(tmp_path)), "gnmax", "wer").to_json()
    del row["person_units"]
    for unit, expected in (("device", math.inf), ("user", row["epsilon"])):
        found = Row.from_json({**row, "unit": unit, "person_epsilon": None})
        assert found.person_epsilon == expected and found.person_units is None
    public = Row.from_json({**row, "unit": "", "epsilon": None, "person_epsilon": None})
    assert public.person_epsilon is None


def test_every_comparison_is_that_of_the_two_systems_alone(tmp_path: Path) -> None:
    compared = [row for row in rows_of(tmp_path, pate(tmp_path)) if row.against]
    pairs = [(row.system, row.against) for row in compared]
    against_public = [(name, "public") for name in ("all_data", "gnmax", "lnmax")]
    assert pairs == [*against_public, ("lnmax", "gnmax")]
    wrong = {"public": 28, "all_data": 8, "gnmax": 12, "lnmax": 17}
    refs = [ref.split() for ref in REFS.values()]
    for row in compared:
        ours, theirs = (
            [h.split() for h in hyps(wrong[n]).values()] for n in (row.system, row.against)
        )
        test = compare(refs, ours, theirs)
        assert (row.p, row.pairs) == (test.p_value, test.segments)
        assert row.value == pytest.approx(100 * (wrong[row.system] - wrong[row.against]) / 120)
    assert [row.p_holm for row in compared] == holm([row.p for row in compared])


def test_the_interval_is_of_the_same_draws_for_both_systems(tmp_path: Path) -> None:
    # The systems differ in one error of speaker s1, who has 20 words. Of six draws s1 is three or
    # more in 6 %, four or more in 0.9 %, around 2.5 %.
    systems = [system(tmp_path, "b", "x", 19), system(tmp_path, "a", "x", 20, compare_with=("b",))]
    [row] = [row for row in rows_of(tmp_path, systems) if row.against]
    assert (row.low, row.high) == (0.0, pytest.approx(100 * 3 / 120))


def test_all_parts_are_one_family_and_a_pair_without_p_counts(tmp_path: Path) -> None:
    parts = {"x": (REFS, hyps(20)), "y": (REFS, hyps(20)), "z": (REFS, hyps(30))}
    write_score(tmp_path / "b" / "score_test", {**parts, "z": (REFS, REFS)})
    better = {name: (REFS, hyps(15)) for name in "xy"}
    write_score(tmp_path / "a" / "score_test", {**parts, **better})
    artifacts = [{"score_test": str(tmp_path / name / "score_test")} for name in "ba"]
    systems = [
        system(tmp_path, "b", "x", artifacts=artifacts[0]),
        system(tmp_path, "a", "x", artifacts=artifacts[1], compare_with=("b",)),
    ]
    x, y, z = (row for row in rows_of(tmp_path, systems) if row.against)
    assert x.p is not None and x.p_holm == pytest.approx(3 * x.p) and y.p_holm == x.p_holm
    assert z.p is None and z.p_holm is None  # wrong everywhere, and nowhere


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    one = system(tmp_path, "one", "x", 3)

    def refused(name: str, refs: dict[str, str], message: str, speakers: int = 3) -> None:
        write_score(tmp_path / name / "score_test", {"test": (refs, refs)}, num_speakers=speakers)
        artifacts = {"score_test": str(tmp_path / name / "score_test")}
        other = system(tmp_path, name, "x", artifacts=artifacts, compare_with=("one",))
        with pytest.raises(DataError, match=message):
            rows_of(tmp_path, [one, other])

    refused("refs", {**REFS, "u03": "a b d c"}, "the utterances, references and speakers of")
    ids = {("v3" if name == "u03" else name): ref for name, ref in REFS.items()}
    refused("ids", ids, "the utterances, references")
    refused("speakers", REFS, "the utterances, references and speakers", speakers=4)
    write_score(tmp_path / "seed" / "score_test", {"test": (REFS, REFS)})
    path = tmp_path / "seed" / "score_test" / "wer.json"
    told = read_json(path)
    write_json(path, {**told, "options": {**told["options"], "seed": 7}})
    artifacts = {"score_test": str(path.parent)}
    other = system(tmp_path, "seed", "x", artifacts=artifacts, compare_with=("one",))
    with pytest.raises(DataError, match="the options of"):
        rows_of(tmp_path, [one, other])


def test_a_guarantee_needs_its_release(tmp_path: Path) -> None:
    *_, last = pate(tmp_path)
    without = changed(last, artifacts={"score_test": last.artifacts["score_test"]}, compare_with=())
    with pytest.raises(DataError, match=r"privacy\.json of what it protects"):
        rows_of(tmp_path, [without])
    with pytest.raises(DataError, match="at least one system"):
        rows_of(tmp_path, [])
    with pytest.raises(DataError, match="a kind of artifact"):
        rows_of(tmp_path, [changed(last, artifacts={"privcay": "x"}, protects="", compare_with=())])


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, pate(tmp_path))
    write_rows(tmp_path / "results.jsonl", rows)
    assert read_rows(tmp_path / "results.jsonl") == rows
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert len({tuple(line) for line in lines if line["system"] == "gnmax"}) == 1
    assert all(line["value"] is None or not isinstance(line["value"], bool) for line in lines)
    for name in ("epsilon", "person_epsilon"):  # a string that pandas takes for a number
        assert {line[name] for line in lines if line["system"] == "all_data"} == {"inf"}
    assert {line["person_units"] for line in lines if line["system"] == "gnmax"} == {1}
    (tmp_path / "results.jsonl").write_text('{"system": "x"}\n')
    with pytest.raises(DataError, match="a row of report"):
        read_rows(tmp_path / "results.jsonl")


def test_a_comparison_that_two_recipes_declare_is_one(tmp_path: Path) -> None:
    systems = pate(tmp_path)
    rows = rows_of(tmp_path, systems)
    dpsgd = collect(systems[:2], origin(None, "dpsgd"), context(systems))
    both = with_holm([*rows, *dpsgd])
    assert [row.p_holm for row in both[: len(rows)]] == [row.p_holm for row in rows]
    again = [row for row in both[len(rows) :] if row.against]
    assert [row.p_holm for row in again] == [row.p_holm for row in rows if row.against][:1]
    elsewhere = [replace(row, corpus="other") for row in dpsgd]
    more = [row for row in with_holm([*rows, *elsewhere]) if row.against]
    assert [row.p_holm for row in more] == holm([row.p for row in more]) and len(more) == 5


def test_perplexities_are_tested_on_the_same_draws(tmp_path: Path) -> None:
    path = perplexities(tmp_path / "p.json", {"before": 100.0, "after": 80.0})
    artifacts = [{"perplexity": f"{path}#{name}"} for name in ("exp/lm/before", "after")]
    before = system(tmp_path, "before", "public", artifacts=artifacts[0])
    after = system(tmp_path, "after", "x", artifacts=artifacts[1], compare_with=("before",))
    rows = rows_of(tmp_path, [before, after])
    [row] = [row for row in rows if row.against]
    # All groups are easier by as much: the draws agree.
    assert (row.metric, row.pairs) == ("ppl_change", 6)
    assert (row.value, row.low, row.high) == pytest.approx((-20.0, -20.0, -20.0))
    assert row.p == pytest.approx(2 / 2001)
    own = figure(rows, "after", "ppl")
    assert own.low is not None and own.high is not None and own.low < 80.0 < own.high
    assert own.low == pytest.approx(80 * math.exp(-0.2), rel=0.1)
    assert (row.clusters, own.clusters) == (6, 6)


def test_nothing_is_drawn_from_five_groups_or_speakers(tmp_path: Path) -> None:
    """The figures and their changes stay; MAPSSWE tests segments, whoever speaks them."""
    systems = []
    for name, ppl, wrong, others in (("before", 100.0, 20, ()), ("after", 80.0, 9, ("before",))):
        path = perplexities(tmp_path / f"{name}.json", {"lm": ppl}, groups=5)
        folder = tmp_path / name / "score_test"
        write_score(folder, {"test": (REFS, hyps(wrong))}, num_speakers=5)
        artifacts = {"perplexity": f"{path}#lm", "score_test": str(folder)}
        systems.append(system(tmp_path, name, "x", artifacts=artifacts, compare_with=others))
    rows = rows_of(tmp_path, systems)
    wer, ppl = sorted((row for row in rows if row.against), key=lambda row: -(row.p or 0.0))
    assert (ppl.metric, ppl.low, ppl.high, ppl.p, ppl.p_holm) == ("ppl_change", *[None] * 4)
    assert ppl.value == pytest.approx(-20.0) and (ppl.pairs, ppl.clusters) == (5, 5)
    refs = [ref.split() for ref in REFS.values()]
    ours, theirs = ([h.split() for h in hyps(wrong).values()] for wrong in (9, 20))
    test = compare(refs, ours, theirs)
    assert (wer.p, wer.pairs, wer.clusters) == (test.p_value, test.segments, 5)
    assert (wer.low, wer.high) == (None, None) and wer.value == pytest.approx(-100 * 11 / 120)
    assert wer.p_holm == 2 * wer.p  # the test that was not made counts in the family
    for name, expected in (("before", (100.0, 100 * 20 / 120)), ("after", (80.0, 100 * 9 / 120))):
        found = [figure(rows, name, metric) for metric in ("ppl", "wer")]
        assert [row.value for row in found] == pytest.approx(expected)
        assert {(row.low, row.high, row.clusters) for row in found} == {(None, None, 5)}


def test_intervals_of_older_scores_are_left_out_below_the_limit(tmp_path: Path) -> None:
    for speakers, expected in ((5, (None, None)), (6, (5.0, 15.0))):
        folder = tmp_path / f"{speakers}" / "score_test"
        write_score(folder, {"test": (REFS, hyps(12))}, num_speakers=speakers)
        told = read_json(folder / "wer.json")
        told["parts"]["test"]["interval"] = {"low": 0.05, "high": 0.15, "confidence": 0.95}
        write_json(folder / "wer.json", told)
        one = system(tmp_path, f"{speakers}", "x", artifacts={"score_test": str(folder)})
        row = figure(rows_of(tmp_path, [one]), f"{speakers}", "wer")
        assert (row.value, (row.low, row.high)) == (10.0, expected)


def _ledger(rows: list, which: str) -> dict[str, float]:
    return {row.item: row.value for row in rows if row.metric == which}


def test_a_run_that_was_made_again_is_in_the_ledger(tmp_path: Path) -> None:
    spent = [spend(tmp_path / "one", 2.0), spend(tmp_path / "two", 2.0, data="toy/test")]
    entries = [entry for path in spent for entry in entries_beside(path)]
    spend(tmp_path / "tried_before", 2.0)
    spend(tmp_path / "of_others", 2.0, data="ami/train")
    told = ledger_measures(tmp_path / "ledger.json", entries)
    releases = _ledger(told, "releases")
    total = "all releases about the people of toy/train, for a whole person"
    assert next(iter(releases)) == total and releases[total] == 2
    name = "toy/train, each speaker, add or remove one: all "
    assert releases[f"{name}of this report"] == 1 and releases[f"{name}in the ledger"] == 2
    assert not any("ami" in item for item in releases)
    twice = account(events.repeated(events.gaussian(2.0), 2), Relation.ADD_OR_REMOVE_ONE, 1e-5)
    assert _ledger(told, "epsilon")[f"{name}in the ledger"] == pytest.approx(twice.value)


def test_what_was_used_as_it_is_by_another_name(tmp_path: Path) -> None:
    entries = entries_beside(spend(tmp_path / "one", 2.0))
    spend(tmp_path / "text", 2.0, data="toy/train and toy/dev", event=events.unprotected())
    told = _ledger(ledger_measures(tmp_path / "ledger.json", entries), "epsilon")
    assert [value for item, value in told.items() if item.endswith("ledger")] == [math.inf]


def test_another_ledger_or_none(tmp_path: Path) -> None:
    entries = entries_beside(spend(tmp_path / "one", 2.0))
    with pytest.raises(PrivacyError, match="a ledger without it"):
        ledger_measures(tmp_path / "other" / "ledger.json", entries)
    assert ledger_measures(tmp_path / "no_ledger.json", []) == []
    items = list(dict.fromkeys(m.item for m in ledger_measures(None, entries)))
    assert len(items) == 3 and items[-1].endswith("all of this report")


def test_totals_over_all_releases_of_the_same_people_come_first(tmp_path: Path) -> None:
    """Devices dealt twice from the same people, who are together on other data, too."""
    pairs = [(f"d{n}", "anna") for n in range(2)]
    people = People.of(pairs, source="clients")
    devices = {"unit": "device", "people": people}
    shown = spend(tmp_path / "one", 4.0, data="toy/adapt/devices_40", **devices)
    spend(tmp_path / "two", 4.0, data="toy/adapt/devices_41", **devices)
    entries = entries_beside(shown)
    told = ledger_measures(tmp_path / "ledger.json", entries)
    epsilons, of_person = _ledger(told, "epsilon"), _ledger(told, "person_epsilon")
    person, unit, *single = epsilons
    assert "whole person" in person and "each device" in unit
    assert all("devices_40, each device" in item for item in single)
    assert epsilons[person] == pytest.approx(_epsilon(*[events.gaussian(2.0)] * 2))
    assert epsilons[unit] == pytest.approx(_epsilon(*[events.gaussian(4.0)] * 2))
    assert of_person[person] == of_person[unit] == epsilons[person]
    assert of_person[single[0]] == pytest.approx(_epsilon(events.gaussian(2.0)))


def test_totals_of_names_and_of_other_people_stand_apart(tmp_path: Path) -> None:
    whose = {name: People.of([("u", name)], source="text") for name in ("anna", "bob")}
    names = {"relation": Relation.REPLACE_ONE, "event": events.randomized_response(0.9, 50)}
    spent = [
        spend(tmp_path / "anna", 2.0, unit="user", people=whose["anna"]),
        spend(tmp_path / "bob", 4.0, unit="user", people=whose["bob"]),
        spend(tmp_path / "names", 1.0, unit="mention", people=whose["anna"], **names),
    ]
    entries = [entry for path in spent for entry in entries_beside(path)]
    told = ledger_measures(tmp_path / "ledger.json", entries)
    epsilons, of_person = _ledger(told, "epsilon"), _ledger(told, "person_epsilon")
    totals = [item for item in epsilons if item.startswith("all releases")]
    [anna, _, of_person_names, of_names, bob, _] = totals
    assert epsilons[anna] == _epsilon(events.gaussian(2.0)) == of_person[anna]
    assert epsilons[bob] == _epsilon(events.gaussian(4.0)) and bob.startswith(anna)
    assert of_person_names.endswith("the names of a whole person")
    assert _ledger(told, "unit")[of_person_names] == "names of one person"
    assert of_names.endswith("the names of each mention") and of_person[of_names] == math.inf
    assert math.isfinite(epsilons[of_names])
