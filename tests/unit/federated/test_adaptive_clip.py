"""The clip that follows a quantile of the norms."""

from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.federated.adaptive_clip import QuantileClip, noise_of_sum
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.events import gaussian


def test_the_sum_and_the_bits_cost_what_is_claimed() -> None:
    """Both as one vector, each by its own noise: the squares of sensitivity by sigma add up."""
    of_sum = noise_of_sum(1.2, 3.0)
    assert (1 / of_sum**2 + (0.5 / 3.0) ** 2) ** -0.5 == pytest.approx(1.2)
    both = gaussian((1 / of_sum**2 + (0.5 / 3.0) ** 2) ** -0.5)
    epsilons = [account(e, Relation.ADD_OR_REMOVE_ONE, 1e-5).value for e in (both, gaussian(1.2))]
    assert epsilons[0] == pytest.approx(epsilons[1], rel=1e-6)
    with pytest.raises(ValueError, match="count_noise"):
        noise_of_sum(1.2, 0.6)


def test_the_clip_finds_its_quantile() -> None:
    norms = np.random.default_rng(1).lognormal(size=4000)
    clip, rule = 0.01, QuantileClip(0.7, 0.3, 1.0)
    for _ in range(60):
        clip = rule.next_clip(clip, float(np.where(norms <= clip, 0.5, -0.5).sum()), 4000)
    assert clip == pytest.approx(np.quantile(norms, 0.7), rel=0.02)
