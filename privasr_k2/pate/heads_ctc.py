"""Log-likelihoods of CTC for votes: of many heads and hypotheses at once, without gradients.

A step of the forward recursion (Graves et al. 2006, eq. 6) is a few operations on all hypotheses
of all heads, with probabilities that are normalized in every frame.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from privasr_k2.am.losses import ctc_loss

# Results this far above exp(-708), double precision's least number, have lost nothing.
_SAFE = 600.0


@torch.no_grad()
def log_likelihoods(
    log_probs: Tensor, lengths: Tensor, rows: Tensor, targets: Tensor, target_lengths: Tensor
) -> Tensor:
    """log P(tokens | utterance) of every head.

    Hypotheses that may have lost precision are left to :func:`privasr_k2.am.losses.ctc_loss`.

    Args:
        log_probs: (I, N, T, C), normalized over C; 0 is the blank.
        lengths: (N,) true frames.
        rows: (R,) which utterance a hypothesis is of.
        targets: (R, U) token numbers from 1.
        target_lengths: (R,) true tokens.

    Returns:
        (I, R) float64; minus infinity where the tokens do not fit the frames.

    >>> uniform = torch.full((1, 1, 2, 3), 1 / 3).log()
    >>> size = torch.tensor([1])
    >>> scores = log_likelihoods(uniform, 2 * size, torch.tensor([0]), size[:, None], size)
    >>> round(scores.exp().item(), 4)  # 3 of 9 equally likely paths: 1 1, 1 blank, blank 1
    0.3333
    """
    heads, _, _, nothing = log_probs.shape  # one class behind the others has probability 0
    labels = functional.pad(targets.unsqueeze(2), (1, 0)).flatten(1)
    labels = functional.pad(labels, (0, 1))  # (R, 2 U + 1): blanks around every token
    places = torch.arange(labels.size(1), device=labels.device)
    labels = labels.masked_fill(places > 2 * target_lengths.unsqueeze(1), nothing)
    skips = (labels[:, 2:] != 0) & (labels[:, 2:] != labels[:, :-2])
    skips = functional.pad(skips, (2, 0)).to(torch.float64)
    ends, wanted = lengths[rows], labels.expand(heads, -1, -1)
    # Before the first frame only the first blank and the first token can be reached.
    alphas = torch.zeros(heads, *labels.shape, dtype=torch.float64, device=log_probs.device)
    alphas[:, :, 0] = 1.0
    total = alphas.new_zeros(heads, len(rows))
    largest = total.clone()
    for t in range(int(ends.max())):
        before = functional.pad(alphas, (2, 0))
        entering = alphas + before[:, :, 1:-1] + skips * before[:, :, :-2]
        here = functional.pad(log_probs[:, rows, t].double().exp(), (0, 1))
        entering *= here.gather(2, wanted)
        sums = entering.sum(2).clamp(min=1e-300)
        inside = t < ends
        alphas = torch.where(inside.unsqueeze(1), entering / sums.unsqueeze(2), alphas)
        total = torch.where(inside, total + sums.log(), total)
        largest = torch.maximum(largest, total)
    last = (2 * target_lengths).expand(heads, -1).unsqueeze(2)
    ended = alphas.gather(2, last) + alphas.gather(2, (last - 1).clamp(min=0)) * (last > 0)
    scores = total + ended.squeeze(2).log()
    doubtful = ~(largest - scores < _SAFE)
    if doubtful.any():
        head, row = doubtful.nonzero(as_tuple=True)
        given = (log_probs[head, rows[row]], ends[row], targets[row], target_lengths[row])
        scores[head, row] = -ctc_loss(*given).double()
    return scores
