"""Background and adaptation text by whole users, as turan2022 splits AMI (table 1, section 4.2).

Adaptation parts are given in per cent of the background's words, each inside the next larger one.
Users kept for adaptation come first, then users of train, who leave the background of all sizes.
"""

from __future__ import annotations

import itertools
import math
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from annotated_types import Interval

from privasr_k2.constraints import Checked, Different, Positive
from privasr_k2.errors import DataError
from privasr_k2.randomness import stream
from privasr_k2.text.entities import CLASSES, TaggedText
from privasr_k2.text.name_lists import names_of


@dataclass(frozen=True)
class SplitConfig(Checked):
    """How text is split; defaults in ``conf/classlm.yaml#split_text``.

    Args:
        sizes: of the adaptation parts, in per cent of the background's words; empty: none.
        tolerance: the most that a part may miss its size by, in percentage points.
        seed: of the order of the users.
    """

    sizes: Annotated[list[Annotated[float, Interval(gt=0, lt=100)]], Different()]
    tolerance: Positive
    seed: int


@dataclass(frozen=True)
class Split:
    """Text in parts.

    Attributes:
        parts: ``background``, ``adapt_12`` and its like by rising size, ``dev`` and ``test``.
        sizes: part -> its requested size, in per cent of the background's words.
        moved: users of train in the adaptation parts.
        unused: users kept for adaptation that no part needs.
    """

    parts: dict[str, list[TaggedText]]
    sizes: dict[str, float]
    moved: frozenset[str]
    unused: frozenset[str]


def split_texts(roles: Mapping[str, Sequence[TaggedText]], config: SplitConfig) -> Split:
    """Split the texts of a corpus.

    Args:
        roles: ``train``, and ``adapt dev test`` where there are any.

    Raises:
        DataError: a text without a user, a user in two roles, fewer than two users, or a size that
            whole users miss by more than the tolerance.
    """
    _check_users(roles)
    words = {role: _words_of(roles.get(role, ())) for role in ("adapt", "train")}
    chosen = choose_users(words["adapt"], words["train"], config)
    largest = frozenset(chosen[max(chosen)] if chosen else ())
    available = [*roles.get("adapt", ()), *roles["train"]]
    parts = {"background": [text for text in roles["train"] if text.user not in largest]}
    for size, users in chosen.items():
        inside = frozenset(users)
        parts[_name(size)] = [text for text in available if text.user in inside]
    parts |= {role: list(roles[role]) for role in ("dev", "test") if role in roles}
    return Split(
        parts,
        {_name(size): size for size in chosen},
        largest & frozenset(words["train"]),
        frozenset(words["adapt"]) - largest,
    )


def choose_users(
    adapt: Mapping[str, int], train: Mapping[str, int], config: SplitConfig
) -> dict[float, list[str]]:
    """Size -> users of the adaptation part, sizes rising, each with those of the smaller ones.

    The increments between sizes are filled in a random order of users, the smallest increment
    first, and closed with the users that bring it nearest. Users of train follow only where those
    of adapt miss the largest size by more than the tolerance.

    Args:
        adapt: words of each user that the corpus keeps for adaptation.
        train: words of each other user.

    Raises:
        DataError: as of :func:`split_texts`.

    >>> config = SplitConfig([10.0, 20.0], 1.0, 0)
    >>> users = choose_users({"a": 10, "b": 10}, {"c": 50, "d": 50}, config)
    >>> [len(of_size) for of_size in users.values()]
    [1, 2]
    """
    if not config.sizes:
        return {}
    if len(adapt) + len(train) < 2 or not train:
        expected = "two users or more, and some of the role train"
        found = f"{len(train)} of train and {len(adapt)} of adapt"
        way_out = "give a corpus that tells its users (speakers) apart"
        raise DataError("the text", expected, found, way_out)
    chosen, percents = _chosen(adapt, train, config)
    missed = _missed(percents, config)
    if missed is not None:
        expected = f"{missed:g} per cent of the background's words, by whole users, within"
        expected += f" {config.tolerance:g} (tolerance)"
        left = math.isfinite(percents[missed])
        found = f"{percents[missed]:.2f}" if left else "no background left"
        raise DataError(_name(missed), expected, found, _way_out(adapt, train, config, percents))
    return chosen


