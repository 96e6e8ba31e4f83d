r"""What the data of one unit change in a query: a vote is given or not, or it moves.

The roster and the deal of units to shards are public and fixed; whether a unit has data is private.
Each teacher is a function of its own shard: it gives a vote v, 1 for one class and 0 for all
others, or a distribution p; without anything to learn from it abstains, v = p = 0. One unit is in
one shard, so that one v or p changes:

    units in a shard       1: v and 0             more: v and v', or 0
    counts that change     one, by 1              two, by 1 each
    norm_1 of the change   norm_1 v = 1           norm_1 (v - v') <= norm_1 v + norm_1 v' = 2
    norm_2 of the change   norm_2 v = 1           norm_2^2 (v - v') = 1 + 1 - 2 v . v' <= 2

Silence is part of the mechanism: a public model that voted in place of a teacher without data would
make v - v' of two votes again, norm sqrt 2, also where a shard has one unit.

For p, norm_2 p <= norm_1 p = 1 and p . p' >= 0 give the same norms, times the teacher's weight. The
largest count changes by 1 at most in both cases: no count changes by more, and max is 1-Lipschitz.
"""

from __future__ import annotations

from enum import Enum

from privasr_k2.privacy import checks


class Change(Enum):
    """What one unit changes in a query; the value is the number of counts that change.

    >>> Change.of(units_in_a_shard=1), Change.MOVES.l1, round(Change.MOVES.l2, 3)
    (<Change.GIVEN: 1>, 2, 1.414)
    """

    GIVEN = 1
    MOVES = 2

    @classmethod
    def of(cls, units_in_a_shard: int) -> Change:
        """By the largest number of the roster's units in a shard: a public fact.

        Raises:
            PrivacyError: no whole number above 0.
        """
        units = checks.whole("units_in_a_shard", units_in_a_shard, at_least=1)
        return cls.GIVEN if units == 1 else cls.MOVES

    @property
    def counts(self) -> int:
        """How many counts change, by 1 each."""
        return self.value

    @property
    def l1(self) -> int:
        """L1 sensitivity of a query, in votes."""
        return self.value

    @property
    def l2(self) -> float:
        """L2 sensitivity of a query, in votes."""
        return float(self.value**0.5)
