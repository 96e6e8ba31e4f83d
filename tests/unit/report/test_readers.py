"""What each kind of artifact tells, as its verb writes it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privasr_k2.attack.blind import Described
from privasr_k2.attack.inversion_report import examine, report_values
from privasr_k2.attack.membership import of_teachers
from privasr_k2.attack.settings import InversionReportConfig, MembershipConfig, VoteAuditConfig
from privasr_k2.attack.studies import Side, study
from privasr_k2.attack.vote_audit import VoteClaim, audit_votes, neighbours
from privasr_k2.errors import DataError, PrivasrError
from privasr_k2.fileio import write_json, write_jsonl, write_text
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.pate.gnmax import gnmax_event
from privasr_k2.recipe.systems import System
from privasr_k2.report.kinds import READERS, read
from privasr_k2.report.measures import Measure, Reading
from privasr_k2.report.phones import phone_measures
from privasr_k2.report.results import owners_rows
from tests.support.attack_small import inversion, loaded, said
from tests.support.classlm_folders import write_system, write_texts
from tests.support.made_recipe import context, perplexities, system


def of(kind: str, path: Path | str, *systems: System) -> Reading:
    return read(kind, str(path), context(systems))


def value(reading: Reading, metric: str, item: str = "") -> Any:
    [found] = [m for m in reading.measures if (m.metric, m.item) == (metric, item)]
    return found.value


def ends(reading: Reading, metric: str, item: str = "") -> tuple[float | None, float | None]:
    [found] = [m for m in reading.measures if (m.metric, m.item) == (metric, item)]
    return found.low, found.high


BOUND = {
    "claimed_epsilon": 8.0,
    "delta": 1e-5,
    "confidence": 0.95,
    "largest_possible": 67.3,
    "trials": 20000,
    "epsilon_lower": {"sound": 2.96, "broken": 53.1, "noise_free": 67.3},
    "verdict": "stands",
}


def test_names_are_counted_and_their_recall_is_tested(tmp_path: Path) -> None:
    folder = write_system(tmp_path, "sanitized/M1", errors=6, lost_names=12)
    reading = of("score_test", folder)
    assert (
        value(reading, "recall") == value(reading, "recall", "PER") == pytest.approx(100 * 48 / 60)
    )
    assert value(reading, "entity_words") == 60
    other = of("score_test", write_system(tmp_path, "sanitized/M2", errors=6, lost_names=3))
    test = other.pairs["test", "recall"].against(reading.pairs["test", "recall"])
    assert test is not None and test.value == pytest.approx(100 * 9 / 60)
    assert test.low is not None and 0 < test.low < test.value
    fewer = write_system(tmp_path, "x/M3", errors=0, lost_names=0, ref=("ask", "ann", "now"))
    alone = of("score_test", fewer).pairs["test", "recall"]
    assert alone.against(reading.pairs["test", "wer"]) is None


def test_perplexities_are_found_by_path_or_name(tmp_path: Path) -> None:
    path = perplexities(tmp_path / "p.json", {"a": 100.0, "b": 50.0})
    assert value(of("perplexity", f"{path}#exp/lm/b"), "ppl") == value(
        of("perplexity", f"{path}#b"), "ppl"
    )
    assert value(of("perplexity", f"{path}#a"), "ppl_oov") == 0
    with pytest.raises(DataError, match="exp/lm/a"):
        of("perplexity", f"{path}#c")
    other = perplexities(tmp_path / "q.json", {"a": 100.0})
    text = other.read_text().replace("c5", "c6")
    other.write_text(text)
    pairs = [of("perplexity", f"{one}#a").pairs["", "ppl"] for one in (path, other)]
    with pytest.raises(DataError, match="the groups and predictions"):
        pairs[0].against(pairs[1])


def test_choices_are_told_by_their_content(tmp_path: Path) -> None:
    grid = {"role": "dev", "lm_weight": 0.5, "insertion_penalty": -1.0, "edges": ["lm_weight"]}
    grid["grid"] = []
    write_json(tmp_path / "weights.json", {**grid, "wer_percent": 12.5})
    assert value(of("weights", tmp_path / "weights.json"), "dev_wer") == 12.5
    assert value(of("weights", tmp_path / "weights.json"), "at_edge") == "lm weight"
    mixed = {"lms": ["a", "b", "c"], "lambdas": [0.25, 0.0, 0.75], "interpolation": "log_linear"}
    write_json(tmp_path / "r.json", {**grid, **mixed, "errors": 10, "ref_words": 200})
    reading = of("weights", tmp_path / "r.json")
    assert value(reading, "lms") == "0.25 a + 0.75 c" and value(reading, "dev_wer") == 5.0
    tried = [{"equation": 1, "beta": b, "ppl": p} for b, p in ((0.0, 9.0), (0.5, 7.0))]
    tried.append({"equation": 2, "beta": 0.9, "ppl": 8.0})
    write_json(tmp_path / "c.json", {"equation": 1, "beta": 0.5, "tried": tried})
    reading = of("weights", tmp_path / "c.json")
    assert (value(reading, "dev_ppl"), value(reading, "at_edge")) == (7.0, "yes")
    models = [{"lm": "x/lm/M1.arpa.gz", "weight": 0.125}, {"lm": "x/lm/M2", "weight": 0.875}]
    write_json(
        tmp_path / "m.json", {"form": "static", "chosen_by": "em", "dev_ppl": 9.5, "lms": models}
    )
    assert value(of("weights", tmp_path / "m.json"), "lms") == "0.125 M1 + 0.875 M2"
    write_json(tmp_path / "l.json", {"lam": 0.6, "criterion": "errors", "at_end": True})
    assert value(of("weights", tmp_path / "l.json"), "lam") == 0.6


def test_votes_and_how_far_they_agree(tmp_path: Path) -> None:
    epsilon = {"published_equation": 2000.0, "published_figures": 1.25}
    counts = {"votes_asked": 120, "votes_answered": 100, "utterances_answered": 98}
    told = {"vote": "token", "teachers": 15, "noise": 40.0, **counts}
    told["as_published"] = {"K": 100, "scale": 40.0, "epsilon": epsilon}
    write_json(tmp_path / "labels" / "labels.json", told)
    reading = of("labels", tmp_path / "labels")
    names = ("votes_asked", "votes_answered", "labels", "published_k", "published_figures")
    assert [value(reading, name) for name in names] == [120, 100, 98, 100, 1.25]
    write_json(tmp_path / "labels" / "labels.json", {**told, "noise": None, "as_published": None})
    assert value(of("labels", tmp_path / "labels"), "vote_noise") == 0.0
    write_json(tmp_path / "a.json", {"for_release": False, "mean_share": 0.25})
    assert value(of("agreement", tmp_path / "a.json"), "agreement", "mean share") == 0.25
    write_json(tmp_path / "a.json", {"mean_share": 0.25})
    with pytest.raises(DataError, match="vote_costs"):
        of("agreement", tmp_path / "a.json")


def test_audits_of_all_recipes(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    write_json(path, {"tied": {"whole_release": BOUND}, "at_threshold": {"whole_release": BOUND}})
    reading = of("audit", path)
    assert {m.item for m in reading.measures} == {"votes tied", "votes at the threshold"}
    assert value(reading, "audit_lower", "votes tied") == 2.96
    write_json(path, BOUND)
    assert value(of("audit", path), "audit_broken", "units with marks") == 53.1
    exposed = {"mean_exposure": 1.0, "largest_exposure": 2.0, "epsilon_lower": 0.1}
    exposed["largest_possible_exposure"] = 4.3
    attacked = {"exposure": exposed, "membership": {"auc": 0.6, "auc_interval": [0.4, 0.8]}}
    write_json(path, {"without_privacy": attacked, "with_privacy": attacked, "marks": BOUND})
    reading = of("audit", path)
    assert ends(reading, "auc", "as claimed") == (0.4, 0.8)
    assert value(reading, "claimed", "marks in updates") == 8.0
    counts = {**BOUND, "epsilon_lower": {"sound": 0.5, "broken": 3.0, "noise_free": 9.0}}
    published = {"called": 1.0, "average": 71.0, "largest": 213.0, "paper_average": 24.0}
    write_json(path, {"unit": "user", "heaviest_unit": counts, "published": published})
    reading = of("audit", path)
    assert value(reading, "audit_lower", "heaviest unit") == 0.5
    assert value(reading, "published_largest", "as published, called epsilon 1") == 213.0
    assert value(reading, "paper_average", "as published, called epsilon 1") == 24.0
    write_json(path, {"unit": "user"})
    with pytest.raises(DataError, match="an artifact of the kind audit"):
        of("audit", path)


def test_an_audit_as_it_is_made(tmp_path: Path) -> None:
    one, three = (gnmax_event(sigma=4.0, answers=n, discrete=True) for n in (1, 3))
    claim = VoteClaim(one, three, 3, 1e-5, Relation.ADD_OR_REMOVE_ONE)
    config = VoteAuditConfig(draws=200, broken=10.0, confidence=0.95)
    rng = np.random.default_rng(0)

    def answers(votes: np.ndarray, share: float) -> np.ndarray:
        return (votes + rng.normal(size=votes.shape) * 4.0 * share).argmax(1)

    found = audit_votes(answers, neighbours(15), claim, config)
    write_json(tmp_path / "audit.json", {"tied": found})
    reading, whole = of("audit", tmp_path / "audit.json"), found["whole_release"]
    assert value(reading, "audit_lower", "votes tied") == whole["epsilon_lower"]["sound"]
    assert value(reading, "claimed", "votes tied") == whole["claimed_epsilon"]


def test_members_and_shards_as_they_are_inferred(tmp_path: Path) -> None:
    config = loaded(MembershipConfig, "membership")
    rng = np.random.default_rng(1)
    roster = {f"s{n}": n % 3 + 1 for n in range(30)}
    own = np.eye(3)
    losses = {unit: rng.normal(size=3) - 3.0 * own[shard - 1] for unit, shard in roster.items()}
    others = {f"o{n}": rng.normal(size=3) for n in range(20)}
    told = of_teachers(losses, roster, config)
    write_json(tmp_path / "t.json", {"unit": "speaker", "teachers": told})
    sides = Side(losses, None, None), Side(others, None, None)
    gains = study(*sides, ["gnmax/am", "elsewhere/am"], config, reference=True)["models"]
    write_json(tmp_path / "m.json", {"unit": "speaker", "models": gains})
    reading = of("membership", tmp_path / "t.json")
    assert value(reading, "shard_guessed", "shards of 3 teachers") == told["right_shard"] > 0.5
    assert value(reading, "chance", "shards of 3 teachers") == pytest.approx(1 / 3)
    declared = System("student", "GNMax, 3 teachers", "pate", "exp/gnmax")
    reading = of("membership", tmp_path / "m.json", declared)
    assert value(reading, "auc", "GNMax, 3 teachers") == gains["gnmax/am"]["auc"]
    assert value(reading, "members", "elsewhere/am") == 30
    assert value(reading, "others", "elsewhere/am") == 20


def test_attacks_upon_one_model_stand_in_one_row(tmp_path: Path) -> None:
    """Figures of ``FILE#MODEL`` have no item, so that a table can show them side by side."""
    config = loaded(MembershipConfig, "membership", "folds=2", "replicates=20")
    rng = np.random.default_rng(1)

    def side(prefix: str) -> Side:
        names = [f"{prefix}{n}" for n in range(20)]
        losses = {name: rng.normal(size=2) for name in names}
        seen = {name: Described(rng.normal(size=3), name) for name in names}
        return Side(losses, {name: rng.normal(size=2) for name in names}, seen)

    told = study(side("m"), side("o"), ["one/am", "two/am"], config, reference=False)
    write_json(tmp_path / "m.json", {"unit": "speaker", **told})
    reading, of_two = of("membership", f"{tmp_path}/m.json#two/am"), told["models"]["two/am"]
    assert value(reading, "auc") == of_two["auc"] and value(reading, "members") == 20
    assert value(reading, "perturbed_auc") == of_two["perturbed"]["auc"]
    assert value(reading, "blind_auc") == told["blind"]["auc"]
    assert ends(reading, "perturbed_beyond_blind") == tuple(
        of_two["perturbed"]["beyond_blind_interval"]
    )
    heard = {"mean_exposure": 2.0, "largest_possible_exposure": 3.0, "epsilon_lower": 0.5}
    names = {"mentions": 7, "true_name": 0.25, "true_name_interval": [0.1, 0.5]}
    write_json(tmp_path / "a.json", {"models": {"one/am": {"heard": heard, "names": names}}})
    reading = of("recognizer", f"{tmp_path}/a.json#one/am")
    assert value(reading, "canary_exposure") == 2.0 and value(reading, "masked_names") == 7
    assert value(reading, "true_name") == 25.0 and ends(reading, "true_name") == (10.0, 50.0)
    with pytest.raises(DataError, match="of the kind recognizer"):
        of("recognizer", f"{tmp_path}/a.json#two/am")
    write_json(tmp_path / "audit.json", BOUND)
    assert value(of("canary_audit", tmp_path / "audit.json"), "audit_broken") == 53.1
    write_json(tmp_path / "lm.json", {"marks": BOUND})
    told = {m.metric: m.value for m in of("lm_audit", tmp_path / "lm.json").measures}
    assert told == {"lm_claimed": 8.0, "lm_lower": 2.96, "lm_broken": 53.1}


