"""Strategies answer running sums without looking ahead, and know what turns they can count."""

from __future__ import annotations

import numpy as np
import pytest

from privasr_k2.privacy.strategies import STRATEGIES, Strategy, Turns

ONCE = Turns(most=1, apart=1)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("rounds", [1, 3, 6, 7, 8])
@pytest.mark.parametrize("decay", [1.0, 0.7])
def test_strategies_answer_running_sums(name: str, rounds: int, decay: float) -> None:
    made = Strategy(name, rounds, decay)
    distance = np.subtract.outer(np.arange(rounds), np.arange(rounds))
    wanted = np.where(distance >= 0, decay ** np.maximum(distance, 0.0), 0.0)
    assert np.abs(made.decode @ made.encode - wanted).max() < 1e-9
    # Nothing is used before it is there.
    last = [max(np.flatnonzero(row)) for row in made.encode]
    assert all(not made.decode[t, row] for row, end in enumerate(last) for t in range(end))
    assert (made.encode >= 0).all()


@pytest.mark.parametrize("bands", [1, 2, 5])
def test_bands_are_the_first_coefficients(bands: int) -> None:
    whole, banded = Strategy("square_root", 7), Strategy("square_root", 7, bands=bands)
    assert (banded.column == whole.column[:bands]).all() and len(whole.column) == 7
    distance = np.subtract.outer(np.arange(7), np.arange(7))
    assert (banded.encode == np.where(distance < bands, whole.encode, 0)).all()
    assert np.abs(banded.decode @ banded.encode - np.tri(7)).max() < 1e-9


def test_the_root_times_itself_is_the_sum() -> None:
    root = Strategy("square_root", 40).encode / 2**16
    assert np.abs(root @ root - np.tri(40)).max() < 40 * 2**-15


def test_square_roots_have_less_error() -> None:
    made = {name: Strategy(name, 10) for name in STRATEGIES}
    errors = {
        name: one.error().max() * one.sensitivity(1, ONCE, "l2") / one.scale
        for name, one in made.items()
    }
    assert errors["square_root"] < min(0.6 * errors["increments"], errors["tree"])


def test_buffers_are_nearly_as_good_as_the_root_they_are_fitted_to() -> None:
    for rounds, turns in ((1000, Turns(12, 84)), (300, Turns(1, 300)), (40, Turns(4, 10))):
        cost = {}
        for name in ("increments", "square_root", "blt"):
            made = Strategy(name, rounds)
            moved = made.sensitivity(1, turns, "l2") / made.scale
            cost[name] = moved * float(np.sqrt((made.error() ** 2).mean())) * made.scale
        assert cost["blt"] < min(1.03 * cost["square_root"], 0.7 * cost["increments"])


def test_the_coefficients_of_buffers_are_rounded_up() -> None:
    weights, decays = (made := Strategy("blt", 50, 0.9)).buffers
    exact = [1.0, *(float(weights @ decays**t) for t in range(49))]
    above = made.column / made.scale - exact
    assert (above >= 0).all() and above.max() < 2**-16 and (np.diff(made.column) <= 0).all()


def test_a_turn_apart_costs_less_than_one_after_the_other() -> None:
    for name, bands in (("square_root", 5), ("tree", None)):
        made = Strategy(name, 40, bands=bands)
        apart, together = (made.sensitivity(1, Turns(5, apart), "l2") for apart in (8, 1))
        assert apart < 0.8 * together
        assert made.sensitivity(1, Turns(8, 5), "l2") <= 40**0.5 * made.sensitivity(1, ONCE, "l2")
    banded = Strategy("square_root", 40, bands=8)
    once = (banded.column.astype(float) ** 2).sum()
    assert banded.sensitivity(1, Turns(4, 8), "l2") == pytest.approx((4 * once) ** 0.5)
    assert banded.sensitivity(1, Turns(4, 7), "l2") > (4 * once) ** 0.5 * 1.01


def test_more_rounds_cost_as_much_as_there_are() -> None:
    for name in STRATEGIES:
        made = Strategy(name, 9)
        assert made.sensitivity(1, Turns(99, 4), "l2") == made.sensitivity(1, Turns(3, 4), "l2")


@pytest.mark.parametrize("turns", [Turns(2, 3), Turns(2, 5)])
def test_a_tree_refuses_turns_that_it_has_no_proof_for(turns: Turns) -> None:
    with pytest.raises(ValueError, match="a power of two apart"):
        Strategy("tree", 12).sensitivity(1, turns, "l2")
    assert Strategy("square_root", 12).sensitivity(1, turns, "l2") > 0


@pytest.mark.parametrize(
    "values",
    [
        *({"name": "roots"}, {"rounds": 0}, {"decay": 0.0}, {"decay": 1.1}, {"bands": 0}),
        *({"bands": 6}, {"name": "tree", "bands": 2}, {"name": "increments", "bands": 1}),
    ],
)
def test_values_out_of_range(values: dict) -> None:
    with pytest.raises(ValueError):
        Strategy(**{"name": "square_root", "rounds": 5, **values})


def test_no_turns() -> None:
    for most, apart in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="most and apart"):
            Turns(most, apart)
    with pytest.raises(ValueError, match="no coefficients"):
        _ = Strategy("tree", 4).column


def test_descriptions() -> None:
    assert Strategy("tree", 1000).describe() == "tree over 1,000 rounds"
    assert Strategy("square_root", 9).describe() == "square_root of 9 bands over 9 rounds"
