"""The caches of devices against n-gram models of the whole vocabulary, scored as class LMs."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.personal_cache import WholeCache
from privasr_k2.federated.client_ngrams import ClientWords
from privasr_k2.federated.personal_methods import Cache

SHARES = [0.0, 0.1, 0.5, 0.9]


@pytest.mark.parametrize(
    ("vocabulary", "spoken", "order"),
    [(300, 40, 3), (300, 340, 3), (8, 8, 2), (8, 12, 4), (300, 40, 1)],
)
def test_caches_are_models_of_the_whole_vocabulary(
    vocabulary: int, spoken: int, order: int
) -> None:
    """``spoken``: different words that are said; those beyond the vocabulary are unknown."""
    random = np.random.default_rng(order)
    words = [f"w{number}" for number in range(vocabulary)]

    def sentences(count: int) -> list[list[str]]:
        lengths = random.integers(0, 9, size=count).tolist()
        return [[f"w{n}" for n in random.zipf(1.3, size) % spoken] for size in lengths]

    ours = Cache(ClientWords(words), order, SHARES)
    whole = WholeCache(words, order, SHARES)
    for _ in range(5):
        said = [["w1"], *sentences(6)]
        ours.learn(said)
        whole.learn(said)
        # Words that were not said, and those that are not known.
        lists = [sentences(3), [], [["w0", f"w{vocabulary - 1}"], ["no", "w1", "w1"], []]]
        plain = -random.exponential(5, sum(len(words) + 1 for n in lists for words in n))
        found, expected = ours.log_probs(lists, plain), whole.log_probs(lists, plain)
        assert found == pytest.approx(expected, rel=0, abs=1e-9)
        assert np.array_equal(found[:, 0], plain) and np.abs(found[:, 3] - plain).max() > 1
        assert ours.kept_bytes == whole.kept_bytes
