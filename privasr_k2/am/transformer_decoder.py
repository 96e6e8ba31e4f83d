"""A Transformer decoder with cross-attention: Radford et al. (2022, Whisper), section 2.2.

Norms stand in front of each part. Positions and embeddings of tokens are learned, and the embedding
of a token is also its output weight. A fixed prompt stands in front of every text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from privasr_k2.am.encoders.common import valid_frames
from privasr_k2.constraints import Checked, Count
from privasr_k2.encoders.attention import gelu


@dataclass(frozen=True)
class DecoderConfig(Checked):
    """Sizes of a decoder.

    Attributes:
        layers, heads, feedforward: blocks, heads of an attention, hidden units behind it.
        positions: tokens, those of the prompt included, that have a position of their own.
        prompt: tokens in front of every text, 1 or more.
    """

    layers: Count
    heads: Count
    feedforward: Count
    positions: Count
    prompt: Count


class KeysValues(NamedTuple):
    """Attended places: keys and values (N, H, T, E)."""

    keys: Tensor
    values: Tensor


class Memory(NamedTuple):
    """Frames of N utterances: keys and values of each block, and (N, T) whether a frame is true."""

    blocks: tuple[KeysValues, ...]
    valid: Tensor


class Attention(nn.Module):
    """Multi-head attention of queries to given keys and values; keys have no bias."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim, bias=False)
        self.out = nn.Linear(dim, dim)

    def keys_values(self, x: Tensor) -> KeysValues:
        """Of places (N, T, D)."""
        return KeysValues(self._by_head(self.key(x)), self._by_head(self.value(x)))

    def forward(self, x: Tensor, places: KeysValues, allowed: Tensor) -> Tensor:
        """Queries (N, U, D) to (N, U, D).

        Args:
            allowed: (N or 1, 1, U or 1, T), which places a query may attend to.
        """
        query = self._by_head(self.query(x))
        scores = (query * query.size(-1) ** -0.5) @ places.keys.transpose(2, 3)
        scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
        attended = scores.softmax(dim=3) @ places.values
        return self.out(attended.transpose(1, 2).flatten(2))

    def _by_head(self, x: Tensor) -> Tensor:
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)


class DecoderBlock(nn.Module):
    """Attention to earlier tokens, attention to frames, and a feed-forward network."""

    def __init__(self, dim: int, heads: int, feedforward: int) -> None:
        super().__init__()
        self.attention_norm, self.cross_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.feedforward_norm = nn.LayerNorm(dim)
        self.attention, self.cross = Attention(dim, heads), Attention(dim, heads)
        self.wide, self.narrow = nn.Linear(dim, feedforward), nn.Linear(feedforward, dim)

    def forward(
        self, x: Tensor, past: KeysValues | None, frames: KeysValues, valid: Tensor, grid: Grid
    ) -> tuple[Tensor, KeysValues]:
        """Tokens (M, U, D), and keys and values of these and of those before them.

        Args:
            past: of the P tokens before these; None: there are none.
            frames, valid: of N utterances.
            grid: which utterance each of the M rows is of.
        """
        normed = self.attention_norm(x)
        seen = self.attention.keys_values(normed)
        if past is not None:
            seen = KeysValues(*(torch.cat(both, dim=2) for both in zip(past, seen)))
        size, before = x.size(1), seen.keys.size(2) - x.size(1)
        causal = torch.ones(size, before + size, dtype=torch.bool, device=x.device).tril(before)
        x = x + self.attention(normed, seen, causal[None, None])
        queries = grid.spread(self.cross_norm(x))
        heard = self.cross(queries, frames, valid[:, None, None])
        x = x + grid.gathered(heard, size)
        return x + self.narrow(gelu(self.wide(self.feedforward_norm(x)))), seen


