"""Hotwords in graphs against scores of every short sentence, by dictionaries and trial."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.decoding.first_pass import SearchConfig
from privasr_k2.decoding.kaldi_backend import open_decoder
from privasr_k2.graph.context import make_context, with_bonuses
from privasr_k2.graph.grammar import grammar
from privasr_k2.graph.hlg import save_graph
from privasr_k2.graph.hotwords import HotwordGraphConfig, compile_hotword_graph, with_unigrams
from privasr_k2.graph.lang import Lang, load_lang
from privasr_k2.lm.arpa import Arpa
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.randomness import stream
from privasr_k2.text.hotwords import Hotwords, read_hotwords
from tests.support.hotwords import BackoffTwin, Sentence, acceptor_cost, bonus_of, write_list
from tests.support.small_graphs import heard, make_lang

LOG_PROB, BACKOFF, RETURN = -7.0, 98, 99
IN_LM = ("a", "b", "c")
WORDS = (*IN_LM, "d")  # the last one is new to the language model
SENTENCES = [words for n in range(5) for words in itertools.product(WORDS, repeat=n)]


def random_model(seed: int) -> Arpa:
    """An n-gram model of order 1 to 3."""
    generator = stream(seed, "text")
    text = [list(generator.choice(IN_LM, size=generator.integers(1, 6))) for _ in range(8)]
    return estimate(count_ngrams(text, IN_LM, order=1 + seed % 3), "witten_bell")


def random_phrases(seed: int) -> dict[Sentence, float]:
    """Up to six phrases of up to four words, which overlap, with bonuses of their own."""
    generator = stream(seed, "phrases")
    found = {}
    for _ in range(generator.integers(1, 7)):
        words = tuple(map(str, generator.choice(WORDS, size=generator.integers(1, 5))))
        found[words] = float(generator.choice([0.0, 0.5, 1.0, 3.0, 12.0])) * len(words)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_the_automaton_grants_the_best_phrases_that_do_not_overlap(seed: int) -> None:
    phrases = random_phrases(seed)
    numbers = {word: number for number, word in enumerate(WORDS)}
    context = make_context(
        {tuple(numbers[word] for word in phrase): bonus for phrase, bonus in phrases.items()}
    )
    for sentence in SENTENCES:
        found = context.score(tuple(numbers[word] for word in sentence))
        assert found == pytest.approx(bonus_of(sentence, phrases), abs=1e-6), (sentence, phrases)


@pytest.mark.parametrize("seed", range(30))
def test_a_grammar_has_the_scores_of_model_and_phrases(seed: int) -> None:
    model, phrases = random_model(seed), random_phrases(100 + seed)
    ids = {word: number for number, word in enumerate(WORDS, start=1)}
    spoken = {word for phrase in phrases for word in phrase}
    numbered = {tuple(ids[w] for w in phrase): bonus for phrase, bonus in phrases.items()}
    G = grammar(model, ids, backoff_label=BACKOFF, place="a.arpa")
    G, added = with_unigrams(
        G, {ids[word] for word in spoken}, log_prob=LOG_PROB, backoff_label=BACKOFF
    )
    assert added == ("d" in spoken)
    made = with_bonuses(G, make_context(numbered), backoff_label=BACKOFF, return_label=RETURN)
    arcs = list(zip(made.sources.tolist(), made.labels.tolist()))
    assert len(set(arcs)) == len(arcs)  # deterministic
    twin = BackoffTwin(model, {"d": LOG_PROB} if "d" in spoken else {})
    for sentence in SENTENCES:
        found = -acceptor_cost(made, [ids[word] for word in sentence], (BACKOFF, RETURN))
        expected = twin.log_prob(sentence) + bonus_of(sentence, phrases)
        if math.isinf(expected):
            assert found == expected
        else:
            assert found == pytest.approx(expected, abs=1e-6), (sentence, phrases)


# c begins as a does; d is no word of the lexicon, and a character of its tokens.
LEXICON = "a ▁ x\nb ▁ y\nc ▁ x y\n"
TOKENS = ("▁", "d", "x", "y")


def compiled(folder: Path, lines: list[str], topology: str) -> tuple[Lang, Hotwords, Arpa, Path]:
    """The folder of a graph with a list."""
    lang, model = make_lang(folder / "lang", LEXICON, TOKENS), random_model(2)
    hotwords = read_hotwords(write_list(folder / "names.txt", *lines))
    config = HotwordGraphConfig(2.0, LOG_PROB, topology, 10_000, True, 10_000, "none", 2)
    whole, graphs, info = compile_hotword_graph(
        lang, model, config, hotwords, model_path=Path("a.arpa")
    )
    save_graph(graphs, whole, info, folder / "graph")
    return whole, hotwords, model, folder / "graph"


LISTS = [["d"], ["a b c", "b c\t0.5", "d d"], ["a b\t9", "b a", "c d a"]]


def tlg_scores(folder: Path, lang: Lang) -> list[float]:
    """The best score of each of :data:`SENTENCES` in the folder's TLG."""
    import kaldifst

    from privasr_k2.graph.tlg import load_tlg

    graph = kaldifst.StdVectorFst(load_tlg(folder).TLG.to_kaldifst())
    kaldifst.arcsort(graph, "olabel")
    scores = []
    for sentence in SENTENCES:
        ids = [lang.word_ids.get(word, 10**6) for word in sentence]
        lines = [f"{n} {n + 1} {word} {word}\n" for n, word in enumerate(ids)]
        acceptor = kaldifst.compile("".join(lines) + f"{len(ids)}\n")
        found = kaldifst.compose(graph, acceptor)
        if not found.num_states:
            scores.append(-math.inf)
            continue
        total = kaldifst.get_linear_symbol_sequence(kaldifst.shortest_path(found))[3]
        scores.append(-total.value)
    return scores


