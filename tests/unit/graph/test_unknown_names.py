"""Loops of tokens for names that no list has: against dictionaries, and their mass."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.errors import GraphError
from privasr_k2.graph.class_delimiters import ClassDelimiters
from privasr_k2.graph.lang import Lang, Silence
from privasr_k2.graph.nonterminals import names_grammar
from privasr_k2.graph.unknown_names import (
    UNKNOWN_NAMES,
    class_word_ids,
    delimiters_of,
    loop_arcs,
    token_loop,
    unknown_names_loop,
    words_of,
)
from privasr_k2.lm.sub_lm import make_sub_lm
from tests.support.unknown_names import cost

SPELLINGS = [(1, 3), (3,), (1, 1, 3), (4, 3, 1)]
TOKENS = [1, 3, 4, 7]
LANG = Lang(
    Path("lang"),
    ("<blk>", "A", "B", "<unk>"),
    ("<eps>", "ann", "bob", "to", "#0"),
    (("ann", ("A", "B")), ("ann", ("B",)), ("bob", ("B", "A", "B")), ("to", ("<unk>",))),
)


def slow_log_prob(spelling: Sequence[int], *, min_tokens: int) -> float:
    """ln P of a sequence under the bigram of SPELLINGS, word by word."""
    counts: Counter[int | str] = Counter()
    pairs: Counter[tuple[int | str, int | str]] = Counter()
    for one in SPELLINGS:
        counts.update([*one, "end"])
        pairs.update(itertools.pairwise(["start", *one, "end"]))
    kinds = len(counts)
    choices = [*TOKENS, "end"]

    def lower(token: int | str) -> float:  # <unk> is one more
        return (counts[token] + kinds / (len(choices) + 1)) / (counts.total() + kinds)

    def after(before: int | str, token: int | str) -> float:
        seen = {pair[1]: count for pair, count in pairs.items() if pair[0] == before}
        weight = len(seen) or 1
        return (seen.get(token, 0) + weight * lower(token)) / (sum(seen.values()) + weight)

    total = 0.0
    for place, (before, token) in enumerate(itertools.pairwise(["start", *spelling, "end"])):
        allowed = TOKENS if place < min_tokens else choices
        if token not in allowed:
            return -math.inf
        total += math.log(after(before, token) / sum(after(before, other) for other in allowed))
    return total


@pytest.mark.parametrize("min_tokens", [1, 2, 3])
def test_sequences_have_their_bigram_probabilities(min_tokens: int) -> None:
    loop = token_loop(SPELLINGS, TOKENS, min_tokens=min_tokens)
    for length in range(5):
        for spelling in itertools.product(TOKENS, repeat=length):
            if length == 0 or length < min_tokens:
                assert cost(loop, spelling) == math.inf
            else:
                expected = slow_log_prob(spelling, min_tokens=min_tokens)
                assert cost(loop, spelling) == pytest.approx(-expected), spelling


@pytest.mark.parametrize("min_tokens", [1, 2, 3])
def test_all_sequences_together_have_the_mass_of_one(min_tokens: int) -> None:
    loop = token_loop(SPELLINGS, TOKENS, min_tokens=min_tokens)
    here, ended = np.eye(1, len(loop.finals))[0], 0.0
    for _ in range(300):
        ended += float(here @ np.exp(-loop.finals))
        leaving = here[loop.sources] * np.exp(-loop.costs)
        here = np.bincount(loop.targets, leaving, minlength=len(here))
    assert ended == pytest.approx(1, abs=1e-12)
    pairs = set(zip(loop.sources.tolist(), loop.labels.tolist()))
    assert len(pairs) == len(loop.labels)  # deterministic


def test_tokens_of_the_lexicon_and_spellings_of_the_names() -> None:
    """Every variant of every word of the names; tokens of all words, also one called <unk>."""
    sub = make_sub_lm({("ann", "bob"): 1.0, ("zoe",): 1.0}, "tree", unknown_mass=0.1)
    loop = unknown_names_loop(LANG, sub, min_tokens=1)
    expected = token_loop([(1, 2), (2,), (2, 1, 2)], [1, 2, 3], min_tokens=1)
    np.testing.assert_array_equal(loop.costs, expected.costs)
    np.testing.assert_array_equal(loop.labels, expected.labels)


@pytest.mark.parametrize("silence", [None, Silence("SIL", 0.25)])
def test_a_loop_in_a_graph(silence: Silence | None) -> None:
    """The word where it is entered, its sequences, and maybe silence behind it."""
    loop = token_loop([(1,), (2,)], [1, 2], min_tokens=2)
    around = {"enter": (3, 7, 0.5), "leave": [(4, 0.0), (5, 1.5)]}
    parts, count = loop_arcs(loop, first=9, **around, silence=silence, silence_id=8)
    arcs = list(zip(*(np.concatenate(column).tolist() for column in zip(*parts))))
    assert {state for arc in arcs for state in arc[:2]} == {3, 4, 5, *range(9, 9 + count)}
    assert [arc for arc in arcs if arc[3]] == [(3, 9, 0, 7, 0.5)]

    def best(tokens: Sequence[int], target: int) -> float:
        at = [(3, 0, 0.0)]
        found = math.inf
        while at:
            state, read, so_far = at.pop()
            if state == target and read == len(tokens):
                found = min(found, so_far)
            for source, to, token, _, more in arcs:
                if source == state and (token == 0 or list(tokens[read : read + 1]) == [token]):
                    at.append((to, read + (token > 0), so_far + more))
        return found

    for tokens in ((1, 2), (2, 2, 1)):
        after = 0.0 if silence is None else -math.log(0.75)
        assert best(tokens, 4) == pytest.approx(0.5 + cost(loop, tokens) + after)
        assert best(tokens, 5) == pytest.approx(2.0 + cost(loop, tokens) + after)
        paused = math.inf if silence is None else 0.5 + cost(loop, tokens) - math.log(0.25)
        assert best([*tokens, 8], 4) == pytest.approx(paused)
    assert best((1,), 4) == math.inf


def test_the_word_stands_before_the_delimiters() -> None:
    without, delimiters = (delimiters_of(LANG, ["PER"], name) for name in UNKNOWN_NAMES)
    assert without == ClassDelimiters(5, ("PER",))
    assert words_of(LANG, without) == (*LANG.words, "#bPER", "#xPER")
    assert class_word_ids(LANG, without) == LANG.word_ids
    assert delimiters == ClassDelimiters(6, ("PER",))
    assert words_of(LANG, delimiters) == (*LANG.words, "<unk>", "#bPER", "#xPER")
    assert class_word_ids(LANG, delimiters) == {**LANG.word_ids, "<unk>": 5}
    own = Lang(Path("lang"), LANG.tokens, ("<eps>", "<unk>", "#0"), (("<unk>", ("A",)),))
    with pytest.raises(GraphError, match="no word <unk>"):
        delimiters_of(own, ["PER"], "phone_loop")


def test_names_keep_their_arcs_of_unknown_ones() -> None:
    sub = make_sub_lm({("ann",): 1.0, ("zoe",): 1.0}, "tree", unknown_mass=0.2)
    delimiters = delimiters_of(LANG, ["PER"], "phone_loop")
    G = names_grammar(sub, "PER", class_word_ids(LANG, delimiters), leave=7)
    assert math.exp(-G.costs[G.labels == 5][0]) == pytest.approx(0.2)
    nobody = make_sub_lm({("zoe",): 1.0}, "tree", unknown_mass=0.2)
    with pytest.raises(GraphError, match="names of words of the lexicon"):
        names_grammar(nobody, "PER", class_word_ids(LANG, delimiters), leave=7)
