"""Sub-language models: the names of a class as a small deterministic weighted automaton.

State 0 is the start. In every state the probabilities of the arcs and of ending sum to 1, and no
name is empty.

- ``tree``: a prefix tree; every name has its relative frequency, others none
- ``bigram``: words follow each other as in the names, by relative frequencies
- ``unigram``: any words of names in any order; the end is equally likely after every word

An arc ``<unk>`` of the start can hold the mass of unlisted names, to be expanded by spelling or
sound.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines, write_text
from privasr_k2.lm.arpa import BOS, EOS, UNK

KINDS = ("tree", "bigram", "unigram")

Name = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SubLm:
    """The automaton of S states, A arcs and W words.

    Attributes:
        words: the W words on its arcs, each once; ``<unk>`` for unlisted names.
        sources, labels, targets: (A,) int64; labels index ``words``. Sorted by source and label, no
            pair twice.
        log_probs: (A,) ln P(label | source).
        finals: (S,) ln P(the name ends | state), -inf where it cannot.
    """

    words: Name
    sources: np.ndarray
    labels: np.ndarray
    targets: np.ndarray
    log_probs: np.ndarray
    finals: np.ndarray

    @property
    def sums(self) -> np.ndarray:
        """(S,) the sum of all probabilities in each state: 1."""
        leaving = np.bincount(self.sources, np.exp(self.log_probs), minlength=len(self.finals))
        return leaving + np.exp(self.finals)

    @cached_property
    def arcs(self) -> dict[tuple[int, str], int]:
        """The arc of each source and word."""
        words = (self.words[label] for label in self.labels.tolist())
        return {key: arc for arc, key in enumerate(zip(self.sources.tolist(), words))}

    def log_prob(self, name: Name) -> float:
        """ln P(name), -inf for an impossible one.

        >>> sub = make_sub_lm({("new", "york"): 3.0, ("york",): 1.0}, "tree")
        >>> round(math.exp(sub.log_prob(("new", "york"))), 6), sub.log_prob(("new",))
        (0.75, -inf)
        """
        state, total = 0, 0.0
        for word in name:
            arc = self.arcs.get((state, word))
            if arc is None:
                return -math.inf
            state, total = int(self.targets[arc]), total + float(self.log_probs[arc])
        return total + float(self.finals[state])


def make_sub_lm(
    names: Mapping[Name, float], kind: str, *, unknown_mass: float = 0.0, place: str = "a class"
) -> SubLm:
    """The automaton of names.

    Args:
        names: the words of each name and its weight, of any sum.
        kind: one of :data:`KINDS`.
        unknown_mass: P(an unlisted name), in [0, 1).
        place: what errors name.

    Raises:
        DataError: no name with a weight above 0.
    """
    listed = {name: weight for name, weight in names.items() if weight > 0}
    if not listed:
        raise DataError(place, "names", "none", "tag more text, or give a list of names")
    words = tuple(sorted({word for name in listed for word in name}))
    numbers = {word: number for number, word in enumerate(words)}
    lengths = np.array([len(name) for name in listed])
    padded = np.zeros((len(listed), int(lengths.max())), dtype=np.int64)
    inside = np.arange(padded.shape[1]) < lengths[:, None]
    padded[inside] = [numbers[word] for name in listed for word in name]
    weights = np.array([*listed.values()])
    weights = weights / weights.sum()
    ending = 1.0 / float(weights @ lengths)  # of a name of the mean length, after each of its words
    if kind == "unigram":
        counts = np.bincount(padded[inside], np.repeat(weights, lengths), minlength=len(words))
        share = counts * ending
        count = 2 if ending < 1 - 1e-12 else 1
        sources = np.repeat(np.arange(count), len(words))
        leaving = np.concatenate([share, (1 - ending) * share][:count])
        arcs = (sources, np.tile(np.arange(len(words)), count), np.ones_like(sources), leaving)
        ends = np.array([0.0, ending if count == 2 else 1.0])
    else:
        arcs, ends = _relative_frequencies(padded, lengths, weights, len(words), kind == "tree")
    if unknown_mass > 0:
        words, arcs, ends = _with_unknown(words, arcs, ends, unknown_mass, ending)
    return _by_source(words, arcs, ends)


#: Sources, labels, targets and probabilities.
_Arcs = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _relative_frequencies(
    padded: np.ndarray, lengths: np.ndarray, weights: np.ndarray, num_words: int, tree: bool
) -> tuple[_Arcs, np.ndarray]:
    """Arcs and ends of a prefix tree, or of a bigram."""
    states = np.zeros(len(padded), dtype=np.int64)
    num_states = 1 if tree else num_words + 1
    sources, labels, targets, masses, ends, end_masses = [], [], [], [], [], []
    for level in range(padded.shape[1]):
        going = np.flatnonzero(lengths > level)
        keys, which = np.unique(
            states[going] * num_words + padded[going, level], return_inverse=True
        )
        source, label = np.divmod(keys, num_words)
        target = num_states + np.arange(len(keys)) if tree else label + 1
        num_states += len(keys) if tree else 0
        sources.append(source)
        labels.append(label)
        targets.append(target)
        masses.append(np.bincount(which, weights[going]))
        states[going] = target[which]
        ended = np.flatnonzero(lengths == level + 1)
        ends.append(states[ended])
        end_masses.append(weights[ended])
    source, label = np.concatenate(sources), np.concatenate(labels)
    _, first, which = np.unique(source * num_words + label, return_index=True, return_inverse=True)
    mass = np.bincount(which, np.concatenate(masses))
    source, label, target = source[first], label[first], np.concatenate(targets)[first]
    end_mass = np.bincount(np.concatenate(ends), np.concatenate(end_masses), minlength=num_states)
    total = np.bincount(source, mass, minlength=num_states) + end_mass
    return (source, label, target, mass / total[source]), end_mass / np.maximum(total, 1e-300)


def _with_unknown(
    words: Name, arcs: _Arcs, ends: np.ndarray, mass: float, ending: float
) -> tuple[Name, _Arcs, np.ndarray]:
    """With one more state, of unlisted names whose length is that of others on average."""
    sources, labels, targets, probs = arcs
    probs = np.where(sources == 0, probs * (1 - mass), probs)
    state, unknown = len(ends), len(words)
    loop = [(0, state, mass)] + ([(state, state, 1 - ending)] if ending < 1 - 1e-12 else [])
    more = np.array([(source, target) for source, target, _ in loop])
    added = (
        np.concatenate([sources, more[:, 0]]),
        np.concatenate([labels, np.full(len(loop), unknown)]),
        np.concatenate([targets, more[:, 1]]),
        np.concatenate([probs, [prob for _, _, prob in loop]]),
    )
    return (*words, UNK), added, np.append(ends, ending if len(loop) > 1 else 1.0)


def _by_source(words: Name, arcs: _Arcs, ends: np.ndarray) -> SubLm:
    order = np.lexsort((arcs[1], arcs[0]))
    sources, labels, targets, probs = (values[order] for values in arcs)
    with np.errstate(divide="ignore"):
        return SubLm(words, sources, labels, targets, np.log(probs), np.log(ends))


@dataclass(frozen=True, eq=False)
class JoinedSubLms:
    """The automata of C classes as one; the states of a class follow those of the class before.

    Attributes:
        num_words: V, one more than the greatest number of a word.
        starts: (C,) the start state of each class.
        class_of, ends: (S,) the class of each state, and P(the name ends | state).
        keys: (A,) ``source * V + word``, ascending.
        sources, targets, probs: (A,) of the arcs, by key.
        first_words, first_arcs: (F,) the arcs of start states, by word.
    """

    num_words: int
    starts: np.ndarray
    class_of: np.ndarray
    ends: np.ndarray
    keys: np.ndarray
    sources: np.ndarray
    targets: np.ndarray
    probs: np.ndarray
    first_words: np.ndarray
    first_arcs: np.ndarray


def join_sub_lms(subs: Sequence[SubLm], word_ids: Mapping[str, int]) -> JoinedSubLms:
    """The automata as one, over words of these numbers."""
    sizes = [len(sub.finals) for sub in subs]
    starts = np.cumsum([0, *sizes], dtype=np.int64)[:-1]
    num_words = max(word_ids.values(), default=0) + 1
    words = [np.array([word_ids[word] for word in sub.words])[sub.labels] for sub in subs]
    sources = [sub.sources + start for sub, start in zip(subs, starts)]
    targets = [sub.targets + start for sub, start in zip(subs, starts)]
    none = np.zeros(0, dtype=np.int64)
    word, source, target = (np.concatenate([none, *parts]) for parts in (words, sources, targets))
    keys = source * num_words + word
    order = np.argsort(keys)
    first = np.flatnonzero(np.isin(source[order], starts))
    first = first[np.argsort(word[order][first], kind="stable")]
    return JoinedSubLms(
        num_words=num_words,
        starts=starts,
        class_of=np.repeat(np.arange(len(subs)), sizes),
        ends=np.concatenate([np.zeros(0), *(np.exp(sub.finals) for sub in subs)]),
        keys=keys[order],
        sources=source[order],
        targets=target[order],
        probs=np.concatenate([np.zeros(0), *(np.exp(sub.log_probs) for sub in subs)])[order],
        first_words=word[order][first],
        first_arcs=first,
    )


def mix_names(
    counts: Mapping[Name, float], listed: Mapping[Name, float], list_weight: float
) -> dict[Name, float]:
    """The mixture ``(1 - list_weight) f(name) + list_weight g(name)`` of relative frequencies.

    Where one of the two has no name, the other stands alone.

    >>> mix_names({("ann",): 3, ("bob",): 1}, {("bob",): 0.5, ("eve",): 0.5}, 0.5)
    {('ann',): 0.375, ('bob',): 0.375, ('eve',): 0.25}
    """
    parts = [(counts, 1.0 - list_weight), (listed, list_weight)]
    parts = [(part, weight) for part, weight in parts if sum(part.values()) > 0]
    total = sum(weight for _, weight in parts)
    if total == 0:  # one part only, and of weight 0
        parts, total = [(part, 1.0) for part, _ in parts], 1.0
    mixed: dict[Name, float] = {}
    for part, weight in parts:
        scale = weight / total / sum(part.values())
        for name, value in part.items():
            mixed[name] = mixed.get(name, 0.0) + scale * value
    return mixed


def within(names: Mapping[Name, float], words: Collection[str]) -> dict[Name, float]:
    """The names of which all words are in ``words``."""
    return {name: weight for name, weight in names.items() if all(word in words for word in name)}


def write_sub_lm(path: Path, sub: SubLm) -> None:
    """Write a line ``source target word lnP`` for each arc, ``state lnP`` for each end."""
    words = [sub.words[label] for label in sub.labels.tolist()]
    rows = zip(sub.sources.tolist(), sub.targets.tolist(), words, sub.log_probs.tolist())
    lines = [f"{source} {target} {word} {log_prob!r}\n" for source, target, word, log_prob in rows]
    ends = np.flatnonzero(np.isfinite(sub.finals))
    finals = zip(ends.tolist(), sub.finals[ends].tolist())
    lines += [f"{state} {value!r}\n" for state, value in finals]
    write_text(path, "".join(lines))


def read_sub_lm(path: Path, *, tolerance: float = 1e-5) -> SubLm:
    """Read and check an automaton.

    Raises:
        DataError: another line, a tag or a boundary as a word, two arcs of one state and word,
            probabilities of a state that do not sum to 1 within ``tolerance``, an end in the start
            state, a state from which no name ends.
    """
    if not path.is_file():
        way_out = "make it with train_ngram --out-class-lm"
        raise DataError(path, "a sub-language model", "no such file", way_out)
    arcs: dict[tuple[int, str], tuple[int, float]] = {}
    finals: dict[int, float] = {}
    last_line: dict[int, int] = {}
    for number, line in read_lines(path):
        fields = line.split()
        if not fields:
            continue
        states = fields[: len(fields) // 2]
        if len(fields) not in (2, 4) or not all(map(str.isdecimal, states)):
            raise _wrong(path, number, "'source target word lnP' or 'state lnP'", repr(line))
        value, state = _log_prob(path, number, fields[-1]), int(fields[0])
        last_line[state] = number
        if len(fields) == 2:
            if state == 0 or state in finals:
                expected = "one end for each state but the start (no empty name)"
                raise _wrong(path, number, expected, repr(line))
            finals[state] = value
            continue
        word = fields[2]
        if word in (BOS, EOS) or (word.startswith("<") and word.endswith(">") and word != UNK):
            raise _wrong(path, number, "words (sub-models are not nested)", word)
        if (state, word) in arcs:
            found = f"a second one of {state} {word}"
            raise _wrong(path, number, "one arc for each state and word", found)
        arcs[state, word] = (int(fields[1]), value)
    if not arcs:
        raise _wrong(path, 1, "arcs", "an empty class")
    targets = [target for target, _ in arcs.values()]
    num_states = 1 + max(*finals, *targets, *(state for state, _ in arcs))
    words = tuple(sorted({word for _, word in arcs}, key=lambda word: (word == UNK, word)))
    numbers = {word: number for number, word in enumerate(words)}
    ends = np.exp([finals.get(state, -math.inf) for state in range(num_states)])
    columns = (
        np.array([state for state, _ in arcs]),
        np.array([numbers[word] for _, word in arcs]),
        np.array(targets),
        np.exp([value for _, value in arcs.values()]),
    )
    sub = _by_source(words, columns, ends)
    wrong = np.flatnonzero(np.abs(sub.sums - 1) > tolerance)
    if wrong.size:
        state = int(wrong[0])
        expected = f"probabilities of state {state} that sum to 1"
        raise _wrong(path, last_line.get(state, 1), expected, f"{sub.sums[state]:.6g}")
    endless = np.flatnonzero(~_ending(sub))
    if endless.size:
        state = int(endless[0])
        expected = f"a way from state {state} to an end"
        raise _wrong(path, last_line.get(state, 1), expected, "names that never end")
    return sub


def _ending(sub: SubLm) -> np.ndarray:
    """(S,) whether a name can end, now or after more words."""
    ending = np.isfinite(sub.finals)
    possible = np.isfinite(sub.log_probs)
    while True:
        more = sub.sources[possible & ending[sub.targets] & ~ending[sub.sources]]
        if not more.size:
            return ending
        ending[more] = True


def _log_prob(path: Path, number: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value <= 1e-9:
        raise _wrong(path, number, "ln P at most 0", repr(text))
    return value


def _wrong(path: Path, number: int, expected: str, found: str) -> DataError:
    return DataError(f"{path}:{number}", expected, found, "repair it, or train it again")
