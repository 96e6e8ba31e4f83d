"""The learned mixture of layers."""

from __future__ import annotations

import torch

from privasr_k2.encoders.layers import LayerMixture, example_gradients


def drawn() -> tuple[LayerMixture, torch.Tensor]:
    mixture = LayerMixture(3)
    mixture.weights.data = torch.tensor([0.0, 1.0, -2.0])
    return mixture, torch.randn(2, 3, 4, 6, generator=torch.Generator().manual_seed(1))


def test_it_begins_with_the_mean_and_weighs_by_a_softmax() -> None:
    mixture, outputs = drawn()
    torch.testing.assert_close(LayerMixture(3)(outputs), outputs.mean(dim=1))
    shares = torch.tensor([1.0, torch.e, torch.e**-2])
    expected = (outputs * (shares / shares.sum()).view(1, 3, 1, 1)).sum(dim=1)
    torch.testing.assert_close(mixture(outputs), expected)


def test_gradients_of_examples_are_those_of_a_loop() -> None:
    mixture, outputs = drawn()
    backprops = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(2))
    found = example_gradients(mixture, [outputs], backprops)[mixture.weights]
    for row in range(2):
        mixture.zero_grad()
        mixture(outputs[row : row + 1]).backward(backprops[row : row + 1])
        torch.testing.assert_close(found[row], mixture.weights.grad)
    assert found.abs().min() > 0
