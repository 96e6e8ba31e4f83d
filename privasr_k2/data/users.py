"""Selection of users (speakers)."""

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
    """Users to keep from training, with ``fraction`` of the seconds and ``at_least`` so many.

    The order is random. A user that would exceed ``fraction`` is skipped for a smaller one while
    there are enough users. At least one user stays.

    Args:
        seconds: user -> seconds of speech, above 0.
        fraction: of all seconds, in (0, 1).
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
    rest = sorted(set(candidates) - set(chosen), key=lambda user: (seconds[user], user))
    chosen += rest[: max(0, at_least - len(chosen))]
    return frozenset(chosen[: max(0, len(seconds) - 1)])