def test_inversions_as_they_are_reported(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)

    def group(names: str, voice: float) -> dict[str, list[Any]]:
        tilt = np.linspace(0, voice, 30)[:, None] * np.array([[1.0, -1.0]])
        speakers = [name for name in names for _ in "12"]
        return {"STOP": [said(name, tilt + 0.1 * rng.normal(size=(30, 2))) for name in speakers]}

    members, others = group("abcdef", 1.0), group("uvwxyz", -1.0)
    found = [
        inversion("teacher", {"STOP": members["STOP"][0].features}),
        inversion("control", {"STOP": rng.normal(size=(30, 2))}, control=True),
        inversion("ensemble", {"GO": rng.normal(size=(30, 2))}),
    ]
    config = loaded(InversionReportConfig, "compare_inversion", "permutations=499")
    results = examine(found, [members] * 3, others, config)
    write_json(tmp_path / "inversion.json", report_values(results, config))
    reading = of("inversion", tmp_path / "inversion.json")
    alone, less = results[0].alone, results[0].less_control
    assert alone is not None and less is not None
    assert value(reading, "advantage", "teacher, white box") == alone.value
    assert ends(reading, "less_control", "teacher, white box") == (less.low, less.high)
    assert value(reading, "member_distance", "teacher, white box") == alone.member_distance
    metrics = {m.metric for m in reading.measures if m.item == "ensemble, white box"}
    assert metrics == {"log_likelihood", "begun_at"}


