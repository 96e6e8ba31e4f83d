"""Votes of teachers against a loop over teachers, utterances and hypotheses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from privasr_k2.am.beam_search import beam_search
from privasr_k2.am.checkpoints import save_model
from privasr_k2.am.ctc_prefix import CtcSteps
from privasr_k2.am.kinds import new_model
from privasr_k2.am.sequence import nbest
from privasr_k2.errors import ConfigError, DataError, GraphError
from privasr_k2.graph.lang import load_lang
from privasr_k2.pate.ensembles import TeacherEnsemble, votes_of
from privasr_k2.pate.loading import load_teachers, open_ensemble, open_models, teacher_folders
from tests.support.end_to_end import spec
from tests.support.sequence_scores import next_log_probs, score_hypotheses
from tests.support.small_am import features
from tests.support.small_pate import TOKENS, pool, save_teachers, teacher

KINDS = ("ctc", "rnnt", "ctc_attention", "las")
HYPS = [[(1, 2), (2,), (4, 1, 3)], [(3, 3, 1), ()], [(1,), (2,), (3,), (4,), (1, 4)]]


def ensemble(kind: str, *, per_token: bool = False) -> TeacherEnsemble:
    return TeacherEnsemble([teacher(kind, seed) for seed in (1, 2, 3, 4)], per_token=per_token)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("per_token", [False, True])
def test_each_teacher_votes_for_what_it_finds_most_likely(kind, per_token):
    made = ensemble(kind, per_token=per_token)
    x, lengths = features(40, 33, 21)
    counts = [np.zeros(len(own), dtype=int) for own in HYPS]
    posteriors = [[] for _ in HYPS]
    for model in made.models:
        for row, own in enumerate(HYPS):
            alone, frames = x[row : row + 1, : lengths[row]], lengths[row : row + 1]
            scores = [score_hypotheses(model, alone, frames, [[hyp]])[0] for hyp in own]
            scores = np.array([float(score) for score in scores])
            if per_token:
                scores /= [len(hyp) + 1 for hyp in own]
            counts[row][int(scores.argmax())] += 1
            shares = np.exp(scores - scores.max())
            posteriors[row].append(shares / shares.sum())
    found = made.hypothesis_votes(x, lengths, HYPS)
    assert [row.tolist() for row in found] == [row.tolist() for row in counts]
    assert all(row.dtype == np.int64 and row.sum() == 4 for row in found)
    for row, own in zip(made.hypothesis_posteriors(x, lengths, HYPS), posteriors):
        np.testing.assert_allclose(row, own, atol=2e-4)


def test_a_public_lm_joins_each_teachers_score():
    made = ensemble("ctc")
    x, lengths = features(40, 33, 21)
    lm = [[-1.0, -30.0, 2.0], [-0.5, 0.0], [-9.0, 0.0, -9.0, -9.0, -9.0]]
    alone, joined = (made.hypothesis_scores(x, lengths, HYPS, given) for given in (None, lm))
    for row, own in enumerate(lm):
        found = joined[:, row, : len(own)] - alone[:, row, : len(own)]
        np.testing.assert_allclose(found, np.tile(own, (4, 1)), atol=1e-9)
    sure = [[0.0, 0.0, 1e6], [1e6, 0.0], [0.0] * 4 + [1e6]]
    votes = made.hypothesis_votes(x, lengths, HYPS, sure)
    assert [row.tolist() for row in votes] == [[0, 0, 4], [4, 0], [0, 0, 0, 0, 4]]
    for shares in made.hypothesis_posteriors(x, lengths, HYPS, sure):
        assert (shares.max(axis=1) > 0.999).all()


def test_another_teacher_moves_one_vote():
    x, lengths = features(40, 33, 21)
    whole = ensemble("rnnt").hypothesis_votes(x, lengths, HYPS)
    for place in range(4):
        models = [teacher("rnnt", 9 if k == place else k + 1) for k in range(4)]
        other = TeacherEnsemble(models, per_token=False).hypothesis_votes(x, lengths, HYPS)
        for before, after in zip(whole, other):
            moved = np.sort((after - before)[after != before]).tolist()
            assert moved in ([], [-1, 1])


@pytest.mark.parametrize("kind", ["ctc", "las"])
def test_a_teacher_that_abstains_is_as_if_it_was_not_there(kind):
    x, lengths = features(40, 33, 21)
    models = [teacher(kind, seed) for seed in (1, 2, 3, 4)]
    some = TeacherEnsemble(models, per_token=False, abstaining=[1, 3])
    others = TeacherEnsemble(models[::2], per_token=False)
    assert some.num_teachers == 4 and some.votes.tolist() == [1, 0, 1, 0]
    for ours, theirs in zip(*(made.hypothesis_votes(x, lengths, HYPS) for made in (some, others))):
        assert ours.tolist() == theirs.tolist() and ours.sum() == 2
    given = (made.hypothesis_posteriors(x, lengths, HYPS) for made in (some, others))
    for ours, theirs in zip(*given):
        assert np.allclose(ours[::2], theirs, atol=1e-6) and not ours[1::2].any()
    counts = [made.token_votes(x, lengths).counts() for made in (some, others)]
    assert counts[0].tolist() == counts[1].tolist() and (counts[0].sum(axis=1) == 2).all()
    candidates = torch.tensor([[0, 1], [2, 3], [1, 4]])
    assert (some.token_votes(x, lengths).counts(candidates).sum(axis=1) == 2).all()
    nobody = TeacherEnsemble(models, per_token=False, abstaining=range(4))
    found = nobody.hypothesis_votes(x, lengths, HYPS)
    assert [row.tolist() for row in found] == [[0] * len(own) for own in HYPS]
    assert not nobody.token_votes(x, lengths).counts().any()


def test_equal_and_impossible_hypotheses_go_to_the_first():
    scores = np.array([[[-2.0, -2.0, -np.inf], [-np.inf, -np.inf, -np.inf]]])
    assert [row.tolist() for row in votes_of(scores, [2, 3])] == [[1, 0], [1, 0, 0]]
    x, lengths = features(8)
    made = ensemble("ctc")  # two output frames
    found = made.hypothesis_votes(x, lengths, [[(1, 2, 3, 1), (1, 2, 3, 2)]])
    assert found[0].tolist() == [4, 0]
    posteriors = made.hypothesis_posteriors(x, lengths, [[(1, 2, 3, 1), (1, 2, 3, 2)]])
    assert posteriors[0].tolist() == [[0.0, 0.0]] * 4


@pytest.mark.parametrize("kind", ["ctc", "ctc_attention"])
def test_frames_have_a_posterior_of_every_teacher(kind):
    made = ensemble(kind)
    x, lengths = features(40, 21)
    for model, (posteriors, kept) in zip(made.models, made.frame_posteriors(x, lengths)):
        wanted, frames = model.log_probs(x, lengths)
        np.testing.assert_allclose(posteriors, wanted.double().exp().numpy(), atol=1e-12)
        assert kept.tolist() == frames.tolist()
    with pytest.raises(DataError, match="vote by utterance"):
        next(ensemble("las").frame_posteriors(x, lengths))


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_token_is_voted_for_after_the_same_prefix(kind):
    made = ensemble(kind)
    x, lengths = features(40, 33, 21)
    reading = made.token_votes(x, lengths)
    prefixes = [(), (), ()]
    rows = [0, 1, 2]
    for own, tokens in (([0, 2], [1, 3]), ([0, 1], [2, 2])):
        check_counts(made, x, lengths, rows, prefixes, reading.counts())
        prefixes = [(*prefixes[k], token) for k, token in zip(own, tokens)]
        rows = [rows[k] for k in own]
        reading.extend(np.array(own), np.array(tokens))
    check_counts(made, x, lengths, rows, prefixes, reading.counts())


@pytest.mark.parametrize("kind", ["ctc", "ctc_attention"])
def test_together_they_have_the_mean_of_the_posteriors_of_those_who_vote(kind):
    models = [teacher(kind, seed) for seed in (1, 2, 3, 4)]
    made = TeacherEnsemble(models, per_token=False, abstaining=[1])
    x, lengths = features(40, 21)
    wanted = sum(models[k].log_probs(x, lengths)[0].double().exp() for k in (0, 2, 3)) / 3
    found, kept = made.log_probs(x, lengths)
    torch.testing.assert_close(found.exp(), wanted.float(), rtol=0, atol=1e-6)
    assert kept.tolist() == models[0].log_probs(x, lengths)[1].tolist()
    with pytest.raises(DataError, match="all abstain"):
        TeacherEnsemble(models, per_token=False, abstaining=range(4)).log_probs(x, lengths)


@pytest.mark.parametrize("kind", KINDS)
def test_together_they_read_hypotheses_like_one_model(kind):
    """The search of an ensemble: the mean of the next token's posteriors, of frames for CTC."""
    made = ensemble(kind)
    x, lengths = features(40, 33, 21)
    stepper = made.stepper(*made.encode(x, lengths))
    prefixes = stepper.start()
    rows, read = torch.tensor([0, 2]), torch.tensor([1, 3])
    later = stepper.extend(prefixes, rows, read)
    if kind == "ctc":  # one CTC model of the mean posteriors
        alone = CtcSteps(*made.log_probs(x, lengths))
        wanted = [first := alone.start(), alone.extend(first, rows, read)]
        for found, expected in zip((prefixes, later), wanted):
            torch.testing.assert_close(found.scores, expected.scores)
        return
    steppers = [model.stepper(*model.encode(x, lengths)) for model in made.models]
    firsts = [one.start() for one in steppers]
    afters = [one.extend(first, rows, read) for one, first in zip(steppers, firsts)]
    for found, each in ((prefixes, firsts), (later, afters)):
        mean = torch.stack([one.scores.exp() for one in each]).mean(0)
        torch.testing.assert_close(found.scores.exp(), mean)


