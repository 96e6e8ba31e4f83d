"""Events of several units at once."""

from __future__ import annotations

import pytest
from dp_accounting import dp_event as dp

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation, account
from privasr_k2.privacy.groups import for_group

ONE = Relation.ADD_OR_REMOVE_ONE


@pytest.mark.parametrize(
    ("event", "of_three"),
    [
        (events.gaussian(3.0), events.gaussian(1.0)),
        (events.laplace(3.0), events.laplace(1.0)),
        (events.laplace_vector(3.0), events.laplace_vector(1.0)),
        (events.discrete_laplace(2.0, 5), events.discrete_laplace(2.0, 15)),
        (events.discrete_gaussian(4.0, 2), events.discrete_gaussian(4.0, 6)),
        (events.concentrated(0.1), events.concentrated(0.9)),
        (events.pure(0.5), events.pure(1.5)),
        (
            events.repeated(events.poisson_sampled(0.1, events.gaussian(2.0)), 5),
            events.repeated(events.sampled_group(0.1, 3, 2.0), 5),
        ),
        (events.sampled_group(0.1, 2, 2.0), events.sampled_group(0.1, 6, 2.0)),
        (
            events.randomized_response(0.5, 10),
            events.repeated(events.randomized_response(0.5, 10), 3),
        ),
        (events.unprotected(), events.unprotected()),
        # No bound is known: nothing is claimed.
        (events.poisson_sampled(0.1, events.laplace(2.0)), events.unprotected()),
        (events.fixed_size_sampled(5, 50, events.gaussian(2.0)), events.unprotected()),
    ],
)
def test_three_units(event: dp.DpEvent, of_three: dp.DpEvent) -> None:
    assert events.terms(for_group(event, 3)) == pytest.approx(events.terms(of_three))
    assert for_group(event, 1) == event


def test_more_units_cost_more() -> None:
    event = events.repeated(events.poisson_sampled(0.2, events.gaussian(2.0)), 10)
    epsilons = [account(for_group(event, size), ONE, 1e-5).value for size in (1, 2, 5)]
    assert epsilons[0] < epsilons[1] / 1.5 < epsilons[2] / 3


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_bad_size(size: float) -> None:
    with pytest.raises(PrivacyError, match="size"):
        for_group(events.gaussian(1.0), size)  # type: ignore[arg-type]
