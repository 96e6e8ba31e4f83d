"""The exponential mechanism's draws: which number decides, where floats do not tell, bad input."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.exponential import ExponentialMechanism
from privasr_k2.randomness import NoiseStream, noise_stream


class Told(NoiseStream):
    """Gives the bytes that it is told to, and then the stream's."""

    def __init__(self, told: bytes) -> None:
        super().__init__(bytes(32))
        self.told, self.calls = told, 0

    def random_bytes(self, count: int) -> bytes:
        self.calls += 1
        given, self.told = self.told[:count], self.told[count:]
        return given + super().random_bytes(count - len(given))


def stream(name: str = "choices") -> NoiseStream:
    return noise_stream(bytes(32), name)


def decided(row: list[int], scale: float, uniform: float) -> int:
    """The first class whose sum of weights exceeds the uniform number's share, in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        weights = [(Decimal(u - max(row)) / Decimal(scale)).exp() for u in row]
        sums, point = Decimal(0), Decimal(uniform) * sum(weights)
        for i, weight in enumerate(weights):
            sums += weight
            if point < sums:
                return i
    return len(row) - 1


def test_the_uniform_number_decides_query_by_query():
    rng = np.random.default_rng(4)
    rows = [rng.integers(-9, 30, size=rng.integers(1, 7)).tolist() for _ in range(400)]
    mechanism, sizes = ExponentialMechanism(3.7), np.array([len(row) for row in rows])
    found = mechanism.choose(np.concatenate(rows), sizes, stream())
    uniform = stream().uniform(len(rows))
    assert found.tolist() == [decided(row, 3.7, u) for row, u in zip(rows, uniform)]


def test_exact_arithmetic_decides_as_floats_do(monkeypatch):
    """All draws by way of more bits: the first 53 decide in nearly all of them."""
    rng = np.random.default_rng(5)
    rows, sizes = rng.integers(0, 200, (300, 5)), np.full(300, 5)
    mechanism = ExponentialMechanism(40.0)
    quick = mechanism.choose(rows.ravel(), sizes, stream())
    choose = ExponentialMechanism._choose
    never = lambda *a: (choose(*a)[0], np.ones(300, bool))  # noqa: E731
    monkeypatch.setattr(ExponentialMechanism, "_choose", never)
    assert mechanism.choose(rows.ravel(), sizes, stream()).tolist() == quick.tolist()


@pytest.mark.parametrize(("rest", "winner"), [(0, 1), (2**64 - 1, 1)])
def test_a_draw_on_the_border_takes_more_bits(rest, winner):
    half = (2**63).to_bytes(8, "little")  # U = 1/2 and more, between two equal counts
    told = Told(half + rest.to_bytes(8, "little"))
    assert ExponentialMechanism(2.0).choose([7, 7], np.array([2]), told).tolist() == [winner]
    assert told.calls == (3 if rest == 0 else 2)  # 64 zeros more: still not certain
    below = Told((2**63 - 2**11).to_bytes(8, "little"))  # the last 53 bits below 1/2
    assert ExponentialMechanism(2.0).choose([7, 7], np.array([2]), below).tolist() == [0]
    assert below.calls == 2


def test_a_clear_draw_takes_none():
    told = Told((2**62).to_bytes(8, "little"))
    assert ExponentialMechanism(2.0).choose([7, 7], np.array([2]), told).tolist() == [0]
    assert told.calls == 1


def test_large_differences_and_hardly_any_noise():
    for scale in (1e-9, 1e-3, 1e12):
        rows = np.array([0, 2**51, -(2**51), 5, 5])
        found = ExponentialMechanism(scale).choose(rows, np.array([3, 2]), stream())
        assert found[0] == 1 and found[1] in (0, 1)
    assert ExponentialMechanism(1.0).choose([], np.zeros(0, int), stream()).tolist() == []


def test_the_event_is_the_spread_by_the_scale():
    assert ExponentialMechanism(8.0).event(spread=2) == events.bounded_range(0.25)


@pytest.mark.parametrize(
    ("utilities", "expected"), [([0.5, 1.0], "integers"), ([0, 2**52], "in size")]
)
def test_utilities_that_cannot_be(utilities, expected):
    with pytest.raises(PrivacyError, match=expected):
        ExponentialMechanism(1.0).choose(utilities, np.array([2]), stream())


def test_scales_and_generators_that_cannot_be():
    for scale in (0.0, -1.0, float("nan"), 1e13):
        with pytest.raises(PrivacyError, match="scale"):
            ExponentialMechanism(scale)
    with pytest.raises(PrivacyError, match="NoiseStream"):
        ExponentialMechanism(1.0).choose([1, 2], np.array([2]), np.random.default_rng(1))
