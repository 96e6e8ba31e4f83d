"""In the graph for sherpa-onnx its search reads the words that ours finds in TLG at any weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privasr_k2.decoding.first_pass import SearchConfig
from privasr_k2.decoding.kaldi_backend import KaldiDecoder
from privasr_k2.graph.nonterminals import ClassGraphConfig
from privasr_k2.graph.openfst import Fst
from privasr_k2.graph.sherpa import sherpa_graph
from privasr_k2.graph.tlg import TokenGraph, load_tlg
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.randomness import stream
from tests.support.class_lm import class_lm
from tests.support.sherpa import sherpa_words
from tests.support.small_graphs import make_class_graph, make_graph, make_lang

pytest.importorskip("kaldi_decoder")

TOKENS, WORDS, UTTERANCES, FRAMES = 12, 60, 40, 24
SCALE = 0.75
BEAM = 100.0  # so wide that nothing is pruned
POINTS = [(1.0, 0.0), (0.5, 1.0), (2.0, -1.5)]


@pytest.fixture(scope="module")
def trigram(tmp_path_factory: pytest.TempPathFactory) -> TokenGraph:
    """Many homophones, words that begin others, and equal tokens side by side."""
    root, generator = tmp_path_factory.mktemp("graph"), stream(3, "lang")
    tokens, words = [f"T{n}" for n in range(1, TOKENS)], [f"w{n}" for n in range(WORDS)]
    spelled = [list(generator.choice(tokens, size=generator.integers(1, 4))) for _ in words]
    spelled[1::4], spelled[3] = spelled[::4], [*spelled[2], spelled[2][-1]]
    lines = [f"{word} {' '.join(spelling)}\n" for word, spelling in zip(words, spelled)]
    lang = make_lang(root / "lang", "".join(lines), tokens)
    text = [list(generator.choice(words, size=generator.integers(1, 8))) for _ in range(200)]
    model = estimate(count_ngrams(text, words, order=3), "witten_bell")
    return load_tlg(make_graph(root / "graph", lang, model))


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> TokenGraph:
    """A class LM, whose names have delimiters in TLG."""
    root = tmp_path_factory.mktemp("classes")
    # rose and c sound alike, "a new" and ann too; york begins a name and ends one.
    lexicon = "a A\nann A N\nb B\nc R O\nnew N\nnew N O\nrose R O\nyork Y A\n"
    lang = make_lang(root / "lang", lexicon)
    config = ClassGraphConfig("standard", 100_000, False, 100_000, "none", 2)
    folder = make_class_graph(root / "graph", lang, class_lm("trie", cut_history=False), config)
    return load_tlg(folder)


def noise(num_tokens: int, peakiness: float) -> tuple[np.ndarray, np.ndarray]:
    """(N, T, C) log-probabilities of nothing, the blank the likeliest, and (N,) lengths."""
    generator = stream(4, "logits")
    logits = generator.normal(size=(UTTERANCES, FRAMES, num_tokens)) * peakiness
    logits[:, :, 0] += peakiness
    log_probs = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    lengths = generator.integers(FRAMES // 4, FRAMES + 1, size=UTTERANCES)
    return log_probs.astype(np.float32), lengths


def found(graph: TokenGraph, fst: Fst, scores: np.ndarray, lengths: np.ndarray) -> list[str]:
    """What sherpa-onnx's search reads, as text."""
    rows = [row[:length] for row, length in zip(scores, lengths)]
    numbers = sherpa_words(fst, rows, beam=BEAM)
    return [" ".join(graph.words[number] for number in words) for words in numbers]


@pytest.mark.parametrize(("lm_weight", "penalty"), POINTS)
@pytest.mark.parametrize("peakiness", [1.0, 6.0])
@pytest.mark.parametrize("kind", ["trigram", "classes"])
def test_the_same_words(
    request: pytest.FixtureRequest, kind: str, peakiness: float, lm_weight: float, penalty: float
) -> None:
    import torch

    graph: TokenGraph = request.getfixturevalue(kind)
    scores, lengths = noise(len(graph.tokens), peakiness)
    config = SearchConfig("kaldi", BEAM, 8.0, 30, 1_000_000, 0.8, [lm_weight], [penalty])
    decoded = KaldiDecoder(graph, config).decode(
        torch.from_numpy(scores), torch.from_numpy(lengths)
    )
    ours = ["" if hyps is None else hyps[0].words for hyps in decoded]
    made = sherpa_graph(
        graph.TLG,
        num_tokens=len(graph.tokens),
        num_words=graph.delimiters.first,
        lm_weight=lm_weight,
        insertion_penalty=penalty,
        scale=SCALE,
        place=Path("TLG.fst"),
    )
    theirs = found(graph, made, SCALE * scores, lengths)
    assert theirs == ours and len(set(ours)) > 10
    # What TLG is not: words behind blanks are lost in it.
    if (lm_weight, penalty) == (1.0, 0.0) and kind == "trigram":
        assert found(graph, graph.TLG, scores, lengths) != ours
