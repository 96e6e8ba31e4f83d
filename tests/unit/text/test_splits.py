"""Background and adaptation text by whole users."""

from __future__ import annotations

import dataclasses
import re

import pytest

from privasr_k2 import config
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.randomness import stream
from privasr_k2.text.entities import Entity, TaggedText
from privasr_k2.text.splits import SplitConfig, choose_users, describe, split_texts, statistics
from tests.support.conf import section

CONFIG = SplitConfig(sizes=[20.0, 12.0, 15.0], tolerance=1.0, seed=3)


def texts(role, *, users, words=10, count=5):
    """``count`` texts of ``words`` words of each user."""
    return [
        TaggedText(f"{role}{user}-{n}", ("w",) * words, (), f"{role}{user}")
        for n in range(count)
        for user in range(users)
    ]


def users_of(part):
    return {text.user for text in part}


@pytest.mark.parametrize(("adapting", "is_moved"), [(60, False), (30, True), (0, True)])
def test_parts_are_nested_and_users_stay_whole(adapting, is_moved):
    roles = {"train": texts("t", users=200), "adapt": texts("a", users=adapting)}
    roles["dev"] = texts("d", users=2)
    split = split_texts(roles, CONFIG)
    assert list(split.parts) == ["background", "adapt_12", "adapt_15", "adapt_20", "dev"]
    background = len(split.parts["background"])
    for size in (12, 15, 20):
        assert len(split.parts[f"adapt_{size}"]) == pytest.approx(size / 100 * background, abs=5)
    names = ("adapt_12", "adapt_15", "adapt_20", "background", "dev")
    inside = [users_of(split.parts[name]) for name in names]
    assert inside[0] < inside[1] < inside[2]
    assert not inside[2] & inside[3] and not (inside[2] | inside[3]) & inside[4]
    assert bool(split.moved) == is_moved
    # All of a user's text goes the same way, and nothing of train is lost.
    assert len(split.parts["adapt_20"]) == 5 * len(inside[2])
    assert inside[3] | split.moved == users_of(roles["train"])
    assert split.unused == users_of(roles["adapt"]) - inside[2]
    assert bool(split.unused) == (adapting == 60)
    # Text keeps the order of the files.
    order = {text.id: n for n, text in enumerate([*roles["adapt"], *roles["train"]])}
    found = [order[text.id] for text in split.parts["adapt_15"]]
    assert found == sorted(found)


def test_no_sizes_leave_all_of_train_together():
    roles = {"train": texts("t", users=1), "adapt": texts("a", users=2)}
    roles["test"] = texts("x", users=2)
    split = split_texts(roles, dataclasses.replace(CONFIG, sizes=[]))
    assert list(split.parts) == ["background", "test"]
    assert users_of(split.parts["background"]) == users_of(roles["train"])
    assert not split.sizes and not split.moved and split.unused == users_of(roles["adapt"])


def test_those_kept_for_adaptation_come_first_in_an_order_of_the_seed():
    adapt, train = {f"a{n}": 10 for n in range(10)}, {f"t{n}": 10 for n in range(100)}
    small = dataclasses.replace(CONFIG, sizes=[2.0, 15.0])
    chosen = choose_users(adapt, train, small)
    names = sorted(adapt)
    order = [names[n] for n in stream(3, "split_text", "adapt").permutation(10)]
    assert chosen[2.0] == order[:2] and chosen[15.0][:10] == names
    names = sorted(train)
    expected = [names[n] for n in stream(3, "split_text", "train").permutation(100)][:4]
    assert chosen[15.0][10:] == expected
    assert choose_users(adapt, train, small) == chosen
    assert choose_users(adapt, train, dataclasses.replace(small, seed=4)) != chosen


def test_users_of_train_stay_where_the_others_come_near_enough():
    train = {f"t{n}": 2 for n in range(500)}
    chosen = choose_users({"a": 99, "b": 96}, train, dataclasses.replace(CONFIG, sizes=[20.0]))
    assert sorted(chosen[20.0]) == ["a", "b"], "19.5 per cent"


def test_a_user_beyond_the_size_is_passed_over_or_comes_last_where_that_is_nearer():
    train = {f"t{n}": 100 for n in range(10)}
    one = dataclasses.replace(CONFIG, sizes=[10.0])
    assert sorted(choose_users({"big": 180, "a": 60, "b": 38}, train, one)[10.0]) == ["a", "b"]
    last = choose_users({"big": 60, "a": 45}, train, one)[10.0]
    assert sorted(last) == ["a", "big"], "105 is nearer to 100 than 60 or 45"


@pytest.mark.parametrize(
    ("adapt", "train", "message"),
    [
        ({}, {"a": 10}, "two users or more"),
        ({"a": 10, "b": 9}, {}, "0 of train and 2 of adapt"),
        ({}, {"a": 500, "b": 500}, r"adapt_20: expected 20 per cent .* found 0.00"),
        ({"a": 400, "b": 400}, {"c": 1000}, r"adapt_20: .*within 1 \(tolerance\), found 0.00"),
        ({}, {"a": 10, "b": 90}, "adapt_20: .*found 11.11"),
        ({}, {"a": 1000, "b": 1000}, "adapt_20: .*found 0.00"),
    ],
)
def test_sizes_that_whole_users_do_not_reach(adapt, train, message):
    with pytest.raises(DataError, match=f"(?s){message}"):
        choose_users(adapt, train, dataclasses.replace(CONFIG, sizes=[20.0]))