def test_an_ensemble_of_one_decodes_as_that_one():
    x, lengths = features(40, 33, 21)
    longest = torch.tensor([6, 6, 6])
    for kind in KINDS:
        model = teacher(kind, 1)
        made = TeacherEnsemble([model, model], per_token=False)
        found = [
            nbest(one, x, lengths, longest, beam=4, num_paths=3)  # type: ignore[arg-type]
            for one in (made, model)
        ]
        for one, own in zip(*found):
            assert [path.tokens for path in one] == [path.tokens for path in own]
            np.testing.assert_allclose(
                [path.score for path in one], [path.score for path in own], rtol=1e-5
            )


def check_counts(made: Any, x: Any, lengths: Any, rows: Any, prefixes: Any, counts: Any) -> None:
    wanted = np.zeros_like(counts)
    for model in made.models:
        found = next_log_probs(model, x[rows], lengths[rows], prefixes)
        for place, token in enumerate(found.argmax(dim=1).tolist()):
            wanted[place, token] += 1
    assert counts.tolist() == wanted.tolist()


def test_one_teacher_alone_is_greedy_search():
    model = teacher("las", 1)
    x, lengths = features(40, 33, 21)
    stepper = model.stepper(*model.encode(x, lengths))
    best = beam_search(stepper, torch.tensor([6, 6, 6]), beam=1, num_paths=1)
    made = TeacherEnsemble([model], per_token=True)
    for row in range(3):
        tokens: list[int] = []
        given = x[row : row + 1], lengths[row : row + 1]
        alone = made.token_votes(*given)
        while len(tokens) < 6 and (token := int(alone.counts()[0].argmax())):
            tokens.append(token)
            alone.extend(np.array([0]), np.array([token]))
        if len(tokens) < 6:  # search keeps the best of all ends, a vote takes the first
            least = float(score_hypotheses(model, *given, [[tokens]])[0]) - 1e-5
            assert best[row][0].score >= least
    assert made.token_votes(x, lengths).counts().sum(axis=1).tolist() == [1, 1, 1]


