"""CTC as a model of token sequences: probabilities of prefixes, all frames and all tokens at once.

Graves (2008), "Supervised sequence labelling with recurrent neural networks", section 7.5.1: a
prefix has the probability of all transcripts that begin with it. The recursions over frames of
Watanabe et al. (2017), algorithm 2, are linear, so :func:`scanned` computes them without a loop.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from privasr_k2.am.steps import Prefixes, relative, scanned

_NONE = -float("inf")
# No path is so unlikely; sums over frames stay finite.
_LEAST = -1e4
# Sums below it, of terms of at most 1, may have lost digits.
_LOST = 1e-200


class _Memory(NamedTuple):
    owners: Tensor  # (M,) utterance of each prefix
    last: Tensor  # (M,) its last token, 0 = none
    token: Tensor  # (M, T + 1) log-probability after t frames, the last of them the last token
    blank: Tensor  # (M, T + 1) likewise with a blank; at t = 0 the empty prefix
    total: Tensor  # (M,) of all transcripts that begin with the prefix


class CtcSteps:
    """A :class:`privasr_k2.am.steps.Stepper` over CTC's outputs.

    Args:
        log_probs: (N, T, C) natural log; token 0 is the blank.
        lengths: (N,) true frames.
    """

    def __init__(self, log_probs: Tensor, lengths: Tensor) -> None:
        self._log_probs = log_probs.double().clamp(min=_LEAST)
        self._lengths = lengths.to(log_probs.device)
        frames = torch.arange(log_probs.size(1), device=log_probs.device)
        self._padding = frames >= self._lengths.unsqueeze(1)  # (N, T)
        self._probs = self._log_probs.exp().masked_fill(self._padding.unsqueeze(2), 0.0)
        self.num = len(log_probs)

    def start(self) -> Prefixes:
        blank = functional.pad(self._log_probs[:, :, 0].cumsum(1), (1, 0))
        owners = torch.arange(self.num, device=blank.device)
        nothing = torch.full_like(blank, _NONE)
        zeros = blank.new_zeros(self.num)
        return self._prefixes(_Memory(owners, torch.zeros_like(owners), nothing, blank, zeros))

    def extend(self, prefixes: Prefixes, rows: Tensor, tokens: Tensor) -> Prefixes:
        old = _Memory(*(part[rows] for part in prefixes.memory))
        entering = _entering(old, repeated=(tokens == old.last).unsqueeze(1))
        token = self._recursion(self._spoken(old.owners, tokens), entering)
        blank = self._recursion(self._log_probs[old.owners, :, 0], token)
        total = old.total + prefixes.scores[rows, tokens]
        return self._prefixes(_Memory(old.owners, tokens, token, blank, total))

    def _spoken(self, owners: Tensor, tokens: Tensor) -> Tensor:
        """(M, T) log-probability of a token of each prefix's utterance at every frame."""
        return self._log_probs[owners, :, tokens]

    def _summed(self, owners: Tensor, entering: Tensor) -> Tensor:
        """log of the sum over true frames of exp(entering + log_probs), (M, C)."""
        # A product of matrices, each utterance's prefixes side by side, with the largest of
        # ``entering`` taken out. Sums that are too small for it are those of logarithms.
        largest = entering.amax(1, keepdim=True).clamp(min=torch.finfo(entering.dtype).min)
        places = _places(owners)
        most = int(places.amax()) + 1 if len(places) else 0
        shares = entering.new_zeros(self.num, most, entering.size(1))
        shares[owners, places] = (entering - largest).exp()
        sums = (shares @ self._probs)[owners, places]
        logs = sums.log() + largest
        lost = (sums < _LOST).any(1).nonzero().squeeze(1)
        if len(lost):
            padding = self._padding[owners[lost]].unsqueeze(2)
            log_probs = self._log_probs[owners[lost]].masked_fill(padding, _NONE)
            logs[lost] = (entering[lost].unsqueeze(2) + log_probs).logsumexp(1)
        return logs

    def _recursion(self, weights: Tensor, entering: Tensor) -> Tensor:
        """y(t) = w(t) + log(exp(y(t - 1)) + exp(entering(t - 1))), (M, T + 1), y(0) = -inf."""
        # z(t) = log(exp(y(t)) + exp(entering(t))) = log(exp(z(t - 1) + w(t)) + exp(entering(t))).
        both = scanned(weights, entering[:, :-1])
        return functional.pad(both + weights, (1, 0), value=_NONE)

    def _prefixes(self, memory: _Memory) -> Prefixes:
        nowhere = torch.zeros_like(memory.last, dtype=torch.bool).unsqueeze(1)
        every = _entering(memory, repeated=nowhere)
        joint = self._summed(memory.owners, every[:, :-1])
        again = self._spoken(memory.owners, memory.last)
        again = again.masked_fill(self._padding[memory.owners], _NONE)
        repeats = (memory.blank[:, :-1] + again).logsumexp(1)
        joint = joint.scatter(1, memory.last.unsqueeze(1), repeats.unsqueeze(1))
        at_end = self._lengths[memory.owners].unsqueeze(1)
        ended = torch.logaddexp(memory.blank.gather(1, at_end), memory.token.gather(1, at_end))
        return Prefixes(relative(torch.cat((ended, joint[:, 1:]), dim=1), memory.total), memory)


def _entering(memory: _Memory, *, repeated: Tensor) -> Tensor:
    """(M, T + 1) where a further token starts; after the same token only behind a blank."""
    return torch.where(repeated, memory.blank, torch.logaddexp(memory.blank, memory.token))


def _places(owners: Tensor) -> Tensor:
    """(M,) how many earlier ones have the same owner.

    >>> _places(torch.tensor([2, 0, 2, 2, 0])).tolist()
    [0, 0, 1, 2, 1]
    """
    ordered, order = owners.sort(stable=True)
    ranks = torch.arange(len(owners), device=owners.device) - torch.searchsorted(ordered, ordered)
    return torch.empty_like(ranks).scatter(0, order, ranks)
