"""Lists of names for each user, as a phone's contacts are: names that they say, and others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from privasr_k2.constraints import Checked, Count, Natural
from privasr_k2.randomness import stream
from privasr_k2.text.entities import TaggedText
from privasr_k2.text.name_lists import choose_names, names_of


@dataclass(frozen=True)
class UserNamesConfig(Checked):
    """What lists hold; defaults in ``conf/classlm.yaml#user_names``.

    Args:
        others: names of other users on each list, drawn without replacement.
        most_words: longer names are left out.
        seed: of the draw.
    """

    others: Natural
    most_words: Count
    seed: int


def names_of_users(texts: Iterable[TaggedText], config: UserNamesConfig) -> dict[str, list[str]]:
    """User -> the names that they say, among names of others, in alphabetical order.

    A list has every name of its user's text: it is the best case of a list of contacts. Names with
    figures are left out (:func:`privasr_k2.text.name_lists.choose_names`).

    >>> from privasr_k2.text.entities import Entity
    >>> texts = [TaggedText(u, ("ask", n), (Entity(1, 2, "PER"),), u)
    ...          for u, n in (("u1", "ann"), ("u2", "bob"), ("u3", "cy"))]
    >>> names_of_users(texts, UserNamesConfig(others=2, most_words=4, seed=1))["u1"]
    ['ann', 'bob', 'cy']
    >>> names_of_users(texts, UserNamesConfig(others=0, most_words=4, seed=1))["u2"]
    ['bob']
    """
    of_user: dict[str, list[TaggedText]] = {}
    for text in texts:
        of_user.setdefault(text.user, []).append(text)
    own = {user: _said(said, config) for user, said in sorted(of_user.items())}
    known = sorted({name for names in own.values() for name in names})
    lists = {}
    for user, names in own.items():
        order = stream(config.seed, "names of others", user).permutation(len(known))
        inside = frozenset(names)
        # As many more as may be the user's own.
        drawn = (known[place] for place in order[: config.others + len(names)])
        others = [name for name in drawn if name not in inside][: config.others]
        lists[user] = sorted([*names, *others])
    return {user: names for user, names in lists.items() if names}


def _said(texts: list[TaggedText], config: UserNamesConfig) -> list[str]:
    counts = {name: 1 for names in names_of(texts).values() for name in names}
    return choose_names(counts, at_least=1, most_words=config.most_words)
