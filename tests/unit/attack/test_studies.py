"""Perturbed losses and the blind baseline: what finds whom, and what finds nobody."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from privasr_k2.attack.blind import Described, blind_scores, paired_difference
from privasr_k2.attack.perturbed import loss_rise, moments, noisy, silenced
from privasr_k2.attack.settings import MembershipConfig
from privasr_k2.attack.studies import Side, study
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.privacy.audit.membership import roc
from tests.support.attack_small import loaded


def config(*overrides: str) -> MembershipConfig:
    return loaded(MembershipConfig, "membership", *overrides)


def described(prefix: str, number: int, shift: float, seed: int) -> dict[str, Described]:
    """Units, two of each speaker, whose speech is ``shift`` deviations away."""
    rng = np.random.default_rng(seed)
    return {
        f"{prefix}{n:02}": Described(shift + rng.normal(size=6), f"{prefix}-person{n // 2}")
        for n in range(number)
    }


def auc(scores: tuple[np.ndarray, np.ndarray]) -> float:
    return roc(*scores).auc


def test_the_blind_baseline_tells_what_differs_and_nothing_else() -> None:
    settings = dict(folds=5, seed=1)
    others = described("o", 80, 0.0, 1)
    assert auc(blind_scores(described("m", 80, 2.0, 2), others, **settings)) > 0.95
    assert abs(auc(blind_scores(described("m", 80, 0.0, 3), others, **settings)) - 0.5) < 0.15


def test_a_voice_that_stands_in_the_data_twice_teaches_nothing() -> None:
    """Each person has a voice of their own; only who was seen with a label is told by it."""
    rng = np.random.default_rng(0)

    def people(prefix: str) -> dict[str, Described]:
        voices = 3 * rng.normal(size=(40, 80))
        return {
            f"{prefix}{n}-{k}": Described(voices[n] + 0.1 * rng.normal(size=80), f"{prefix}{n}")
            for n, k in product(range(40), range(4))
        }

    sides, settings = (people("m"), people("o")), dict(folds=5, seed=1)
    assert abs(auc(blind_scores(*sides, **settings)) - 0.5) < 0.15
    # Were utterances dealt to folds, it would know each voice with its label.
    alone = [{name: Described(one.values, name) for name, one in of.items()} for of in sides]
    assert auc(blind_scores(*alone, **settings)) > 0.85


def test_the_blind_baseline_needs_speakers() -> None:
    with pytest.raises(DataError, match="2 speakers of members"):
        blind_scores(described("m", 4, 0, 1), described("o", 80, 0, 1), folds=3, seed=1)
    with pytest.raises(ConfigError, match="folds"):
        config("folds=1")


def test_paired_intervals_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(4)
    attack = rng.normal(size=9) + 1, rng.normal(size=7).round(0)
    blind = rng.normal(size=9).round(0), rng.normal(size=7)
    whose = list("aabcddeff"), list("uuvwxyz")
    draws = dict(replicates=4000, confidence=0.9, seed=1)
    found = paired_difference(attack, blind, whose, **draws)
    assert found.difference == pytest.approx(auc(attack) - max(auc(blind), 0.5))
    slow = []
    for _ in range(4000):
        places = []
        for names in whose:
            people = sorted(set(names))
            drawn = rng.choice(people, size=len(people))
            places.append([n for person in drawn for n, name in enumerate(names) if name == person])
        pairs = [tuple(side[at] for side, at in zip(of, places)) for of in (attack, blind)]
        slow.append(auc(pairs[0]) - max(auc(pairs[1]), 0.5))  # type: ignore[arg-type]
    assert (found.low, found.high) == pytest.approx(np.quantile(slow, [0.05, 0.95]), abs=0.03)
    assert found.speakers == 6
    five = paired_difference(attack, blind, (list("aabcddeee"), whose[1]), **draws)
    assert five.difference == found.difference
    assert (five.low, five.high, five.speakers) == (None, None, 5)


def scores(features: torch.Tensor, lengths: torch.Tensor, hyps: object) -> np.ndarray:
    """Of two models that want features of 0: the second one's loss rises faster."""
    inside = torch.arange(features.size(1)) < lengths[:, None]
    energy = (features.square().sum(2) * inside).sum(1) / lengths
    return -torch.stack([energy, 10 * energy]).unsqueeze(2).numpy()


