"""Sparse vector: what passes, ends and is not asked; events of both kinds; bad numbers."""

from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.sparse_vector import ENDED, NOT_ASKED, PASSED, SparseVector


def made(**changes: object) -> SparseVector:
    values = dict(threshold=50, threshold_scale=0.05, count_scale=0.05, most=2)
    return SparseVector(**{**values, **changes})


def test_hardly_any_noise_says_which_counts_are_at_the_threshold():
    counts = np.array([90, 50, 49, 60, 10, 90, 10])
    wanted = [PASSED, PASSED, ENDED, PASSED, ENDED, NOT_ASKED, NOT_ASKED]
    assert made().passed(counts).tolist() == wanted
    every = made(most=9).passed(counts).tolist()
    assert every == [PASSED, PASSED, ENDED, PASSED, ENDED, PASSED, ENDED]
    assert made().passed([]).tolist() == []


def test_each_run_has_a_threshold_of_its_own_and_keeps_it():
    """Hardly any noise on counts: where one passes, all that are equal pass behind it."""
    noisy, ended = made(threshold_scale=20.0, count_scale=1e-3, most=400), []
    for _ in range(40):
        found = noisy.passed(np.full(30, 50))
        ended.append(int((found == ENDED).sum()))
        assert found.tolist() == [ENDED] * ended[-1] + [PASSED] * (30 - ended[-1])
    assert 0 in ended and max(ended) > 0


def test_events():
    some = dict(threshold_scale=10.0, count_scale=20.0, most=7)
    one_way, either_way = (made(**some).event(one_way=way) for way in (True, False))
    assert one_way == events.repeated(events.bounded_range(0.2), 7)
    assert either_way == events.repeated(events.pure(0.2), 7)


@pytest.mark.parametrize(
    ("key", "value"),
    [("threshold", 0.5), ("threshold_scale", 0.0), ("count_scale", float("nan")), ("most", 0)],
)
def test_numbers_that_cannot_be(key, value):
    with pytest.raises(PrivacyError, match=key):
        made(**{key: value})
    with pytest.raises(PrivacyError, match="integers"):
        made().passed([0.5])
