"""Scores of token sequences by a model's own interface, one call each: what tests compare with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from privasr_k2.am.sequence import Recognizer
from privasr_k2.am.steps import Stepper


def score_hypotheses(
    model: Recognizer, features: Tensor, lengths: Tensor, hyps: Sequence[Sequence[Sequence[int]]]
) -> list[Tensor]:
    """log P(hypothesis | utterance) of given token sequences.

    Args:
        hyps: for each of the N utterances its hypotheses, numbers from 1; there may be none.

    Returns:
        for each utterance (number of its hypotheses,) float64.
    """
    rows, targets, target_lengths = _flat(hyps, features.device)
    if not len(rows):
        return [torch.zeros(0, dtype=torch.float64, device=features.device)] * len(hyps)
    encoded, lengths = model.encode(features, lengths)
    scores = model.log_likelihoods(encoded, lengths, rows, targets, target_lengths)
    return list(scores.split([len(of_one) for of_one in hyps]))


def next_log_probs(
    model: Recognizer, features: Tensor, lengths: Tensor, prefixes: Sequence[Sequence[int]]
) -> Tensor:
    """What follows one given prefix of each of N utterances: (N, C) log-probabilities, 0 = the end.

    Reading on from there, token by token, is what :meth:`Recognizer.stepper` is for: teachers that
    are given the same tokens keep a stepper each.
    """
    _, targets, target_lengths = _flat([[one] for one in prefixes], features.device)
    return _after(model.stepper(*model.encode(features, lengths)), targets, target_lengths)


@torch.no_grad()
def _after(stepper: Stepper, targets: Tensor, target_lengths: Tensor) -> Tensor:
    found = stepper.start()
    scores, everyone = found.scores, torch.arange(len(targets), device=targets.device)
    for position, tokens in enumerate(targets.clamp(min=1).unbind(1)):
        found = stepper.extend(found, everyone, tokens)
        scores = torch.where((target_lengths > position).unsqueeze(1), found.scores, scores)
    return scores.log_softmax(dim=1)


def _flat(
    hyps: Sequence[Sequence[Sequence[int]]], device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows (M,), padded tokens (M, U) and lengths (M,) of all hypotheses of all utterances."""
    sequences = [torch.tensor(list(one), dtype=torch.int64) for of_one in hyps for one in of_one]
    rows = [row for row, of_one in enumerate(hyps) for _ in of_one]
    padded = (
        torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True)
        if sequences
        else torch.zeros(0, 0, dtype=torch.int64)
    )
    lengths = torch.tensor([len(one) for one in sequences], dtype=torch.int64)
    return torch.tensor(rows, dtype=torch.int64).to(device), padded.to(device), lengths.to(device)
