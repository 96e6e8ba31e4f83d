"""Features of words: values that can be told by hand, and a slow twin of the agreement."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from privasr_k2.confidence.features import (
    FeatureSettings,
    agreement,
    hypothesis_weights,
    log_odds,
    word_features,
)
from privasr_k2.errors import DataError
from privasr_k2.randomness import stream
from privasr_k2.scoring.hypotheses import Weights
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList, NbestLists

SETTINGS = FeatureSettings(Weights(2.0, 0.5), 0.7, 1)
TIMES = ((0.1, 0.3), (0.8, 0.9), (0.9, 4.0))
SURE, DEPTHS = (0.5, 1.0, 0.2), (1.0, 2.0, 3.0)
HYP = Hypothesis(1, "a bcd ef", -3.0, {"graph": -1.0}, SURE, TIMES, depths=DEPTHS)
LOST = NbestList("u0", "", "s", "x", True, ())


def lists(*given: NbestList) -> NbestLists:
    places = {nbest.id: f"1.jsonl:{n}" for n, nbest in enumerate(given)}
    return NbestLists(Path("nbest"), given, places, ("graph",))


def test_every_feature_of_a_list_of_one() -> None:
    empty = Hypothesis(1, "", -1.0, {"graph": 0.0}, (), (), depths=())
    short = Hypothesis(1, "gh", 0.0, {"graph": 0.0}, (0.9,), ((5.0, 5.0),), depths=(1.5,))
    lm = np.array([-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0])  # a bcd ef </s>, </s>, gh </s>
    hyps = enumerate((HYP, empty, short), start=1)
    given = [NbestList(f"u{n}", "", "s", "x", False, (hyp,)) for n, hyp in hyps]
    found = word_features(lists(LOST, *given), {"n": lm}, SETTINGS)
    odds = log_odds(np.array([0.5, 1.0, 0.2, 0.9]))
    assert odds[:2] == pytest.approx([0.0, math.log(999)])
    expected = {
        "confidence": odds,
        "confidence_previous": odds[[0, 0, 1, 3]],
        "confidence_next": odds[[1, 2, 2, 3]],
        "confidence_around": [odds[:2].mean(), odds[:3].mean(), odds[1:3].mean(), odds[3]],
        "characters": np.log([1, 3, 2, 2]),
        "seconds": np.log([0.2, 0.1, 3.1, 0.01]),
        "frames_per_character": [20, 10 / 3, 155, 0.5],
        "pause_before": np.log([2.0, 0.5, 0.01, 2.0]),
        "pause_after": np.log([0.5, 0.01, 2.0, 2.0]),
        "depth": np.log([1, 2, 3, 1.5]),
        "agreement": [1, 1, 1, 1],
        "lm_n": [-1, -2, -3, -6],
        "lm_n_next": [-2, -3, -4, -7],
    }
    assert found.names == tuple(expected)
    for name, values in expected.items():
        assert found.column(name) == pytest.approx(np.array(values)), name
    assert found.best.all()


def test_what_lists_do_not_have_is_left_out() -> None:
    hyps = Hypothesis(1, "a b", 0.0, {}), Hypothesis(2, "a", 0.0, {})
    bare = NbestList("u1", "", "s", "x", False, hyps)
    found = word_features(lists(bare), {}, SETTINGS)
    assert found.names == ("characters", "agreement")
    assert found.best.tolist() == [True, True, False]
    with pytest.raises(DataError, match="recognized words, found none"):
        word_features(lists(LOST), {}, SETTINGS)


def test_weights_of_hypotheses() -> None:
    hyps = (Hypothesis(1, "a b", -1.0, {"graph": -2.0}), Hypothesis(2, "", -3.0, {"graph": -2.0}))
    # Totals -1 - 4 - 1 and -3 - 4.
    first, second = hypothesis_weights(hyps, SETTINGS)
    assert first / second == pytest.approx(math.exp(0.7 * 1.0))
    assert first + second == pytest.approx(1)


def slow_agreement(one: NbestList) -> list[float]:
    weights, found = hypothesis_weights(one.hyps, SETTINGS), []
    for hyp in one.hyps:
        for word, (start, end) in zip(hyp.words.split(), hyp.times or ()):
            share = 0.0
            for weight, other in zip(weights, one.hyps):
                places = zip(other.words.split(), other.times or ())
                share += weight * any(w == word and s < end and start < e for w, (s, e) in places)
            found.append(share)
    return found


@pytest.mark.parametrize("seed", range(6))
def test_agreement_is_the_weight_of_overlapping_equal_words(seed: int) -> None:
    generator = stream(seed, "lists")
    hyps = []
    for rank in range(1, 8):
        number = int(generator.integers(0, 6))
        edges = np.sort(generator.integers(0, 60, 2 * number)) * 0.03
        starts, ends = edges[::2], np.maximum(edges[1::2], edges[::2] + 0.001)
        said = " ".join(generator.choice(["a", "b", "c"], number))
        spans = tuple((round(float(s), 4), round(float(e), 4)) for s, e in zip(starts, ends))
        hyps.append(Hypothesis(rank, said, float(-rank), {"graph": 0.0}, times=spans))
    one = NbestList("u", "", "s", "", False, tuple(hyps))
    assert agreement(one, SETTINGS).tolist() == pytest.approx(slow_agreement(one))


def test_a_word_inserted_beside_itself_is_another_word() -> None:
    hyps = (Hypothesis(1, "a b", 0.0, {}), Hypothesis(2, "a a b", 0.0, {}))
    one = NbestList("u", "", "s", "", False, hyps)
    assert sorted(agreement(one, SETTINGS)[2:4].round(9).tolist())[0] < 1


def test_agreement_without_times_is_by_alignment() -> None:
    hyps = tuple(
        Hypothesis(rank, words, 0.0, {})
        for rank, words in enumerate(("a b c", "a c", "a x b c", "c"), start=1)
    )
    one = NbestList("u", "", "s", "", False, hyps)
    settings = FeatureSettings(Weights(1.0, 0.0), 1.0, 1)
    assert agreement(one, settings).tolist() == pytest.approx(
        [0.75, 0.5, 1.0, 0.75, 1.0, 0.75, 0.25, 0.5, 1.0, 1.0]
    )