def test_folders_must_be_those_of_the_shards(tmp_path):
    save_teachers(tmp_path, "rnnt", 3)
    found = open_ensemble(tmp_path, 3, "cpu", per_token=True)
    assert found.num_teachers == 3 and found.tokens == ["<blk>", "a", "b", "c", "▁"]
    with pytest.raises(DataError, match="none for shard 4 5"):
        teacher_folders(tmp_path, 5)
    with pytest.raises(DataError, match="2 trained teachers, as many as shards, found more"):
        teacher_folders(tmp_path, 2)
    (tmp_path / "2" / "tokens.txt").write_text("<blk> 0\na 1\nb 2\nd 3\n▁ 4\n", encoding="utf-8")
    with pytest.raises(DataError, match="tokens of teacher 1"):
        load_teachers(tmp_path, 3, "cpu", per_token=True)
    with pytest.raises(DataError, match="one teacher at least"):
        TeacherEnsemble([], per_token=True)


def test_models_that_are_attacked_fit_together(tmp_path):
    _, folder = pool(tmp_path / "corpus")
    lang = load_lang(folder)
    save_teachers(tmp_path, "rnnt", 2)
    found = open_models([tmp_path / "2", tmp_path / "1"], lang, "cpu")
    assert found.num_teachers == 2 and not found.per_token
    x, lengths = features(40)
    given = torch.tensor([[1, 2]]), torch.tensor([2])
    assert torch.equal(found.models[1](x, lengths, *given), teacher("rnnt", 1)(x, lengths, *given))
    with pytest.raises(DataError, match="an acoustic model"):
        open_models([tmp_path / "3"], lang, "cpu")
    with pytest.raises(ConfigError, match="a folder of heads"):
        open_models([tmp_path / "1"], lang, "cpu", heads=[1])
    other = new_model(replace(spec("rnnt"), num_tokens=5, feature_dim=6), seed=1)
    save_model(tmp_path / "wide", other.spec, other.state_dict(), TOKENS)
    with pytest.raises(ConfigError, match="expected models of 5 features, found 6"):
        open_models([tmp_path / "1", tmp_path / "wide"], lang, "cpu")
    (tmp_path / "2" / "tokens.txt").write_text("<blk> 0\na 1\nb 2\nd 3\n▁ 4\n", encoding="utf-8")
    with pytest.raises(GraphError, match="token 3, 'c'"):
        open_models([tmp_path / "1", tmp_path / "2"], lang, "cpu")
