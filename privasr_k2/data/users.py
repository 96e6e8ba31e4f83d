"""Which users (speakers) go where."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from privasr_k2.randomness import stream


def hold_out(
    seconds: Mapping[str, float],
    *,
    fraction: float,
    at_least: int,
    seed: int,
    never: Collection[str] = (),
) -> frozenset[str]:
    """Users to keep from training, whole, until they hold ``fraction`` of the seconds and are
    ``at_least`` so many.

    The order is a random one of the sorted names; a user that would take the sum above ``fraction``
    is passed over for a smaller one as long as there are enough users, and at least one user stays.

    Args:
        seconds: user -> seconds of speech, above 0.
        fraction: of all seconds, in (0, 1).
        at_least: users, where there are more than that.
        seed: of the order.
        never: users that must not be chosen.

    >>> len(hold_out({name: 60.0 for name in "abcdefghij"}, fraction=0.2, at_least=1, seed=0))
    2
    """
    candidates = sorted(set(seconds) - set(never))
    order = [candidates[i] for i in stream(seed, "hold_out").permutation(len(candidates))]
    room = fraction * sum(seconds.values())
    chosen: list[str] = []
    for user in order:
        if seconds[user] <= room * (1 + 1e-9):
            chosen.append(user)
            room -= seconds[user]
    # Too few fit: take the shortest of the others, so that training loses as little as possible.
    rest = sorted(
        (user for user in candidates if user not in chosen), key=lambda user: (seconds[user], user)
    )
    chosen += rest[: max(0, at_least - len(chosen))]
    return frozenset(chosen[: max(0, len(seconds) - 1)])