def test_noise_raises_the_loss_by_its_power_whatever_the_padding() -> None:
    rng = torch.Generator().manual_seed(1)
    features = torch.randn(2, 400, 3, generator=rng) * torch.tensor([1.0, 2.0, 3.0])
    features[1, 300:] = 1e6  # padding
    lengths = torch.tensor([400, 300])
    _, deviation = moments(features, lengths)
    assert deviation[1, 0].numpy() == pytest.approx(features[1, :300].std(0, False).numpy(), 1e-4)
    clean = scores(features, lengths, None)
    loud = noisy(scores, strength=0.5, copies=30, seed=1)(features, lengths, [])
    power = 0.25 * deviation.square().sum((1, 2)).numpy()
    assert (clean - loud)[0, :, 0] == pytest.approx(power, rel=0.05)
    again = noisy(scores, strength=0.5, copies=30, seed=1)(features, lengths, [])
    assert (again == loud).all()


def test_silenced_speech_tells_nothing_of_its_order() -> None:
    heard = []

    def listen(features: torch.Tensor, lengths: torch.Tensor, hyps: object) -> np.ndarray:
        heard.append(features)
        return np.zeros((1, len(features), 1))

    ramp = torch.linspace(-1, 1, 2000).reshape(1, -1, 1)
    silenced(listen, seed=1)(ramp, torch.tensor([2000]), [])
    [noise] = heard
    assert abs(float(np.corrcoef(noise.flatten(), ramp.flatten())[0, 1])) < 0.1
    assert float(noise.std()) == pytest.approx(float(ramp.std()), rel=0.1)


def sides(gain: float, rise: float) -> tuple[Side, Side]:
    """Thirty units a side; members gain in the attacked model, and their losses rise faster."""
    rng = np.random.default_rng(7)

    def side(prefix: str, inside: float) -> Side:
        names = [f"{prefix}{n}" for n in range(30)]
        hard = 5 * rng.normal(size=(30, 1))
        losses = hard + rng.normal(size=(30, 2)) - inside * gain * np.array([1.0, 0.0])
        rises = hard + rng.normal(size=(30, 2)) + inside * rise * np.array([1.0, 0.0])
        seen = {name: Described(rng.normal(size=4), name) for name in names}
        return Side(dict(zip(names, losses)), dict(zip(names, rises)), seen)

    return side("m", 1.0), side("o", 0.0)


@pytest.mark.parametrize(("gain", "rise"), [(6.0, 0.0), (0.0, 6.0), (0.0, 0.0)])
def test_a_model_that_remembers_is_found_beyond_the_blind_baseline(
    gain: float, rise: float
) -> None:
    found = study(*sides(gain, rise), ["am"], config("folds=5"), reference=True)
    of = found["models"]["am"]
    for told, effect in ((of, gain), (of["perturbed"], rise)):
        low, high = told["beyond_blind_interval"]
        baseline = max(found["blind"]["auc"], 0.5)
        assert told["beyond_blind"] == pytest.approx(told["auc"] - baseline)
        if effect:
            assert told["auc"] > 0.95 and low > 0.2
        else:
            assert abs(told["auc"] - 0.5) < 0.2 and low < 0.1 < high + 0.3


def test_rises_are_means_over_strengths_of_units_that_all_have() -> None:
    clean = {"a": np.array([1.0, 2.0]), "b": np.array([0.0, 0.0])}
    found = loss_rise(clean, [{"a": np.array([2.0, 2.0]), "b": np.zeros(2)}, {"a": np.ones(2) * 4}])
    assert found.keys() == {"a"} and found["a"].tolist() == [2.0, 1.0]