@pytest.mark.parametrize(
    ("adapt", "train", "sizes"),
    [
        ({}, {"a": 10, "b": 90}, [20.0]),
        ({"a": 30, "b": 60}, {"c": 1000}, [5.0, 12.0]),
    ],
)
def test_the_way_out_names_sizes_that_whole_users_do_give(adapt, train, sizes):
    with pytest.raises(DataError) as refused:
        choose_users(adapt, train, dataclasses.replace(CONFIG, sizes=sizes))
    [(recipe, verb)] = re.findall(
        r"--adapt-percent (\S+|'.*?') \(verb: --set sizes=\[(.*?)\]\)", str(refused.value)
    )
    named = [float(size) for size in verb.split(",")]
    assert named == [float(size) for size in recipe.strip("'").split()]
    assert list(choose_users(adapt, train, dataclasses.replace(CONFIG, sizes=named))) == named


def test_where_no_size_can_be_had_the_way_out_is_none():
    with pytest.raises(DataError, match="--adapt-percent '' "):
        choose_users({}, {"a": 500, "b": 500}, dataclasses.replace(CONFIG, sizes=[0.5]))
    assert choose_users({}, {"a": 500, "b": 500}, dataclasses.replace(CONFIG, sizes=[])) == {}


def test_a_part_without_users_is_refused_however_small():
    with pytest.raises(DataError, match=r"adapt_0.5: .*found 0.00"):
        choose_users({}, {"a": 500, "b": 500}, dataclasses.replace(CONFIG, sizes=[0.5]))


@pytest.mark.parametrize("sizes", [[12.0, 15.0, 20.0], [3.0, 8.0, 20.0]])
@pytest.mark.parametrize("seed", range(5))
def test_a_user_with_much_text_goes_into_the_largest_step(sizes, seed):
    adapt = {"big": 1200, "a": 300, "b": 500, "c": 400}
    chosen = choose_users(adapt, {"t": 5000, "u": 5000}, SplitConfig(sizes, 1.0, seed))
    words = [sum(adapt[user] for user in users) for users in chosen.values()]
    assert words == [100 * size for size in sizes]


def test_the_order_counts_until_a_part_is_nearly_full():
    adapt = {"a": 1} | {f"b{n}": 10 for n in range(9)}
    for seed in range(20):
        order = [sorted(adapt)[n] for n in stream(seed, "split_text", "adapt").permutation(10)]
        [users] = choose_users(adapt, {"t": 100, "u": 100}, SplitConfig([20.0], 1.0, seed)).values()
        assert users[:3] == order[:3]


def test_users_must_be_known_and_in_one_part():
    roles = {"train": texts("t", users=20), "test": texts("t", users=1)}
    with pytest.raises(DataError, match=r"user t0: .* in one part only, found .*train and in test"):
        split_texts(roles, CONFIG)
    roles["test"] = [TaggedText("x", ("a",), ())]
    with pytest.raises(DataError, match=r"x \(test\): expected a user, found none"):
        split_texts(roles, CONFIG)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("sizes=[0]", "sizes must be (above 0|below 100) each"),
        ("sizes=[12,100]", "sizes must be (above 0|below 100) each"),
        ("sizes=[12,12.0]", "sizes must be different values"),
        ("tolerance=0", "tolerance must be above 0"),
    ],
)
def test_bad_settings(value, message):
    with pytest.raises(ConfigError, match=message):
        config.load(SplitConfig, [section("split_text")], [value])


def test_statistics_count_what_table_1_counts():
    words = ("ask", "ann", "lee", "in", "rome")
    made = [
        TaggedText("1", words, (Entity(1, 3, "PER"), Entity(4, 5, "LOC")), "u"),
        TaggedText("2", ("ann", "lee"), (Entity(0, 2, "PER"),), "v"),
        TaggedText("3", ("bob",), (Entity(0, 1, "PER"),), "v"),
    ]
    found = statistics(made, {"1": 30.0, "3": 60.0, "elsewhere": 5.0})
    assert (found["minutes"], found["utterances"], found["spoken_utterances"], found["users"]) == (
        1.5,
        3,
        2,
        2,
    )
    assert (found["words"], found["unique_words"]) == (8, 6)
    assert found["entities"]["PER"] == {"mentions": 3, "words": 5, "unique": 2}
    assert found["entities"]["ORG"] == {"mentions": 0, "words": 0, "unique": 0}
    assert (found["mentions"], found["entity_words"], found["unique_entities"]) == (4, 6, 3)
    assert statistics(made, {})["minutes"] is None


def test_about_tells_whose_speech_is_in_train():
    roles = {"train": texts("t", users=100), "adapt": texts("a", users=10)}
    split = split_texts(roles, CONFIG)
    spoken = sorted(split.moved)[0]
    about = describe(split, CONFIG, {f"{spoken}-0": 1.0, "a0-0": 1.0, "elsewhere": 1.0})
    assert about["sizes"]["adapt_20"]["users_with_speech_in_train"] == [spoken]
    assert about["sizes"]["adapt_20"]["users_of_train"] == sorted(split.moved)
    size = about["sizes"]["adapt_20"]
    assert size["asked_percent"] == 20 and size["percent"] == pytest.approx(20, abs=1)
    words = {name: part["words"] for name, part in about["parts"].items()}
    assert size["percent"] == pytest.approx(100 * words["adapt_20"] / words["background"], abs=1e-3)
