"""Losses of weighted hypotheses and of guesses, against one hypothesis at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
import torch

from privasr_k2.am.ctc import CtcTask
from privasr_k2.am.losses import ctc_loss
from privasr_k2.am.sequence import SequenceTask, nbest
from privasr_k2.data.batches import Batch, pad_batch
from privasr_k2.pate.distillation import DistillationTask, HypothesisLosses, student_loss
from privasr_k2.pate.student_data import Target, UnansweredSettings
from privasr_k2.training.trainer import in_parts
from tests.support.end_to_end import END_TO_END, model
from tests.support.sequence_scores import score_hypotheses
from tests.support.small_am import features

KINDS = ("ctc", *END_TO_END)
TARGETS = {
    "a": Target(((1, 2), (1,), (3, 1)), (0.5, 0.3, 0.2)),
    "b": Target(((3,),), (2.0,)),
    "c": Target(((), (2,)), (0.75, 0.25)),
}


def batch(*names: str) -> Batch:
    x, lengths = features(*(40 - 4 * n for n in range(len(names))))
    rows = [row[:length] for row, length in zip(x, lengths.tolist())]
    return pad_batch(names, rows, [[9]] * len(names))


def task(
    kind: str,
    targets: Mapping[str, Target] = TARGETS,
    min_confidence: float = 0.0,
    stretch: float = 0.0,
) -> DistillationTask:
    plain = CtcTask() if kind == "ctc" else SequenceTask()
    settings = UnansweredSettings(weight=0.5, min_confidence=min_confidence, hyps=1, scale=1.0)
    given = dict(time_stretch=stretch, unanswered=settings)
    return DistillationTask(student_loss, targets, plain, None, **given)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(1)


def alone(made: Any, kind: str, given: Batch, row: int, tokens: tuple[int, ...]) -> torch.Tensor:
    lengths = given.lengths[row : row + 1]
    x = given.features[row : row + 1, : lengths[0]]
    target, size = torch.tensor([tokens], dtype=torch.int64), torch.tensor([len(tokens)])
    if kind == "ctc":
        return ctc_loss(*made(x, lengths), target, size)[0]
    return made(x, lengths, target, size)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_weighted_sums_of_what_each_hypothesis_gives_alone(kind):
    made, given = model(kind).train(), batch("a", "b", "c")
    losses = HypothesisLosses(made)
    found = task(kind).loss(losses, given, generator())
    assert found.count == 2 + 1 + 0
    found.sums.sum().backward()
    gradients = {name: p.grad.clone() for name, p in made.named_parameters() if p.grad is not None}
    made.zero_grad(set_to_none=True)
    expected = []
    for row, name in enumerate("abc"):
        pairs = zip(TARGETS[name].sequences, TARGETS[name].weights)
        expected.append(sum(w * alone(made, kind, given, row, tokens) for tokens, w in pairs))
    sums = torch.stack(expected)
    torch.testing.assert_close(found.sums, sums, rtol=1e-5, atol=1e-5)
    sums.sum().backward()
    for name, p in made.named_parameters():
        if p.grad is not None:
            torch.testing.assert_close(gradients[name], p.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["ctc", "rnnt", "las"])
def test_it_is_minus_the_weighted_log_likelihood(kind):
    made, given = model(kind), batch("a", "b")
    found = task(kind).loss(HypothesisLosses(made).eval(), given, generator()).sums.tolist()
    hyps = [TARGETS[name].sequences for name in given.ids]
    scores = score_hypotheses(made, given.features, given.lengths, hyps)
    weights = [torch.tensor(TARGETS[name].weights, dtype=torch.float64) for name in given.ids]
    assert found == pytest.approx([-float(w @ s) for w, s in zip(weights, scores)], rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_guesses_are_the_models_own_best(kind):
    made = model(kind)
    # Unanswered utterances stand between answered ones.
    targets = {"a": Target((), ()), "b": TARGETS["b"], "c": Target((), ())}
    given = batch("a", "b", "c")
    losses = HypothesisLosses(made).train()
    state = torch.get_rng_state()
    found = task(kind, targets).loss(losses, given, generator())
    assert torch.equal(torch.get_rng_state(), state) and made.training and made.encoder.training
    longest = torch.tensor([made.output_frames(n) for n in given.lengths.tolist()])
    greedy = nbest(made, given.features, given.lengths, longest, beam=1, num_paths=1)
    made.train()
    for row, name in enumerate("abc"):
        tokens, weight = greedy[row][0].tokens, 0.5
        if name == "b":
            tokens, weight = TARGETS["b"].sequences[0], 2.0
        expected = weight * alone(made, kind, given, row, tokens) if tokens else torch.tensor(0.0)
        torch.testing.assert_close(found.sums[row], expected, rtol=1e-5, atol=1e-5)
    assert targets["a"] == Target((), ())  # guessed anew in the next step


def test_unsure_guesses_move_nothing():
    made, given = model("rnnt").train(), batch("a", "b")
    targets = {name: Target((), ()) for name in "ab"}
    longest, losses = torch.tensor([20, 20]), HypothesisLosses(made)
    greedy = nbest(made, given.features, given.lengths, longest, beam=1, num_paths=1)
    sure = [math.exp(hyps[0].score / (len(hyps[0].tokens) + 1)) for hyps in greedy]
    made.train()
    between = sum(sure) / 2
    found = task("rnnt", targets, min_confidence=between).loss(losses, given, generator())
    assert [bool(value > 0) for value in found.sums] == [value >= between for value in sure]
    assert sorted(bool(value > 0) for value in found.sums) == [False, True]
    none = task("rnnt", targets, min_confidence=1.0).loss(losses, given, generator())
    assert none.sums.tolist() == [0.0, 0.0] and none.count == 1
    none.sums.sum().backward()
    assert all(not p.grad.any() for p in made.parameters() if p.grad is not None)


def test_guesses_that_do_not_fit_their_frames_are_left_out(monkeypatch):
    made, given = model("ctc").train(), batch("a")
    one = task("ctc", {"a": Target((), ())})
    assert float(one.loss(HypothesisLosses(made), given, generator()).sums) > 0
    monkeypatch.setattr(type(made), "output_frames", lambda self, frames: 20 if frames == 40 else 0)
    one = task("ctc", {"a": Target((), ())}, stretch=0.5)
    assert float(one.loss(HypothesisLosses(made), given, generator()).sums) == 0


def test_the_halves_of_a_batch_give_what_the_whole_gives():
    made, given = model("las").train(), batch("a", "b", "c")
    losses, one = HypothesisLosses(made), task("las")

    def run(parts: Any) -> list[float]:
        sums = [one.loss(losses, part, generator()).sums.tolist() for part in parts]
        return [value for own in sums for value in own]

    assert run(given.split(2)) == pytest.approx(in_parts(given, run), rel=1e-5)


def test_dev_is_scored_as_ever():
    made, x = model("rnnt"), features(40, 36)
    given = pad_batch("xy", [x[0][0], x[0][1][:36]], [[1, 2], [3]])
    found = task("rnnt").loss(HypothesisLosses(made), given, None)
    plain = SequenceTask().loss(made, given, None)
    assert torch.equal(found.sums, plain.sums) and found.extra == plain.extra and found.count == 3


def test_weights_go_by_the_models_own_names():
    losses = HypothesisLosses(model("ctc"))
    own = losses.model.state_dict()
    inner = losses.inner_weights(losses.state_dict())
    assert list(inner) == list(own) and all(torch.equal(inner[name], own[name]) for name in own)
