"""Language models with the marginals of a client [liu2020, section 2.1].

    p'(w | h) = p(w | h) (g(w) / u(w))^lambda / Z(h)                                      [eq. 1]
    g(w) = (1 - alpha - beta) u(w) + alpha q(w) + beta q_i(w)                             [eq. 2]

g/u - 1 = alpha (q/u - 1) + beta (q_i/u - 1) and Z(h) - 1 are computed, so that g = u or lambda = 0
gives the bits of the unadapted scores. The sentence end keeps its probability factor 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from privasr_k2.constraints import Checked, FiniteOrZero, Share
from privasr_k2.lm.arpa import Arpa
from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.marginals import rescale
from privasr_k2.lm.neural.prefix_tree import PrefixTree, build_tree
from privasr_k2.lm.neural.scoring import MAX_NUMBERS, NeuralScorer, scoring
from privasr_k2.lm.neural.softmax import MAX_SCORES, FullSoftmax, Output

#: g/u is at least this: rounding must not make a probability 0 or less.
LEAST_RATIO = 1e-9

Nbest = Sequence[Sequence[str]]
#: For a state (of a client at one time) the log factors (K, V) of K settings.
LogFactors = Callable[[int], np.ndarray]


@dataclass(frozen=True)
class Mixing(Checked):
    """The hyper-parameters of eq. 1 and 2: lambda and the weights of global and own marginals."""

    lam: FiniteOrZero
    alpha: Share
    beta: Share

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha + self.beta > 1 + 1e-12:
            raise ValueError(f"alpha + beta must be at most 1, got {self.alpha} + {self.beta}")


def log_ratios(mixing: Mixing, shared: np.ndarray, own: np.ndarray) -> np.ndarray:
    """ln g(w)/u(w), without lambda, from q/u - 1 and q_i/u - 1 of one shape.

    >>> log_ratios(Mixing(1.0, 0.5, 0.25), np.array([0.0, 1.0]), np.array([0.0, 2.0])).round(4)
    array([0.    , 0.6931])
    """
    return np.log1p(np.maximum(mixing.alpha * shared + mixing.beta * own, LEAST_RATIO - 1.0))


def adapted_log_probs(
    lm: NeuralScorer,
    nbests: Sequence[Nbest],
    states: np.ndarray,
    factors: LogFactors,
    *,
    max_numbers: int = MAX_NUMBERS,
) -> np.ndarray:
    """ln p'(w | h), normalized, of every word and sentence end of all hypotheses for K settings.

    Args:
        nbests, max_numbers: as for ``NeuralScorer.nbest_token_log_probs``.
        states: (N,) the number of each utterance's factors.
        factors: of a state, (K, V); called once a state and block.

    Returns:
        (W, K) float64, the hypotheses of all lists one after the other. A setting whose factors are
        all 0 has the bits of the model's own scores of the same block.
    """
    with scoring(lm.model):
        blocks = [
            _score_block(lm, nbests[first:last], states[first:last], factors)
            for first, last in _blocks(lm, nbests, max_numbers)
        ]
    return np.concatenate(blocks) if blocks else np.zeros((0, len(factors(0))))


def _blocks(lm: NeuralScorer, nbests: Sequence[Nbest], limit: int) -> Iterator[tuple[int, int]]:
    """Ranges of lists whose states and hidden values fit in memory: at least one list."""
    first = hyps = longest = 0
    for number, nbest in enumerate(nbests):
        grown = max([longest, *map(len, nbest)])
        size = lm.model.state_size(grown + 1) + (grown + 2) * lm.model.output.dim
        if number > first and (hyps + len(nbest)) * size > limit:
            yield first, number
            first, hyps, grown = number, 0, max([0, *map(len, nbest)])
        hyps, longest = hyps + len(nbest), grown
    if first < len(nbests):
        yield first, len(nbests)


def _score_block(
    lm: NeuralScorer, nbests: Sequence[Nbest], states: np.ndarray, factors: LogFactors
) -> np.ndarray:
    text = lm.vocabulary.encode([hyp for nbest in nbests for hyp in nbest])
    of_hyp = np.repeat(states, [len(nbest) for nbest in nbests])
    known, numbers = np.unique(of_hyp, return_inverse=True)
    tables = [factors(int(state)) for state in known]
    if not len(text):
        return np.zeros((0, len(factors(int(states[0])))))
    tree = build_tree(text.padded(np.arange(len(text))), text.lengths)
    hidden = lm.read_tree(tree)
    edges, of_position = tree.edges[tree.order], np.repeat(numbers, text.lengths)
    # Each prefix once for every state that it is needed in.
    nodes = tree.edge_nodes[edges]
    pairs, of_pair = np.unique(nodes * len(known) + of_position, return_inverse=True)
    where = np.divmod(pairs, len(known))
    log_probs, log_z = _with_normalizers(lm.model.output, hidden, tree, *where, tables)
    words = tree.edge_words[edges]
    added = np.zeros((len(words), len(tables[0])))
    for number, table in enumerate(tables):
        own = of_position == number
        added[own] = table[:, words[own]].T
    # The brackets first: 0 - 0 leaves the bits of log_probs.
    return log_probs[edges][:, None] + (added - log_z[of_pair])


def _with_normalizers(
    output: Output,
    hidden: Tensor,
    tree: PrefixTree,
    nodes: np.ndarray,
    states: np.ndarray,
    tables: Sequence[np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """(E,) ln p of the tree's edges; (P, K) ln Z of ``nodes`` (P,), ascending, with ``states``."""
    changes = [torch.from_numpy(np.expm1(table).T).float().to(hidden.device) for table in tables]
    log_z = np.zeros((len(nodes), len(tables[0])))
    # The blocks of the unadapted scores, and so their bits.
    block = max(1, MAX_SCORES // len(changes[0]))
    of_nodes = []
    for start in range(0, len(hidden), block):
        parts, logs = _distributions(output, hidden[start : start + block])
        of_nodes.append(logs)
        first, end = np.searchsorted(nodes, [start, start + block])
        for state in np.unique(states[first:end]):
            if not tables[state].any():
                continue
            places = first + np.flatnonzero(states[first:end] == state)
            rows = None
            if len(places) < len(logs):
                rows = torch.from_numpy(nodes[places] - start).to(hidden.device)
            changed = sum(part.expectation(changes[state], rows) for part in parts)
            log_z[places] = torch.log1p(changed).cpu().double().numpy()
    edges = [torch.from_numpy(v).to(hidden.device) for v in (tree.edge_words, tree.edge_nodes)]
    if isinstance(output, FullSoftmax):
        log_probs = _gathered(output, hidden, torch.cat(of_nodes), *edges)
    else:
        log_probs = output.target_log_probs(hidden, *edges)
    return log_probs.cpu().double().numpy(), log_z


@dataclass(frozen=True, eq=False)
class _Part:
    """p(w | h) of the words from ``first`` on: ``weights`` (B, 1) * ``values`` (B, n)."""

    first: int
    values: Tensor
    weights: Tensor

    def expectation(self, changes: Tensor, rows: Tensor | None) -> Tensor:
        """(B or rows, K) sum over these words of p(w | h) changes(w), for ``changes`` (V, K)."""
        own = changes[self.first : self.first + self.values.size(1)]
        if rows is None:
            return self.values @ own * self.weights
        return self.values[rows] @ own * self.weights[rows]


def _distributions(output: Output, hidden: Tensor) -> tuple[list[_Part], Tensor]:
    """The distributions after B prefixes in parts, and ln of the first softmax's sum (B,)."""
    if isinstance(output, FullSoftmax):
        values, sums, logs = _exponentials(output.linear(hidden))
        return [_Part(0, values, 1 / sums)], logs
    head, sums, logs = _exponentials(output.head(hidden))
    parts = [_Part(0, head[:, : output.shortlist], 1 / sums)]
    for number, (down, up) in enumerate(zip(output.down, output.up)):
        values, inside, _ = _exponentials(up(down(hidden)))
        column = output.shortlist + number
        parts.append(
            _Part(output.limits[number], values, head[:, column : column + 1] / (sums * inside))
        )
    return parts, logs


def _exponentials(scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """exp(scores - their largest) (B, n), its sum (B, 1), and logsumexp (B,)."""
    scores = scores.float()
    largest = scores.amax(dim=1, keepdim=True)
    values = scores.sub_(largest).exp_()
    sums = values.sum(dim=1, keepdim=True)
    return values, sums, (sums.log() + largest).squeeze(1)


def _gathered(
    output: FullSoftmax, hidden: Tensor, normalizer: Tensor, words: Tensor, rows: Tensor
) -> Tensor:
    """(E,) log-softmax at (rows[e], words[e]), as ``FullSoftmax.target_log_probs`` has it."""
    weight, bias = output.linear.weight, output.linear.bias
    scores = (hidden[rows].float() * weight[words].float()).sum(dim=1)
    return scores + bias[words].float() - normalizer[rows]


def adapted_arpa(model: Arpa, factors: np.ndarray) -> Arpa:
    """The n-gram model with eq. 1, normalized: an exact back-off model of the same n-grams.

    Args:
        factors: (V,) log factors, 0 for boundaries.
    """
    return model if not factors.any() else rescale(model, np.exp(factors), 1.0)


def adapted_arpa_log_probs(
    model: Arpa, nbests: Sequence[Nbest], states: np.ndarray, factors: LogFactors
) -> np.ndarray:
    """As :func:`adapted_log_probs` of an n-gram model: one adapted model per state and setting."""
    lengths = [sum(len(hyp) + 1 for hyp in nbest) for nbest in nbests]
    of_token = np.repeat(states, lengths)
    log_probs = np.zeros((len(of_token), len(factors(int(states[0])))))
    for state in np.unique(of_token).tolist():
        own = [nbest for nbest, of in zip(nbests, states.tolist()) if of == state]
        for setting, row in enumerate(factors(state)):
            lm = ClassLm(adapted_arpa(model, row), {})
            log_probs[of_token == state, setting] = lm.nbest_token_log_probs(own)
    return log_probs
