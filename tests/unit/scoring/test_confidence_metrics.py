"""Metrics of confidences against slow twins and scikit-learn, and their draws of speakers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from privasr_k2.randomness import stream
from privasr_k2.scoring.confidence_metrics import (
    AUC,
    ECE_MASS,
    ECE_WIDTH,
    METRICS,
    NCE,
    ConfidenceSums,
    MetricOptions,
    draw_metrics,
    mass_bins,
    width_bins,
)

OPTIONS = MetricOptions(clip=0.01, num_bins=7, num_replicates=300, confidence=0.9, seed=1)


def slow_nce(confidences: Sequence[float], correct: Sequence[bool], clip: float) -> float:
    share, bits = sum(correct) / len(correct), 0.0
    for c, right in zip(confidences, correct):
        c = min(max(c, clip), 1 - clip)
        bits -= math.log2(c if right else 1 - c)
    most = -sum(math.log2(share if right else 1 - share) for right in correct)
    return (most - bits) / most


def slow_ece(confidences: Sequence[float], correct: Sequence[bool], bins: Sequence[int]) -> float:
    gaps = 0.0
    for number in set(bins):
        inside = [n for n, bin_ in enumerate(bins) if bin_ == number]
        mean = sum(confidences[n] for n in inside) / len(inside)
        gaps += len(inside) * abs(mean - sum(correct[n] for n in inside) / len(inside))
    return gaps / len(bins)


def slow_auc(confidences: Sequence[float], correct: Sequence[bool]) -> float:
    right = [c for c, yes in zip(confidences, correct) if yes]
    wrong = [c for c, yes in zip(confidences, correct) if not yes]
    return sum((r > w) + 0.5 * (r == w) for r in right for w in wrong) / (len(right) * len(wrong))


def words(
    seed: int, number: int = 400, digits: int = 2
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Confidences with ties, 0 and 1 among them, whether words are correct, and six speakers."""
    generator = stream(seed, "words")
    confidences = generator.beta(2, 0.6, number).round(digits)
    confidences[:3] = [0.0, 1.0, 1.0]
    correct = generator.random(number) < 0.2 + 0.7 * confidences
    return confidences, correct, generator.integers(0, 6, number)


@pytest.mark.parametrize("seed", range(4))
def test_metrics_of_all_words(seed: int) -> None:
    from sklearn.metrics import roc_auc_score

    confidences, correct, speakers = words(seed)
    sums = ConfidenceSums(confidences, correct, speakers, 6, OPTIONS)
    found = {name: float(v[0]) for name, v in sums.metrics(np.ones((1, 6))).items()}
    plain = confidences.tolist(), correct.tolist()
    assert found[NCE] == pytest.approx(slow_nce(*plain, OPTIONS.clip))
    assert found[ECE_WIDTH] == pytest.approx(
        slow_ece(*plain, [min(int(c * 7), 6) for c in plain[0]])
    )
    assert found[ECE_MASS] == pytest.approx(slow_ece(*plain, mass_bins(confidences, 7).tolist()))
    assert found[AUC] == pytest.approx(slow_auc(*plain))
    assert found[AUC] == pytest.approx(roc_auc_score(correct, confidences))


def test_a_draw_is_what_its_words_give() -> None:
    """Speaker 0 three times, 2 once, 4 twice: as if their words stood there so often."""
    confidences, correct, speakers = words(7)
    sums = ConfidenceSums(confidences, correct, speakers, 6, OPTIONS)
    found = {name: float(v[0]) for name, v in sums.metrics(np.array([[3, 0, 1, 0, 2, 0]])).items()}
    taken = np.concatenate([np.flatnonzero(speakers == s) for s in (0, 0, 0, 2, 4, 4)])
    plain = confidences[taken].tolist(), correct[taken].tolist()
    assert found[NCE] == pytest.approx(slow_nce(*plain, OPTIONS.clip))
    assert found[AUC] == pytest.approx(slow_auc(*plain))
    # The bins stay those of all words.
    for name, bins in (
        (ECE_WIDTH, width_bins(confidences, 7)),
        (ECE_MASS, mass_bins(confidences, 7)),
    ):
        assert found[name] == pytest.approx(slow_ece(*plain, bins[taken].tolist()))


