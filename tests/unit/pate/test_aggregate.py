"""A release of labels: drawn once; only what was settled before; the content of its files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from privasr_k2.errors import ConfigError, DataError, PrivacyError
from privasr_k2.fileio import read_json, read_jsonl
from privasr_k2.pate.aggregate import AggregateConfig, settle, write_release
from privasr_k2.pate.nbest_hypotheses import NbestHypotheses
from privasr_k2.pate.releases import spending_of
from privasr_k2.pate.student_data import read_labels
from privasr_k2.pate.votes import Votes
from privasr_k2.privacy import release
from privasr_k2.privacy.spending import SETTINGS
from tests.support.small_pate import made_votes, mechanism

COUNTS = [[8, 1, 1], [0, 10], [3, 3, 4], [1, 9], [5, 5], [2, 7, 1], [10, 0], [0, 0, 10]]


def config(**changes: object) -> AggregateConfig:
    return mechanism(AggregateConfig, **changes)


@contextmanager
def begun(
    folder: Path, conf: AggregateConfig, votes: Votes, hypotheses: NbestHypotheses | None
) -> Iterator[release.Release]:
    who = {"vote": votes.vote, "unit": votes.unit, "units": votes.units, "teachers": votes.teachers}
    with release.begin(
        folder / "ledger.json",
        beside=folder / "privacy.json",
        spending=spending_of(conf, settle(votes, hypotheses, conf).setting, **who),
        fingerprint="f",
        max_epsilon=None,
    ) as made:
        yield made


def labels(folder: Path) -> dict[str, list[dict[str, object]]]:
    return {record["id"]: record["hyps"] for record in read_jsonl(folder / "labels.jsonl")}


def test_labels_are_the_answers(tmp_path):
    votes, hypotheses = made_votes(COUNTS)
    conf = config(noise=0.05, epsilon=1e6)
    with begun(tmp_path, conf, votes, hypotheses) as made:
        write_release(tmp_path / "labels", votes, hypotheses, settle(votes, hypotheses, conf), made)
    found = labels(tmp_path / "labels")
    assert list(found) == sorted(votes.ids)
    for name, row in zip(votes.ids, COUNTS):
        [hyp] = found[name]
        best = [f"{name} w{k}" for k, count in enumerate(row) if count == max(row)]
        assert hyp["text"] in best and hyp["weight"] == 1.0
    assert read_labels(tmp_path / "labels" / "labels.jsonl").keys() == found.keys()
    about = read_json(tmp_path / "labels" / "labels.json")
    for key in ("votes_asked", "votes_answered", "utterances_answered"):
        assert about[key] == 8
    assert about["release"] == made.entry.release and about["as_published"]["guarantee"] is False
    assert about["epsilon"]["value"] > 100
    assert about["unit"] == "speaker" and about["teachers"] == 10
    assert "agree" not in json.dumps(about)
    spent = made.entry.spending
    assert (spent.data, spent.unit, spent.units, spent.delta) == ("tiny/train", "speaker", 90, 1e-5)
    assert any("roster" in sentence for sentence in spent.does_not_cover)
    assert SETTINGS in spent.does_not_cover


@pytest.mark.parametrize("of", ["votes", "posteriors"])
def test_nothing_is_drawn_twice(tmp_path, of):
    """Killed behind the draw or the labels, or run again: the same labels, one entry."""
    changes = {"of": of, "step": 0.5} if of == "posteriors" else {}
    votes, hypotheses = made_votes(COUNTS * 8, teachers=5 if changes else 10, **changes)
    conf = config(noise=6.0, epsilon=1e4, mechanism="gaussian_posteriors" if changes else "gnmax")
    asked = settle(votes, hypotheses, conf)

    def run() -> str:
        with begun(tmp_path, conf, votes, hypotheses) as made:
            write_release(tmp_path / "labels", votes, hypotheses, asked, made)
        return (tmp_path / "labels" / "labels.jsonl").read_text()

    with (
        begun(tmp_path, conf, votes, hypotheses) as made,
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(KeyboardInterrupt),
    ):
        patch.setattr("privasr_k2.pate.aggregate.write_labels", interrupted)
        write_release(tmp_path / "labels", votes, hypotheses, asked, made)
    drawn = (tmp_path / "labels" / "answers-0.safetensors").read_bytes()
    assert not (tmp_path / "labels" / "labels.jsonl").exists()
    first = run()
    assert (tmp_path / "labels" / "answers-0.safetensors").read_bytes() == drawn
    for name in ("labels.jsonl", "labels.json"):
        (tmp_path / "labels" / name).unlink()
    assert run() == first  # finished: written again from what was drawn
    assert len(read_json(tmp_path / "ledger.json")["entries"]) == 1
    (tmp_path / "labels" / "answers-0.safetensors").unlink()
    with pytest.raises(PrivacyError, match="force"):
        run()


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_answers_of_another_release_are_not_taken(tmp_path):
    votes, hypotheses = made_votes(COUNTS)
    found = []
    for epsilon in (1e4, 2e4):
        conf = config(noise=0.2, epsilon=epsilon, data=f"tiny/{epsilon}")
        with begun(tmp_path / f"{epsilon}", conf, votes, hypotheses) as made:
            settled = settle(votes, hypotheses, conf)
            write_release(tmp_path / "labels", votes, hypotheses, settled, made)
        with safe_open(str(tmp_path / "labels" / "answers-0.safetensors"), "np") as file:
            found.append(json.loads(file.metadata()["json"])["release"])
        assert found[-1] == made.entry.release
    assert found[0] != found[1]


def test_only_what_the_budget_buys_is_asked():
    votes, hypotheses = made_votes(COUNTS * 10)
    asked = settle(votes, hypotheses, config())
    assert len(asked.places) == asked.setting.max_answers == 22
    again = settle(replace(votes, counts=votes.counts[::-1].copy()), hypotheses, config())
    assert again.places.tolist() == asked.places.tolist()  # whatever the votes are
    assert settle(votes, hypotheses, config(seed=2)).places.tolist() != asked.places.tolist()
    unsure = settle(votes, hypotheses, config(order="unsure", max_answers=5, noise=0.0))
    assert [votes.ids[place] for place in unsure.places] == ["u0", "u1", "u2", "u3", "u4"]
    few = config(mechanism="confident_gnmax", noise=0.0, max_answers=5, max_queries=30)
    checked = settle(votes, hypotheses, few)
    assert len(checked.places) == 30 and checked.setting.max_answers == 5


def test_confident_answers_are_fewer(tmp_path):
    votes, hypotheses = made_votes(COUNTS)
    few = dict(threshold=8.5, threshold_ratio=1.0)
    conf = config(mechanism="confident_gnmax", noise=0.05, epsilon=1e7, **few)
    with begun(tmp_path, conf, votes, hypotheses) as made:
        settled = settle(votes, hypotheses, conf)
        about = write_release(tmp_path / "labels", votes, hypotheses, settled, made)
    assert sorted(labels(tmp_path / "labels")) == ["u1", "u3", "u6", "u7"]
    assert (about["votes_asked"], about["votes_answered"], about["utterances_asked"]) == (8, 4, 8)


def test_posteriors_become_shares(tmp_path):
    counts = [[6, 3, 1], [10, 0], [4, 4, 2]]
    votes, hypotheses = made_votes(counts, of="posteriors", step=0.5, teachers=5)
    conf = config(mechanism="gaussian_posteriors", epsilon=np.inf, noise=0.0)
    write_release(tmp_path, votes, hypotheses, settle(votes, hypotheses, conf), None)
    read = labels(tmp_path).items()
    found = {name: {h["text"]: h["weight"] for h in hyps} for name, hyps in read}
    assert found["u0"] == pytest.approx({"u0 w0": 0.6, "u0 w1": 0.3, "u0 w2": 0.1})
    assert found["u1"] == {"u1 w0": 1.0}
    assert all(sum(own.values()) == pytest.approx(1) for own in found.values())
    assert read_json(tmp_path / "labels.json")["epsilon"] is None


@pytest.mark.parametrize("of", ["votes", "posteriors"])
def test_frames_become_words(tmp_path, of):
    tokens = ("<blk>", "a", "b", "▁")
    paths = [[3, 1, 0, 1, 2], [0, 3, 2]]
    counts = np.concatenate([5 * np.eye(4, dtype=int)[token] for path in paths for token in path])
    changes = dict(vote="frame", of=of, tokens=tokens, teachers=5, ids=("u0", "u1"), digests=())
    changes |= dict(splits=np.array([0, 5, 8]), sizes=np.full(8, 4), counts=counts)
    votes, _ = made_votes([[5]], **changes)
    name = "gnmax" if of == "votes" else "laplace_posteriors"
    conf = config(epsilon=np.inf, noise=0.0, mechanism=name)
    about = write_release(tmp_path, votes, None, settle(votes, None, conf), None)
    texts = {name: hyps[0]["text"] for name, hyps in labels(tmp_path).items()}
    assert texts == {"u0": "aab", "u1": "b"}
    assert about["votes_answered"] == 8 and about["utterances_answered"] == 2
    # Whole utterances, as far as the answers go.
    short = settle(votes, None, config(mechanism=name, noise=0.0, max_answers=7))
    assert len(short.places) == 1
    with pytest.raises(PrivacyError, match="of one utterance"):
        settle(votes, None, config(mechanism=name, noise=0.0, max_answers=2))


def test_what_does_not_fit_is_refused():
    votes, hypotheses = made_votes(COUNTS)
    of_posteriors, frames = replace(votes, of="posteriors"), replace(votes, vote="frame")
    confident = config(mechanism="confident_gnmax")
    too_high = config(mechanism="confident_gnmax", threshold=11.0)
    for cast, lists, conf, message in (
        (votes, hypotheses, config(mechanism="gaussian_posteriors"), "mechanism"),
        (of_posteriors, hypotheses, config(), "mechanism"),
        (frames, None, confident, "votes on frames"),
        (votes, hypotheses, too_high, "number of teachers"),
    ):
        with pytest.raises(ConfigError, match=message):
            settle(cast, lists, conf)
    other = replace(hypotheses, words={**hypotheses.words, "u3": ("else", "u3 w1")})
    for wrong in (None, other, replace(hypotheses, words={})):
        with pytest.raises(DataError, match="those that were voted for"):
            settle(votes, wrong, config())
    with pytest.raises(ValueError, match="order"):
        config(order="best")
