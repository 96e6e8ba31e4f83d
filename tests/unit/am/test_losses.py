"""CTC's loss against the enumeration of all paths, and greedy decoding."""

from __future__ import annotations

import torch

from privasr_k2.am.losses import ctc_loss, greedy_tokens
from tests.support.ctc_paths import path_probability


def test_ctc_loss_is_the_sum_over_paths():
    torch.manual_seed(0)
    log_probs = torch.randn(3, 5, 3).log_softmax(2)
    lengths, targets = torch.tensor([5, 4, 3]), [[1, 1, 2], [2], [1, 2]]
    rows = [torch.tensor(target) for target in targets]
    padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    found = ctc_loss(log_probs, lengths, padded, torch.tensor([3, 1, 2]))
    for row, (length, target) in enumerate(zip(lengths.tolist(), targets)):
        expected = path_probability(log_probs[row, :length].exp().numpy(), target)
        torch.testing.assert_close(float((-found[row]).exp()), expected, rtol=1e-5, atol=0.0)


def test_tokens_that_do_not_fit_cost_infinity():
    log_probs = torch.zeros(1, 2, 3).log_softmax(2)
    given = (torch.tensor([2]), torch.tensor([[1, 1]]), torch.tensor([2]))
    assert ctc_loss(log_probs, *given).isinf().all()


def test_half_precision_is_widened():
    log_probs = torch.randn(1, 4, 3).log_softmax(2)
    lengths, targets, target_lengths = torch.tensor([4]), torch.tensor([[1]]), torch.tensor([1])
    assert ctc_loss(log_probs.bfloat16(), lengths, targets, target_lengths).dtype == torch.float32


def test_greedy_merges_repetitions_and_drops_blanks_and_padding():
    paths = torch.tensor([[0, 1, 1, 0, 1, 2], [2, 2, 0, 0, 1, 1]])
    log_probs = torch.nn.functional.one_hot(paths, 3).float()
    assert greedy_tokens(log_probs, torch.tensor([6, 4])) == [[1, 1, 2], [2]]
