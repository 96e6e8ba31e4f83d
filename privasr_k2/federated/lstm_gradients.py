"""LSTM layers forward and backward for many clients at once, with each client's gradient apart.

All clients of a round share the weights, so one product a time step serves all their sentences. The
weight gradient of a client is a product over its own rows. Positions are packed: all first words,
the longest sentence first, then all second words, and so on, so that nothing is padded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from privasr_k2.ragged import ranges


@dataclass(frozen=True, eq=False)
class Packing:
    """The order of packed positions.

    Attributes:
        sizes: number of sentences with a t-th position, for t = 0, 1, ...
        places: (M,) int64, the packed index of each position, sentence by sentence.
        before: (M,) int64, for each packed position the packed index of the one before it, or M.
    """

    sizes: tuple[int, ...]
    places: Tensor
    before: Tensor

    def to(self, device: torch.device) -> Packing:
        """The same on ``device``."""
        return Packing(self.sizes, self.places.to(device), self.before.to(device))


def pack(lengths: np.ndarray) -> Packing:
    """The packing of sentences with ``lengths`` (S,) positions, each at least one.

    >>> found = pack(np.array([1, 2]))
    >>> found.sizes, found.places.tolist(), found.before.tolist()
    ((2, 1), [1, 0, 2], [3, 3, 0])
    """
    rank = np.empty(len(lengths), dtype=np.int64)
    rank[np.argsort(-lengths, kind="stable")] = np.arange(len(lengths))
    sizes = np.cumsum(np.bincount(lengths)[::-1])[::-1][1:]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    steps = ranges(np.zeros_like(lengths), lengths)
    places = starts[steps] + np.repeat(rank, lengths)
    total = int(lengths.sum())
    before = np.full(total, total, dtype=np.int64)
    before[places[steps > 0]] = places[np.flatnonzero(steps > 0) - 1]
    return Packing(tuple(sizes.tolist()), torch.from_numpy(places), torch.from_numpy(before))


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer as it ran.

    Attributes:
        inputs: (M, E).
        gates: (M, 4 D) activations of enter, keep, new and leave.
        cells, states: (M + 1, D); the last row is zero, the state before the first word.
    """

    inputs: Tensor
    gates: Tensor
    cells: Tensor
    states: Tensor

    @property
    def hidden(self) -> Tensor:
        """(M, D)."""
        return self.states[:-1]


def forward(lstm: nn.LSTM, inputs: Tensor, packing: Packing) -> list[Layer]:
    """All layers on packed ``inputs`` (M, E); ``[-1].hidden`` is the output, (M, D)."""
    layers: list[Layer] = []
    with torch.no_grad():
        for number in range(lstm.num_layers):
            layers.append(_forward(lstm, number, layers[-1].hidden if layers else inputs, packing))
    return layers


def _forward(lstm: nn.LSTM, number: int, inputs: Tensor, packing: Packing) -> Layer:
    weight_ih, weight_hh, bias_ih, bias_hh = parameters(lstm, number)
    dim, recurrent = weight_hh.size(1), weight_hh.t()
    gates = torch.addmm(bias_ih + bias_hh, inputs, weight_ih.t())
    hidden, cells = gates.new_zeros(len(gates) + 1, dim), gates.new_zeros(len(gates) + 1, dim)
    start = earlier = 0
    for time, size in enumerate(packing.sizes):
        own, cell = gates[start : start + size], cells[start : start + size]
        if time:
            own.addmm_(hidden[earlier : earlier + size], recurrent)
        own[:, : 2 * dim].sigmoid_()
        own[:, 2 * dim : 3 * dim].tanh_()
        own[:, 3 * dim :].sigmoid_()
        enter, keep, new, leave = own.chunk(4, dim=1)
        torch.mul(enter, new, out=cell)
        if time:
            cell.addcmul_(keep, cells[earlier : earlier + size])
        torch.mul(leave, cell.tanh(), out=hidden[start : start + size])
        earlier, start = start, start + size
    return Layer(inputs, gates, cells, hidden)


