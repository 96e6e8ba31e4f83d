"""Small language models of every kind, a tiny grammar, and sentences."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from privasr_k2 import config
from privasr_k2.lm.neural.kinds import NeuralLmConfig, kind_of, new_lm, spec_of
from privasr_k2.lm.neural.model import NeuralLm
from privasr_k2.lm.neural.scoring import NeuralScorer
from privasr_k2.lm.neural.vocabulary import SYMBOLS, Vocabulary
from privasr_k2.randomness import stream
from tests.support.conf import section

KINDS = ("lstm", "char_lstm", "transformer")
SOFTMAXES = ("full", "adaptive")
#: Every kind with every softmax, tied where there is something to tie.
MODELS = [
    (kind, softmax, tied)
    for kind in KINDS
    for softmax in SOFTMAXES
    for tied in (False, True)
    if not (kind == "char_lstm" and tied)
]
WORDS = tuple(f"word{n}"[n % 3 :] for n in range(22))


def settings(kind: str, softmax: str = "full", tied: bool = False, *more: str) -> NeuralLmConfig:
    """A tiny configuration without dropout."""
    files = [section(f"lm_{kind}"), section(f"lm_{kind}", "tiny")]
    output = {"softmax": softmax, "tied": str(tied).lower(), "cutoffs": "[6,14]"}
    chosen = [f"output.{name}={value}" for name, value in output.items()]
    sizes = {
        "lstm": ["network.embedding_dim=12", "network.dim=16", "network.layers=2"],
        "char_lstm": ["network.dim=16", "network.layers=2"],
        "transformer": ["network.dim=16", "network.feedforward=24"],
    }
    overrides = [*chosen, *sizes[kind], "network.dropout=0.0", *more]
    return config.load(kind_of(files).config, files, overrides)


def tiny(kind: str, softmax: str = "full", tied: bool = False) -> tuple[NeuralLm, Vocabulary]:
    """A model of 24 symbols whose weights are far enough from zero to matter."""
    vocabulary = Vocabulary((*SYMBOLS, *WORDS))
    model = new_lm(spec_of(settings(kind, softmax, tied)), vocabulary, seed=3)
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model.eval(), vocabulary


def scorer(kind: str, softmax: str = "full", tied: bool = False) -> NeuralScorer:
    return NeuralScorer(*tiny(kind, softmax, tied))


def random_words(*shape: int, seed: int = 0) -> Tensor:
    """Inputs (N, U) that begin with the boundary."""
    words = torch.randint(1, 24, shape, generator=torch.Generator().manual_seed(seed))
    words[:, 0] = 0
    return words


def grammar_sentences(count: int, seed: int = 0) -> list[list[str]]:
    """A name, a verb and an object that the name decides."""
    generator = stream(seed, "grammar")
    found = []
    for choice in generator.integers(0, 4, size=count).tolist():
        middle = ["very"] * int(generator.integers(0, 3))
        found.append([f"name{choice}", *middle, f"verb{choice % 2}", f"object{choice}"])
    return found


GRAMMAR_WORDS = ["very", "verb0", "verb1"] + [
    f"{part}{n}" for n in range(4) for part in ("name", "object")
]


def unigram_entropy(sentences: list[list[str]]) -> float:
    """Nats a symbol, sentence ends included, of the best model without history."""
    symbols = [word for sentence in sentences for word in (*sentence, "</s>")]
    _, counts = np.unique(symbols, return_counts=True)
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def nbest_lists(count: int, seed: int = 0, size: int = 12, **lengths: Any) -> list[list[list[str]]]:
    """N-best lists: hypotheses with a few words changed, left out or added."""
    generator = stream(seed, "nbest")
    lists = []
    for _ in range(count):
        best = generator.choice(WORDS, size=int(generator.integers(1, 9))).tolist()
        hyps = [list(best) for _ in range(size)]
        for hyp in hyps:
            for _ in range(int(generator.integers(0, 3))):
                start = int(generator.integers(0, len(hyp) + 1))
                new = generator.choice(WORDS, size=int(generator.integers(0, 3))).tolist()
                hyp[start : start + int(generator.integers(0, 2))] = new
        lists.append(hyps)
    return lists
