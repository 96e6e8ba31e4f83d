"""Votes on a pool, their files, and by how much one teacher can change them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.errors import ConfigError, DataError
from privasr_k2.graph.lang import load_lang
from privasr_k2.pate.ensembles import TeacherEnsemble
from privasr_k2.pate.nbest_hypotheses import NbestHypotheses, nbest_hypotheses
from privasr_k2.pate.votes import (
    Votes,
    VotesConfig,
    agreement,
    cast_votes,
    check_weights,
    read_votes,
    write_votes,
)
from privasr_k2.privacy.pate.sensitivity import Change
from privasr_k2.scoring.nbest_lists import read_nbest
from tests.support.small_pate import SHARDS, made_votes, pool, teacher, write_lists

pytest.importorskip("lhotse")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, NbestHypotheses]:
    folder = tmp_path_factory.mktemp("votes")
    feats, lang = pool(folder)
    write_lists(folder / "nbest")
    return feats, nbest_hypotheses(read_nbest(folder / "nbest"), load_lang(lang), 8)


def config(**changes: object) -> VotesConfig:
    values: dict[str, object] = dict(role="pool", job=1, num_jobs=1, max_duration=4.0)
    values |= dict(vote="utterance", of="votes", per_token=True, max_hyps=8, weights=[])
    return VotesConfig(**{**values, **changes})


def cast(
    corpus: tuple[Path, NbestHypotheses], *seeds: int, abstaining: tuple = (), **changes: object
) -> Votes:
    from privasr_k2.data.manifests import load_cuts

    models = [teacher("ctc", seed) for seed in seeds]
    made = TeacherEnsemble(models, per_token=True, abstaining=abstaining)
    conf = config(**changes)
    lists = corpus[1] if conf.vote == "utterance" else None
    return cast_votes(made, lists, load_cuts(corpus[0], "pool"), SHARDS, conf, "cpu")


def rows(votes: Votes) -> list[np.ndarray]:
    return np.split(votes.counts, np.cumsum(votes.sizes)[:-1])


def test_jobs_together_are_one(corpus, tmp_path):
    write_votes(tmp_path / "one" / "1.safetensors", cast(corpus, 1, 2, 3))
    for job in (1, 2, 3):
        part = cast(corpus, 1, 2, 3, job=job, num_jobs=3)
        write_votes(tmp_path / "three" / f"{job}.safetensors", part)
    one, three = read_votes(tmp_path / "one"), read_votes(tmp_path / "three")
    assert one.ids == three.ids == tuple(sorted(f"train-{n}" for n in range(11)))  # no votes on one
    assert (one.counts == three.counts).all() and (one.sizes == three.sizes).all()
    assert one.teachers == 3 and one.unit == "speaker" and one.units == 9
    assert [int(row.sum()) for row in rows(one)] == [3] * 11
    queries, sizes, counts = one.of_utterances(np.array([5, 2]))
    assert (queries.tolist(), sizes.tolist()) == ([1, 1], [3, 3])
    assert counts.tolist() == [*rows(one)[5], *rows(one)[2]]


def test_frames_are_voted_on_one_by_one(corpus):
    from privasr_k2.data.manifests import load_cuts

    found = cast(corpus, 1, 2, vote="frame")
    of = dict(zip(found.ids, np.split(np.array(rows(found)), found.splits[1:-1])))
    for cut in load_cuts(corpus[0], "pool"):
        import torch

        x = torch.from_numpy(cut.load_features())[None]
        wanted: np.ndarray | int = 0
        for seed in (1, 2):
            log_probs, _ = teacher("ctc", seed).log_probs(x, torch.tensor([x.size(1)]))
            wanted = wanted + np.eye(5, dtype=int)[log_probs[0].argmax(dim=1).numpy()]
        assert of[cut.id].tolist() == np.asarray(wanted).tolist()
    assert found.tokens == ("<blk>", "a", "b", "c", "▁") and found.digests == ()


@pytest.mark.parametrize("vote", ["utterance", "frame"])
@pytest.mark.parametrize("weights", [[], [0.6, 0.3, 0.1]])
def test_another_teacher_moves_posteriors_by_no_more_than_is_claimed(corpus, vote, weights):
    whole = cast(corpus, 1, 2, 3, vote=vote, of="posteriors", weights=weights)
    assert whole.largest_weight == pytest.approx(3 * max(weights or [1 / 3]))
    share = 3 * np.array(weights or [1 / 3] * 3)
    largest = 0.0
    for place in range(3):
        seeds = [9 if k == place else k + 1 for k in range(3)]
        other = cast(corpus, *seeds, vote=vote, of="posteriors", weights=weights)
        for before, after in zip(rows(whole), rows(other)):
            moved = (after - before) * whole.step
            assert np.linalg.norm(moved) <= 2**0.5 * share[place]
            assert np.abs(moved).sum() <= 2 * share[place]
            largest = max(largest, np.linalg.norm(moved) / share[place])
    assert largest > 0.5  # it is no bound that nothing comes near
    sums = [row.sum() * whole.step for row in rows(whole)]
    assert max(sums) <= 3 and min(sums) > 3 - 0.001


@pytest.mark.parametrize("vote", ["utterance", "frame"])
@pytest.mark.parametrize("of", ["votes", "posteriors"])
def test_a_vote_that_is_given_or_not_moves_counts_by_one(corpus, vote, of):
    whole = cast(corpus, 1, 2, 3, vote=vote, of=of)
    largest = 0.0
    for place in range(3):
        other = cast(corpus, 1, 2, 3, vote=vote, of=of, abstaining=(place,))
        assert other.teachers == 3 and other.ids == whole.ids
        assert (other.sizes == whole.sizes).all() and (other.splits == whole.splits).all()
        for before, after in zip(rows(whole), rows(other)):
            moved = (before - after) * whole.step
            assert (moved >= 0).all() and moved.sum() <= 1 and np.linalg.norm(moved) <= 1
            largest = max(largest, moved.sum())
    assert largest > 0.99


def test_votes_know_their_shards(corpus, tmp_path):
    write_votes(tmp_path / "1.safetensors", cast(corpus, 1, 2, 3))
    found = read_votes(tmp_path)
    assert found.units_in_a_shard == 3 and found.change is Change.MOVES
    assert found.people == SHARDS.people and found.people.most_units == 1


def test_queries_of_frames_stay_with_their_utterance(tmp_path):
    rows = {"u2": [[1, 0], [0, 1], [2, 2]], "u0": [[5, 5]], "u1": [[3, 4], [6, 7]]}
    counts = np.concatenate([np.array(own).ravel() for own in rows.values()])
    changes = dict(splits=np.array([0, 3, 4, 6]), sizes=np.full(6, 2), digests=())
    votes, _ = made_votes([[5]], ids=tuple(rows), **changes)
    write_votes(tmp_path / "1.safetensors", replace(votes, vote="frame", counts=counts))
    found = read_votes(tmp_path)
    assert found.ids == ("u0", "u1", "u2") and found.splits.tolist() == [0, 1, 3, 6]
    assert found.counts.tolist() == [5, 5, 3, 4, 6, 7, 1, 0, 0, 1, 2, 2]
    queries, sizes, own = found.of_utterances(np.array([2, 0]))
    assert (queries.tolist(), sizes.tolist()) == ([3, 1], [2] * 4)
    assert own.tolist() == [1, 0, 0, 1, 2, 2, 5, 5]


def test_agreement_is_that_of_the_counts():
    votes, _ = made_votes([[4, 0], [2, 2], [1, 3]])
    shares = {"unanimous": pytest.approx(1 / 3), "first_wins": pytest.approx(2 / 3)}
    assert agreement(votes) == {"queries": 3, "mean_share": 0.75, **shares}


def test_votes_that_do_not_belong_together_are_refused(tmp_path):
    votes, _ = made_votes([[4, 0], [2, 2]])
    with pytest.raises(DataError, match="run cast_votes"):
        read_votes(tmp_path)
    write_votes(tmp_path / "1.safetensors", votes)
    write_votes(tmp_path / "2.safetensors", votes)
    with pytest.raises(DataError, match="every utterance once"):
        read_votes(tmp_path)
    write_votes(tmp_path / "2.safetensors", replace(votes, ids=("v0", "v1"), teachers=5))
    with pytest.raises(DataError, match="others in teachers"):
        read_votes(tmp_path)
    (tmp_path / "2.safetensors").write_bytes(b"nothing")
    with pytest.raises(DataError, match="cast them again"):
        read_votes(tmp_path)


def test_weights_sum_to_one():
    assert check_weights([], 4).tolist() == [0.25] * 4
    assert check_weights([0.75, 0.25], 2).tolist() == [0.75, 0.25]
    for bad in ([0.5, 0.4], [1.5, -0.5], [1.0]):
        with pytest.raises(ValueError, match="weights"):
            check_weights(bad, 2)


def test_what_cannot_be_cast_is_refused(corpus):
    with pytest.raises(ConfigError, match="weights must be 3"):
        cast(corpus, 1, 2, 3, of="posteriors", weights=[0.5, 0.5])
    words = {name: own for name, own in corpus[1].words.items() if name != "train-3"}
    fewer = replace(corpus[1], words=words)
    with pytest.raises(DataError, match="none for train-3"):
        cast((corpus[0], fewer), 1, 2)
    wrong = [{"vote": "word"}, {"of": "scores"}, {"max_hyps": 1}, {"weights": [1.0]}]
    for bad in (*wrong, {"weights": [0.5, 0.4], "of": "posteriors"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            config(**bad)
