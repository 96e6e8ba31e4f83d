"""N-best lists: a folder of ``*.jsonl`` with one utterance a line, written, read and checked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError
from privasr_k2.fileio import parse_record, read_lines, write_jsonl
from privasr_k2.scoring.hypotheses import Decoded, Utterance, Weights, read_cut_ids, some_of

GRAPH = "graph"
"""The name of the first pass's own LM scores: those of its decoding graph."""

_REPAIR = "make the lists again, or correct the line"


@dataclass(frozen=True)
class Hypothesis:
    """One word sequence of a list.

    Attributes:
        rank: from 1.
        words: one space between them; none is a hypothesis, too.
        am_score: natural log, unweighted; 0 where it is not known.
        lm_scores: natural log, unweighted, by the LM's name; ``graph`` is the first pass's.
        confidences: P(the word is correct) of each word, where known.
        times: start and end of each word in seconds of the cut, where known.
        classes: spans ``(first word, last word + 1, class)`` of entities, where known.
        depths: effective number of words in the lattice at each word, itself included, where known.
    """

    rank: int
    words: str
    am_score: float
    lm_scores: Mapping[str, float]
    confidences: tuple[float, ...] | None = None
    times: tuple[tuple[float, float], ...] | None = None
    classes: tuple[tuple[int, int, str], ...] | None = None
    depths: tuple[float, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The hypothesis as plain values."""
        return {
            "rank": self.rank,
            "words": self.words,
            "am_score": self.am_score,
            "lm_scores": dict(self.lm_scores),
            "confidences": None if self.confidences is None else list(self.confidences),
            "times": None if self.times is None else [list(span) for span in self.times],
            "classes": None if self.classes is None else [list(span) for span in self.classes],
            "depths": None if self.depths is None else list(self.depths),
        }


@dataclass(frozen=True)
class NbestList:
    """The recognized hypotheses of one utterance.

    Attributes:
        id: of the cut.
        part: the corpus's own name of the part that it is scored with.
        speaker: the user.
        ref: the normalized reference.
        no_path: the search ended without a path; ``hyps`` is then empty, and otherwise it is not.
        hyps: by rank, all with different words.
    """

    id: str
    part: str
    speaker: str
    ref: str
    no_path: bool
    hyps: tuple[Hypothesis, ...]

    def to_dict(self) -> dict[str, Any]:
        """The list as plain values, a line of the file.

        >>> hyp = Hypothesis(1, "hi", -2.5, {"graph": -1.0})
        >>> record = NbestList("u1", "dev", "s1", "hi", False, (hyp,)).to_dict()
        >>> record["hyps"][0]["words"], record["hyps"][0]["lm_scores"]
        ('hi', {'graph': -1.0})
        """
        names = ("id", "part", "speaker", "ref", "no_path")
        values = {name: getattr(self, name) for name in names}
        return {**values, "hyps": [hyp.to_dict() for hyp in self.hyps]}


@dataclass(frozen=True)
class NbestLists:
    """The lists of one role.

    Attributes:
        place: the folder.
        lists: sorted by id, whichever job wrote them.
        lines: where each utterance stands, ``file:line``.
        lm_names: the LMs whose scores every hypothesis has, sorted.
    """

    place: Path
    lists: tuple[NbestList, ...]
    lines: Mapping[str, str]
    lm_names: tuple[str, ...]


def write_nbest(path: Path, lists: Iterable[NbestList]) -> None:
    """Write lists as JSON Lines, whole or not at all."""
    write_jsonl(path, (nbest.to_dict() for nbest in lists))


def read_nbest(folder: Path) -> NbestLists:
    """Read and check the lists of all jobs.

    Raises:
        DataError: with file and line: no lists, an utterance twice, or a record that breaks what
            :class:`NbestList` and :class:`Hypothesis` say of its values.
    """
    lists: dict[str, NbestList] = {}
    lines: dict[str, str] = {}
    names: tuple[str, ...] | None = None
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in read_lines(path):
            if not line.strip():
                continue
            place = f"{path}:{number}"
            nbest = parse_nbest(place, line)
            if nbest.id in lists:
                found = f"{nbest.id} again, which {lines[nbest.id]} has"
                raise DataError(place, "every utterance once", found, _REPAIR)
            for hyp in nbest.hyps:
                scored = tuple(sorted(hyp.lm_scores))
                names = scored if names is None else names
                if names != scored:
                    where, way_out = _of(place, nbest.id, hyp.rank), "score all with the same LMs"
                    expected = f"the LM scores {_names(names)}, as the hypotheses before have"
                    raise DataError(where, expected, _names(scored), way_out)
            lists[nbest.id], lines[nbest.id] = nbest, place
    if not lists:
        expected = "*.jsonl files with an N-best list a line"
        raise DataError(folder, expected, "none", "run decode or import with --out-nbest")
    return NbestLists(folder, tuple(lists[name] for name in sorted(lists)), lines, names or ())


def parse_nbest(place: str, line: str) -> NbestList:
    """One line of a file, checked as for :func:`read_nbest`; ``place`` is for the error."""
    record = parse_record(line, place, way_out=_REPAIR)
    for key in ("id", "part", "speaker", "ref"):
        if not isinstance(_get(place, record, key), str):
            raise DataError(place, f"text for the key {key!r}", repr(record[key])[:60], _REPAIR)
    no_path, hyps = _get(place, record, "no_path"), _get(place, record, "hyps")
    if not isinstance(no_path, bool) or not isinstance(hyps, list):
        raise DataError(place, "no_path (true or false) and a list of hyps", line[:60], _REPAIR)
    if no_path == bool(hyps):
        found = f"{len(hyps)} hypotheses and no_path {str(no_path).lower()}"
        raise DataError(f"{place} ({record['id']})", "hypotheses, or else no_path", found, _REPAIR)
    name, numbered = record["id"], enumerate(hyps, start=1)
    ranked = tuple(_hypothesis(place, name, rank, hyp) for rank, hyp in numbered)
    seen: dict[str, int] = {}
    for hyp in ranked:
        if hyp.words in seen:
            where, expected = _of(place, name, hyp.rank), "hypotheses with different words"
            found = f"those of rank {seen[hyp.words]} again, {hyp.words!r}"
            raise DataError(where, expected, found, "keep the better one of the two")
        seen[hyp.words] = hyp.rank
    return NbestList(name, record["part"], record["speaker"], record["ref"], no_path, ranked)


def check_nbest_complete(lists: NbestLists, cuts: Path) -> None:
    """Refuse references of ``cuts_<role>.jsonl.gz`` without a list, and lists without a reference.

    Raises:
        DataError: the first of them.
    """
    expected = set(read_cut_ids(cuts))
    if missing := sorted(expected - set(lists.lines)):
        found = f"{len(missing)} of {len(expected)} missing: {some_of(missing)}"
        way_out = "make the lists again"
        raise DataError(lists.place, f"a list for every utterance of {cuts}", found, way_out)
    if surplus := [nbest.id for nbest in lists.lists if nbest.id not in expected]:
        found, way_out = f"{len(surplus)} others: {some_of(surplus)}", "give those of one role"
        raise DataError(lists.lines[surplus[0]], f"only utterances of {cuts}", found, way_out)


def first_hypotheses(lists: NbestLists) -> Decoded:
    """The first hypothesis of every list, as decoded at one point without weights.

    The role is what follows ``nbest_`` in the folder's name.

    Raises:
        DataError: no list has a reference.
    """
    if not any(nbest.ref for nbest in lists.lists):
        way_out = "import them with --in-cuts or --raw-data"
        raise DataError(lists.place, "references", "lists without any", way_out)
    point = Weights(0.0, 0.0)
    utterances = []
    for nbest in lists.lists:
        words = tuple(nbest.hyps[0].words.split()) if nbest.hyps else ()
        told = nbest.id, nbest.part, nbest.speaker, tuple(nbest.ref.split()), nbest.no_path
        utterances.append(Utterance(*told, {point: words}))
    role = lists.place.resolve().name.removeprefix("nbest_")
    return Decoded(lists.place, role, tuple(utterances), (point,))


def check_vocabulary(
    lists: NbestLists,
    vocabulary: Container[str],
    source: str | Path,
    way_out: str = "normalize the lists as the LM's text",
) -> None:
    """Refuse words that the vocabulary of the file ``source`` does not have.

    Raises:
        DataError: unknown words, with the line of the first one.
    """
    unknown = unknown_words(lists, vocabulary)
    if unknown:
        first = next(
            _of(lists.lines[nbest.id], nbest.id, hyp.rank)
            for nbest in lists.lists
            for hyp in nbest.hyps
            if not unknown.keys().isdisjoint(hyp.words.split())
        )
        found = f"{len(unknown)} others in {lists.place}: {some_of(list(unknown))}"
        raise DataError(first, f"the words of {source}", found, way_out)


def unknown_words(lists: NbestLists, vocabulary: Container[str]) -> Counter[str]:
    """How often each unknown word occurs in the hypotheses, in the order of the lists."""
    words = Counter(
        word for nbest in lists.lists for hyp in nbest.hyps for word in hyp.words.split()
    )
    return Counter({word: count for word, count in words.items() if word not in vocabulary})


def _hypothesis(place: str, name: str, rank: int, record: Any) -> Hypothesis:
    where = _of(place, name, rank)
    if not isinstance(record, dict):
        raise DataError(where, "a hypothesis, a JSON object", repr(record)[:60], _REPAIR)
    if _get(where, record, "rank") != rank or isinstance(record["rank"], bool):
        raise DataError(where, f"rank {rank}: 1, 2, 3, ...", f"rank {record['rank']!r}", _REPAIR)
    if not isinstance(_get(where, record, "words"), str):
        raise DataError(where, "words as one text", repr(record["words"])[:60], _REPAIR)
    words = record["words"].split()
    scores = _get(where, record, "lm_scores")
    if not isinstance(scores, dict):
        raise DataError(where, "lm_scores by name", repr(scores)[:60], _REPAIR)
    return Hypothesis(
        rank,
        " ".join(words),
        _number(where, "am_score", _get(where, record, "am_score")),
        {lm: _number(where, f"lm_scores.{lm}", score) for lm, score in scores.items()},
        _numbers(where, "confidences", words, record, 0, "from 0 to 1"),
        _times(where, words, record.get("times")),
        _classes(where, words, record.get("classes")),
        _numbers(where, "depths", words, record, 1, "of 1 or more"),
    )


def _numbers(
    where: str, name: str, words: list[str], record: Mapping[str, Any], least: int, limits: str
) -> tuple[float, ...] | None:
    """A number of at least ``least`` for each word; confidences are at most 1."""
    values = record.get(name)
    if values is None:
        return None
    numbers = tuple(_number(where, name, v) for v in _one_a_word(where, name, words, values))
    most = 1 if name == "confidences" else math.inf
    for word, number in zip(words, numbers):
        if not least <= number <= most:
            raise DataError(where, f"{name} {limits}", f"{number} for {word!r}", _REPAIR)
    return numbers


def _times(where: str, words: list[str], values: Any) -> tuple[tuple[float, float], ...] | None:
    if values is None:
        return None
    spans: list[tuple[float, float]] = []
    for word, span in zip(words, _one_a_word(where, "times", words, values)):
        if not isinstance(span, list) or len(span) != 2:
            raise DataError(where, f"start and end of {word!r}", repr(span)[:60], _REPAIR)
        start, end = (_number(where, "times", value) for value in span)
        before = spans[-1][0] if spans else 0.0
        if not before <= start <= end:
            found = f"{word!r} from {start} to {end}"
            found += f" after a word that starts at {before}" if spans else ""
            raise DataError(where, "times that go forwards, from 0", found, _REPAIR)
        spans.append((start, end))
    return tuple(spans)


def _classes(where: str, words: list[str], values: Any) -> tuple[tuple[int, int, str], ...] | None:
    if values is None:
        return None
    spans = []
    for span in values if isinstance(values, list) else [values]:
        right = isinstance(span, list) and [type(v) for v in span] == [int, int, str]
        if not right or not 0 <= span[0] < span[1] <= len(words):
            expected = f"classes as [first word, last word + 1, class] within {len(words)} words"
            raise DataError(where, expected, repr(span)[:60], _REPAIR)
        spans.append((span[0], span[1], span[2]))
    return tuple(spans)


def _one_a_word(where: str, name: str, words: list[str], values: Any) -> list[Any]:
    if not isinstance(values, list) or len(values) != len(words):
        found = f"{len(values)}" if isinstance(values, list) else repr(values)[:60]
        raise DataError(where, f"{name} for each of {len(words)} words", found, _REPAIR)
    return values


def _number(where: str, name: str, value: Any) -> float:
    try:
        number = float(value) if type(value) in (int, float) else math.nan
    except OverflowError:  # a whole number of more digits than a float has room for
        number = math.inf
    if not math.isfinite(number):
        raise DataError(where, f"a finite number as {name}", repr(value)[:60], _REPAIR)
    return number


def _get(where: str, record: Mapping[str, Any], key: str) -> Any:
    if key not in record:
        raise DataError(where, f"the key {key!r}", f"only {' '.join(record)}", _REPAIR)
    return record[key]


def _of(place: str, name: str, rank: int) -> str:
    return f"{place} ({name}, hypothesis {rank})"


def _names(names: tuple[str, ...]) -> str:
    return " ".join(names) or "of no LM"
