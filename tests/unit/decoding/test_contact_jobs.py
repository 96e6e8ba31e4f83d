"""Each speaker's names in the search for that speaker, and in no other's."""

from __future__ import annotations

from pathlib import Path

import pytest

from privasr_k2.decoding.first_pass import SearchConfig
from privasr_k2.errors import DataError
from privasr_k2.graph.contacts import ContactGraph
from privasr_k2.graph.hlg import GraphConfig
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.text.hotwords import read_speaker_lists
from tests.support.hotwords import write_list
from tests.support.small_graphs import heard, make_lang
from tests.support.tiny_lm import sentences

WORDS = ["ab", "n", "ba"]
LEXICON = "ab ▁ a b\nn ▁ n\nba ▁ b a\n"
pytestmark = pytest.mark.k2
SEARCH = SearchConfig("k2", 20.0, 8.0, 1, 10_000, 1.0, [1.0], [0.0])


def opened(folder: Path) -> ContactGraph:
    lang = make_lang(folder / "lang", LEXICON)
    model = estimate(count_ngrams(sentences(3, 40, words=WORDS), WORDS, order=2), "witten_bell")
    config = GraphConfig("standard", 10_000)
    return ContactGraph.compile(lang, model, config, model_path=Path("a.arpa"))


def test_speakers_have_their_own_names(tmp_path: Path) -> None:
    pytest.importorskip("k2")
    from privasr_k2.decoding.contact_jobs import ContactSearch

    graph, lines = opened(tmp_path), ("s1\tnab", "s2\tbanab\t2", "s2\tab")
    lists = read_speaker_lists(write_list(tmp_path / "contacts.tsv", *lines))
    search = ContactSearch(graph, lists, SEARCH, log_prob=-1.0, device="cpu")
    token = graph.lang.token_ids
    nab, banab = ([token[letter] for letter in f"▁{name}"] for name in ("nab", "banab"))

    def found(speaker: str, tokens: list[int]) -> str:
        [hyp] = heard(search.of(speaker), len(graph.lang.tokens), tokens)
        return hyp.words

    assert found("s1", nab) == "nab" and found("s2", banab) == "banab"
    assert found("s1", banab) != "banab" and found("s2", nab) != "nab"
    # Without a list a speaker has the words of the model, and delimiters are no words.
    assert set(found("s3", nab).split()) <= set(WORDS)
    assert found("s1", nab) == "nab"  # exchanged and back again
    assert search.of("s1") is search.of("s1")


def test_names_are_checked_before_anything_is_decoded(tmp_path: Path) -> None:
    pytest.importorskip("k2")
    from privasr_k2.decoding.contact_jobs import ContactSearch

    listed = write_list(tmp_path / "contacts.tsv", "s1\tab", "s2\tn zed")
    lists = read_speaker_lists(listed)
    with pytest.raises(DataError, match=r"contacts.tsv:2: .*'zed'"):
        ContactSearch(opened(tmp_path), lists, SEARCH, log_prob=-1.0, device="cpu")
