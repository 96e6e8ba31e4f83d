"""End-to-end models against enumeration of transcripts, Opacus against one utterance a time."""

from __future__ import annotations

import copy

import pytest
import torch

from privasr_k2.am.grad_samplers import register, with_replaceable_layers
from privasr_k2.am.sequence import nbest
from tests.support.end_to_end import ENCODERS, END_TO_END, everything, model, renamed
from tests.support.sequence_scores import score_hypotheses
from tests.support.small_am import features


@pytest.mark.parametrize("kind", [*END_TO_END, "ctc"])
def test_beam_of_all_finds_the_best_of_the_enumeration(kind):
    made = model(kind, "blstm")
    x, lengths = features(21, 14)
    longest = 4
    texts = everything(longest)
    scores = score_hypotheses(made, x, lengths, [texts, texts])
    limits = torch.tensor([longest, longest])
    found = nbest(made, x, lengths, limits, beam=3**longest, num_paths=7)
    for expected, of_one in zip(scores, found):
        best = expected.sort(descending=True)
        expected_texts = [texts[place] for place in best.indices[:7].tolist()]
        assert expected_texts == [hyp.tokens for hyp in of_one]
        assert [hyp.score for hyp in of_one] == pytest.approx(best.values[:7].tolist(), rel=1e-4)
        assert kind == "ctc_attention" or 0.0 < float(expected.exp().sum()) <= 1 + 1e-5
    narrow = nbest(made, x, lengths, limits, beam=1, num_paths=1)
    # Where they find the same, the scores differ by rounding.
    for [greedy], [best, *_] in zip(narrow, found):
        assert greedy.score <= best.score + 1e-5 * abs(best.score)


def test_probabilities_of_all_transcripts_of_ctc_sum_to_one():
    made = model("ctc")
    x, lengths = features(13)  # 4 frames: no transcript has more tokens
    texts = everything(4)
    total = float(score_hypotheses(made, x, lengths, [texts])[0].exp().sum())
    assert total == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("encoder_kind", ENCODERS)
@pytest.mark.parametrize("kind", END_TO_END)
def test_per_example_gradients_are_those_of_one_utterance_at_a_time(kind, encoder_kind):
    grad_sample = pytest.importorskip("opacus.grad_sample")
    register()
    made = model(kind, encoder_kind).train()
    x, lengths = features(23, 14)
    targets, target_lengths = torch.tensor([[1, 2, 2], [3, 1, 0]]), torch.tensor([3, 2])
    replaced = with_replaceable_layers(copy.deepcopy(made))
    wrapped = grad_sample.GradSampleModule(replaced, loss_reduction="sum")
    losses = wrapped(x, lengths, targets, target_lengths)
    torch.testing.assert_close(losses, made(x, lengths, targets, target_lengths))
    losses.sum().backward()
    for row in range(2):
        made.zero_grad()
        frames, tokens = int(lengths[row]), int(target_lengths[row])
        rows = slice(row, row + 1)
        given = x[rows, :frames], lengths[rows], targets[rows, :tokens], target_lengths[rows]
        made(*given).sum().backward()
        # Opacus's LSTM has the same weights by other names.
        expected = {name: parameter.grad for name, parameter in made.named_parameters()}
        found = {renamed(name): value.grad_sample for name, value in wrapped.named_parameters()}
        assert found.keys() == expected.keys()
        for name, gradient in found.items():
            assert len(gradient) == 2, name
            own = (gradient[row], expected[name])
            torch.testing.assert_close(*own, atol=1e-5, rtol=1e-5, msg=name)
