"""The LSTM of linear layers against torch's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from privasr_k2.dpsgd.lstm import ExampleLstm, with_example_lstms


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("layers", [1, 3])
def test_values_and_gradients_are_those_of_torch(layers: int, batch_first: bool) -> None:
    torch.manual_seed(0)
    lstm = nn.LSTM(3, 4, layers, batch_first=batch_first).double()
    ours = ExampleLstm(lstm)
    x = torch.randn((2, 5, 3) if batch_first else (5, 2, 3)).double()
    state = (torch.randn(layers, 2, 4).double(), torch.randn(layers, 2, 4).double())
    found = []
    for module in (lstm, ours):
        inputs = [one.clone().requires_grad_() for one in (x, *state)]
        lstm.zero_grad()
        out, (hidden, cell) = module(inputs[0], (inputs[1], inputs[2]))
        loss = (out * torch.arange(4.0)).sin().sum() + (2 * hidden).cos().sum()
        (loss + cell.square().sum()).backward()
        weights = [parameter.grad.clone() for parameter in lstm.parameters()]
        found.append([out, hidden, cell, *(one.grad for one in inputs), *weights])
    for theirs, own in zip(*found):
        torch.testing.assert_close(own, theirs)


def test_without_a_state_it_begins_with_zeros() -> None:
    lstm = nn.LSTM(3, 4)
    x = torch.randn(5, 2, 3)
    torch.testing.assert_close(ExampleLstm(lstm)(x)[0], lstm(x)[0])


@pytest.mark.parametrize(
    "lstm",
    [nn.LSTM(3, 4, bidirectional=True), nn.LSTM(3, 4, 2, dropout=0.5), nn.LSTM(3, 4, proj_size=2)],
)
def test_other_lstms_are_refused(lstm: nn.LSTM) -> None:
    with pytest.raises(ValueError, match="one direction"):
        ExampleLstm(lstm)


def test_a_copy_shares_its_parameters_and_leaves_the_model_alone() -> None:
    model = nn.Sequential(nn.ModuleDict({"inner": nn.LSTM(3, 4)}), nn.Linear(4, 2))
    made = with_example_lstms(model)
    assert type(model[0]["inner"]) is nn.LSTM and type(made[0]["inner"]) is ExampleLstm
    assert {id(one) for one in made.parameters()} == {id(one) for one in model.parameters()}
