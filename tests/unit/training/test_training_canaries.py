"""CanaryGradients of an audit are one coordinate each."""

from __future__ import annotations

import pytest

from privasr_k2.training.canaries import CanaryGradients


def test_marks_are_one_coordinate_each():
    made = CanaryGradients([7, 2], 9, 3.0)
    assert sorted(made) == ["mark-000000002", "mark-000000007"] and len(made) == 2
    assert made["mark-000000007"].nonzero().tolist() == [[7]] and made["mark-000000007"].norm() == 3
    with pytest.raises(KeyError):
        made["anna"]
