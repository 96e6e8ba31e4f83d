"""The CTC model and its task."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from privasr_k2.am.ctc import CtcTask
from privasr_k2.am.kinds import new_model
from privasr_k2.am.losses import ctc_loss
from privasr_k2.am.model import feature_statistics
from privasr_k2.am.specaugment import SpecAugment, SpecAugmentConfig
from privasr_k2.data.batches import pad_batch
from tests.support.small_am import KINDS, features, tiny_model, tiny_model_with

BATCH = pad_batch(["x", "y"], [torch.randn(40, 5), torch.randn(25, 5)], [[1, 2, 1], [3]])


@pytest.mark.parametrize("kind", KINDS)
def test_log_probs_are_normalized_and_know_their_lengths(kind):
    model = tiny_model(kind)
    log_probs, lengths = model.log_probs(*features(31, 12))
    assert log_probs.shape == (2, model.output_frames(31), 4) and log_probs.dtype == torch.float32
    assert lengths.tolist() == [model.output_frames(31), model.output_frames(12)]
    torch.testing.assert_close(log_probs.exp().sum(2), torch.ones(2, log_probs.size(1)))
    assert not log_probs.requires_grad and not model.training


def test_utterance_mean_makes_a_shift_invisible():
    model = tiny_model("tdnn")
    x, lengths = features(30)
    shift = torch.tensor([3.0, -1, 0, 5, 2])
    shifted, plain = (model.log_probs(given, lengths)[0] for given in (x + shift, x))
    torch.testing.assert_close(shifted, plain, atol=1e-4, rtol=1e-4)
    without = tiny_model_with(model, utterance_mean=False)
    shifted, plain = (without.log_probs(given, lengths)[0] for given in (x + shift, x))
    assert not torch.allclose(shifted, plain, atol=1e-2)


@pytest.mark.parametrize("utterance_mean", [True, False])
def test_statistics_are_numpys_over_true_frames(utterance_mean):
    utterances = [
        np.random.default_rng(seed).normal(seed, 2.0, size=(length, 3))
        for seed, length in ((1, 20), (2, 7), (3, 9))
    ]
    for frames in utterances:
        frames[:, 2] = 4.0
    given = [torch.tensor(frames).float() for frames in utterances]
    made = [pad_batch("ab", given[:2], [[1], [1]]), pad_batch("a", given[2:], [[1]])]
    frames = np.concatenate([own - own.mean(0) * utterance_mean for own in utterances])
    mean, deviation = feature_statistics(made, utterance_mean=utterance_mean)
    np.testing.assert_allclose(mean, frames.mean(0), atol=1e-5)
    np.testing.assert_allclose(deviation[:2], frames.std(0)[:2], rtol=1e-5)
    assert deviation[2] == 1.0  # a feature that never changes is not divided by zero


def test_new_models_of_one_seed_are_equal_and_draw_nothing_from_torch():
    spec = tiny_model("tdnn").spec
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one, two, three = new_model(spec, 1), new_model(spec, 1), new_model(spec, 2)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters()))
    assert not torch.equal(one.output.weight, three.output.weight)


def test_task_gives_the_models_loss_and_its_token_errors():
    model = tiny_model("tdnn").eval()
    loss = CtcTask().loss(model, BATCH, None)
    log_probs, lengths = model(BATCH.features, BATCH.lengths)
    expected = ctc_loss(log_probs, lengths, BATCH.targets, BATCH.target_lengths)
    torch.testing.assert_close(loss.sums, expected)
    assert loss.count == 4 and loss.extra["token_errors"] >= 0


def test_perfect_model_has_no_token_errors():
    def model(features: Tensor, lengths: Tensor, masks: Tensor | None) -> tuple[Tensor, Tensor]:
        paths = torch.tensor([[1, 0, 2, 2, 1], [0, 3, 3, 0, 0]])
        return (10.0 * torch.nn.functional.one_hot(paths, 4)).log_softmax(2), torch.tensor([5, 3])

    assert CtcTask().loss(model, BATCH, None).extra == {"token_errors": 0}
    wrong = replace(BATCH, targets=torch.tensor([[1, 2, 2], [1, 0, 0]]))
    assert CtcTask().loss(model, wrong, None).extra == {"token_errors": 2}


def test_masks_only_while_training():
    model = tiny_model("tdnn").eval()
    task = CtcTask(SpecAugment(SpecAugmentConfig(20.0, 5, 0.5, 0, 0), frame_shift=0.01))
    scored = task.loss(model, BATCH, None).sums
    trained = task.loss(model, BATCH, torch.Generator().manual_seed(1)).sums
    torch.testing.assert_close(scored, CtcTask().loss(model, BATCH, None).sums)
    assert not torch.allclose(scored, trained)


def test_tempo_only_while_training():
    seen = []

    def model(features: Tensor, lengths: Tensor, masks: Tensor | None) -> tuple[Tensor, Tensor]:
        assert masks is None
        seen.append(lengths.tolist())
        return torch.zeros(2, features.size(1), 4).log_softmax(2), lengths

    task = CtcTask(time_stretch=0.3)
    task.loss(model, BATCH, None)
    task.loss(model, BATCH, torch.Generator().manual_seed(1))
    assert seen[0] == [40, 25] != seen[1]