def test_blocks_of_speakers_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    confidences, correct, speakers = words(3)
    whole = ConfidenceSums(confidences, correct, speakers, 6, OPTIONS).wins
    monkeypatch.setattr("privasr_k2.scoring.confidence_metrics._BLOCK", 1)
    assert np.array_equal(ConfidenceSums(confidences, correct, speakers, 6, OPTIONS).wins, whole)


def test_bins_of_equally_many_words() -> None:
    assert np.bincount(mass_bins(np.linspace(0, 1, 100), 4)).tolist() == [25, 25, 25, 25]
    assert mass_bins(np.array([0.2, 0.2, 0.2, 0.9]), 4).tolist() == [1, 1, 1, 3]
    # Nine of ten words have one confidence: they are in one bin.
    bins = mass_bins(np.array([0.5, *[1.0] * 9]), 5)
    assert len(set(bins[1:].tolist())) == 1 and bins[0] < bins[1] < 5


def test_what_the_ends_are_worth() -> None:
    correct, speakers = np.array([True, True, True, False]), np.zeros(4, dtype=int)
    share = ConfidenceSums(np.full(4, 0.75), correct, speakers, 1, OPTIONS).metrics(np.ones((1, 1)))
    assert share[NCE][0] == pytest.approx(0) and share[AUC][0] == 0.5 and share[ECE_WIDTH][0] == 0
    certain = correct.astype(float)
    oracle = ConfidenceSums(certain, correct, speakers, 1, OPTIONS).metrics(np.ones((1, 1)))
    assert oracle[NCE][0] == pytest.approx(1, abs=0.02)
    assert oracle[AUC][0] == 1
    assert oracle[ECE_MASS][0] == 0
    all_right = ConfidenceSums(np.full(2, 0.5), np.ones(2), speakers[:2], 1, OPTIONS)
    none = all_right.metrics(np.ones((1, 1)))
    assert math.isnan(none[NCE][0]) and math.isnan(none[AUC][0])


def test_intervals_and_differences_on_the_same_draws() -> None:
    confidences, correct, speakers = words(5)
    better = np.clip(confidences + 0.2 * (correct - 0.5), 0, 1)
    several = (confidences, better, confidences)
    systems = [ConfidenceSums(values, correct, speakers, 6, OPTIONS) for values in several]
    drawn = draw_metrics(systems, stream(1, "draws"), OPTIONS.num_replicates)
    for metric, measured in drawn[0].measured(0.9).items():
        assert measured.interval is not None, metric
        assert measured.interval.low < measured.value < measured.interval.high or metric.startswith(
            "ece"
        )
    same = drawn[2].measured(0.9, drawn[0])
    assert all(
        m.value == 0 and m.interval is not None and m.interval.high == 0 for m in same.values()
    )
    difference = drawn[1].measured(0.9, drawn[0])[AUC]
    assert difference.interval is not None and 0 < difference.interval.low < difference.value
    for number in (1, 5):
        few = ConfidenceSums(confidences, correct, speakers % number, number, OPTIONS)
        [measured] = draw_metrics([few], stream(1, "x"), 10)
        assert [measured.measured(0.9)[metric].interval for metric in METRICS] == [None] * 4


@pytest.mark.parametrize(
    ("wrong", "message"), [(1.5, "lie in"), (-0.1, "lie in"), (None, "no words")]
)
def test_what_is_refused(wrong: float | None, message: str) -> None:
    values = np.zeros(0) if wrong is None else np.array([wrong])
    with pytest.raises(ValueError, match=message):
        ConfidenceSums(values, values > 0, np.zeros(len(values), dtype=int), 1, OPTIONS)
    with pytest.raises(ValueError, match="clip"):
        MetricOptions(0.5, 1, 1, 0.5, 1)
