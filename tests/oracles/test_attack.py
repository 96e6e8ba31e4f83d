"""Attacks against enumeration, closed forms, Kaldi's own features, and many repetitions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from privasr_k2.attack.inversion import invert
from privasr_k2.attack.pictures import mel_spectrogram
from privasr_k2.attack.settings import InversionConfig
from privasr_k2.attack.vote_audit import coins_epsilon, composed_bound
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.randomness import stream
from tests.support.attack_small import background, loaded


def divergence(first: float, second: float, flips: int, epsilon: float) -> float:
    """The larger hockey-stick divergence of all outcomes of independent coins, one by one."""
    sums = [0.0, 0.0]
    for outcome in product((True, False), repeat=flips):
        p = np.prod([first if heads else 1 - first for heads in outcome])
        q = np.prod([second if heads else 1 - second for heads in outcome])
        sums[0] += max(0.0, p - np.exp(epsilon) * q)
        sums[1] += max(0.0, q - np.exp(epsilon) * p)
    return float(max(sums))


@pytest.mark.parametrize("pair", [(0.6, 0.4), (0.9, 0.2), (0.30, 0.01), (0.99, 0.7)])
@pytest.mark.parametrize("delta", [1e-5, 0.05])
def test_epsilon_of_coins_is_that_of_all_outcomes(pair: tuple[float, float], delta: float) -> None:
    for flips in (1, 2, 7):
        found = coins_epsilon(*pair, flips, delta)
        assert divergence(*pair, flips, found + 1e-6) < delta
        if found > 0:
            assert divergence(*pair, flips, max(0.0, found - 1e-6)) > delta


def test_coins_are_randomized_response() -> None:
    """An answer that a fair coin replaces with probability 0.6: a coin of 0.7 against 0.3."""
    event = events.repeated(events.randomized_response(0.6, 2), 30)
    told = account(event, Relation.REPLACE_ONE, 1e-4)
    assert told.pld is not None
    assert 0.99 * told.pld < coins_epsilon(0.7, 0.3, 30, 1e-4) <= told.pld  # which rounds losses up


def test_the_composed_bound_errs_as_rarely_as_it_says() -> None:
    rng, true = stream(1, "coverage"), coins_epsilon(0.55, 0.45, 50, 1e-5)
    first, second = rng.binomial(2000, [[0.55], [0.45]], size=(2, 100))
    given = {"draws": 2000, "answers": 50, "delta": 1e-5, "confidence": 0.9}
    counts = zip(first.tolist(), second.tolist())
    bounds = [composed_bound(*pair, **given).epsilon_lower for pair in counts]
    wrong = np.mean(np.array(bounds) > true)
    assert wrong <= 0.1 + 3 * (0.09 / 100) ** 0.5  # and it is not idle:
    assert np.mean(bounds) > true / 2


class Bowl:
    """A likelihood with one maximum: -weight mean((x - peak)^2)."""

    models = ()

    def __init__(self, peak: np.ndarray, weight: float) -> None:
        self.peak, self.weight = torch.from_numpy(peak).float(), weight

    def fewest_frames(self, tokens: list[int]) -> int:
        """Any length will do."""
        return 1

    def log_likelihoods(self, features: torch.Tensor, tokens: list[int]) -> torch.Tensor:
        """(N,) of (N, T, F)."""
        return -self.weight * (features - self.peak).square().mean((1, 2)).double()


@pytest.mark.parametrize("attack", ["white_box", "black_box"])
def test_the_maximum_a_posteriori_is_found(attack: str) -> None:
    """With z standard normal a priori it is peak weight / (weight + prior), everywhere."""
    peak = np.outer(np.cos(np.linspace(0, 3, 12)), [1.0, -2.0, 0.5])
    settings = (
        "prior=2.0 smoothness=0.0 jitter=0.0 lr=0.02 steps=800 queries=40001 population=20"
        " spread=0.05 components_per_second=100"
    )
    config = loaded(InversionConfig, "inversion", f"attack={attack}", *settings.split())
    found = invert(Bowl(peak, 6.0), "x", [1], background(3, x=12), config, "cpu")  # type: ignore[arg-type]
    assert np.abs(found.features - 0.75 * peak).max() < (0.01 if attack == "white_box" else 0.2)
    exact = -6.0 * np.square(0.25 * peak).mean()
    assert found.log_likelihood == pytest.approx(exact, abs=0.05)


def test_cepstra_of_kaldi_become_its_log_mels() -> None:
    knf = pytest.importorskip("kaldi_native_fbank")
    samples = 0.1 * np.random.default_rng(0).normal(size=8000)

    def computed(options: object, kind: type) -> np.ndarray:
        options.frame_opts.samp_freq = 16000  # type: ignore[attr-defined]
        options.frame_opts.dither = 0.0  # type: ignore[attr-defined]
        options.mel_opts.num_bins = 23  # type: ignore[attr-defined]
        computer = kind(options)
        computer.accept_waveform(16000, samples.tolist())
        computer.input_finished()
        return np.stack([computer.get_frame(t) for t in range(computer.num_frames_ready)])

    cepstral = knf.MfccOptions()
    cepstral.num_ceps, cepstral.use_energy = 23, False
    mels = computed(knf.FbankOptions(), knf.OnlineFbank)
    back = mel_spectrogram(computed(cepstral, knf.OnlineMfcc), mel_bins=23, lifter=22.0)
    assert np.abs(back - mels).max() < 1e-3
