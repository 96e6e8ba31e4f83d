"""Transformer language model [liu2020, section 3.2]: 3 blocks of 256 dimensions by default.

Blocks normalize before each part [Xiong et al. 2020]; positions are sinusoids [Vaswani et al. 2017,
section 3.5].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from privasr_k2.constraints import Checked, Count, ShareBelowOne
from privasr_k2.lm.neural.kinds import KINDS, Kind, NeuralLmConfig, Spec
from privasr_k2.lm.neural.model import NeuralLm, State
from privasr_k2.lm.neural.softmax import OutputConfig, make_output, make_vectors


@dataclass(frozen=True)
class TransformerConfig(Checked):
    """Numbers of a Transformer; see ``network`` of ``conf/common.yaml#lm_transformer``."""

    dim: Count
    feedforward: Count
    layers: Count
    heads: Count
    dropout: ShareBelowOne

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim % self.heads or self.dim % 2:
            raise ValueError(f"network.dim must be even and a multiple of heads, got {self.dim}")


class Block(nn.Module):
    """x + attention(norm(x)), then x + feedforward(norm(x))."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        dim = config.dim
        self.heads = config.heads
        self.attention_norm, self.feedforward_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.query, self.key, self.value, self.out = (nn.Linear(dim, dim) for _ in range(4))
        self.inner = nn.Linear(dim, config.feedforward)
        self.outer = nn.Linear(config.feedforward, dim)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, past: Tensor, hidden_from: Tensor) -> tuple[Tensor, Tensor]:
        """Read U positions after T earlier ones.

        Args:
            x: (N, U, E).
            past: (N, T, 2, E) keys and values of the earlier positions.
            hidden_from: (N or 1, 1, U, T + U) bool, true where a position must not see another.

        Returns:
            (N, U, E), and the keys and values of all positions (N, T + U, 2, E).
        """
        normed = self.attention_norm(x)
        own = torch.stack((self.key(normed), self.value(normed)), dim=2)
        kept = torch.cat((past, own), dim=1)
        keys, values = kept.unbind(dim=2)
        query = self._split(self.query(normed))  # (N, heads, U, E / heads)
        scores = query @ self._split(keys).transpose(2, 3) / math.sqrt(query.size(3))
        weights = self.dropout(scores.masked_fill(hidden_from, -math.inf).softmax(dim=3))
        seen = (weights @ self._split(values)).transpose(1, 2).flatten(2)
        x = x + self.dropout(self.out(seen))
        inner = torch.relu(self.inner(self.feedforward_norm(x)))
        return x + self.dropout(self.outer(self.dropout(inner))), kept

    def _split(self, x: Tensor) -> Tensor:
        """(N, T, E) -> (N, heads, T, E / heads)."""
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)


class TransformerLm(NeuralLm):
    """Word vectors, causal blocks, softmax.

    A state holds keys and values, and which of its positions are valid: prefixes of different
    lengths can be in one state.

    Args:
        untied: the form of a tied model, with a copy of the vectors to read.
    """

    def __init__(
        self,
        config: TransformerConfig,
        output: OutputConfig,
        num_words: int,
        *,
        untied: bool = False,
    ) -> None:
        super().__init__()
        self.num_words, self.dim = num_words, config.dim
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim)
        self.dropout = nn.Dropout(config.dropout)
        self.output = make_output(config.dim, num_words, output)
        self.vectors = make_vectors(config.dim, num_words, output) if untied else None
        self.embedding = None if output.tied or untied else nn.Embedding(num_words, config.dim)
        if self.embedding is not None:
            nn.init.normal_(self.embedding.weight, std=config.dim**-0.5)

    def embed(self, words: Tensor) -> Tensor:
        if self.embedding is not None:
            return self.embedding(words) * math.sqrt(self.dim)
        vectors = (self.output if self.vectors is None else self.vectors).embed(words)
        return vectors * math.sqrt(self.dim)

    def initial_state(self, n: int) -> State:
        cache = self.norm.weight.new_zeros(n, 0, 2, self.dim)
        valid = torch.zeros(n, 0, dtype=torch.bool, device=cache.device)
        return State((*(cache for _ in self.blocks), valid))

    def advance(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        *caches, valid = state.tensors  # (N, T, 2, E) of each block, (N, T)
        n, size = inputs.shape[:2]
        places = torch.arange(size, device=inputs.device)
        positions = valid.sum(dim=1, keepdim=True) + places  # (N, U)
        ahead = places > places.unsqueeze(1)  # (U, U) true where a later place is not to be seen
        missing = (~valid).unsqueeze(1).expand(-1, size, -1)
        hidden_from = torch.cat((missing, ahead.expand(n, -1, -1)), dim=2)
        x = self.dropout(inputs + sinusoids(positions, self.dim).to(inputs.dtype))
        kept = []
        for block, cache in zip(self.blocks, caches):
            x, grown = block(x, cache, hidden_from.unsqueeze(1))
            kept.append(grown)
        return self.norm(x), State((*kept, torch.cat((valid, valid.new_ones(n, size)), dim=1)))

    def last_block(self) -> tuple[str, ...]:
        return f"blocks.{len(self.blocks) - 1}", "norm"

    def state_size(self, length: int) -> int:
        return length * len(self.blocks) * 2 * self.dim


def sinusoids(positions: Tensor, dim: int) -> Tensor:
    """sin(p / 10000 ** (2 i / dim)) and the cosines, (..., dim), for ``positions`` p (...) from 0.

    >>> sinusoids(torch.tensor([0]), 4).tolist()
    [[0.0, 0.0, 1.0, 1.0]]
    """
    steps = torch.arange(0, dim, 2, device=positions.device, dtype=torch.float32)
    angles = positions.unsqueeze(-1) * torch.exp(steps * (-math.log(10000.0) / dim))
    return torch.cat((angles.sin(), angles.cos()), dim=-1)


@dataclass(frozen=True)
class TransformerLmConfig(NeuralLmConfig):
    """``conf/common.yaml#lm_transformer``."""

    network: TransformerConfig


@dataclass(frozen=True)
class TransformerSpec(Spec):
    """``model.yaml`` of a Transformer."""

    network: TransformerConfig


KINDS.add(
    "transformer",
    Kind(
        TransformerLmConfig,
        TransformerSpec,
        lambda s, v: TransformerLm(s.network, s.output, len(v), untied=s.untied),
    ),
)
