"""Names of each user, among names of others."""

from __future__ import annotations

from privasr_k2 import config
from privasr_k2.text.entities import Entity, TaggedText
from privasr_k2.text.user_names import UserNamesConfig, names_of_users
from tests.support.conf import section


def settings(*overrides: str) -> UserNamesConfig:
    return config.load(UserNamesConfig, [section("user_names")], overrides)


def said(user: str, *names: str) -> list[TaggedText]:
    texts = [("call", *name.split(), "now") for name in names]
    spans = [(Entity(1, len(words) - 1, "PER"),) for words in texts]
    return [
        TaggedText(str(n), words, span, user) for n, (words, span) in enumerate(zip(texts, spans))
    ]


TEXTS = [
    *said("u1", "ann", "ann's", "bob lee"),
    *said("u2", "cy", "route 66"),
    *said("u3", "ann", "dee"),
    *said("u4"),
    TaggedText("x", ("hello",), (), "u5"),
]


def test_own_names_and_others() -> None:
    assert names_of_users(TEXTS, settings("others=0")) == {
        "u1": ["ann", "bob lee"],
        "u2": ["cy"],
        "u3": ["ann", "dee"],
    }
    # More than there are: all names of all users, each once.
    everything = names_of_users(TEXTS, settings("others=90"))
    assert set(everything) == {"u1", "u2", "u3", "u5"}
    assert all(names == ["ann", "bob lee", "cy", "dee"] for names in everything.values())


def test_so_many_others_by_a_seed() -> None:
    texts = [text for n in range(26) for text in said(f"u{n}", f"name{chr(97 + n)}")]
    first = names_of_users(texts, settings("others=5", "seed=1"))
    for n in range(26):
        names = first[f"u{n}"]
        assert f"name{chr(97 + n)}" in names and len(set(names)) == len(names) == 6
    assert first == names_of_users(texts[::-1], settings("others=5", "seed=1"))
    assert first != names_of_users(texts, settings("others=5", "seed=2"))
    # Each user has others of their own.
    assert len({tuple(names) for names in first.values()}) > 20


def test_long_names_are_left_out() -> None:
    lists = names_of_users(said("u1", "a b c", "d"), settings("others=0", "most_words=2"))
    assert lists == {"u1": ["d"]}