def test_costs_of_devices_and_whom_a_system_serves_best(tmp_path: Path) -> None:
    costs = {"kept_bytes": 1500.0, "sent_bytes": 0.0, "learn_ms": 2.5, "score_ms": 30.0}
    run = {"config": {"strength": 0.2}, "release": None, "perplexity": None, "costs": costs}
    write_json(tmp_path / "run_test.json", run)
    reading = of("run", tmp_path / "run_test.json")
    names = ("strength", "kept_kb", "sent_kb", "learn_ms", "score_ms")
    assert [value(reading, name) for name in names] == [0.2, 1.5, 0.0, 2.5, 30.0]
    groups = [
        {"group": "", "people": 5, "best": {"a": 1, "b": 3}, "better": {"a": 0, "b": 4}},
        {
            "group": "up to 9 words",
            "people": 2,
            "best": {"a": 0, "b": 2},
            "better": {"a": 0, "b": 2},
        },
    ]
    write_json(tmp_path / "wins.json", {"of": "clients", "groups": groups})
    wins = of("wins", f"{tmp_path}/wins.json#b")
    for metric, every, some in (("people", 5, 2), ("best", 3, 2), ("better", 4, 2)):
        assert value(wins, f"wins_{metric}", "all") == every
        assert value(wins, f"wins_{metric}", "up to 9 words") == some


