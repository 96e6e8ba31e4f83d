"""The grammar against kaldilm's, the search against enumeration and Kaldi's FasterDecoder."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.decoding.first_pass import Decoder, SearchConfig
from privasr_k2.graph.grammar import grammar
from privasr_k2.graph.hlg import compose_lexicon_and_grammar
from privasr_k2.graph.lang import Lang, symbols_text
from privasr_k2.lm.arpa import Arpa, read_arpa, write_arpa
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.lm.pruning import prune_to
from privasr_k2.randomness import stream
from tests.support.small_graphs import make_graph, make_lang

WORDS = ["ab", "ba", "bab", "c", "see", "aa"]
LEXICON = "ab A B\nba B A\nbab B A B\nc C\nsee C\nsee C A\naa A A\n"


@pytest.fixture(scope="module")
def lang(tmp_path_factory: pytest.TempPathFactory) -> Lang:
    return make_lang(tmp_path_factory.mktemp("lang"), LEXICON)


def a_model(order: int, limit: int = 10**9) -> Arpa:
    generator = stream(1, "text")
    text = [list(generator.choice(WORDS, size=generator.integers(1, 5))) for _ in range(25)]
    return prune_to(estimate(count_ngrams(text, WORDS, order=order), "witten_bell"), limit)[0]


def sentence_costs(openfst: str, backoff: int, sentences: list[tuple[int, ...]]) -> list[float]:
    """The cheapest path of each sentence, by trying everything."""
    arcs: dict[int, list[tuple[int, int, float]]] = defaultdict(list)
    finals: dict[int, float] = {}
    start = None
    for line in openfst.splitlines():
        fields = line.split()
        if not fields:
            continue
        start = int(fields[0]) if start is None else start
        if len(fields) <= 2:
            finals[int(fields[0])] = float(fields[1]) if len(fields) == 2 else 0.0
        else:
            cost = float(fields[4]) if len(fields) == 5 else 0.0
            arcs[int(fields[0])].append((int(fields[1]), int(fields[2]), cost))

    def best(state: int, left: tuple[int, ...]) -> float:
        found = [finals.get(state, math.inf)] if not left else []
        for target, label, cost in arcs[state]:
            if label == backoff:
                found.append(cost + best(target, left))
            elif left and label == left[0]:
                found.append(cost + best(target, left[1:]))
        return min(found, default=math.inf)

    assert start is not None
    return [best(start, sentence) for sentence in sentences]


@pytest.mark.parametrize(("order", "limit"), [(1, 10**9), (2, 10**9), (3, 10**9), (3, 40), (4, 60)])
def test_grammar_equals_kaldilm(tmp_path: Path, order: int, limit: int) -> None:
    kaldilm = pytest.importorskip("kaldilm")
    write_arpa(a_model(order, limit), tmp_path / "a.arpa")
    symbols = ["<eps>", *WORDS, "#0"]
    (tmp_path / "words.txt").write_text(symbols_text([*symbols, "<unk>", "<s>", "</s>"]))
    theirs = kaldilm.arpa2fst(
        str(tmp_path / "a.arpa"),
        disambig_symbol="#0",
        read_symbol_table=str(tmp_path / "words.txt"),
    )
    ids = {word: number for number, word in enumerate(WORDS, start=1)}
    ours = grammar(
        read_arpa(tmp_path / "a.arpa"), ids, backoff_label=len(WORDS) + 1, place="a.arpa"
    ).to_openfst()
    generator = stream(2, "sentences")
    sentences = [
        tuple(map(int, generator.integers(1, 7, size=generator.integers(0, 6)))) for _ in range(50)
    ]
    found = sentence_costs(ours, len(WORDS) + 1, sentences)
    np.testing.assert_allclose(found, sentence_costs(theirs, len(WORDS) + 1, sentences), rtol=1e-4)
    assert np.isfinite(found).all()


def random_log_probs(seed: int, frames: int) -> np.ndarray:
    logits = stream(seed, "logits").normal(size=(frames, 4)) * 2
    return (logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))).astype(np.float32)


def search_config(weights: tuple[float, ...], penalties: tuple[float, ...]) -> SearchConfig:
    return SearchConfig("k2", 200.0, 100.0, 10000, 100000, 1.0, list(weights), list(penalties))


def viterbi(log_probs: np.ndarray, tokens: list[int]) -> float:
    """The best CTC alignment of some tokens."""
    labels = [0, *itertools.chain.from_iterable((token, 0) for token in tokens)]
    best = np.full(len(labels), -np.inf)
    best[0] = 0.0
    previous = best
    for t, frame in enumerate(log_probs):
        best = np.full(len(labels), -np.inf)
        for position, label in enumerate(labels):
            sources = [previous[position]] if t else [0.0 if position < 2 else -np.inf]
            if t and position > 0:
                sources.append(previous[position - 1])
            if t and position > 1 and label and label != labels[position - 2]:
                sources.append(previous[position - 2])
            best[position] = max(sources) + frame[label]
        previous = best
    return float(max(previous[-2:]))


@pytest.mark.k2
@pytest.mark.parametrize("seed", range(4))
def test_the_best_words_equal_enumeration(tmp_path: Path, lang: Lang, seed: int) -> None:
    """Every word sequence and pronunciation that fits into 5 frames, at every weight."""
    import torch

    model = a_model(2, 30)
    graph_folder = make_graph(tmp_path / "graph", lang, model)
    # Epsilon removal keeps the best paths of LM weight 1 only.
    decoder = Decoder.from_folder(graph_folder, search_config((1.0,), (-2.0, 0.0, 3.0)))
    log_probs = random_log_probs(seed, 5)
    [found] = decoder.decode(torch.from_numpy(log_probs)[None], torch.tensor([5]))
    assert found is not None

    ids = lang.word_ids
    openfst = grammar(model, ids, backoff_label=len(WORDS) + 1, place="a").to_openfst()
    spellings = [
        (ids[word], [lang.token_ids[t] for t in tokens]) for word, tokens in lang.pronunciations
    ]
    candidates = [
        (
            tuple(word for word, _ in chosen),
            viterbi(log_probs, [t for _, tokens in chosen for t in tokens]),
        )
        for length in range(6)
        for chosen in itertools.product(spellings, repeat=length)
        if sum(len(tokens) for _, tokens in chosen) <= 5
    ]
    distinct = sorted({words for words, _ in candidates})
    costs = dict(zip(distinct, sentence_costs(openfst, len(WORDS) + 1, distinct)))
    for hyp in found:
        total = {}
        for words, acoustic in candidates:
            value = acoustic - costs[words] - hyp.insertion_penalty * len(words)
            total[words] = max(total.get(words, -math.inf), value)
        words = tuple(ids[word] for word in hyp.words.split())
        assert total[words] == pytest.approx(max(total.values()), abs=1e-2)
        assert hyp.am_score + hyp.lm_score - hyp.insertion_penalty * len(words) == pytest.approx(
            total[words], abs=1e-2
        )


@pytest.mark.k2
@pytest.mark.parametrize("topology", ["standard", "modified"])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_path_equals_faster_decoder(
    tmp_path: Path, lang: Lang, topology: str, seed: int
) -> None:
    """Kaldi's decoder walks epsilons itself, so k2's epsilon removal is checked too."""
    kaldi_decoder = pytest.importorskip("kaldi_decoder")
    import k2
    import kaldifst
    import torch

    model = a_model(3, 60)
    graph_folder = make_graph(tmp_path / "graph", lang, model, topology)
    decoder = Decoder.from_folder(graph_folder, search_config((1.0,), (0.0,)))
    log_probs = random_log_probs(100 + seed, 40)
    [hyps] = decoder.decode(torch.from_numpy(log_probs)[None], torch.tensor([40]))
    assert hyps is not None

    G = grammar(model, lang.word_ids, backoff_label=len(WORDS) + 1, place="a")
    text = compose_lexicon_and_grammar(lang, G, 1000).to_str(show_weight_one=True)
    # Disambiguation symbols (tokens from 4, the word #0) become epsilons.
    silenced = _mapped(text, lambda n: n if n < 4 else 0, lambda n: n if n <= len(WORDS) else 0)
    LG = kaldifst.compile(silenced)
    topo = k2.to_str(k2.ctc_topo(3, modified=topology == "modified"), openfst=True)
    H = kaldifst.compile(_mapped(topo, lambda n: n + 1, lambda n: n))  # 0 is Kaldi's epsilon
    kaldifst.arcsort(H, "olabel")
    kaldifst.arcsort(LG, "ilabel")
    graph = kaldifst.compose(H, LG)
    options = kaldi_decoder.FasterDecoderOptions(max_active=100000, beam=200.0)
    reference = kaldi_decoder.FasterDecoder(graph, options)
    reference.decode(kaldi_decoder.DecodableCtc(log_probs))
    ok, best = reference.get_best_path()
    assert ok
    ok, _, _, weight = kaldifst.get_linear_symbol_sequence(best)
    assert ok
    cost = weight.value1 + weight.value2
    assert hyps[0].am_score + hyps[0].lm_score == pytest.approx(-cost, abs=5e-4)


def _mapped(openfst: str, ilabel: Callable[[int], int], olabel: Callable[[int], int]) -> str:
    """A transducer in OpenFst's text format with other labels."""
    lines = []
    for line in openfst.splitlines():
        fields = line.split()
        if len(fields) >= 4:
            fields[2:4] = str(ilabel(int(fields[2]))), str(olabel(int(fields[3])))
        lines.append(" ".join(fields))
    return "\n".join(lines) + "\n"


