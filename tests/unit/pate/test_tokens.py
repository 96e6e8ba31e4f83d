"""Labels token by token: what single teachers say, caps, and draws that are never repeated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from privasr_k2.data.manifests import load_cuts
from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.fileio import read_json, read_jsonl
from privasr_k2.pate import tokens
from privasr_k2.pate.ensembles import TeacherEnsemble
from privasr_k2.pate.plan import winning_chance
from privasr_k2.pate.releases import spending_of
from privasr_k2.pate.tokens import (
    TokenVotesConfig,
    chosen,
    planned,
    public_queries,
    release_tokens,
    settle_tokens,
)
from privasr_k2.privacy import release
from tests.support.small_pate import SHARDS, TOKENS, mechanism, pool, teacher

pytest.importorskip("lhotse")


@pytest.fixture(scope="module")
def feats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pool(tmp_path_factory.mktemp("tokens"))[0]


@pytest.fixture(scope="module")
def ensemble() -> TeacherEnsemble:
    return TeacherEnsemble([teacher("las", seed) for seed in (1, 2, 3)], per_token=True)


def config(**changes: object) -> TokenVotesConfig:
    values = dict(role="pool", max_duration=1.5, tokens_per_second=20.0, utterances=0, margin=0.0)
    values |= dict(public_threshold=1.0, top_k=0, agreement=[0.7, 1.0])
    return mechanism(TokenVotesConfig, **{**values, **changes})


@contextmanager
def begun(folder: Path, feats: Path, conf: TokenVotesConfig) -> Iterator[release.Release]:
    setting = settle_tokens(load_cuts(feats, "pool"), SHARDS, conf)
    with release.begin(
        folder / "ledger.json",
        beside=folder / "privacy.json",
        spending=spending_of(conf, setting, vote="token", unit="speaker", units=9, teachers=3),
        fingerprint="f",
        max_epsilon=None,
    ) as made:
        yield made


def run(
    folder: Path, ensemble: TeacherEnsemble, feats: Path, conf: TokenVotesConfig, public: Any = None
) -> dict[str, object]:
    cuts = load_cuts(feats, "pool")
    setting = settle_tokens(cuts, SHARDS, conf)
    given = (folder / "labels", ensemble, cuts, SHARDS, setting, conf, "cpu")
    if not conf.claims:
        return release_tokens(*given, None, public)
    with begun(folder, feats, conf) as made:
        return release_tokens(*given, made, public)


def labels(folder: Path) -> dict[str, str]:
    records = read_jsonl(folder / "labels" / "labels.jsonl")
    return {record["id"]: record["hyps"][0]["text"] for record in records}


def wanted(
    ensemble: TeacherEnsemble, feats: Path, conf: TokenVotesConfig, public: Any = None
) -> tuple[dict[str, str], int, int]:
    """Labels, how often teachers were asked, and how often not, each prefix anew."""
    from tests.support.sequence_scores import next_log_probs

    def after(model: Any, x: torch.Tensor, text: list[int]) -> torch.Tensor:
        return next_log_probs(model, x, torch.tensor([x.size(1)]), [text])[0]

    found, asked, taken = {}, 0, 0
    for cut in load_cuts(feats, "pool"):
        x = torch.from_numpy(cut.load_features())[None]
        text: list[int] = []
        while True:
            own = after(public, x, text).exp() if public is not None else torch.zeros(5)
            token = int(own.argmax())
            if own[token] < conf.public_threshold:
                asked += 1
                allowed = list(range(5))
                if public is not None:
                    allowed = own.argsort(descending=True)[: conf.top_k or None].tolist()
                votes = [int(after(model, x, text)[allowed].argmax()) for model in ensemble.models]
                token = allowed[int(np.bincount(votes).argmax())]
            else:
                taken += 1
            if token == 0:
                found[cut.id] = " ".join("".join(TOKENS[k] for k in text).replace("▁", " ").split())
                break
            if len(text) == math.ceil(cut.duration * conf.tokens_per_second):
                break
            text.append(token)
    return found, asked, taken


def test_without_noise_it_is_the_majority_after_each_prefix(ensemble, feats, tmp_path):
    conf = config(epsilon=math.inf, noise=0.0)
    about = run(tmp_path, ensemble, feats, conf)
    found, asked, _ = wanted(ensemble, feats, conf)
    assert labels(tmp_path) == found and about["utterances_answered"] == len(found)
    assert about["vote"] == "token" and about["votes_answered"] == asked


@pytest.mark.parametrize(("public_threshold", "top_k"), [(0.5, 0), (0.6, 0), (0.6, 2), (0.6, 4)])
def test_nobody_is_asked_what_the_public_model_is_sure_of(
    ensemble, feats, tmp_path, public_threshold, top_k
):
    public = teacher("las", 9)
    conf = config(epsilon=math.inf, noise=0.0, public_threshold=public_threshold, top_k=top_k)
    about = run(tmp_path, ensemble, feats, conf, public)
    found, asked, taken = wanted(ensemble, feats, conf, public)
    assert labels(tmp_path) == found and about["votes_answered"] == asked
    assert asked > 0 and taken > 0


@pytest.mark.parametrize("public_threshold", [0.5, 0.6, 1.0])
def test_paid_for_is_what_the_public_models_own_texts_would_take(feats, public_threshold):
    public, cuts = teacher("las", 9), load_cuts(feats, "pool")
    conf = config(public_threshold=public_threshold, margin=0.5, epsilon=math.inf, noise=0.0)
    _, expected, _ = wanted(TeacherEnsemble([public], per_token=True), feats, conf, public)
    assert public_queries(public, cuts, conf, "cpu") == expected > 0
    setting = settle_tokens(cuts, SHARDS, conf, expected)
    assert setting.max_answers == setting.max_queries == math.ceil(0.5 * expected)
    longest = settle_tokens(cuts, SHARDS, conf)
    assert longest.max_answers == sum(conf.longest(cut.duration) + 1 for cut in cuts)
    assert settle_tokens(cuts, SHARDS, conf, 10**9).max_answers == longest.max_answers
    assert settle_tokens(cuts, SHARDS, conf, 0).max_answers == 1


def test_what_needs_no_answer_is_labelled_when_none_are_left(ensemble, feats, tmp_path):
    public = teacher("las", 9)
    conf = config(epsilon=1e4, noise=1.0, max_answers=1, public_threshold=0.6)
    about = run(tmp_path, ensemble, feats, conf, public)
    assert about["votes_asked"] == about["votes_answered"] == 1
    with torch.no_grad():  # one that is always sure that this is the end
        public.speller.output.weight.zero_()
        public.speller.output.bias.copy_(torch.tensor([50.0, 0.0, 0.0, 0.0, 0.0]))
    about = run(tmp_path / "sure", ensemble, feats, conf, public)
    assert about["votes_asked"] == 0 and set(labels(tmp_path / "sure").values()) == {""}
    assert len(labels(tmp_path / "sure")) == 12


@pytest.mark.parametrize("name", ["gnmax", "gumbel_max", "confident_gnmax"])
def test_no_more_is_asked_or_answered_than_was_planned(ensemble, feats, tmp_path, name):
    few = dict(max_answers=15, max_queries=25, noise=0.0, epsilon=1e4)
    conf = config(mechanism=name, threshold=0.01, threshold_ratio=0.01, **few)
    about = run(tmp_path, ensemble, feats, conf)
    assert about["votes_answered"] == 15
    asked = 25 if name == "confident_gnmax" else 15
    assert about["votes_asked"] <= asked
    assert about["votes_planned"] == {"asked": asked, "answered": 15}


def test_killed_and_continued_it_keeps_what_was_drawn(ensemble, feats, tmp_path, monkeypatch):
    conf = config(noise=1.0, epsilon=1e4)
    written = tokens.write_answers

    def third_kills(path: Path, *rest: object) -> None:
        if path.name == "answers-2.safetensors":
            raise KeyboardInterrupt
        written(path, *rest)

    monkeypatch.setattr(tokens, "write_answers", third_kills)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, ensemble, feats, conf)
    monkeypatch.undo()
    before = {path.name: path.read_bytes() for path in (tmp_path / "labels").glob("answers-*")}
    assert sorted(before) == ["answers-0.safetensors", "answers-1.safetensors"]
    run(tmp_path, ensemble, feats, conf)
    after = {path.name: path.read_bytes() for path in (tmp_path / "labels").glob("answers-*")}
    assert {name: after[name] for name in before} == before and len(after) > 2
    text = (tmp_path / "labels" / "labels.jsonl").read_text()
    (tmp_path / "labels" / "labels.jsonl").unlink()
    run(tmp_path, ensemble, feats, conf)
    assert (tmp_path / "labels" / "labels.jsonl").read_text() == text
    assert len(read_json(tmp_path / "ledger.json")["entries"]) == 1
    first, second = (tmp_path / "labels" / f"answers-{k}.safetensors" for k in (0, 1))
    first.write_bytes(before[second.name])
    with pytest.raises(DataError, match="answers about this batch's utterances"):
        run(tmp_path, ensemble, feats, conf)
    first.write_bytes(before[first.name])
    second.unlink()
    with pytest.raises(PrivacyError, match="force"):
        run(tmp_path, ensemble, feats, conf)


def test_the_plan_is_that_of_the_release(feats):
    conf = config(noise=0.0, epsilon=8.0, margin=2.0)
    setting = settle_tokens(load_cuts(feats, "pool"), SHARDS, conf, expected=10)
    plan = planned(setting, conf, SHARDS, expected=10, tokens=len(TOKENS))
    assert plan["votes"] == setting.max_answers == 20 and plan["noise"] == setting.noise
    assert plan["epsilon"] == setting.epsilon.value <= 8.0 and plan["expected"] == 10
    # Two of three teachers against one, and all of them.
    others = [0] * (len(TOKENS) - 2)
    wins = [winning_chance([n, 3 - n, *others], conf.mechanism, setting.noise) for n in (2, 3)]
    assert plan["majority_wins"] == {"0.7": wins[0], "1": wins[1]} and wins[0] < wins[1]
    open_conf = config(epsilon=math.inf, noise=0.0)
    free = settle_tokens(load_cuts(feats, "pool"), SHARDS, open_conf)
    told = planned(free, open_conf, SHARDS, expected=None, tokens=len(TOKENS))
    assert told["epsilon"] is None and set(told["majority_wins"].values()) == {None}


def test_some_of_the_pool_are_chosen(feats):
    cuts = load_cuts(feats, "pool")
    some = [cut.id for cut in chosen(cuts, config(utterances=4))]
    assert len(set(some)) == 4 and some == [cut.id for cut in chosen(cuts, config(utterances=4))]
    assert len(chosen(cuts, config())) == 12


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("mechanism", "gaussian_posteriors"), ("tokens_per_second", 0.0), ("max_duration", 0.0)),
        *(("utterances", -1), ("public_threshold", 0.0), ("public_threshold", 1.5)),
        *(("top_k", 1), ("top_k", 3)),
    ],
)
def test_bad_numbers_are_named(key, value):
    with pytest.raises(ValueError, match=key):
        config(**{key: value})
