"""SpecAugment: how much is masked, with what, and that it can be repeated."""

from __future__ import annotations

import pytest
import torch

from privasr_k2.am.specaugment import SpecAugment, SpecAugmentConfig
from privasr_k2.am.specaugment import masked as mask
from tests.support.small_am import features

ON = dict(time_masks_per_second=3.0, time_width=10, max_time_share=0.4)
ON |= dict(frequency_masks=2, frequency_width=3)


def masked(
    config: dict[str, float],
    x: torch.Tensor,
    lengths: torch.Tensor,
    seed: int = 1,
    frame_shift: float = 0.01,
) -> torch.Tensor:
    masks = SpecAugment(SpecAugmentConfig(**config), frame_shift=frame_shift)
    return mask(x, lengths, masks(x, lengths, torch.Generator().manual_seed(seed)))


def test_same_generator_same_masks():
    x, lengths = features(100, 60, dim=20)
    assert torch.equal(masked(ON, x, lengths), masked(ON, x, lengths))
    assert not torch.equal(masked(ON, x, lengths), masked(ON, x, lengths, seed=2))


def test_masks_hold_the_mean_and_leave_padding():
    x, lengths = features(100, 60, dim=20)
    y = masked(ON, x, lengths)
    assert torch.equal(y[1, 60:], x[1, 60:])
    changed = y != x
    assert changed.any()
    for row, length in enumerate(lengths.tolist()):
        mean = x[row, :length].mean(0).expand_as(x[row])
        torch.testing.assert_close(y[row][changed[row]], mean[changed[row]])


def test_time_masks_cover_whole_frames_up_to_their_share():
    x, lengths = features(*[200] * 50, dim=4)
    changed = masked({**ON, "frequency_masks": 0, "max_time_share": 0.2}, x, lengths) != x
    assert torch.equal(changed.all(2), changed.any(2))
    share = changed.any(2).float().mean(1)
    assert 0.05 < float(share.mean()) < 0.2 and float(share.max()) <= 0.2


def test_frequency_masks_cover_whole_bands():
    x, lengths = features(*[30] * 200, dim=12)
    changed = masked({**ON, "time_masks_per_second": 0, "frequency_masks": 1}, x, lengths) != x
    assert torch.equal(changed.all(1), changed.any(1))
    widths = changed.any(1).sum(1)
    assert set(widths.tolist()) == {0, 1, 2, 3}
    assert (changed.any(1).sum(0) > 0).all()  # every feature is reached


def test_masks_are_counted_by_seconds():
    x, lengths = features(*[400] * 50, dim=4)
    one = {**ON, "frequency_masks": 0, "time_masks_per_second": 1.0}
    longer = masked(one, x, lengths, frame_shift=0.02)
    assert torch.equal(longer, masked({**one, "time_masks_per_second": 2.0}, x, lengths))
    assert (longer != x).sum() > 1.5 * (masked(one, x, lengths) != x).sum()


def test_nothing_asked_nothing_done():
    x, lengths = features(30, dim=4)
    off = {**ON, "time_masks_per_second": 0, "frequency_masks": 0}
    assert torch.equal(masked(off, x, lengths), x)


@pytest.mark.parametrize("bad", [{"max_time_share": 1.5}, {"time_width": -1}])
def test_bad_numbers_are_named(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        SpecAugmentConfig(**{**ON, **bad})
