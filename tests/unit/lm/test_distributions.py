"""The distributions of n-gram models over all words, and which models have any."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privasr_k2.errors import DataError
from privasr_k2.fileio import write_json
from privasr_k2.lm.arpa import write_arpa
from privasr_k2.lm.distributions import ArpaDistributions, open_distributions
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.lm.pruning import prune_to
from tests.support.tiny_lm import VOCABULARY, sentences, slow_prob, table


@pytest.mark.parametrize("order", [1, 2, 4])
def test_every_word_has_its_probability_by_backing_off(order: int) -> None:
    counts = count_ngrams(sentences(1, 90), VOCABULARY, order=order)
    model, _ = prune_to(estimate(counts, "modified_kneser_ney"), 200)
    lm, ngrams = ArpaDistributions(model), table(model)
    text = [*sentences(2, 30), ["w1", "zzz", "w2", "w1"], []]
    probs, place = lm.probs(lm.states(text)), 0
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-5)
    for sentence in text:
        read = ["<s>", *(word if word in model.word_ids else "<unk>" for word in sentence)]
        for end in range(1, len(read) + 1):
            history = tuple(read[max(0, end - order + 1) : end]) if order > 1 else ()
            for column, word in enumerate(lm.symbols):
                expected = 0.0 if word == "<s>" else slow_prob(ngrams, history, word)
                assert probs[place, column] == pytest.approx(expected, abs=1e-6), (history, word)
            place += 1
    assert place == len(probs)


def test_what_has_distributions(tmp_path: Path) -> None:
    model = estimate(count_ngrams(sentences(1, 20), VOCABULARY, order=2), "witten_bell")
    write_arpa(model, tmp_path / "a.arpa")
    lm = open_distributions(tmp_path / "a.arpa")
    assert list(lm.symbols) == list(model.words)
    write_json(tmp_path / "mixed.json", {})
    with pytest.raises(DataError, match="estimate=average"):
        open_distributions(tmp_path / "mixed.json")
