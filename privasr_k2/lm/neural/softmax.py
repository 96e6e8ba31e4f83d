"""The outputs of a neural language model: a full softmax, or an adaptive one in clusters.

Adaptive softmax [Grave et al. 2017]: words are numbered by falling frequency. The head holds the
first ``cutoffs[0]`` symbols and one symbol per cluster; log P(w | h) = log P(cluster | h) + log P(w
| cluster, h) for the others, exactly.

Tied embeddings [Press & Wolf 2017; for clusters Baevski & Auli 2019]: the vector of a word is the
row that the output multiplies with, its cluster's projection included.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor, nn
from torch.nn import functional

from privasr_k2.constraints import Checked, one_of
from privasr_k2.training.trainable import adapter_of, weight_rows

#: Scores of outputs that are held at once when nothing is learned: 64 MB.
MAX_SCORES = 1 << 24


@dataclass(frozen=True)
class OutputConfig(Checked):
    """How words are predicted; see ``output`` of ``conf/common.yaml#lm_lstm``."""

    softmax: Annotated[str, one_of("full", "adaptive")]
    cutoffs: list[int]
    reduction: Annotated[float, Ge(1)]
    tied: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        rising = all(a < b for a, b in pairwise([0, *self.cutoffs]))
        if self.softmax == "adaptive" and (not self.cutoffs or not rising):
            raise ValueError(f"output.cutoffs must be rising numbers above 0, got {self.cutoffs}")


class FullSoftmax(nn.Module):
    """log P(w | h) = (W h + b)_w - logsumexp(W h + b) for states h of D dimensions and V words."""

    def __init__(self, dim: int, num_words: int, *, bias: bool = True) -> None:
        super().__init__()
        self.dim = dim
        self.linear = nn.Linear(dim, num_words, bias=bias)

    def embed(self, words: Tensor) -> Tensor:
        """The rows of W for ``words`` (...): (..., D)."""
        if adapter_of(self.linear) is not None:
            return weight_rows(self.linear, words.flatten()).view(*words.shape, -1)
        return functional.embedding(words, self.linear.weight)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Of every word after ``hidden`` (..., D): (..., V)."""
        return self.linear(hidden).float().log_softmax(dim=-1)

    def target_log_probs(self, hidden: Tensor, words: Tensor, rows: Tensor | None = None) -> Tensor:
        """(E,) float32 log P(words[e] | hidden[rows[e]]); a state's normalizer is computed once.

        Args:
            hidden: (M, D) states.
            words: (E,) int64.
            rows: (E,) int64; None = state e for word e.
        """
        return _gathered(hidden, self.linear, words, rows)


class AdaptiveSoftmax(nn.Module):
    """The softmax in clusters, with the methods of :class:`FullSoftmax`.

    It equals ``torch.nn.AdaptiveLogSoftmaxWithLoss`` (``head_bias=False``), but shares vectors with
    the input and gives every parameter a gradient in every step, as training in several processes
    needs.
    """

    boundaries: Tensor

    def __init__(self, dim: int, num_words: int, cutoffs: list[int], reduction: float) -> None:
        super().__init__()
        self.dim = dim
        self.limits = [cutoff for cutoff in cutoffs if cutoff < num_words] + [num_words]
        self.shortlist = self.limits[0]
        self.register_buffer("boundaries", torch.tensor(self.limits[:-1]), persistent=False)
        self.head = nn.Linear(dim, self.shortlist + len(self.limits) - 1, bias=False)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for number, (first, end) in enumerate(pairwise(self.limits), start=1):
            inner = max(1, int(dim // reduction**number))
            self.down.append(nn.Linear(dim, inner, bias=False))
            self.up.append(nn.Linear(inner, end - first, bias=False))

    def embed(self, words: Tensor) -> Tensor:
        """The vectors (..., D) that ``words`` (...) are scored by within their clusters."""
        flat = words.reshape(-1).contiguous()
        clusters = torch.bucketize(flat, self.boundaries, right=True)
        embedded = self.head.weight.new_zeros(len(flat), self.head.in_features)
        where = (clusters == 0).nonzero().squeeze(1)
        embedded = embedded.index_add(0, where, weight_rows(self.head, flat[where]))
        for number, (down, up) in enumerate(zip(self.down, self.up)):
            where = (clusters == number + 1).nonzero().squeeze(1)
            rows = weight_rows(up, flat[where] - self.limits[number])
            vectors = rows @ weight_rows(down, slice(None))
            embedded = embedded.index_add(0, where, vectors.to(embedded.dtype))
        return embedded.reshape(*words.shape, -1)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Of every word after ``hidden`` (..., D): (..., V)."""
        head = self.head(hidden).float().log_softmax(dim=-1)
        parts = [head[..., : self.shortlist]]
        for number, (down, up) in enumerate(zip(self.down, self.up)):
            inside = up(down(hidden)).float().log_softmax(dim=-1)
            parts.append(head[..., self.shortlist + number].unsqueeze(-1) + inside)
        return torch.cat(parts, dim=-1)

    def target_log_probs(self, hidden: Tensor, words: Tensor, rows: Tensor | None = None) -> Tensor:
        """As in :class:`FullSoftmax`; a cluster is evaluated for the states that need it."""
        clusters = torch.bucketize(words, self.boundaries, right=True)
        symbols = torch.where(clusters == 0, words, self.shortlist + clusters - 1)
        log_probs = _gathered(hidden, self.head, symbols, rows)
        for number, (down, up) in enumerate(zip(self.down, self.up)):
            where = (clusters == number + 1).nonzero().squeeze(1)
            inside = words[where] - self.limits[number]
            if rows is None:
                needed, of_needed = where, None
            else:
                needed, of_needed = rows[where].unique(return_inverse=True)
            scores = _gathered(down(hidden[needed]), up, inside, of_needed)
            log_probs = log_probs.index_add(0, where, scores)
        return log_probs


Output = FullSoftmax | AdaptiveSoftmax


def make_output(dim: int, num_words: int, config: OutputConfig) -> Output:
    """The outputs that ``config`` asks for."""
    if config.softmax == "full":
        return FullSoftmax(dim, num_words)
    return AdaptiveSoftmax(dim, num_words, config.cutoffs, config.reduction)


def make_vectors(dim: int, num_words: int, config: OutputConfig) -> Output:
    """Outputs that only embed: a copy of a tied model's vectors in the same factors.

    The same factors give the same vectors bit for bit; a stored product would be rounded otherwise.
    """
    if config.softmax == "full":
        return FullSoftmax(dim, num_words, bias=False)
    return AdaptiveSoftmax(dim, num_words, config.cutoffs, config.reduction)


def _gathered(hidden: Tensor, layer: nn.Linear, words: Tensor, rows: Tensor | None) -> Tensor:
    """(E,) log-softmax of ``layer(hidden)``, its adapter included, at (rows[e], words[e])."""
    if torch.is_grad_enabled() and rows is None:  # one fused operation and its gradient
        return -functional.cross_entropy(layer(hidden).float(), words, reduction="none")
    parts = hidden.split(max(1, MAX_SCORES // max(1, len(layer.weight))))
    normalizers = torch.cat([layer(part).float().logsumexp(dim=1) for part in parts])
    if rows is not None:
        hidden, normalizers = hidden[rows], normalizers[rows]
    scores = (hidden.float() * weight_rows(layer, words).float()).sum(dim=1)
    return (scores if layer.bias is None else scores + layer.bias[words].float()) - normalizers
