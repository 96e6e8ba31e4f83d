from privasr_k2.data.users import hold_out


def test_the_fraction_is_filled_but_not_passed() -> None:
    seconds = {f"s{i:02d}": 10.0 + i for i in range(40)}
    held = hold_out(seconds, fraction=0.1, at_least=1, seed=0)
    share = sum(seconds[s] for s in held) / sum(seconds.values())
    assert 0.08 < share <= 0.1


def test_enough_users_even_where_they_are_too_large_and_the_shortest_of_them() -> None:
    seconds = {"a": 100.0, "b": 90.0, "c": 80.0, "d": 70.0}
    assert hold_out(seconds, fraction=0.05, at_least=2, seed=3) == {"c", "d"}
    assert hold_out(seconds, fraction=0.05, at_least=2, seed=3, never={"d"}) == {"b", "c"}


def test_someone_stays() -> None:
    assert len(hold_out({"a": 1.0, "b": 1.0}, fraction=0.5, at_least=5, seed=0)) == 1
    assert hold_out({"a": 1.0}, fraction=0.5, at_least=1, seed=0) == frozenset()


def test_the_seed_decides_and_the_order_of_names_does_not() -> None:
    seconds = {f"s{i}": 1.0 for i in range(50)}
    backwards = dict(reversed(seconds.items()))
    first = hold_out(seconds, fraction=0.2, at_least=1, seed=0)
    assert hold_out(backwards, fraction=0.2, at_least=1, seed=0) == first
    assert hold_out(seconds, fraction=0.2, at_least=1, seed=1) != first
