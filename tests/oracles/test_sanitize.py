"""Sanitizing against its formula: frequencies, and epsilon of all outputs. The noise is fixed."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2, chisquare

from privasr_k2.privacy.replacement import uniform_replacement
from privasr_k2.randomness import noise_stream
from privasr_k2.text.entities import Entity, TaggedText
from privasr_k2.text.sanitize import Replacement, replace_words

NAMES = ["ann", "bob", "eve", "lee", "zoe"]
SEED = b"a fixed secret for tests only ...."


def outputs(words, count, *, keep_prob, by_document=False, mentions=9, per_mention=9, names=NAMES):
    """(count, len(words)) outputs of ``count`` independent texts of one mention with ``words``."""
    mention = (Entity(0, len(words), "PER"),)
    text = [TaggedText(str(n), tuple(words), mention, user=f"u{n}") for n in range(count)]
    how = Replacement(keep_prob, by_document, mentions, per_mention, None)
    made = replace_words(text, {"PER": names}, how, lambda name: noise_stream(SEED, name))
    return [text.words for text in made]


@pytest.mark.parametrize("keep_prob", [0.0, 0.1, 0.6])
def test_frequencies_are_those_of_the_formula(keep_prob):
    count = 20_000
    made = outputs(["bob", "nobody"], count, keep_prob=keep_prob)
    n = len(NAMES)
    for position, kept in ((0, keep_prob), (1, 0.0)):  # the second is on no list
        found = [sum(words[position] == name for words in made) for name in NAMES]
        is_kept = [kept * (name == "bob" and position == 0) for name in NAMES]
        expected = [(share + (1 - kept) / n) * count for share in is_kept]
        assert sum(found) == count and chisquare(found, expected).pvalue > 1e-3


@pytest.mark.parametrize("by_document", [False, True])
def test_words_of_a_mention_are_independent(by_document):
    count = 20_000
    table = np.zeros((len(NAMES), len(NAMES)))
    for one, other in outputs(["bob", "eve"], count, keep_prob=0.3, by_document=by_document):
        table[NAMES.index(one), NAMES.index(other)] += 1
    expected = np.outer(table.sum(1), table.sum(0)) / count
    statistic = ((table - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, (len(NAMES) - 1) ** 2) > 1e-3


def test_the_same_word_twice_is_drawn_twice_by_mention_and_once_by_document():
    by_mention = outputs(["bob", "bob"], 5_000, keep_prob=0.0)
    same = sum(one == other for one, other in by_mention) / len(by_mention)
    assert same == pytest.approx(1 / len(NAMES), abs=0.03)
    by_document = outputs(["bob", "bob"], 200, keep_prob=0.0, by_document=True)
    assert all(first == second for first, second in by_document)


def word_distribution(word, p, names, counted):
    """P(out | word), as the module's docstring has it."""
    kept = p if counted and word in names else Fraction(0)
    return {name: kept * (name == word) + (1 - kept) / len(names) for name in names}


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("p", [Fraction(1, 10), Fraction(1, 2)])
def test_epsilon_is_that_of_the_whole_output_distribution(size, p):
    """All pairs of texts of two mentions (two words, one of them counted; one), all outputs."""
    names = NAMES[:size]
    counted = (True, False, True)

    def distribution(words):
        of_words = [word_distribution(w, p, names, c) for w, c in zip(words, counted)]
        return {
            out: math.prod(d[o] for d, o in zip(of_words, out))
            for out in itertools.product(names, repeat=3)
        }

    texts = [distribution(words) for words in itertools.product([*names, "off"], repeat=3)]
    assert all(sum(of_text.values()) == 1 for of_text in texts)
    pairs = itertools.permutations(texts, 2)
    worst = max(max(text[out] / other[out] for out in text) for text, other in pairs)
    how = dict(mentions=2, words_per_mention=1, off_list="replaced", consistency="mention")
    claimed = uniform_replacement(keep_probability=float(p), num_names=size, **how)
    assert math.log(worst) == pytest.approx(claimed.epsilon_per_utterance, abs=1e-9)


def test_the_code_draws_from_the_distribution_that_was_enumerated():
    names, keep_prob, count = NAMES[:3], 0.5, 40_000
    words, how = ["bob", "eve", "off"], dict(mentions=1, per_mention=1, names=names)
    made = outputs(words, count, keep_prob=keep_prob, **how)
    counted = zip(words, (True, False, True))
    of_words = [word_distribution(word, Fraction(1, 2), names, is_) for word, is_ in counted]
    found, expected = [], []
    for out in itertools.product(names, repeat=3):
        found.append(sum(words == out for words in made))
        expected.append(float(math.prod(d[o] for d, o in zip(of_words, out))) * count)
    assert chisquare(found, expected).pvalue > 1e-3
