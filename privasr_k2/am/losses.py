"""Sequence losses over log-probabilities, one number an utterance."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def ctc_loss(log_probs: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor) -> Tensor:
    """(N,) negative log-likelihood, in nats, of every utterance's tokens over all alignments.

    Graves, Fernandez, Gomez and Schmidhuber (2006), "Connectionist temporal classification", eq. 8,
    in single precision. Token 0 is the blank. Infinite where the tokens do not fit the frames.

    Args:
        log_probs: (N, T, C), normalized over C.
        lengths: (N,) true frames.
        targets: (N, U) token numbers from 1.
        target_lengths: (N,) true tokens.

    >>> uniform = torch.full((1, 2, 3), 1 / 3).log()
    >>> loss = ctc_loss(uniform, torch.tensor([2]), torch.tensor([[1]]), torch.tensor([1]))
    >>> round(loss.exp().item(), 4)  # 3 of 9 equally likely paths: 1 1, 1 blank, blank 1
    3.0
    """
    by_frame = log_probs.float().transpose(0, 1)  # (T, N, C)
    return functional.ctc_loss(by_frame, targets, lengths, target_lengths, reduction="none")


def greedy_tokens(log_probs: Tensor, lengths: Tensor) -> list[list[int]]:
    """Tokens of the best path of every utterance: repetitions merged, blanks taken out.

    >>> best = torch.nn.functional.one_hot(torch.tensor([[1, 1, 0, 1, 2]]), 3).float()
    >>> greedy_tokens(best, torch.tensor([4]))
    [[1, 1]]
    """
    paths_and_lengths = zip(log_probs.argmax(dim=2).cpu(), lengths.tolist())
    merged = (torch.unique_consecutive(path[:length]) for path, length in paths_and_lengths)
    return [path[path != 0].tolist() for path in merged]
