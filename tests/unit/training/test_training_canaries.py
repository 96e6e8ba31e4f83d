"""CanaryGradients of an audit are one coordinate each, or one in each layer."""

from __future__ import annotations

import pytest
import torch

from privasr_k2.training.canaries import CanaryGradients, layers_for
from privasr_k2.training.unit_sum import LayerSum


def test_marks_are_one_coordinate_each():
    made = CanaryGradients([7, 2], 9, 3.0)
    assert sorted(made) == ["mark-000000002", "mark-000000007"] and len(made) == 2
    assert made["mark-000000007"].nonzero().tolist() == [[7]] and made["mark-000000007"].norm() == 3
    with pytest.raises(KeyError):
        made["anna"]


def test_clipped_by_layer_marks_are_as_long_as_the_clip_and_share_no_coordinate():
    layers, numbers = [4, 6, 4], [0, 3]
    starts, size = layers_for(2, layers)
    made = CanaryGradients(numbers, sum(layers), 1.0, starts)
    places = [gradient.nonzero().flatten().tolist() for gradient in made.values()]
    assert places == [[0, 4, 10], [3, 7, 13]] and size == 4
    for gradient, own in zip(made.values(), places):
        total = LayerSum([[size] for size in layers], 0.5, torch.device("cpu"))
        total.add([part.unsqueeze(0) for part in gradient.split(layers)])
        clipped = total.values()
        assert float(clipped.norm()) == pytest.approx(0.5)
        assert float(clipped[own].sum()) == pytest.approx(0.5 * 3**0.5)


@pytest.mark.parametrize(
    ("marks", "expected"), [(5, ([4], 6)), (7, ([4], 6)), (4, ([0, 4], 4)), (1, ([0, 4, 10], 2))]
)
def test_layers_with_fewer_values_than_marks_have_none(marks, expected):
    assert layers_for(marks, [4, 6, 2]) == expected
