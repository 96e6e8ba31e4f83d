"""The choice of a layer, and the learned mixture."""

from __future__ import annotations

import torch

from privasr_k2.encoders.layers import LayerMixture


def test_a_mixture_begins_with_the_mean_and_learns() -> None:
    mixture, outputs = LayerMixture([0, 2, 5]), torch.randn(3, 2, 4, 6)
    torch.testing.assert_close(mixture(outputs), outputs.mean(dim=0))
    mixture.weights.data = torch.tensor([0.0, 1.0, -2.0])
    shares = torch.tensor([1.0, torch.e, torch.e**-2])
    expected = (outputs * (shares / shares.sum()).view(3, 1, 1, 1)).sum(dim=0)
    torch.testing.assert_close(mixture(outputs), expected)
    mixture(outputs).square().sum().backward()
    assert mixture.weights.grad.abs().min() > 0


def test_one_layer_is_that_layer_and_learns_nothing() -> None:
    mixture, outputs = LayerMixture([3]), torch.randn(1, 2, 4, 6)
    assert torch.equal(mixture(outputs), outputs[0])
    assert not [p for p in mixture.parameters() if p.requires_grad]