def test_runs_of_fmp_and_rounds_of_training(tmp_path: Path) -> None:
    clients = {f"c{n}": {"nats": [1.0 + n, 2.0], "tokens": [2, 2]} for n in range(6)}
    figures = {"total": 3.5, "by_round": [4.0, 3.0], "clients": clients}
    config = {"lam": 0.6, "alpha": 0.5, "beta": 0.1, "kernel_bandwidth": 2.0}
    write_json(tmp_path / "run.json", {"config": config, "release": None, "perplexity": figures})
    reading = of("run", tmp_path / "run.json")
    found = [value(reading, name) for name in ("ppl", "ppl_last_round", "lam")]
    assert found == [3.5, 3.0, 0.6]
    told = {"mechanism": "as published", "words": 7.1, "rounds": 10, "epsilon": 1.0}
    write_json(tmp_path / "p.json", {"config": config, "release": told, "perplexity": None})
    assert value(of("run", tmp_path / "p.json"), "paper_epsilon") == 71.0
    for replaced in (0, 3):
        about = {**told, "background_rounds": replaced}
        write_json(tmp_path / "p.json", {"config": config, "release": about, "perplexity": None})
        names = {m.metric: m.value for m in of("run", tmp_path / "p.json").measures}
        assert names.get("background_rounds", 0) == replaced
    low, high = ends(reading, "ppl")
    assert low is not None and high is not None and low < np.exp(33.0 / 24) < high
    log = [{"step": 1, "dev_ppl": 9.0}, {"step": 2, "loss": 1.0}]
    write_jsonl(tmp_path / "train_log.jsonl", log)
    assert of("rounds", tmp_path).measures == (Measure("dev_ppl", 9.0, item="1"),)
    write_json(tmp_path / "federated.json", {"rounds": 2, "kept_round": 1})
    write_text(tmp_path / "config.yaml", "client: {lr: 0.5}\nserver: {lr: 1.0}\n")
    assert value(of("rounds", tmp_path), "client_lr") == 0.5