def _chosen(
    adapt: Mapping[str, int], train: Mapping[str, int], config: SplitConfig
) -> tuple[dict[float, list[str]], dict[float, float]]:
    """The nearest users of each size, and their per cent; infinite without a background."""
    own, kept, sizes = sum(adapt.values()), sum(train.values()), sorted(config.sizes)
    background = float(kept)
    is_enough = own > 0 and 100 * own / kept >= sizes[-1] - config.tolerance
    if not is_enough:
        # Users of train leave the background: (own + moved) / (kept - moved) is the largest size.
        background = (own + kept) / (1 + sizes[-1] / 100)
    targets = {size: background * size / 100 for size in sizes}
    if is_enough:
        targets = {size: min(target, own) for size, target in targets.items()}
    inside = {size: target for size, target in targets.items() if target <= own}
    beyond = {size: target - own for size, target in targets.items() if target > own}
    chosen = _nested(_in_order(adapt, config.seed, "adapt"), adapt, inside)
    for size, users in _nested(_in_order(train, config.seed, "train"), train, beyond).items():
        chosen[size] = [*sorted(adapt), *users]
    words = {**adapt, **train}
    left = kept - sum(train[user] for user in chosen[sizes[-1]] if user in train)
    totals = {size: sum(words[user] for user in users) for size, users in chosen.items()}
    return chosen, {size: 100 * of / left if left else math.inf for size, of in totals.items()}


def _missed(percents: Mapping[float, float], config: SplitConfig) -> float | None:
    """The first size that its users miss, or that has none."""
    for size, percent in percents.items():
        if percent == 0 or abs(percent - size) > config.tolerance:
            return size
    return None


def _way_out(
    adapt: Mapping[str, int],
    train: Mapping[str, int],
    config: SplitConfig,
    percents: Mapping[float, float],
) -> str:
    """Sizes that whole users do give, as the recipe and as the verb takes them."""
    near = sorted({round(percent, 1) for percent in percents.values() if 0 < percent < 99})
    if near:
        other = replace(config, sizes=near)
        if _missed(_chosen(adapt, train, other)[1], other) is None:
            sizes = [f"{size:g}" for size in near]
            recipe, verb = shlex.quote(" ".join(sizes)), ",".join(sizes)
            return f"whole users give --adapt-percent {recipe} (verb: --set sizes=[{verb}])"
    return "give text of more users, or no adaptation text: --adapt-percent '' (--set sizes=[])"


def _nested(
    order: Sequence[str], words: Mapping[str, int], targets: Mapping[float, float]
) -> dict[float, list[str]]:
    """Size -> users with about its target of words, each with the users of smaller sizes."""
    edges = itertools.pairwise([0.0, *targets.values()])
    steps = {size: above - below for size, (below, above) in zip(targets, edges)}
    added: dict[float, list[str]] = {}
    left = list(order)
    for size in sorted(steps, key=steps.__getitem__):  # users with much text need large parts
        added[size] = _nearest(left, words, steps[size])
        taken = frozenset(added[size])
        left = [user for user in left if user not in taken]
    users: list[str] = []
    parts = {}
    for size in targets:
        users = parts[size] = [*users, *added[size]]
    return parts


def _nearest(order: Sequence[str], words: Mapping[str, int], target: float) -> list[str]:
    """The first users, then the subset of the others (by subset sums) nearest to ``target``.

    >>> _nearest("abcde", {"a": 1, "b": 10, "c": 4, "d": 10, "e": 7}, 22)
    ['a', 'b', 'c', 'e']
    """
    chosen: list[str] = []
    largest = max((words[user] for user in order), default=0)
    for user in order:
        if target - words[user] < largest:
            break
        chosen.append(user)
        target -= words[user]
    rest = order[len(chosen) :]
    below = int(target) + 1
    inside = (1 << 2 * below) - 1  # more than twice the target is farther off than nothing
    sums = [1]
    for user in rest:
        sums.append((sums[-1] | sums[-1] << words[user]) & inside)
    best = (sums[-1] & ((1 << below) - 1)).bit_length() - 1
    above = sums[-1] >> below
    if above:
        next_best = below + (above & -above).bit_length() - 1
        if next_best - target < target - best:
            best = next_best
    more = []
    for number in range(len(rest), 0, -1):  # without the later user where that is possible
        if not sums[number - 1] >> best & 1:
            more.append(rest[number - 1])
            best -= words[rest[number - 1]]
    return [*chosen, *reversed(more)]


