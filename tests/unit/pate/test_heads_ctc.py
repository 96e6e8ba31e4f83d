from __future__ import annotations

import torch

from privasr_k2.am.losses import ctc_loss
from privasr_k2.pate import heads_ctc
from privasr_k2.pate.heads_ctc import log_likelihoods

LENGTHS = torch.tensor([9, 6, 1])
# Repeated tokens, none at all, too many for their frames, and padding that is no token.
HYPS = [(0, (1, 2, 3)), (0, (2, 2, 2)), (0, ()), (1, (3, 1)), (1, (1, 1, 1, 1)), (1, (2,))]
HYPS += [(2, (1,)), (2, (1, 2))]
ROWS = torch.tensor([row for row, _ in HYPS])
TARGETS = torch.tensor([[*tokens, *[3] * (4 - len(tokens))] for _, tokens in HYPS])
SIZES = torch.tensor([len(tokens) for _, tokens in HYPS])


def by_torch(log_probs: torch.Tensor) -> torch.Tensor:
    losses = [ctc_loss(head[ROWS], LENGTHS[ROWS], TARGETS, SIZES) for head in log_probs]
    return -torch.stack(losses).double()


def outputs(scale: float) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return (scale * torch.randn(3, 3, 9, 4, generator=generator)).log_softmax(3)


def test_they_are_those_of_torch():
    for scale in (0.1, 3.0, 20.0):
        log_probs = outputs(scale)
        found = log_likelihoods(log_probs, LENGTHS, ROWS, TARGETS, SIZES)
        torch.testing.assert_close(found, by_torch(log_probs), rtol=1e-5, atol=1e-4)
    assert torch.isneginf(found[:, [4, 7]]).all() and torch.isfinite(found[:, :4]).all()


def test_what_double_precision_would_lose_is_left_to_torch(monkeypatch):
    log_probs = outputs(400.0)  # some hypotheses are below exp(-708)
    wanted = by_torch(log_probs)
    assert (wanted[~wanted.isinf()] < -1500).any()
    given = (log_probs, LENGTHS, ROWS, TARGETS, SIZES)
    torch.testing.assert_close(log_likelihoods(*given), wanted, rtol=1e-5, atol=1e-3)
    monkeypatch.setattr(heads_ctc, "_SAFE", float("inf"))
    assert not torch.allclose(log_likelihoods(*given), wanted, rtol=1e-3)


def test_few_need_torch(monkeypatch):
    asked: list[int] = []

    def watched(*given):
        asked.append(len(given[0]))
        return torch.full((len(given[0]),), 1e30)

    monkeypatch.setattr(heads_ctc, "ctc_loss", watched)
    log_likelihoods(outputs(3.0), LENGTHS, ROWS, TARGETS, SIZES)
    assert asked == [6]  # the two that do not fit, of three heads
