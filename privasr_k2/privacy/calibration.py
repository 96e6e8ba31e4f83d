"""The inverse of accounting: how much noise a target epsilon asks for, and how many rounds it
allows.

Only data-independent events can be calibrated. A bound that depends on the votes of private
teachers becomes smallest without any noise, and choosing noise by it would itself be a look at
private data.
"""

from __future__ import annotations

from collections.abc import Callable

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks, renyi
from privasr_k2.privacy.accounting import Epsilon, Relation, account, under
from privasr_k2.privacy.events import Event

_LEAST_NOISE, _MOST_NOISE = 1e-3, 1e6
_MOST_COUNT = 1 << 40
_PRECISION = 1e-4
_STEP = 1.25


def noise_for(
    make_event: Callable[[float], Event],
    *,
    epsilon: float,
    delta: float,
    relation: Relation,
    by_rdp: bool = False,
) -> float:
    """The least noise with which ``make_event(noise)`` stays within ``epsilon`` at ``delta``.

    Args:
        make_event: gives the event for a noise; its epsilon must fall as the noise grows.
        by_rdp: within the epsilon by RDP instead of the tighter of both.

    Returns:
        the noise, rounded up by at most 0.01 %.

    Raises:
        PrivacyError: no noise between 0.001 and 1,000,000 does.

    >>> from privasr_k2.privacy.events import gaussian
    >>> target = dict(epsilon=1.0, delta=1e-5, relation=Relation.ADD_OR_REMOVE_ONE)
    >>> round(noise_for(gaussian, **target), 2)
    3.73
    """
    _check_target(epsilon, delta)

    def is_within(noise: float) -> bool:
        return _value(account(make_event(noise), relation, delta), by_rdp) <= epsilon

    high = _enough_by_rdp(make_event, epsilon, delta, relation)
    low = high / _STEP
    while is_within(low):  # where not by_rdp, less may do; never the other way round
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
            raise PrivacyError(
                f"epsilon {epsilon:g} at delta {delta:g}",
                f"a noise of at most {_MOST_NOISE:g} that reaches it",
                "none",
                "ask for fewer rounds or queries, or a larger epsilon",
            )
    while noise > _LEAST_NOISE and is_within(noise / _STEP):
        noise /= _STEP
    return noise


def count_for(
    make_event: Callable[[int], Event],
    *,
    epsilon: float,
    delta: float,
    relation: Relation,
    by_rdp: bool = False,
) -> int:
    """The most rounds or queries with which ``make_event(count)`` stays within ``epsilon`` at
    ``delta``.

    Returns:
        0 where not even one does.

    >>> from privasr_k2.privacy.events import gaussian, repeated
    >>> target = dict(epsilon=1.0, delta=1e-5, relation=Relation.ADD_OR_REMOVE_ONE)
    >>> count_for(lambda count: repeated(gaussian(40.0), count), **target)
    114
    """
    _check_target(epsilon, delta)

    def is_within(count: int) -> bool:
        return _value(account(make_event(count), relation, delta), by_rdp) <= epsilon

    if not is_within(1):
        return 0
    low, high = 1, 2
    while is_within(high):
        low, high = high, 2 * high
        if high > _MOST_COUNT:
            raise PrivacyError(
                f"epsilon {epsilon:g} at delta {delta:g}",
                "a count that reaches it",
                f"none up to {_MOST_COUNT:,}",
                "there is far more noise than this target needs: take less",
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_within(middle) else (low, middle)
    return low


def _check_target(epsilon: float, delta: float) -> None:
    checks.number("epsilon", epsilon, above=0)
    checks.number("delta", delta, above=0, below=1)


def _value(found: Epsilon, by_rdp: bool) -> float:
    return found.rdp if by_rdp else found.value
