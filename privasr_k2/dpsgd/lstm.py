"""An LSTM of two linear layers that Opacus knows, about as fast as torch's own.

Opacus's ``DPLSTM`` calls its linear layers, and makes gradients of all weights, for every frame.
Here they are called once for all frames:

    gates(t) = W x(t) + R h(t - 1)

First h is computed without a graph; then both products for all frames at once, with h as a
constant; then one function gives h again and, on the way back, the gates' gradient through time.
The gradients of W and R are sums over t of that gradient times x(t) and h(t - 1).
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

State = tuple[Tensor, Tensor]


def forward_steps(
    gates: Tensor, recurrent: Tensor, hidden_0: Tensor, cell_0: Tensor
) -> tuple[Tensor, Tensor]:
    """Read all frames, changing ``gates`` in place into their activations.

    Args:
        gates: (T, N, 4 D) W x(t) of the input, forget, cell and output gates.
        recurrent: (4 D, D) weights R.
        hidden_0, cell_0: (N, D) before the first frame.

    Returns:
        hidden and cell values (T + 1, N, D), the first row those before the first frame.
    """
    frames, num, dim = gates.size(0), gates.size(1), recurrent.size(1)
    hidden, cells = gates.new_empty(frames + 1, num, dim), gates.new_empty(frames + 1, num, dim)
    hidden[0], cells[0] = hidden_0, cell_0
    turned = recurrent.t()
    for own, before, after, cell, next_cell in zip(gates, hidden, hidden[1:], cells, cells[1:]):
        own.addmm_(before, turned)
        own[:, : 2 * dim].sigmoid_()
        own[:, 2 * dim : 3 * dim].tanh_()
        own[:, 3 * dim :].sigmoid_()
        enter, keep, new, leave = own.chunk(4, dim=1)
        torch.mul(keep, cell, out=next_cell)
        next_cell.addcmul_(enter, new)
        torch.mul(leave, next_cell.tanh(), out=after)
    return hidden, cells


class Recurrence(torch.autograd.Function):
    """Gates of all frames to hidden values, as :func:`forward_steps` has computed them."""

    @staticmethod
    def forward(
        ctx: Any,
        gates: Tensor,
        hidden_0: Tensor,
        cell_0: Tensor,
        recurrent: Tensor,
        known: tuple[Tensor, ...],
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(N, T, D) hidden values, and the last hidden and cell values (N, D)."""
        acting, hidden, cells = known
        ctx.save_for_backward(acting, cells, recurrent)
        return hidden[1:].transpose(0, 1).contiguous(), hidden[-1].clone(), cells[-1].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Backpropagation through time; nothing for the weights, which linear layers have."""
        d_out, d_last_hidden, d_last_cell = gradients
        acting, cells, recurrent = ctx.saved_tensors
        enter, keep, new, leave = acting.chunk(4, dim=2)
        bent = cells[1:].tanh()
        into_cell = leave * (1 - bent * bent)
        # What a change of the cell (three gates) or of the output (the last) means for each gate.
        by_cell = torch.cat(
            (new * enter * (1 - enter), cells[:-1] * keep * (1 - keep), enter * (1 - new * new)),
            dim=2,
        )
        by_output = bent * leave * (1 - leave)
        d_gates = torch.empty_like(acting)
        d_hidden, d_cell = d_last_hidden, d_last_cell
        frames, num, dim = by_output.shape
        d_out = d_out.transpose(0, 1)
        for time in reversed(range(frames)):
            d_hidden = d_hidden + d_out[time]
            d_cell = torch.addcmul(d_cell, d_hidden, into_cell[time])
            own = d_gates[time]
            three = own[:, : 3 * dim].view(num, 3, dim)
            torch.mul(by_cell[time].view(num, 3, dim), d_cell.unsqueeze(1), out=three)
            torch.mul(by_output[time], d_hidden, out=own[:, 3 * dim :])
            d_hidden, d_cell = own @ recurrent, d_cell * keep[time]
        return d_gates.transpose(0, 1), d_hidden, d_cell, None, None


class Layer(nn.Module):
    """One layer of an ``nn.LSTM``, with the same parameters: ``ih`` and ``hh``."""

    def __init__(self, lstm: nn.LSTM, number: int) -> None:
        super().__init__()
        for name in ("ih", "hh"):
            weight = getattr(lstm, f"weight_{name}_l{number}")
            linear = nn.Linear(weight.size(1), weight.size(0), device="meta")
            linear.weight, linear.bias = weight, getattr(lstm, f"bias_{name}_l{number}")
            setattr(self, name, linear)

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """(N, T, E) and two (N, D) to (N, T, D) and two (N, D)."""
        inputs, weight = self.ih(x), self.hh.weight.detach()
        with torch.no_grad():
            acting = (inputs + self.hh.bias).transpose(0, 1).contiguous()
            hidden, cells = forward_steps(acting, weight, *state)
        gates = inputs + self.hh(hidden[:-1].transpose(0, 1))
        out, last_hidden, last_cell = Recurrence.apply(
            gates, *state, weight, (acting, hidden, cells)
        )
        return out, (last_hidden, last_cell)


class ExampleLstm(nn.Module):
    """In the place of an ``nn.LSTM`` in one direction, without dropout, whose parameters it shares.

    >>> lstm = nn.LSTM(3, 4, num_layers=2)
    >>> x = torch.randn(5, 2, 3)
    >>> torch.allclose(ExampleLstm(lstm)(x)[0], lstm(x)[0], atol=1e-6)
    True
    """

    def __init__(self, lstm: nn.LSTM) -> None:
        super().__init__()
        if lstm.bidirectional or lstm.proj_size or lstm.dropout or not lstm.bias:
            expected = "an LSTM in one direction, without projection or dropout"
            raise ValueError(f"{expected}, expected: {lstm}")
        self.input_size, self.hidden_size = lstm.input_size, lstm.hidden_size
        self.num_layers, self.batch_first = lstm.num_layers, lstm.batch_first
        self.layers = nn.ModuleList(Layer(lstm, number) for number in range(lstm.num_layers))

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """As ``nn.LSTM`` has it, for batches: (T, N, E), or (N, T, E) where ``batch_first``."""
        x = x if self.batch_first else x.transpose(0, 1)
        if state is None:
            zero = x.new_zeros(self.num_layers, len(x), self.hidden_size)
            state = (zero, zero)
        last = []
        for number, layer in enumerate(self.layers):
            x, after = layer(x, (state[0][number], state[1][number]))
            last.append(after)
        hidden, cell = (torch.stack(part) for part in zip(*last))
        return (x if self.batch_first else x.transpose(0, 1)), (hidden, cell)


def with_example_lstms(model: nn.Module) -> nn.Module:
    """A copy of a model's modules, its parameters shared, with an :class:`ExampleLstm` per LSTM."""
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return _replaced(copy.deepcopy(model, shared))


def _replaced(module: nn.Module) -> nn.Module:
    for name, child in module.named_children():
        known = ExampleLstm(child) if isinstance(child, nn.LSTM) else _replaced(child)
        setattr(module, name, known)
    return module