def test_texts_names_and_sides(tmp_path: Path) -> None:
    reading = of("texts", write_texts(tmp_path, mentions=1070))
    assert value(reading, "percent", "adapt_12") == 12.345
    assert value(reading, "words", "test") == 6000
    coverage = {"words": 40, "on_lists": 30, "on_own_list": 20, "in_names": 10}
    told = {
        "classes": {"PER": {"mentions": 3, "words": 4, "different_words": 2}},
        "gold": {"PER": {"span_recall_percent": 75.0, "residual_percent": 25.0}},
        "coverage": {"all": coverage},
        "privacy": {"epsilon_per_word": {"PER": 3.5}},
    }
    write_json(tmp_path / "entities.json", told)
    reading = of("entities", tmp_path / "entities.json")
    assert (value(reading, "residual", "PER"), value(reading, "epsilon_word", "PER")) == (25.0, 3.5)
    assert value(reading, "on_lists", "all") == 75.0
    assert ends(reading, "gold_recall", "PER") == (None, None)
    drawn = {"span_recall_percent": [60.0, 90.0], "span_recall_documents": 6}
    told["gold"]["all"] = {"span_recall_percent": 75.0, "intervals": drawn}
    write_json(tmp_path / "entities.json", told)
    [found] = of("found_names", tmp_path / "entities.json").measures
    assert found == Measure("gold_recall", 75.0, 60.0, 90.0, clusters=6)
    side = {"speakers": ["a", "b"], "utterances": 3, "hours": 0.5}
    path = tmp_path / "sides.json"
    sides = dict.fromkeys(("private", "public", "pool"), side)
    write_json(path, {"format": "privasr_k2 sides 1", **sides})
    private = [m.metric for m in of("sides", path).measures if m.item == "private"]
    assert private == ["speakers"]


