from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.replacement import ReplacementGuarantee, uniform_replacement

P = st.fractions(0, Fraction(99, 100), max_denominator=200)


def _uniform(keep: float, names: int, **changes: Any) -> ReplacementGuarantee:
    rest = {"mentions": 1, "words_per_mention": 1, "off_list": "replaced", "consistency": "mention"}
    return uniform_replacement(keep_probability=keep, num_names=names, **(rest | changes))


def _worst_ratio(p: Fraction, weights: list[Fraction], off_list: bool) -> Fraction:
    """By enumeration: every pair of words, every word that may come out."""
    n = len(weights)
    rows = [[p * (i == j) + (1 - p) * weights[j] for j in range(n)] for i in range(n)]
    if off_list:  # always replaced
        rows.append(list(weights))
    assert all(sum(row) == 1 for row in rows)
    pairs = permutations(rows, 2)
    return max(a / b for one, other in pairs for a, b in zip(one, other, strict=True))


@settings(deadline=None, max_examples=60)
@given(p=P, n=st.integers(2, 6))
def test_uniform_draws_against_enumeration(p: Fraction, n: int) -> None:
    weights = [Fraction(1, n)] * n
    expected = _worst_ratio(p, weights, off_list=False)
    assert _uniform(float(p), n).epsilon_per_mention == pytest.approx(math.log(expected), abs=1e-12)
    # A word that is not on the list and is always replaced costs no more.
    assert _worst_ratio(p, weights, off_list=True) == expected


@settings(deadline=None, max_examples=60)
@given(
    p=st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100),
    words=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=3),
)
def test_any_other_names_in_an_utterance_cost_at_most_what_is_claimed(
    p: Fraction, words: list[tuple[int, int]]
) -> None:
    # Every word of the utterance is moved to any other of three: all outcomes of all draws.
    noise = (1 - p) / 3
    worst = Fraction(1)
    for one, other in words:
        worst *= max((p * (one == j) + noise) / (p * (other == j) + noise) for j in range(3))
    claimed = _uniform(float(p), 3, mentions=len(words)).epsilon_per_utterance
    assert math.log(worst) <= claimed + 1e-12
    if all(one != other for one, other in words):
        assert math.log(worst) == pytest.approx(claimed)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 8.0])
def test_a_word_off_the_list_stays_below_the_whole_curve_of_divergences(alpha: float) -> None:
    # The event is accounted by its Rényi divergence and hockey-sticks, not only by a ratio.
    pi, p = np.full(4, 0.25), 0.4
    rows = p * np.eye(len(pi)) + (1 - p) * pi

    def renyi(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.log((a**alpha * b ** (1 - alpha)).sum()) / (alpha - 1))

    def stick(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.maximum(a - alpha * b, 0).sum())

    for divergence in (renyi, stick):
        among = max(divergence(a, b) for a, b in permutations(rows, 2))
        assert max(divergence(pi, row) for row in rows) <= among + 1e-12
        assert max(divergence(row, pi) for row in rows) <= among + 1e-12


def test_the_formula_and_its_event() -> None:
    p, n = 0.3, 500
    found = _uniform(p, n, mentions=4)
    assert found.epsilon_per_mention == pytest.approx(math.log(1 + n * p / (1 - p)))
    assert found.epsilon_per_utterance == pytest.approx(4 * math.log(1 + n * p / (1 - p)))
    assert found.event is not None
    assert events.terms(found.event) == {events.randomized_response(0.7, 500): 4}
    assert (found.relation, found.unit, found.mentions) == (Relation.REPLACE_ONE, "utterance", 4)
    # It is for replacing from the start: nothing is doubled.
    assert events.for_replacing(found.event) == found.event


def test_every_word_of_a_mention_is_a_draw() -> None:
    found = _uniform(0.2, 10, mentions=3, words_per_mention=2)
    assert found.epsilon_per_mention == 2 * found.epsilon_per_word
    assert found.epsilon_per_utterance == 6 * found.epsilon_per_word
    assert found.event is not None and sum(events.terms(found.event).values()) == 6


def test_where_nothing_is_kept_nothing_is_spent() -> None:
    found = _uniform(0.0, 10)
    assert (found.epsilon_per_word, found.epsilon_per_utterance, found.event) == (0.0, 0.0, None)
    none = _uniform(0.5, 10, mentions=0)
    assert none.epsilon_per_word > 0 and none.epsilon_per_utterance == 0 and none.event is None


def test_consistent_replacement_is_another_unit() -> None:
    found = _uniform(0.5, 10, consistency="document", mentions=2)
    assert found.unit == "document"
    assert any("same name" in sentence for sentence in found.does_not_cover)
    assert not any("same name" in sentence for sentence in _uniform(0.5, 10).does_not_cover)


def test_what_is_not_covered_is_part_of_the_guarantee() -> None:
    told = " ".join(_uniform(0.5, 10).does_not_cover)
    said = (
        "tagger missed",
        "which class",
        "how many words",
        "list",
        "Everything",
        "Who spoke",
        "'s",
    )
    assert all(what in told for what in said)
    assert "further words are always replaced" in told and "A user: the epsilons" in told


def test_a_user_is_covered_where_the_number_of_utterances_has_a_public_limit() -> None:
    changes = {"mentions": 3, "words_per_mention": 2}
    none, found = _uniform(0.2, 10, **changes), _uniform(0.2, 10, utterances_per_user=7, **changes)
    assert (none.unit, none.epsilon_per_user) == ("utterance", None)
    assert (found.unit, found.utterances_per_user) == ("user", 7)
    assert found.epsilon_per_user == pytest.approx(42 * found.epsilon_per_word)
    assert found.epsilon_per_utterance == none.epsilon_per_utterance == 6 * found.epsilon_per_word
    assert found.event is not None and sum(events.terms(found.event).values()) == 42
    told = " ".join(found.does_not_cover)
    assert "more than 7 utterances (42 words)" in told and "A user: the epsilons" not in told


def test_a_smaller_keep_probability_and_a_shorter_list_are_stronger() -> None:
    by_keep = [_uniform(p, 100).epsilon_per_word for p in (0.0, 1e-12, 0.1, 0.5, 0.99, 1 - 1e-12)]
    by_names = [_uniform(0.1, n).epsilon_per_word for n in (2, 10, 1000, 10**9)]
    assert by_keep == sorted(by_keep) and by_names == sorted(by_names)
    assert all(math.isfinite(e) for e in by_keep + by_names)


@pytest.mark.parametrize("keep", [1, 1.0, -0.1, 1.1, math.nan, "0.5", None])
def test_probabilities_without_a_guarantee_are_refused(keep: Any) -> None:
    with pytest.raises(PrivacyError, match="keep_probability"):
        _uniform(keep, 10)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"off_list": "kept"}, "off_list"),
        ({"off_list": None}, "off_list"),
        ({"consistency": "speaker"}, "consistency"),
        ({"mentions": -1}, "mentions"),
        ({"mentions": 1.5}, "mentions"),
        ({"words_per_mention": 0}, "words_per_mention"),
        ({"off_list": "mapped"}, "off_list"),
        ({"utterances_per_user": 0}, "utterances_per_user"),
        ({"utterances_per_user": 5, "consistency": "document"}, "utterances_per_user"),
    ],
)
def test_policies_without_a_guarantee_are_refused(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(PrivacyError, match=place):
        _uniform(0.5, 10, **changes)


def test_lists_that_are_none_are_refused() -> None:
    for names in (1, 0, -5, 2.0):
        with pytest.raises(PrivacyError, match="num_names"):
            _uniform(0.5, names)  # type: ignore[arg-type]
