"""The verbs of federated marginal personalization from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from privasr_k2 import config
from privasr_k2.decoding.lm_scores import read_lm_scores
from privasr_k2.errors import DataError
from privasr_k2.federated.fmp_background import read_background
from privasr_k2.federated.fmp_scores import World, numbers_of_lm, read_released, read_world
from privasr_k2.federated.fmp_settings import FmpConfig
from privasr_k2.federated.fmp_simulation import global_marginals
from privasr_k2.federated.fmp_timeline import read_timeline
from privasr_k2.federated.marginals import background_unigrams
from privasr_k2.fileio import read_json, write_json, write_jsonl, write_text
from privasr_k2.lm.mixtures import open_lm
from privasr_k2.privacy.ledger import Ledger
from privasr_k2.publish.card import bounds_of
from privasr_k2.recipe.systems import System
from privasr_k2.report.results import collect
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList, read_nbest, write_nbest
from tests.support.conf import section
from tests.support.fed_small import VOCABULARY, saved_model
from tests.support.fmp_tiny import NUMBERS
from tests.support.made_recipe import context, figure, origin
from tests.support.verbs import call, refused

WORDS = VOCABULARY.words[2:]
FMP = ("--config", section("fmp"), "--set", "rounds=2")
POINT = {"lms": ["ngram", "lm"], "interpolation": "linear", "lambdas": [0.5, 0.5]}
WEIGHTS = {"role": "dev", **POINT, "lm_weight": 1.0, "insertion_penalty": 0.0}


def made(folder: Path, role: str) -> None:
    """Three users with seven utterances each and words of their own; one list has no path."""
    rng = np.random.default_rng(3)
    lists, cuts = [], []
    for user in range(3):
        own = WORDS[5 * user : 5 * user + 6]
        for number in range(7):
            name, ref = f"m{user}-{number}", " ".join(rng.choice(own, size=4))
            wrong = " ".join(rng.choice(WORDS, size=4))
            hyps = (Hypothesis(1, wrong, -1.0, {}), Hypothesis(2, ref, -1.1, {}))
            hyps = () if (user, number) == (2, 6) else hyps
            lists.append(NbestList(name, role, f"s{user}", ref, not hyps, hyps))
            supervision = {"recording_id": f"m{user}", "speaker": f"s{user}", "text": ref}
            cut = {"id": name, "type": "MonoCut", "supervisions": [supervision]}
            cuts.append({**cut, "start": 7.0 - number})  # spoken in the order of falling ids
    write_nbest(folder / f"nbest_{role}" / "1.jsonl", lists)
    write_jsonl(folder / "manifests" / f"cuts_{role}.jsonl.gz", cuts)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("scipy")
    saved_model(tmp_path / "lm")
    write_text(tmp_path / "text.txt", "".join(f"{word}\n" for word in WORDS))
    text = (
        f"--in-text {tmp_path}/text.txt --in-lm {tmp_path}/lm --config {section('fmp_background')}"
    ).split()
    call("prepare_fmp", *text, "--out-background", tmp_path / "u.safetensors")
    for role in ("dev", "test"):
        made(tmp_path, role)
        given = ("--in-manifests", tmp_path / "manifests", "--in-nbest", tmp_path / f"nbest_{role}")
        out = ("--out-timeline", tmp_path / f"timeline_{role}.jsonl")
        call("prepare_fmp", *given, *out, "--config", section("fmp_timeline"))
    return tmp_path


def inputs(folder: Path, role: str = "test") -> tuple[object, ...]:
    return (
        f"--in-nbest {folder}/nbest_{role} --in-timeline {folder}/timeline_{role}.jsonl"
        f" --in-lm {folder}/lm --in-background {folder}/u.safetensors"
    ).split()


def world_of(folder: Path) -> World:
    files = [folder / name for name in ("nbest_test", "timeline_test.jsonl", "u.safetensors")]
    return read_world(*files, numbers_of_lm(folder / "lm"))


def score(folder: Path, name: str, *more: object) -> np.ndarray:
    """Adapted scores of test."""
    out = ("--out-scores", folder / f"{name}.safetensors", "--out-run", folder / f"{name}.json")
    call("personalize", *inputs(folder), *out, *FMP, *more)
    return read_lm_scores([folder / f"{name}.safetensors"], read_nbest(folder / "nbest_test"))["lm"]


def plain(folder: Path, role: str, name: str = "lm") -> Path:
    """Unadapted scores."""
    out = folder / f"{name}_{role}_plain.safetensors"
    given = ("--in-nbest", folder / f"nbest_{role}", "--in-lm", folder / "lm", "--out-scores", out)
    call("lm_scores", *given, f"--config {section('lm_scores')} --set name={name}")
    return out


def test_clients_and_their_time(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    turns = read_timeline(folder / "timeline_test.jsonl")
    assert [turn.id for turn in turns[:8]] == [*(f"m0-{n}" for n in range(6, -1, -1)), "m1-6"]
    assert {(turn.client, turn.user) for turn in turns} == {(f"s{n}", f"s{n}") for n in range(3)}
    caplog.set_level("INFO")
    text = (
        f"--in-text {folder}/manifests/cuts_test.jsonl.gz"
        f" --out-nbest {folder}/text/nbest_test/1.jsonl"
    ).split()
    out = ("--out-timeline", folder / "text/timeline.jsonl", "--config", section("fmp_timeline"))
    call("prepare_fmp", *text, *out, "--set", "client=prefix")
    assert "clients 3 users 3 utterances 21 words 84" in caplog.text
    lists = read_nbest(folder / "text/nbest_test").lists
    assert all([hyp.words for hyp in one.hyps] == [one.ref] for one in lists)
    clients = {turn.client for turn in read_timeline(folder / "text/timeline.jsonl")}
    assert clients == {"m0", "m1", "m2"}


def test_the_background_is_of_the_text_and_of_the_words_of_the_model(folder: Path) -> None:
    numbers = numbers_of_lm(folder / "lm")
    expected = background_unigrams([[word] for word in WORDS], numbers, 0.0)
    assert np.array_equal(read_background(folder / "u.safetensors", numbers), expected)
    for path, message in (
        (folder / "text.txt", "unigrams of prepare_fmp"),
        (folder / "u.safetensors", "of others"),
    ):
        with pytest.raises(DataError, match=message):
            read_background(path, NUMBERS)
    write_text(folder / "empty.txt", "\n")
    given = (
        f"--in-text {folder}/empty.txt --in-lm {folder}/lm --config {section('fmp_background')}"
    ).split()
    with refused("a text of one word or more"):
        call("prepare_fmp", *given, "--out-background", folder / "none.safetensors")
    assert not (folder / "none.safetensors").exists()


def test_lambda_0_is_the_unadapted_model_and_own_words_gain(folder: Path) -> None:
    lists = read_nbest(folder / "nbest_test")
    unadapted = plain(folder, "test")
    expected = read_lm_scores([unadapted], lists)["lm"]
    assert np.array_equal(score(folder, "none", "lam=0"), expected)
    adapted = score(folder, "own", "lam=1", "alpha=0", "beta=0.9", "kernel_bandwidth=.inf")
    assert np.array_equal(
        score(
            folder,
            "again",
            "lam=1",
            "alpha=0",
            "beta=0.9",
            "kernel_bandwidth=.inf",
            f"--in-plain {unadapted}",
        ),
        adapted,
    )
    world = world_of(folder)
    said = [[nbest.ref.split()] for nbest in world.lists.lists]
    nats = -open_lm(folder / "lm").nbest_token_log_probs(said)
    found = {name: read_json(folder / f"{name}.json")["perplexity"] for name in ("none", "own")}
    assert found["none"]["total"] == pytest.approx(float(np.exp(nats.mean())), rel=1e-5)
    assert found["own"]["by_round"][0] == pytest.approx(found["none"]["by_round"][0], rel=1e-6)
    assert found["own"]["total"] < found["none"]["total"]
    gains = adapted - expected
    late = world.spoken.places[world.spoken.token_utterances] >= 5
    right = world.spoken.ranks[world.spoken.token_hyps] == 2
    assert gains[late & right].mean() > gains[late & ~right].mean()
    assert (gains[world.spoken.places[world.spoken.token_utterances] < 2] == 0).all()


def test_perplexities_of_normalized_scores(folder: Path) -> None:
    scores = score(folder, "run", "normalized=true")
    found = read_json(folder / "run.json")["perplexity"]
    assert len(found["by_round"]) == 3 and set(found["clients"]) == {"s0", "s1", "s2"}
    nats = sum(sum(one["nats"]) for one in found["clients"].values())
    tokens = sum(sum(one["tokens"]) for one in found["clients"].values())
    assert tokens == 20 * 5 and found["total"] == pytest.approx(np.exp(nats / tokens))
    assert len(scores) == 2 * tokens


def test_lambda_is_chosen_on_dev_alone(folder: Path) -> None:
    write_json(folder / "weights.json", WEIGHTS)
    out = (
        f"--out-choice {folder}/choice.json",
        *FMP,
        "lams=[0.0,1.0]",
        "alpha=0",
        "beta=0.9",
        "kernel_bandwidth=.inf",
    )
    ngram = (
        f"--in-scores {plain(folder, 'dev', 'ngram')} --in-weights {folder}/weights.json"
    ).split()
    call("personalize", *inputs(folder, "dev"), *ngram, *out)
    choice = read_json(folder / "choice.json")
    errors = {one["lam"]: one["errors"] for one in choice["tried"]}
    assert choice["lam"] == min(errors, key=errors.__getitem__) == 1.0 and errors[1.0] < errors[0.0]
    adapted = score(folder, "chosen", f"--in-choice {folder}/choice.json --set lam=0")
    assert np.array_equal(adapted, score(folder, "told", "lam=1"))
    grid = ("alphas=[0.0,0.5]", "betas=[0.1,0.9]", "kernel_bandwidths=[0.0,.inf]")
    call("personalize", *inputs(folder, "dev"), *ngram, *out, *grid)
    choice = read_json(folder / "choice.json")
    tried = choice["tried"]
    assert len(tried) == 2 * 3 * 2
    assert {(one["alpha"], one["beta"]) for one in tried} == {(0, 0.1), (0, 0.9), (0.5, 0.1)}
    point = {key: choice[key] for key in ("lam", "alpha", "beta", "kernel_bandwidth")}
    [best] = [record for record in tried if point.items() <= record.items()]
    assert best["errors"] == min(record["errors"] for record in tried) < errors[0.0]
    same = [f"{key}={value}" for key, value in point.items()]
    adapted = score(
        folder, "grid", f"--in-choice {folder}/choice.json --set kernel_bandwidth=3 beta=0.3"
    )
    assert np.array_equal(adapted, score(folder, "told", *same))
    call("personalize", *inputs(folder, "dev"), *out, "criterion=perplexity", "normalized=true")
    assert "perplexity" in read_json(folder / "choice.json")["tried"][0]
    for given, message in (
        ((*inputs(folder), *ngram, *out), "the lists of dev, found those of test"),
        ((*inputs(folder, "dev"), *out), "--in-weights for errors"),
        ((*inputs(folder, "dev"), *ngram[2:], *out), "the LMs ngram lm"),
    ):
        with refused(message):
            call("personalize", *given)


def private(folder: Path, name: str) -> tuple[object, ...]:
    return (
        f"--in-private-nbest {folder}/nbest_test"
        f" --in-private-timeline {folder}/timeline_test.jsonl --in-public-lm {folder}/lm"
        f" --out-release {folder}/{name}/marginals.safetensors"
        f" --out-privacy {folder}/{name}/privacy.json --ledger {folder}/ledger.json"
    ).split()


def test_released_marginals_are_used_and_spent_once(folder: Path) -> None:
    settings = (
        f"--config {section('fmp_release')} --set data=mini/test rounds=2 epsilon=1000".split()
    )
    call("release_fmp", *private(folder, "sound"), *settings)
    before = (folder / "sound/marginals.safetensors").read_bytes()
    call("release_fmp", *private(folder, "sound"), *settings)
    assert (folder / "sound/marginals.safetensors").read_bytes() == before
    [entry] = Ledger(folder / "ledger.json").entries()
    assert entry.spending.unit == "user" and entry.spending.data == "mini/test"
    exact = score(folder, "exact", "lam=1")
    used = ("--in-release", folder / "sound/marginals.safetensors")
    found = score(folder, "released", "lam=1", *used)
    assert not np.array_equal(found, exact) and np.isfinite(found).all()
    assert read_json(folder / "released.json")["release"]["epsilon"] == 1000
    with refused("rounds: expected 2"):
        score(folder, "other", "rounds=3", *used)
    for wrong, message in (
        ("epsilon=0", "epsilon must be above 0"),
        ("data=''", "a corpus and its part"),
    ):
        with refused(message):
            call("release_fmp", *private(folder, "wrong"), *settings, wrong)
    assert len(Ledger(folder / "ledger.json").entries()) == 1


def test_released_marginals_are_the_exact_ones_where_noise_is_small(folder: Path) -> None:
    more = ("data=mini/test", "rounds=2", "epsilon=10000", "bound=8", "kernel_bandwidth=0")
    call(
        "release_fmp", *private(folder, "sound"), f"--config {section('fmp_release')} --set", *more
    )
    numbers = numbers_of_lm(folder / "lm")
    options = ["rounds=2", "kernel_bandwidth=0", "threshold=0", "release_words=1"]
    options.append("prior_words=1e-9")
    settings = config.load(FmpConfig, [section("fmp")], options)
    world = world_of(folder)
    path = folder / "sound/marginals.safetensors"
    found, _ = read_released(path, numbers, settings, world.background)
    exact = global_marginals(world.spoken, settings, world.background)
    assert found.sum(axis=1) == pytest.approx(1.0)
    # What differs is one word of the background beside 28 or more.
    assert np.abs(found - exact).sum(axis=1).max() < 0.2
    assert np.abs(world.background - exact).sum(axis=1).min() > 0.2


def test_the_published_mechanism_says_what_it_is_worth(folder: Path) -> None:
    settings = (
        f"--config {section('fmp_published')} --set data=mini/test rounds=2 epsilon=1 delta=0.01"
    ).split()
    background = ("--in-public-background", folder / "u.safetensors")
    call("release_fmp", *private(folder, "old"), *background, *settings)
    [entry] = read_json(folder / "old/privacy.json")["entries"]
    assert "called epsilon 1" in entry["spending"]["released"]
    assert entry["spending"]["event"] == {"mechanism": "unprotected"}
    assert "at most 7.1 words" in entry["spending"]["only_for"]["units"]
    used = ("--in-release", folder / "old/marginals.safetensors")
    assert np.isfinite(score(folder, "published", "lam=1", *used)).all()
    assert "published" in read_json(folder / "published.json")["release"]["mechanism"]


def test_the_audit_is_beneath_the_claim(folder: Path) -> None:
    call(
        "audit",
        *inputs(folder)[:6],
        (
            f"--out-audit {folder}/audit.json"
            f" --config {section('fmp_release')} {section('fmp_audit')}"
            " --set data=mini/test rounds=2 trials=400 epsilon=1"
        ),
    )
    found = json.loads((folder / "audit.json").read_text())
    heavy = found["heaviest_unit"]
    lower = heavy["epsilon_lower"]
    assert lower["sound"] <= heavy["claimed_epsilon"] < lower["broken"]
    # What a published folder's card reads of it.
    assert {bound["attack"] for bound in bounds_of(found)} >= {"heaviest unit"}
    worth = found["published"]
    assert worth["largest"] >= worth["paper_largest"] > worth["called"] == 1


def test_what_a_report_reads_of_runs_and_releases(folder: Path) -> None:
    settings = f"--config {section('fmp_release')} --set data=mini/test rounds=2 epsilon=2".split()
    call("release_fmp", *private(folder, "eps_user_2"), *settings)
    used = ("--in-release", folder / "eps_user_2/marginals.safetensors")
    systems = []
    for name, more in (
        ("baseline", ("lam=0",)),
        ("T2", ("lam=1", "kernel_bandwidth=.inf")),
        ("eps_user_2", ("lam=1", *used)),
    ):
        (folder / name).mkdir(exist_ok=True)
        score(folder, f"{name}/run_test", "normalized=true", *more)
        artifacts = {"run": str(folder / name / "run_test.json")}
        if name == "eps_user_2":
            artifacts["privacy"] = str(folder / name / "privacy.json")
        against = () if name == "baseline" else ("baseline",)
        systems.append(System(name, name, "fmp", name, {}, against, artifacts=artifacts))
    timeline = {"timeline": str(folder / "timeline_test.jsonl")}
    systems.append(System("test", "test", "recipe", "", {}, artifacts=timeline))
    rows = collect(systems, origin(recipe="fmp"), context(systems))
    names = ("clients", "users", "utterances", "words")
    assert [figure(rows, "test", name).value for name in names] == [3, 3, 21, 84]
    totals = [read_json(Path(s.artifacts["run"]))["perplexity"]["total"] for s in systems[:3]]
    assert [figure(rows, s.name, "ppl").value for s in systems[:3]] == totals
    change = next(row for row in rows if (row.system, row.against) == ("T2", "baseline"))
    assert change.value == pytest.approx(100 * (totals[1] / totals[0] - 1))
    assert figure(rows, "eps_user_2", "mechanism").value == "discrete_gaussian, increments"
    released = figure(rows, "eps_user_2", "ppl")
    assert released.epsilon is not None and released.epsilon <= 2.0
    assert (released.unit, released.delta) == ("user", 1e-6)