def test_planted_names(tmp_path: Path) -> None:
    kinds = {"listed_once": {"exposure": 3.0, "interval": [2.0, 4.0], "canaries": 50}}
    model = {"kinds": kinds, "possible": 8.0, "lower_once": 1.0, "lower_often": 2.0}
    sanitized = {**model, "epsilon_once": 9.5, "epsilon_often": 76.0}
    models = {"original": model, "gold_0.1": sanitized}
    write_json(tmp_path / "audit.json", {"models": models})
    reading = of("planted_names", f"{tmp_path}/audit.json#gold_0.1")
    assert value(reading, "listed_once") == 3.0 and ends(reading, "listed_once") == (2.0, 4.0)
    assert (value(reading, "epsilon_often"), value(reading, "lower_often")) == (76.0, 2.0)
    original = of("planted_names", f"{tmp_path}/audit.json#original")
    assert "epsilon_once" not in {m.metric for m in original.measures}


def test_phones_of_words(tmp_path: Path) -> None:
    # 15 of 30 utterances have x (eh k s) for a (ah): 3 errors among the 7 phones of a b c d.
    [found] = phone_measures([system(tmp_path, "one", "x", 15)], "auto", "none")["one"]
    assert (found.metric, found.part) == ("word_per", "test")
    assert found.value == pytest.approx(100 * 45 / 210)


def test_of_protected_people_only_what_no_guarantee_hides(tmp_path: Path) -> None:
    turns = [{"client": "a", "user": "u", "ref_words": 7}, {"client": "b", "user": "u",
             "ref_words": 4}]  # fmt: skip
    write_jsonl(tmp_path / "timeline.jsonl", turns)
    path = str(tmp_path / "timeline.jsonl")
    shown = of("protected_timeline", path).measures
    assert {m.metric: m.value for m in shown} == {"clients": 2, "users": 1}
    assert ("words", 11) in {(m.metric, m.value) for m in of("timeline", path).measures}
    scored = write_system(tmp_path, "sanitized/M1", errors=6, lost_names=12)
    assert of("protected_score_adapt", scored) == Reading(())
    one = System("clients", "test", "recipe", "", artifacts={"protected_timeline": path})
    other = dataclasses.replace(one, name="open", artifacts={"timeline": path})
    [*rows] = owners_rows([one, other], context([one, other]))
    assert {row["system"] for row in rows} == {"clients"}
    assert {(row["kind"], row["metric"], row["value"]) for row in rows} >= {
        ("timeline", "words", 11), ("timeline", "utterances", 2)
    }  # fmt: skip


@pytest.mark.parametrize("kind", sorted(READERS))
def test_files_of_another_kind_are_named(tmp_path: Path, kind: str) -> None:
    folders = {
        "score": "wer.json",
        "labels": "labels.json",
        "votes": "votes.json",
        "texts": "about.json",
        "confidence": "confidence_metrics.json",
        "rounds": "train_log.jsonl",
    }
    path = tmp_path / folders.get(kind, "file.json")
    if kind == "rounds":
        write_jsonl(path, [{"dev_ppl": 1.0}])
    else:
        write_json(path, {"something": "else"})
    given = tmp_path if kind in folders else path
    with pytest.raises(PrivasrError) as refused:
        of(kind, given)
    assert str(path if kind not in folders else tmp_path) in str(refused.value)
