"""The report of recipes pate and dpsgd from made results: epsilons, tests, claims, what is too weak."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.fileio import write_json
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.ledger import Entry, Ledger
from privasr_k2.privacy.spending import Spending, shown
from privasr_k2.scoring.comparisons import holm
from privasr_k2.scoring.corpus_info import CorpusInfo
from privasr_k2.scoring.curves import draw
from privasr_k2.scoring.pate_comparisons import (
    AGAINST_CLEAN,
    AGAINST_DPSGD,
    AGAINST_PUBLIC,
    ARCHITECTURE,
    MECHANISM,
    compare_systems,
    reason,
)
from privasr_k2.scoring.pate_curves import epsilon_panels, teacher_panels
from privasr_k2.scoring.pate_report import PateInputs, PateReportOptions, exact_epsilons, pate_report
from privasr_k2.scoring.pate_results import (
    Name,
    System,
    Votes,
    name_of,
    parse_system,
    read_agreement,
    read_entries,
    read_scores,
    read_votes,
)
from privasr_k2.scoring.report import compare_scores
from tests.unit.scoring.test_report import _write as write_score

OPTIONS = PateReportOptions(
    "./run.sh x pate", level=0.05, weak_wer=80.0, target_epsilon=8.0, target_delta=1e-5, phones=False,
    cmudict="none", g2p="none",
)  # fmt: skip
RIGHT, ONE, TWO, NONE = "a b c d", "a x c d", "a x c y", "x x x x"
#: Hypotheses of 12 utterances with so many errors, unevenly spread.
HYPS = {
    "few": [RIGHT] * 10 + [ONE] * 2,
    "some": [RIGHT] * 4 + [ONE] * 5 + [TWO] * 3,
    "many": [ONE] * 2 + [TWO] * 7 + [NONE] * 3,
    "all": [NONE] * 12,
}
ABOUT = {
    "format": "privasr_k2 labels 1", "vote": "utterance", "teachers": 15, "noise": 40.0, "votes_asked": 120,
    "votes_answered": 100, "utterances_answered": 98,
    "as_published": {
        "guarantee": False, "K": 100, "scale": 40.0, "delta": 1e-3,
        "epsilon": {"published_equation": 2000.0, "published_figures": 1.25},
    },
}  # fmt: skip


def entry(noise: float, released: str = "labels") -> Entry:
    spending = Spending(
        data="x/train", released=released, unit="speaker", units=74, relation=Relation.ADD_OR_REMOVE_ONE,
        event=events.gaussian(noise), sampling="one vote of each teacher in every query", delta=1e-5,
        does_not_cover=("the roster",),
    )  # fmt: skip
    return Entry(f"{noise:032.3f}", "f", spending, "code", "time")


def scores_of(folder: Path, **of: str) -> dict[Name, Any]:
    """Scores of systems by ``<model>__<system>``, in which errors are those of :data:`HYPS`."""
    folders = []
    for name, how in of.items():
        model, _, system = name.partition("__")
        folders.append(folder / model / system)
        write_score(folders[-1] / "score_test", list(HYPS[how]))
    return read_scores([one / "score_test" for one in folders])


def inputs(scores: Any, entries: dict[Name, Entry] | None = None, **more: Any) -> PateInputs:
    given: dict[str, Any] = {
        "scores": scores, "entries": entries or {}, "votes": {}, "agreement": {},
        "corpus": CorpusInfo(name="x", synthetic=False, scored_units={}),
    }  # fmt: skip
    return PateInputs(**{**given, **more})


def row_of(text: str, heading: str, beginning: str) -> dict[str, str]:
    """The cells of a row by column, in the first table behind a heading."""
    lines = [line for line in text[text.index(heading) :].splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return dict(zip(cells[0], next(row for row in cells if row[0].startswith(beginning)), strict=True))


def test_whose_speech_it_is(tmp_path: Path) -> None:
    given = inputs(scores_of(tmp_path, las__public="some"), sides=[{"side": "private", "speakers": "33"}])
    assert row_of(pate_report(given, OPTIONS), "Whose speech it is", "private")["speakers"] == "33"
    assert "Whose speech" not in pate_report(inputs(given.scores), OPTIONS)


def test_both_epsilons_and_the_test_against_public(tmp_path: Path) -> None:
    found = scores_of(tmp_path, rnnt__public="many", rnnt__gnmax_15_8="few", rnnt__nonprivate="few")
    private, public = Name("rnnt", "gnmax_15_8"), Name("rnnt", "public")
    votes = Votes("utterance", 15, 40.0, 120, 100, 98, ABOUT["as_published"])  # type: ignore[arg-type]
    text = pate_report(inputs(found, {private: entry(2.0)}, votes={private: votes}), OPTIONS)
    cost = account(events.gaussian(2.0), Relation.ADD_OR_REMOVE_ONE, 1e-5)
    row = row_of(text, "## RNN-T", "GNMax, 15 teachers, epsilon 8")
    assert row["WER %"] == "4.17" and row["exact epsilon"] == shown(cost.value) and row["delta"] == "1e-05"
    assert row["unit"] == "speaker" and row["neighbours"] == "add or remove one"
    assert (row["votes asked"], row["answered"], row["labels"]) == ("120", "100", "98")
    tests = [
        compare_scores(found[name], found[public], "test_x") for name in (private, Name("rnnt", "nonprivate"))
    ]
    [p_value, _] = holm([test.p_value for test in tests])
    assert p_value is not None and p_value < 0.05
    assert row["p"] == ("<0.001" if p_value < 0.001 else f"{p_value:.3f}")
    ours, theirs = (found[name].parts["test_x"].counts.percent for name in (private, public))
    assert row["change against public %"] == f"{100 * (ours / theirs - 1):+.2f}"  # type: ignore[operator]
    assert row_of(text, "## RNN-T", "public only")["exact epsilon"] == "–"
    assert row_of(text, "## RNN-T", "not private")["exact epsilon"] == "infinite"
    claim = row_of(text, "## What is guaranteed", "RNN-T: GNMax")
    assert claim["as published, no guarantee: scale 1/lambda (eq. 4)"] == "2000"
    assert claim["as published, no guarantee: scale lambda (figures)"] == "1.25"
    assert (claim["K"], claim["scale"], claim["units"]) == ("100", "40", "74")
    assert claim["epsilon (RDP)"] == shown(cost.rdp)
    assert (
        "1 of 1 systems with exact epsilon at most 8 at delta 1e-05 or less have a significantly lower"
        in text
    )
    assert "None of its 15 teachers was scored" in text


@pytest.mark.parametrize(("noise", "delta"), [(0.4, 1e-5), (2.0, 1e-4)])
def test_a_guarantee_beyond_the_target_means_nothing(tmp_path: Path, noise: float, delta: float) -> None:
    found = scores_of(tmp_path, rnnt__public="many", rnnt__gnmax_15_8="few")
    one = entry(noise)
    one = replace(one, spending=replace(one.spending, delta=delta))
    text = pate_report(inputs(found, {Name("rnnt", "gnmax_15_8"): one}), OPTIONS)
    assert "No system with exact epsilon at most 8 at delta 1e-05 or less was compared" in text


def test_what_is_worse_than_public_is_not_called_meaningful(tmp_path: Path) -> None:
    found = scores_of(tmp_path, rnnt__public="few", rnnt__gnmax_15_8="many")
    text = pate_report(inputs(found, {Name("rnnt", "gnmax_15_8"): entry(2.0)}), OPTIONS)
    assert "0 of 1 systems with exact epsilon" in text


def test_a_claim_needs_its_release(tmp_path: Path) -> None:
    for system in ("gnmax_15_8", "dpsgd_8", "lnmax_5_10_figures"):
        found = scores_of(tmp_path / system, **{f"las__{system}": "some"})
        with pytest.raises(DataError, match=f"privacy.json of las/{system}"):
            pate_report(inputs(found), OPTIONS)
    found = scores_of(tmp_path, las__dpsgd_inf="some", las__clean_15="few")
    assert row_of(pate_report(inputs(found), OPTIONS), "## LAS", "DP-SGD")["exact epsilon"] == "infinite"
    with pytest.raises(DataError, match="name at least one"):
        pate_report(inputs({}), OPTIONS)


def test_weak_teachers_are_said_and_nothing_is_concluded(tmp_path: Path) -> None:
    systems = {
        "rnnt__public": "many", "rnnt__gnmax_15_8": "few",
        "rnnt__lnmax_15_8": "some", "rnnt__teacher_15_1": "all",
        "rnnt__teacher_15_2": "all", "rnnt__clean_15": "few",
        "rnnt__clean_5": "some", "rnnt__teacher_5": "some",
    }  # fmt: skip
    found = scores_of(tmp_path, **systems)
    entries = {Name("rnnt", name): entry(2.0) for name in ("gnmax_15_8", "lnmax_15_8")}
    text = pate_report(inputs(found, entries), OPTIONS)
    assert "**Too weak to conclude from**: its 15 teachers have 100.00 % on the average" in text
    assert "GNMax, 15 teachers, epsilon 8 (too weak)" in text
    assert "student of clean" not in text and "clean votes, 5 teachers (too weak)" not in text
    held = text[text.index("## What holds") :]
    assert (
        "than LNMax" not in held
        and "but of teachers that are too weak was compared" in held
        and "by number" not in held
    )
    sound = pate_report(inputs(found, entries), replace(OPTIONS, weak_wer=100.0))
    assert "too weak" not in sound and "GNMax has the lower error rate than LNMax: holds" in sound
    assert "RNN-T, by number of teachers, best is clean votes, 15 teachers (5: 22.92 %, 15: 4.17 %)" in sound


def test_claims_of_the_paper_as_found(tmp_path: Path) -> None:
    systems = {
        "rnnt__gnmax_15_8": "some", "rnnt__lnmax_15_8": "few",
        "rnnt__dpsgd_8": "many", "rnnt__clean_15": "few",
        "las__gnmax_15_8": "few", "rnnt__gnmax_15_1000": "few",
    }  # fmt: skip
    found = scores_of(tmp_path, **systems)
    claims = (
        "rnnt__gnmax_15_8",
        "rnnt__lnmax_15_8",
        "rnnt__dpsgd_8",
        "las__gnmax_15_8",
        "rnnt__gnmax_15_1000",
    )
    entries = {Name(*name.split("__")): entry(2.0) for name in claims}
    held = pate_report(inputs(found, entries), OPTIONS)
    held = held[held.index("## What holds") :]
    assert (
        "than LNMax: does not hold: in 0 of 1 comparisons, significantly in 0, and significantly the other"
        in held
    )
    assert "than DP-SGD at the same epsilon: holds: in 2 of 2 comparisons, significantly in 2" in held
    assert "than another architecture under GNMax: does not hold" in held
    assert "epsilon up to 10: a significantly higher error rate in 1 of 2 systems" in held
    assert "epsilon 1000 and more: a significantly higher error rate in 0 of 1 systems, by +0.00" in held


def test_every_comparison_is_that_of_the_two_scores_alone(tmp_path: Path) -> None:
    systems = {
        "rnnt__public": "many", "rnnt__gnmax_15_8": "few",
        "rnnt__lnmax_15_8": "some", "rnnt__dpsgd_8": "many",
        "rnnt__clean_15": "few", "las__gnmax_15_8": "some",
    }  # fmt: skip
    found = scores_of(tmp_path, **systems)
    compared = compare_systems(found)
    whys = sorted((one.first.model, one.first.system, one.second.system, one.why) for one in compared)
    assert whys == sorted(
        [
            *(
                ("rnnt", s, "public", AGAINST_PUBLIC)
                for s in ("gnmax_15_8", "lnmax_15_8", "dpsgd_8", "clean_15")
            ),
            ("rnnt", "gnmax_15_8", "lnmax_15_8", MECHANISM),
            *(("rnnt", s, "dpsgd_8", AGAINST_DPSGD) for s in ("gnmax_15_8", "lnmax_15_8")),
            *(("rnnt", s, "clean_15", AGAINST_CLEAN) for s in ("gnmax_15_8", "lnmax_15_8")),
            ("rnnt", "gnmax_15_8", "gnmax_15_8", ARCHITECTURE),
        ]
    )
    tests = [compare_scores(found[one.first], found[one.second], one.part) for one in compared]
    assert [one.test for one in compared] == tests
    assert [one.p_value for one in compared] == holm([test.p_value for test in tests])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("gnmax_15_8", "lnmax_5_8"), ("gnmax_15_8", "dpsgd_1"), ("gnmax_15_8_figures", "dpsgd_8"),
        ("gnmax_15_8", "clean_5"), ("public", "public"), ("public", "clean_5"), ("dpsgd_8", "clean_5"),
    ],
)  # fmt: skip
def test_what_is_not_compared(first: str, second: str) -> None:
    assert reason(Name("las", first), Name("las", second)) is None
    assert reason(Name("las", "gnmax_5_8"), Name("rnnt", "gnmax_5_8")) is None


def test_what_the_pool_is_worth_without_votes(tmp_path: Path) -> None:
    found = scores_of(tmp_path, rnnt__public="many", rnnt__self_trained="some", rnnt__gnmax_15_8="few")
    assert [name.system for name in found] == ["public", "self_trained", "gnmax_15_8"]
    private = Name("rnnt", "gnmax_15_8")
    text = pate_report(inputs(found, {private: entry(2.0)}), OPTIONS)
    assert row_of(text, "## RNN-T", "public, self-trained")["exact epsilon"] == "–"
    assert row_of(text, "## Compared", "RNN-T: GNMax")["against"] == "RNN-T: public, self-trained"


def test_agreement_is_marked_private(tmp_path: Path) -> None:
    found = scores_of(tmp_path, rnnt__public="some")
    path = tmp_path / "rnnt" / "agreement_15.json"
    write_json(path, {"for_release": False, "queries": 1200, "mean_share": 0.753})
    text = pate_report(inputs(found, agreement=read_agreement([path])), OPTIONS)
    assert "Private: no guarantee covers this table" in text
    row = row_of(text, "## Agreement", "RNN-T, 15 teachers")
    assert (row["queries"], row["mean share"]) == ("1,200", "75.3 %")
    assert "Agreement" not in pate_report(inputs(found), OPTIONS)
    write_json(path.with_name("agreement.json"), {"for_release": False})
    with pytest.raises(DataError, match="of I teachers"):
        read_agreement([path.with_name("agreement.json")])
    write_json(path, {"mean_share": 0.5})
    with pytest.raises(DataError, match="what report_votes writes"):
        read_agreement([path])


def test_names() -> None:
    assert parse_system("gnmax_15_inf", Path("x")) == System("gnmax", 15, math.inf)
    assert (
        parse_system("confident_gnmax_250_8", Path("x")).label == "Confident-GNMax, 250 teachers, epsilon 8"
    )
    assert parse_system("teacher_15_03", Path("x")) == System("teacher", 15, number="03")
    assert name_of(Path("/a/exp/ctc/dpsgd_0.5/privacy.json")) == Name("ctc", "dpsgd_0.5")
    for wrong in ("gnmax_15", "gnmax_8", "dpsgd", "clean", "public_2", "dpsgd_8_figures", "teacher"):
        with pytest.raises(DataError, match="a system"):
            parse_system(wrong, Path("x"))


def test_bad_input(tmp_path: Path) -> None:
    folder = tmp_path / "rnnt" / "gnmax_15_8"
    with pytest.raises(PrivacyError, match="the ledger of one release"):
        read_entries([folder / "privacy.json"])
    Ledger(folder / "privacy.json").append(entry(2.0))
    assert read_entries([folder / "privacy.json"])[Name("rnnt", "gnmax_15_8")].spending == entry(2.0).spending
    write_json(folder / "labels" / "labels.json", ABOUT)
    assert read_votes([folder / "labels"])[Name("rnnt", "gnmax_15_8")].published["K"] == 100
    write_json(folder / "labels" / "labels.json", {**ABOUT, "teachers": 10})
    with pytest.raises(DataError, match="votes of 15 teachers, found 10"):
        read_votes([folder / "labels"])
    write_json(folder / "labels" / "labels.json", {"teachers": 15})
    with pytest.raises(DataError, match="what aggregate_votes writes"):
        read_votes([folder / "labels"])
    write_score(tmp_path / "rnnt" / "public" / "score_test", [RIGHT] * 3)
    write_score(folder / "score_test", [RIGHT] * 4)
    with pytest.raises(DataError, match="utterances and references"):
        compare_systems(read_scores([tmp_path / "rnnt/public/score_test", folder / "score_test"]))
    with pytest.raises(DataError, match="public twice"):
        read_scores([tmp_path / "rnnt/public/score_test"] * 2)


def test_curves(tmp_path: Path) -> None:
    systems = {
        "rnnt__public": "many", "rnnt__gnmax_15_8": "some",
        "rnnt__gnmax_15_1": "many", "rnnt__dpsgd_8": "many",
        "rnnt__clean_15": "few", "rnnt__clean_5": "some", "rnnt__dpsgd_inf": "few",
    }  # fmt: skip
    found = scores_of(tmp_path, **systems)
    noises = {"gnmax_15_8": 1.0, "gnmax_15_1": 5.0, "dpsgd_8": 1.0}
    exact = exact_epsilons({Name("rnnt", name): entry(noise) for name, noise in noises.items()})
    [panel] = epsilon_panels(found, exact)
    lines = {line.label: [(round(p.x, 3), round(p.y, 2)) for p in line.points] for line in panel.lines}
    weak, strong = (round(exact[Name("rnnt", name)].value, 3) for name in ("gnmax_15_8", "gnmax_15_1"))
    assert strong < weak
    assert lines["GNMax, 15 teachers"] == [(strong, 58.33), (weak, 22.92)]
    assert lines["DP-SGD"] == [(weak, 58.33)]
    assert [line.label for line in panel.lines if line.level] == [
        "public only", "clean votes, 5 teachers", "clean votes, 15 teachers",
    ]  # fmt: skip
    [panel] = teacher_panels(found)
    [line] = panel.lines
    assert [(p.x, round(p.y, 2)) for p in line.points] == [(5, 22.92), (15, 4.17)]
    assert line.points[0].low is not None and line.points[0].low <= 22.92
    pytest.importorskip("matplotlib")
    draw(epsilon_panels(found, exact), tmp_path / "a.svg")
    assert "exact epsilon" in (tmp_path / "a.svg").read_text()
