"""N-best search by tokens: all hypotheses of all utterances in one batch a step."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from privasr_k2.am.steps import Stepper

_NONE = -float("inf")


class Found(NamedTuple):
    """A token sequence and its score, natural log."""

    tokens: tuple[int, ...]
    score: float


@torch.no_grad()
def beam_search(
    stepper: Stepper,
    max_tokens: Tensor,
    *,
    beam: int,
    num_paths: int,
    length_penalty: float = 0.0,
) -> list[list[Found]]:
    """The best token sequences of every utterance.

    After each token the best ``beam`` prefixes of an utterance are read on. A prefix's score bounds
    that of its continuations, so the search ends exactly when the list cannot change. With a beam
    that holds all prefixes the list is that of a full enumeration.

    Models that attend give short texts too much probability, the more the less sure they are
    [Stahlberg & Byrne 2019]. With ``length_penalty`` an end counts only where it is among the best
    ``beam`` continuations, sequences compete by score / (tokens + 1) ** length_penalty, and an
    utterance's search ends when ``num_paths`` of them have ended: CTranslate2 with patience 1.

    Args:
        stepper: reads prefixes of N utterances.
        max_tokens: (N,) longest sequences, in tokens.
        beam: prefixes of an utterance that are read on; 1 = greedy.
        num_paths: most sequences of an utterance.
        length_penalty: 0 or more; 0: sequences compete by their scores.

    Returns:
        for each utterance different sequences, the best first, with their own scores.
    """
    longest = int(max_tokens.max()) if stepper.num else 0
    prefixes = stepper.start()
    scores = prefixes.scores
    device, num_tokens = scores.device, scores.size(1)
    max_tokens = max_tokens.to(device)
    done = scores.new_full((stepper.num, num_paths), _NONE)
    done_texts = torch.zeros(stepper.num, num_paths, longest, dtype=torch.int64, device=device)
    alive = torch.arange(stepper.num, device=device)
    totals = scores.new_zeros(stepper.num, 1)  # (A, B): utterances still searched, prefixes
    texts = done_texts.new_zeros(stepper.num, 1, longest)
    for step in range(longest + 1):
        scores = totals.unsqueeze(2) + prefixes.scores.view(*totals.shape, num_tokens)
        # What ends here, among what ended before.
        ended = scores[:, :, 0] / (step + 1) ** length_penalty
        if length_penalty:
            least = scores.flatten(1).topk(min(beam, scores[0].numel()))[0][:, -1:]
            may_go_on = (max_tokens[alive] > step).unsqueeze(1)
            ended = ended.masked_fill((scores[:, :, 0] < least) & may_go_on, _NONE)
        best, which = torch.cat((done[alive], ended), dim=1).topk(num_paths)
        done[alive] = best
        done_texts[alive] = _rows(torch.cat((done_texts[alive], texts), dim=1), which)
        # What goes on.
        too_long = (max_tokens[alive] <= step).unsqueeze(1)
        onward = scores[:, :, 1:].flatten(1).masked_fill(too_long, _NONE)
        totals, which = onward.topk(min(beam, onward.size(1)))
        if length_penalty:
            kept = (best[:, -1] == _NONE) & (totals[:, 0] > _NONE)
        else:
            kept = totals[:, 0] > best[:, -1]
        if step == longest or not bool(kept.any()):
            break
        parents = torch.div(which, num_tokens - 1, rounding_mode="floor")
        tokens = which % (num_tokens - 1) + 1
        first = torch.arange(len(alive), device=device).unsqueeze(1) * texts.size(1)
        texts = _rows(texts, parents)
        texts[:, :, step] = tokens
        alive, totals, texts = alive[kept], totals[kept], texts[kept]
        rows = (first + parents)[kept].flatten()
        prefixes = stepper.extend(prefixes, rows, tokens[kept].flatten())
    tokens = (done_texts > 0).sum(dim=2)
    done = done * (tokens + 1) ** length_penalty
    return [_found(row, text) for row, text in zip(done.tolist(), done_texts.tolist())]


def _rows(texts: Tensor, which: Tensor) -> Tensor:
    """Texts ``which`` (A, B) of each utterance's (A, B', L)."""
    return texts.gather(1, which.unsqueeze(2).expand(-1, -1, texts.size(2)))


def _found(scores: list[float], texts: list[list[int]]) -> list[Found]:
    pairs = ((tuple(token for token in text if token), score) for text, score in zip(texts, scores))
    return [Found(tokens, score) for tokens, score in pairs if score > _NONE]