def backward(
    lstm: nn.LSTM, layers: Sequence[Layer], d_hidden: Tensor, packing: Packing, lowest: int = 0
) -> list[Tensor]:
    """The gradients (M, 4 D) of each layer's gates before activation, from the output's (M, D).

    The gradient of a layer's inputs is that of its gates times ``weight_ih``.

    Args:
        lowest: the first layer that is gone back to.

    Returns:
        those of layer ``lowest`` and the layers above it.
    """
    gradients: list[Tensor] = []
    with torch.no_grad():
        for number in reversed(range(lowest, lstm.num_layers)):
            gradients.append(_backward(lstm, number, layers[number], d_hidden, packing))
            if number > lowest:
                d_hidden = gradients[-1] @ parameters(lstm, number)[0]
    return gradients[::-1]


def _backward(
    lstm: nn.LSTM, number: int, layer: Layer, d_hidden: Tensor, packing: Packing
) -> Tensor:
    recurrent = parameters(lstm, number)[1]
    dim = recurrent.size(1)
    enter, keep, new, leave = layer.gates.chunk(4, dim=1)
    bent = layer.cells[:-1].tanh()
    into_cell = leave * (1 - bent * bent)
    # What a change of the cell (three gates) or of the output (the last) means for each gate; all
    # times at once.
    d_gates = torch.empty_like(layer.gates)
    torch.mul(new * enter, 1 - enter, out=d_gates[:, :dim])
    torch.mul(layer.cells[packing.before] * keep, 1 - keep, out=d_gates[:, dim : 2 * dim])
    torch.mul(enter, 1 - new * new, out=d_gates[:, 2 * dim : 3 * dim])
    torch.mul(bent * leave, 1 - leave, out=d_gates[:, 3 * dim :])
    end, later = len(d_hidden), 0
    carried_hidden = carried_cell = d_hidden.new_zeros(0, dim)
    for size in reversed(packing.sizes):
        own = slice(end - size, end)
        d_out = d_hidden[own].clone()
        d_out[:later] += carried_hidden
        d_cell = d_out * into_cell[own]
        d_cell[:later] += carried_cell
        d_gates[own, : 3 * dim].view(size, 3, dim).mul_(d_cell.unsqueeze(1))
        d_gates[own, 3 * dim :].mul_(d_out)
        end, later = end - size, size
        if end:
            carried_hidden, carried_cell = d_gates[own] @ recurrent, d_cell * keep[own]
    return d_gates


def input_gradient(lstm: nn.LSTM, d_gates: Sequence[Tensor]) -> Tensor:
    """The gradient (M, E) of the first layer's inputs."""
    with torch.no_grad():
        return d_gates[0] @ parameters(lstm, 0)[0]


def weight_gradients(
    lstm: nn.LSTM,
    layers: Sequence[Layer],
    d_gates: Sequence[Tensor],
    packing: Packing,
    rows: Tensor | None,
    product: Callable[[nn.Parameter, Tensor, Tensor], None],
) -> None:
    """Add the gradients of the weights at the packed positions ``rows`` (R,); None = all.

    Args:
        d_gates: of the last layers, as :func:`backward` gives them.
        product: gets each parameter, ``left`` and ``right``: its gradient is ``left.T @ right``, of
            a bias the sum over the rows of ``left``.
    """
    with torch.no_grad():
        lowest = lstm.num_layers - len(d_gates)
        for number, own in enumerate(d_gates, start=lowest):
            layer = layers[number]
            inputs, earlier = layer.inputs, packing.before
            if rows is not None:
                own, inputs, earlier = own[rows], inputs[rows], earlier[rows]
            states = layer.states[earlier]
            for parameter, right in zip(parameters(lstm, number), (inputs, states, states, states)):
                product(parameter, own, right)


def parameters(lstm: nn.LSTM, number: int) -> list[nn.Parameter]:
    """A layer's weights of its inputs and of its states, and their biases."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return [getattr(lstm, f"{name}_l{number}") for name in names]
