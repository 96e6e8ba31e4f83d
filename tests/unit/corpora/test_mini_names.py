from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.corpora import mini_names
from privasr_k2.corpora.mini_names import KINDS, Name, own_name, public_list, zipf_index
from privasr_k2.errors import ConfigError
from privasr_k2.randomness import stream
from privasr_k2.text.normalize import normalize_english


@pytest.mark.parametrize("kind", KINDS)
def test_names_differ_and_are_plain_words(kind):
    names = [name.text for name in public_list(kind, 500, seed=3)]
    assert len(set(names)) == 500
    for name in names:
        assert len(normalize_english(name).split()) == len(name.split()) <= 4
        assert name.replace(" ", "").isalpha() and name[0].isupper()


def test_a_longer_list_begins_with_the_shorter_one_and_seeds_differ():
    assert public_list("PER", 50, seed=1) == public_list("PER", 80, seed=1)[:50]
    assert public_list("PER", 50, seed=1) != public_list("PER", 50, seed=2)


def test_some_names_are_plain_words_too():
    names = (name.text.lower() for kind in KINDS for name in public_list(kind, 1000, seed=1))
    assert {"rose", "may", "reading", "orange"} <= set(" ".join(names).split())


def test_own_names_are_not_public():
    public = frozenset(name.text for name in public_list("LOC", 200, seed=1))
    generator = stream(1, "test")
    assert all(own_name("LOC", public, generator).text not in public for _ in range(200))


def test_more_names_than_there_are_is_an_error(monkeypatch):
    one_of_three = lambda generator: Name("ABC"[generator.integers(3)])  # noqa: E731
    monkeypatch.setitem(mini_names._MAKERS, "LOC", one_of_three)
    assert len(public_list("LOC", 3, seed=1)) == 3
    with pytest.raises(ConfigError, match=r"LOC.*4 different names, found about 3"):
        public_list("LOC", 4, seed=1)
    with pytest.raises(ConfigError, match="LOC"):
        own_name("LOC", frozenset("ABC"), stream(1, "test"))


@pytest.mark.parametrize("exponent", [0.0, 1.0])
def test_zipf_index_has_its_probabilities(exponent):
    generator, count, draws = stream(1, "zipf"), 4, 20_000
    drawn = [zipf_index(count, exponent, generator) for _ in range(draws)]
    shares = np.bincount(drawn, minlength=count) / draws
    mass = np.array([1 / (i + 1) ** exponent for i in range(count)])
    assert np.abs(shares - mass / mass.sum()).max() < 0.015  # four standard deviations