@pytest.mark.k2
def test_scores_are_those_of_the_words(tmp_path: Path, lang: Lang) -> None:
    """lm_score is the grammar's own score of the words, at every weight."""
    import torch

    model = a_model(3)
    graph_folder = make_graph(tmp_path / "graph", lang, model)
    decoder = Decoder.from_folder(graph_folder, search_config((0.0, 0.5, 1.0, 2.0), (0.0, 1.0)))
    rows = np.stack([random_log_probs(200 + n, 30) for n in range(3)])
    openfst = grammar(model, lang.word_ids, backoff_label=len(WORDS) + 1, place="a").to_openfst()
    for row, hyps in enumerate(decoder.decode(torch.from_numpy(rows), torch.tensor([30, 20, 30]))):
        assert hyps is not None and len(hyps) == 8
        words = [tuple(lang.word_ids[word] for word in hyp.words.split()) for hyp in hyps]
        cheapest = sentence_costs(openfst, len(WORDS) + 1, words)
        for hyp, cost in zip(hyps, cheapest):
            # A path may back off where it need not; at weight 1 and above it has no reason to.
            assert -hyp.lm_score >= cost - 1e-2
            if hyp.lm_weight >= 1:
                assert -hyp.lm_score == pytest.approx(cost, abs=1e-2), row