@pytest.mark.k2
@pytest.mark.parametrize("topology", ["standard", "modified"])
@pytest.mark.parametrize("lines", LISTS, ids=len)
def test_a_compiled_graph_has_the_scores_of_model_and_phrases(
    tmp_path: Path, lines: list[str], topology: str
) -> None:
    lang, hotwords, model, folder = compiled(tmp_path, lines, topology)
    phrases = {
        e.words: len(e.words) * (2.0 if e.bonus is None else e.bonus) for e in hotwords.entries
    }
    twin = BackoffTwin(model, {"d": LOG_PROB} if "d" in lang.word_ids else {})
    expected = [twin.log_prob(s) + bonus_of(s, phrases) for s in SENTENCES]
    assert np.isfinite(expected).sum() > 100
    np.testing.assert_allclose(tlg_scores(folder, lang), expected, atol=2e-3)


@pytest.mark.k2
@pytest.mark.parametrize("topology", ["standard", "modified"])
@pytest.mark.parametrize("lines", LISTS, ids=len)
def test_both_decoders_find_the_same(tmp_path: Path, lines: list[str], topology: str) -> None:
    import torch

    pytest.importorskip("kaldi_decoder")
    _, hotwords, _, folder = compiled(tmp_path, lines, topology)
    logits = stream(3, "logits").normal(size=(40, 16, 1 + len(TOKENS))) * 2
    log_probs = torch.from_numpy(logits.astype(np.float32)).log_softmax(2)
    lengths = torch.full((40,), 16)
    found = []
    for backend in ("k2", "kaldi"):
        search = SearchConfig(backend, 300.0, 30.0, 1000, 1_000_000, 1.0, [1.0], [0.0, 1.0])
        found.append(open_decoder(folder, search).decode(log_probs, lengths))
    named = 0
    for ours, theirs in zip(*found):
        assert ours is not None and theirs is not None
        for one, other in zip(ours, theirs):
            assert one.words == other.words
            assert one.lm_score == pytest.approx(other.lm_score, abs=2e-3)
            assert one.am_score == pytest.approx(other.am_score, abs=2e-3)
            named += any(" ".join(entry.words) in one.words for entry in hotwords.entries)
    assert named > 3


@pytest.mark.k2
def test_a_graph_folder_is_a_language_folder_of_its_words(tmp_path: Path) -> None:
    """As word times and the count of unknown words need it."""
    lang, *_, folder = compiled(tmp_path, ["d", "a d"], "standard")
    read = load_lang(folder)
    assert (read.words, read.pronunciations) == (lang.words, lang.pronunciations)
    search = SearchConfig("k2", 300.0, 30.0, 1000, 1_000_000, 1.0, [1.0], [0.0])
    hyps = heard(open_decoder(folder, search), read.num_tokens, read.encode("a d"))
    assert hyps is not None and hyps[0].words == "a d"
