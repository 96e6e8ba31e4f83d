"""One spelling of a stage's command, so that a new name for an old thing makes nothing run again."""

from __future__ import annotations

from collections.abc import Sequence

#: Verbs by their earlier names.
VERBS: dict[str, str] = {}
#: Flags by their earlier names, of every verb.
FLAGS: dict[str, str] = {}
#: Keys of ``--set`` by their earlier names, of single verbs (as they are called now).
KEYS: dict[str, dict[str, str]] = {}


def canonical(command: Sequence[str]) -> list[str]:
    """A verb's words by the names of now: flags and settings in one order, numbers in one form.

    >>> canonical(["plan_votes", "--out-plan", "p", "--in-x", "b", "a", "--set", "delta=1e-5"])
    ['plan_votes', '--in-x', 'b', 'a', '--out-plan', 'p', '--set', 'delta=1e-05']
    >>> canonical(["prepare_corpus", "--set", "--out-dir", "d"])
    ['prepare_corpus', '--out-dir', 'd']
    """
    verb = VERBS.get(command[0], command[0])
    flags: list[tuple[str, list[str]]] = []
    for word in command[1:]:
        if word.startswith("--"):
            flags.append((FLAGS.get(word, word), []))
        elif flags:
            flags[-1][1].append(word)
    words = [verb]
    for flag, values in sorted(flags, key=lambda pair: pair[0]):
        if flag == "--set":
            values = sorted(_setting(KEYS.get(verb, {}), value) for value in values)
        words += [flag, *values] if values or flag != "--set" else []
    return words


def _setting(keys: dict[str, str], word: str) -> str:
    key, equals, value = word.partition("=")
    return f"{keys.get(key, key)}={_number(value)}" if equals else word


def _number(value: str) -> str:
    try:
        number = float(value)
    except ValueError:
        return value
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