def _in_order(users: Iterable[str], seed: int, role: str) -> list[str]:
    names = sorted(users)
    return [names[index] for index in stream(seed, "split_text", role).permutation(len(names))]


def _words_of(texts: Iterable[TaggedText]) -> Counter[str]:
    words: Counter[str] = Counter()
    for text in texts:
        words[text.user] += len(text.words)
    return words


def _name(size: float) -> str:
    return f"adapt_{size:g}"


def _check_users(roles: Mapping[str, Sequence[TaggedText]]) -> None:
    owner: dict[str, str] = {}
    for role in ("train", "adapt", "dev", "test"):
        for text in roles.get(role, ()):
            if not text.user:
                way_out = "say whose text it is: user, speaker"
                raise DataError(f"{text.id} ({role})", "a user", "none", way_out)
            first = owner.setdefault(text.user, role)
            if first != role:
                place = f"user {text.user}"
                found = f"text of theirs in {first} and in {role} ({text.id})"
                raise DataError(place, "a user in one part only", found, "give users whole")


def statistics(texts: Sequence[TaggedText], seconds: Mapping[str, float]) -> dict[str, Any]:
    """Counts of a part as in table 1 of turan2022, and its entities.

    Args:
        texts: with entities.
        seconds: id -> seconds of speech, for texts that were spoken.

    >>> from privasr_k2.text.entities import Entity
    >>> ann = Entity(1, 3, "PER")
    >>> found = statistics([TaggedText("1", ("ask", "ann", "lee"), (ann,), "u")], {"1": 90.0})
    >>> found["minutes"], found["words"], found["entities"]["PER"]
    (1.5, 3, {'mentions': 1, 'words': 2, 'unique': 1})
    """
    names = names_of(texts)
    spoken = [seconds[text.id] for text in texts if text.id in seconds]
    entities = {}
    for label in sorted({*CLASSES, *names}):
        of_class = names.get(label, Counter())
        words = sum(count * len(name.split()) for name, count in of_class.items())
        mentions = {"mentions": of_class.total(), "words": words, "unique": len(of_class)}
        entities[label] = mentions
    return {
        "minutes": round(sum(spoken) / 60, 2) if spoken else None,
        "utterances": len(texts),
        "spoken_utterances": len(spoken),
        "users": len({text.user for text in texts}),
        "unique_words": len({word for text in texts for word in text.words}),
        "words": sum(len(text.words) for text in texts),
        "entities": entities,
        "mentions": sum(counts["mentions"] for counts in entities.values()),
        "entity_words": sum(counts["words"] for counts in entities.values()),
        "unique_entities": sum(counts["unique"] for counts in entities.values()),
    }


def describe(split: Split, config: SplitConfig, seconds: Mapping[str, float]) -> dict[str, Any]:
    """The content of ``about.json``: sizes as they are, and :func:`statistics` of each part."""
    parts = {name: statistics(texts, seconds) for name, texts in split.parts.items()}
    sizes = {}
    for name, asked in split.sizes.items():
        moved = {text.user for text in split.parts[name]} & split.moved
        spoken = {t.user for t in split.parts[name] if t.user in moved and t.id in seconds}
        sizes[name] = {
            "asked_percent": asked,
            "percent": round(100 * parts[name]["words"] / parts["background"]["words"], 3),
            "users_of_train": sorted(moved),
            "users_with_speech_in_train": sorted(spoken),
        }
    unused = sorted(split.unused)
    return {"seed": config.seed, "sizes": sizes, "unused_users": unused, "parts": parts}
