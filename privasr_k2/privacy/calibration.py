"""The inverse of accounting: the noise, or the number of rounds, for a target epsilon.

Only data-independent events can be calibrated. A bound that depends on private votes becomes
smallest without any noise, and choosing noise by it would itself be a look at private data.
"""

from __future__ import annotations

from collections.abc import Callable

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks, renyi
from privasr_k2.privacy.accounting import Relation, account, under
from privasr_k2.privacy.events import Event

_LEAST_NOISE, _MOST_NOISE = 1e-3, 1e6
_MOST_COUNT = 1 << 40
_PRECISION = 1e-4
_STEP = 1.25


def noise_for(
    make_event: Callable[[float], Event], *, epsilon: float, delta: float, relation: Relation
) -> float:
    """The least noise with which ``make_event(noise)`` stays within ``epsilon`` at ``delta``.

    Its epsilon must fall as the noise grows. The noise is rounded up by at most 0.01 %.

    Raises:
        PrivacyError: no noise between 0.001 and 1,000,000 does.

    >>> from privasr_k2.privacy.events import gaussian
    >>> target = dict(epsilon=1.0, delta=1e-5, relation=Relation.ADD_OR_REMOVE_ONE)
    >>> round(noise_for(gaussian, **target), 2)
    3.73
    """
    _check_target(epsilon, delta)

    def is_within(noise: float) -> bool:
        return account(make_event(noise), relation, delta).value <= epsilon

    high = _enough_by_rdp(make_event, epsilon, delta, relation)
    low = high / _STEP
    while is_within(low):  # by privacy loss distributions less may do; never the other way round
        low, high = low / _STEP, low
        if low < _LEAST_NOISE:
            return high
    while high / low > 1 + _PRECISION:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if is_within(middle) else (middle, high)
    return high


def _enough_by_rdp(
    make_event: Callable[[float], Event], epsilon: float, delta: float, relation: Relation
) -> float:
    """A noise that is enough by RDP, which is quick, and at most ``_STEP`` times too much."""

    def is_within(noise: float) -> bool:
        return renyi.epsilon(under(make_event(noise), relation), delta)[0] <= epsilon

    noise = 1.0
    while not is_within(noise):
        noise *= _STEP
        if noise > _MOST_NOISE:
            at = f"epsilon {epsilon:g} at delta {delta:g}"
            expected = f"a noise of at most {_MOST_NOISE:g}"
            way_out = "ask for fewer rounds or queries, or a larger epsilon"
            raise PrivacyError(at, expected, "none", way_out)
    while noise > _LEAST_NOISE and is_within(noise / _STEP):
        noise /= _STEP
    return noise


def count_for(
    make_event: Callable[[int], Event], *, epsilon: float, delta: float, relation: Relation
) -> int:
    """The most rounds with which ``make_event(count)`` stays within ``epsilon``; 0 for none.

    >>> from privasr_k2.privacy.events import gaussian, repeated
    >>> target = dict(epsilon=1.0, delta=1e-5, relation=Relation.ADD_OR_REMOVE_ONE)
    >>> count_for(lambda count: repeated(gaussian(40.0), count), **target)
    114
    """
    _check_target(epsilon, delta)

    def is_within(count: int) -> bool:
        return account(make_event(count), relation, delta).value <= epsilon

    if not is_within(1):
        return 0
    low, high = 1, 2
    while is_within(high):
        low, high = high, 2 * high
        if high > _MOST_COUNT:
            at, found = f"epsilon {epsilon:g} at delta {delta:g}", f"none up to {_MOST_COUNT:,}"
            way_out = "far more noise than needed: take less"
            raise PrivacyError(at, "a count that reaches it", found, way_out)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_within(middle) else (low, middle)
    return low


def _check_target(epsilon: float, delta: float) -> None:
    checks.number("epsilon", epsilon, above=0)
    checks.number("delta", delta, above=0, below=1)
