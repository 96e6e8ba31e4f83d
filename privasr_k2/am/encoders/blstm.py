"""Bidirectional LSTM over whole utterances, or in chunks with a bounded look-ahead.

Latency control: Zhang et al. (2016), "Highway long short-term memory RNNs for distant speech
recognition", section 3. An utterance is cut into chunks of C frames with R frames of right context.
The forward LSTM carries its state from chunk to chunk; the backward LSTM starts anew at the end of
every right context. With C at least as long as the utterance it is the plain BLSTM.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from privasr_k2.am.encoders.common import ChannelDropout, EncoderSettings, Subsampling, encoder
from privasr_k2.constraints import Count, Natural, ShareBelowOne

State = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class BlstmConfig(EncoderSettings):
    """Numbers of a BLSTM; ``conf/ctc.yaml#am_ctc`` explains them."""

    dim: Count
    layers: Count
    subsampling: int
    dropout: ShareBelowOne
    chunk: Natural
    right_context: Natural


class BlstmLayer(nn.Module):
    """One layer: (N, D_in, T) -> (N, 2 D, T), padding ignored."""

    def __init__(self, in_dim: int, dim: int) -> None:
        super().__init__()
        self.ahead = nn.LSTM(in_dim, dim)
        self.back = nn.LSTM(in_dim, dim)

    def forward(self, x: Tensor, lengths: Tensor, state: State, main: int) -> tuple[Tensor, State]:
        """Start the forward LSTM from ``state``; give also its state after ``main`` frames.

        Args:
            state: hidden and cell values, each (1, N, D).
        """
        x = x.permute(2, 0, 1)  # (T, N, D_in)
        ahead, after = self.ahead(x[:main], state)
        if x.size(0) > main:
            right, _ = self.ahead(x[main:], after)
            ahead = torch.cat((ahead, right))
        order = _reversal(x, lengths)
        back, _ = self.back(x.gather(0, order.expand(-1, -1, x.size(2))))
        back = back.gather(0, order.expand(-1, -1, back.size(2)))
        return torch.cat((ahead, back), dim=2).permute(1, 2, 0), after


def _reversal(x: Tensor, lengths: Tensor) -> Tensor:
    """Indices (T, N, 1) that reverse the true frames of (T, N, D) and leave padding."""
    frames = torch.arange(x.size(0), device=x.device).unsqueeze(1)  # (T, 1)
    turned = lengths.to(frames.dtype).unsqueeze(0) - 1 - frames  # (T, N)
    return torch.where(turned >= 0, turned, frames.expand_as(turned)).unsqueeze(2)


@encoder("blstm", BlstmConfig)
class Blstm(nn.Module):
    """Features (N, F, T) and lengths (N,) -> (N, 2 D, T') and lengths."""

    def __init__(self, feature_dim: int, config: BlstmConfig) -> None:
        super().__init__()
        self.subsampling = Subsampling(feature_dim, config.dim, config.subsampling)
        dims = [config.dim] + [2 * config.dim] * (config.layers - 1)
        self.layers = nn.ModuleList(BlstmLayer(in_dim, config.dim) for in_dim in dims)
        self.dropout = ChannelDropout(config.dropout)
        self.dim, self.chunk, self.right_context = config.dim, config.chunk, config.right_context
        self.out_dim = 2 * config.dim

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x, lengths = self.subsampling(x, lengths)
        zero = x.new_zeros(1, x.size(0), self.dim)
        if self.chunk == 0:
            for layer in self.layers:
                x = self.dropout(layer(x, lengths, (zero, zero), x.size(2))[0])
            return x, lengths
        states = [(zero, zero) for _ in self.layers]
        done = []
        for start in range(0, x.size(2), self.chunk):
            window = x[:, :, start : start + self.chunk + self.right_context]
            main = min(self.chunk, window.size(2))
            inside = (lengths - start).clamp(0, window.size(2))
            for depth, layer in enumerate(self.layers):
                window, states[depth] = layer(window, inside, states[depth], main)
                window = self.dropout(window)
            done.append(window[:, :, :main])
        return torch.cat(done, dim=2), lengths
