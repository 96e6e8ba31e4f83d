"""The latency-controlled BLSTM against its equations, chunk by chunk and frame by frame."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from privasr_k2.am.encoders.blstm import Blstm, BlstmConfig
from tests.support.small_am import features

Frames = list[Tensor]
State = tuple[Tensor, Tensor]


def cell(lstm: nn.LSTM, x: Tensor, state: State) -> State:
    """One step of an LSTM, from its equations."""
    hidden, memory = state
    gates = lstm.weight_ih_l0 @ x + lstm.bias_ih_l0 + lstm.weight_hh_l0 @ hidden + lstm.bias_hh_l0
    enter, forget, new, out = gates.chunk(4)
    memory = forget.sigmoid() * memory + enter.sigmoid() * new.tanh()
    return out.sigmoid() * memory.tanh(), memory


def walk(lstm: nn.LSTM, frames: Frames, state: State) -> list[State]:
    """The states after each frame."""
    states = []
    for frame in frames:
        state = cell(lstm, frame, state)
        states.append(state)
    return states


def twin(encoder: Blstm, frames: Frames, chunk: int, right: int) -> Tensor:
    """Outputs (T, 2 D) of one utterance: Zhang et al. (2016), section 3.

    Each chunk sees ``right`` frames more, whose outputs are thrown away. The forward LSTM goes on
    from the last frame of the chunk before; the backward LSTM begins at the end of what is seen.
    """
    zero = torch.zeros(encoder.dim)
    carried = [(zero, zero) for _ in encoder.layers]
    done: Frames = []
    for start in range(0, len(frames), chunk):
        seen = frames[start : start + chunk + right]
        own = min(chunk, len(seen))
        for depth, layer in enumerate(encoder.layers):
            ahead = walk(layer.ahead, seen, carried[depth])
            back = walk(layer.back, seen[::-1], (zero, zero))[::-1]
            carried[depth] = ahead[own - 1]
            seen = [torch.cat((a[0], b[0])) for a, b in zip(ahead, back, strict=True)]
        done += seen[:own]
    return torch.stack(done)


@pytest.mark.parametrize(
    ("chunk", "right"),
    [(5, 2), (5, 0), (1, 1), (3, 7), (10, 2), (20, 4), (30, 4)],
    ids=lambda number: str(number),
)
@pytest.mark.parametrize("subsampling", [1, 3])
def test_chunks_are_those_of_the_equations(chunk: int, right: int, subsampling: int) -> None:
    """Utterances of several lengths together, padded, against each alone."""
    torch.manual_seed(3)
    config = BlstmConfig(
        dim=4, layers=3, subsampling=subsampling, dropout=0.0, chunk=chunk, right_context=right
    )
    encoder = Blstm(5, config).eval()
    x, lengths = features(20, 11, 3, 1)
    with torch.no_grad():
        found, out_lengths = encoder(x.transpose(1, 2), lengths)
        for row, length in enumerate(lengths.tolist()):
            own = x[row : row + 1, :length].transpose(1, 2)
            frames, _ = encoder.subsampling(own, torch.tensor([length]))
            expected = twin(encoder, [*frames[0].t()], chunk, right)
            assert len(expected) == out_lengths[row]
            torch.testing.assert_close(found[row, :, : len(expected)].t(), expected)
