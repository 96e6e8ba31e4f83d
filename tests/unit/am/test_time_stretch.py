"""Changed tempo: the same course of features in another number of frames."""

from __future__ import annotations

import numpy as np
import torch

from privasr_k2.am.time_stretch import time_stretch
from tests.support.small_am import features


def generator(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_it_is_numpys_interpolation():
    x, lengths = features(40, 25, 1)
    y, wanted = time_stretch(x, lengths, 0.2, generator())
    for row, (old, new) in enumerate(zip(lengths.tolist(), wanted.tolist(), strict=True)):
        places = np.linspace(0, old - 1, new)
        for feature in range(5):
            expected = np.interp(places, np.arange(old), x[row, :old, feature])
            np.testing.assert_allclose(y[row, :new, feature], expected, atol=1e-4)
        assert not y[row, new:].any()
    assert y.size(1) == int(wanted.max())


def test_durations_fill_their_range():
    x, lengths = features(*[100] * 300, dim=1)
    _, wanted = time_stretch(x, lengths, 0.1, generator())
    assert wanted.min() == 90 and wanted.max() == 110
    assert abs(float(wanted.float().mean()) - 100) < 1


def test_nothing_asked_nothing_done():
    x, lengths = features(30, 12)
    y, wanted = time_stretch(x, lengths, 0.0, generator())
    torch.testing.assert_close(y, x)
    assert torch.equal(wanted, lengths)


def test_same_generator_same_tempo():
    x, lengths = features(30, 12)
    one, two = (time_stretch(x, lengths, 0.2, generator(2))[0] for _ in range(2))
    assert torch.equal(one, two)
