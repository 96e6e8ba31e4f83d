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
    """log P(hypothesis | utterance), float64, of the hypotheses of each of N utterances."""
    rows, targets, target_lengths = _flat(hyps, features.device)
    if not len(rows):
        return [torch.zeros(0, dtype=torch.float64, device=features.device)] * len(hyps)
    encoded, lengths = model.encode(features, lengths)
    scores = model.log_likelihoods(encoded, lengths, rows, targets, target_lengths)
    return list(scores.split([len(of_one) for of_one in hyps]))


def next_log_probs(
    model: Recognizer, features: Tensor, lengths: Tensor, prefixes: Sequence[Sequence[int]]
) -> Tensor:
    """(N, C) log-probabilities of the token after one prefix of each utterance, 0 = the end."""
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
    padded = torch.zeros(0, 0, dtype=torch.int64)
    if sequences:
        padded = torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True)
    lengths = torch.tensor([len(one) for one in sequences], dtype=torch.int64)
    return torch.tensor(rows, dtype=torch.int64).to(device), padded.to(device), lengths.to(device)