class Grid:
    """M rows of N utterances as (N, B) places, so that frames are not copied for each row.

    Args:
        owners: (M,) utterance of each row; None: row n is of utterance n.
        num: N.
    """

    def __init__(self, owners: Tensor | None, num: int) -> None:
        self._owners, self._num = owners, num
        if owners is not None:
            order = torch.argsort(owners, stable=True)
            counts = torch.bincount(owners, minlength=num)
            starts = counts.cumsum(0) - counts
            self._place = torch.empty_like(owners)
            self._place[order] = (
                torch.arange(len(owners), device=owners.device) - starts[owners[order]]
            )
            self._width = int(counts.max()) if len(owners) else 0

    def spread(self, x: Tensor) -> Tensor:
        """Rows (M, U, D) to (N, B * U, D); places without a row are 0."""
        if self._owners is None:
            return x
        grid = x.new_zeros(self._num, self._width, *x.shape[1:])
        grid[self._owners, self._place] = x
        return grid.flatten(1, 2)

    def gathered(self, grid: Tensor, size: int) -> Tensor:
        """(N, B * U, D) back to rows (M, U, D), U = ``size``."""
        if self._owners is None:
            return grid
        return grid.unflatten(1, (self._width, size))[self._owners, self._place]


class Decoder(nn.Module):
    """Frames (N, T, D) and texts to log-probabilities of tokens; 0 is the end of a text."""

    def __init__(self, dim: int, num_tokens: int, config: DecoderConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_tokens, dim)
        self.prompt = nn.Parameter(torch.randn(config.prompt, dim))
        self.positions = nn.Parameter(0.02 * torch.randn(config.positions, dim))
        block = (dim, config.heads, config.feedforward)
        self.blocks = nn.ModuleList(DecoderBlock(*block) for _ in range(config.layers))
        self.norm = nn.LayerNorm(dim)

    def memory(self, encoded: Tensor, lengths: Tensor) -> Memory:
        """Keys and values of frames (N, T, D)."""
        valid = valid_frames(encoded.transpose(1, 2), lengths).squeeze(1) > 0
        blocks: list[DecoderBlock] = [*self.blocks]  # type: ignore[list-item]
        return Memory(tuple(block.cross.keys_values(encoded) for block in blocks), valid)

    def read(
        self,
        embedded: Tensor,
        past: tuple[KeysValues, ...] | None,
        memory: Memory,
        owners: Tensor | None = None,
    ) -> tuple[Tensor, tuple[KeysValues, ...]]:
        """(M, U, D) that the next tokens depend on, and what is attended to from then on.

        Positions beyond the last share the last one.

        Args:
            embedded: (M, U, D) of the next U tokens of M texts.
            past: of the tokens before them, of each block; None: there are none.
            owners: (M,) utterance of each text; None: text n is of utterance n.
        """
        before = 0 if past is None else past[0].keys.size(2)
        places = torch.arange(before, before + embedded.size(1), device=embedded.device)
        x = embedded + self.positions[places.clamp(max=len(self.positions) - 1)]
        grid, seen = Grid(owners, len(memory.valid)), []
        for number, (block, frames) in enumerate(zip(self.blocks, memory.blocks)):
            own = None if past is None else past[number]
            x, attended = block(x, own, frames, memory.valid, grid)
            seen.append(attended)
        return self.norm(x), tuple(seen)

    def log_probs(self, seen: Tensor) -> Tensor:
        """(..., C) of the next token from what :meth:`read` gave."""
        return functional.linear(seen, self.embedding.weight).float().log_softmax(dim=-1)

    def prompts(self, num: int) -> Tensor:
        """(num, P, D) of the tokens in front of every text."""
        return self.prompt.expand(num, -1, -1)

    def token_losses(
        self, memory: Memory, targets: Tensor, sizes: Tensor, owners: Tensor | None = None
    ) -> Tensor:
        """(M,) negative log-likelihood, in nats, of texts and their ends.

        Args:
            targets: (M, U) token numbers from 1.
            sizes: (M,) true tokens.
            owners: as in :meth:`read`.
        """
        prompts = self.prompts(len(targets))
        given = torch.cat((prompts, self.embedding(targets)), dim=1)
        seen, _ = self.read(given, None, memory, owners)
        log_probs = self.log_probs(seen[:, prompts.size(1) - 1 :])  # (M, U + 1, C)
        positions = torch.arange(log_probs.size(1), device=targets.device)
        wanted = functional.pad(targets, (0, 1)) * (positions < sizes.unsqueeze(1))
        losses = -log_probs.gather(2, wanted.unsqueeze(2)).squeeze(2)
        return (losses * (positions <= sizes.unsqueeze(1))).sum(dim=1)
