"""A release for tests of ledgers, of what goes into them and of what is said of them."""

from __future__ import annotations

from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.spending import Spending

COUNTS = Spending(
    data="mini/train",
    released="word counts",
    unit="user",
    units=48,
    relation=Relation.ADD_OR_REMOVE_ONE,
    event=events.pure(1.0),
    sampling="all units in every round",
    delta=1e-5,
    does_not_cover=(),
)
