"""N-best lists in other formats: Kaldi's text archives, and of the best hypothesis CTM and trn.

A Kaldi folder holds what ``lattice-to-nbest`` and ``nbest-to-linear`` write as text, words as
symbols (``utils/int2sym.pl``): ``words`` (``utt-RANK WORD WORD...``), ``ac_cost`` and ``lm_cost``
(``utt-RANK COST``, the negated natural logs, unscaled). Our own are ``lm_cost.NAME``, the costs of
a further LM, and ``no_path``, the utterances without a path.
"""

from __future__ import annotations

import logging
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from privasr_k2.errors import DataError
from privasr_k2.fileio import atomic_path, read_jsonl, read_lines, write_text
from privasr_k2.scoring.hypotheses import some_of
from privasr_k2.scoring.nbest_lists import GRAPH, Hypothesis, NbestList, NbestLists

log = logging.getLogger(__name__)

Ranked = dict[str, tuple[Hypothesis, ...]]
"""The hypotheses of each utterance in a foreign file; none where it records no path."""

_CHANNEL = "1"
_NO_TIMES = (
    "make lists by decode with --in-lang; lists of Kaldi's lattices, of Kaldi's folders, of trn and"
    " of other units than a graph's words have none: import a CTM (lattice-to-ctm-conf)"
)
_RANK = re.compile("[1-9][0-9]{0,8}")
_TRN = re.compile(r"^(.*?)\s*\(([^()\s]+)\)\s*$")


class Reference(NamedTuple):
    """The record of an utterance in a manifest."""

    part: str
    speaker: str
    text: str


def read_references(cuts: Path) -> dict[str, Reference]:
    """Part, user and reference of each cut of a ``cuts_<role>.jsonl.gz``.

    Raises:
        DataError: a cut without id or supervision.
    """
    references = {}
    for number, cut in enumerate(read_jsonl(cuts), start=1):
        try:
            supervision, custom = cut["supervisions"][0], cut.get("custom") or {}
            values = custom.get("part"), supervision.get("speaker"), supervision.get("text")
            references[str(cut["id"])] = Reference(*(str(text or "") for text in values))
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            expected, found = "cuts with an id and a supervision", f"cut {number} without"
            raise DataError(cuts, expected, found, "prepare the corpus again") from error
    return references


def read_kaldi_references(folder: Path) -> dict[str, Reference]:
    """Part, user and reference of each utterance of a Kaldi data directory.

    Args:
        folder: with ``utt2spk``; its name is that of the part. Without ``text``, as what clients
            said to their devices has none, references are empty.

    Raises:
        DataError: a missing file, an utterance twice, or one without a speaker.
    """
    has_text = (folder / "text").is_file() or not (folder / "utt2spk").is_file()
    texts = _kaldi_table(folder / "text") if has_text else {}
    speakers = _kaldi_table(folder / "utt2spk")
    if not has_text:
        log.info("%s: no file text, so that lists have no references", folder)
        texts = dict.fromkeys(speakers, "")
    if lacking := sorted(name for name in texts if not speakers.get(name)):
        found = f"{len(lacking)} without: {some_of(lacking)}"
        raise DataError(folder / "utt2spk", "a speaker of every utterance", found, "add them")
    return {name: Reference(folder.name, speakers[name], text) for name, text in texts.items()}


def _kaldi_table(path: Path) -> dict[str, str]:
    """What a file of a Kaldi data directory says of each utterance."""
    if not path.is_file():
        way_out = "give a Kaldi data directory, or cuts"
        raise DataError(path, f"a file {path.name} of utterances", "nothing", way_out)
    table: dict[str, str] = {}
    for number, line in read_lines(path):
        key, _, value = line.strip().replace("\t", " ").partition(" ")
        if key in table:
            place = f"{path}:{number}"
            raise DataError(place, "every utterance once", f"{key} again", "take one out")
        if key:
            table[key] = " ".join(value.split())
    return table


def with_references(
    ranked: Ranked, references: Mapping[str, Reference] | None, place: str | Path
) -> Iterator[NbestList]:
    """Lists from hypotheses that were read from ``place``, sorted by id.

    An utterance with a reference and without hypotheses has no path. Without ``references``, part,
    user and reference stay empty.

    Raises:
        DataError: hypotheses of an utterance without a reference.
    """
    if references is not None:
        if surplus := sorted(set(ranked) - set(references)):
            expected = "only utterances that have a reference"
            way_out = "give the cuts that were recognized, or rename the utterances"
            raise DataError(place, expected, f"{len(surplus)} others: {some_of(surplus)}", way_out)
        if missing := sorted(set(references) - set(ranked)):
            counts = len(missing), len(references)
            text = "%s: nothing for %d of %d utterances (no path there): %s"
            log.warning(text, place, *counts, some_of(missing))
    for name in sorted(ranked if references is None else references):
        hyps = ranked.get(name, ())
        part, speaker, text = ("", "", "") if references is None else references[name]
        yield NbestList(name, part, speaker, text, not hyps, hyps)


def write_kaldi(lists: NbestLists, folder: Path) -> None:
    """Write a Kaldi folder, whole or not at all; reading its costs gives the same numbers."""
    names = ("words", "ac_cost", *map(_cost_file, lists.lm_names))
    texts: dict[str, list[str]] = {name: [] for name in names}
    lost = [nbest.id for nbest in lists.lists if nbest.no_path]
    for nbest in lists.lists:
        for hyp in nbest.hyps:
            key = f"{nbest.id}-{hyp.rank}"
            texts["words"].append(f"{key} {hyp.words}".rstrip())
            texts["ac_cost"].append(f"{key} {0.0 - hyp.am_score!r}")
            for lm in lists.lm_names:
                texts[_cost_file(lm)].append(f"{key} {0.0 - hyp.lm_scores[lm]!r}")
    if lost:
        texts["no_path"] = lost
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        for name, lines in texts.items():
            write_text(temporary / name, "".join(f"{line}\n" for line in lines))


def read_kaldi(folder: Path) -> Ranked:
    """Read a Kaldi folder.

    Of hypotheses of one utterance with the same words the first is kept; those after it move up.

    Raises:
        DataError: with file and line: a key that is not ``utt-RANK`` or that comes twice; ranks
            that skip; a cost that is missing, surplus or no finite number; an utterance without a
            path that has words or comes twice.
    """
    words = folder / "words"
    if not words.is_file():
        way_out = "write it with nbest-to-linear"
        raise DataError(words, "the words of an N-best list", "nothing", way_out)
    texts: dict[str, dict[int, tuple[str, str]]] = defaultdict(dict)
    for place, key, value in _entries(words):
        utterance, rank = _utterance_and_rank(place, key)
        if rank in texts[utterance]:
            raise DataError(place, "every rank once", f"{key} again", "keep one of the two")
        texts[utterance][rank] = (place, " ".join(value.split()))
    known = {f"{utterance}-{rank}" for utterance, ranks in texts.items() for rank in ranks}
    acoustic = _costs(folder / "ac_cost", known)
    lms = {
        path.name.partition(".")[2] or GRAPH: _costs(path, known)
        for path in sorted(folder.glob("lm_cost*"))
        if path.name.startswith("lm_cost.") or path.name == "lm_cost"
    }
    ranked: Ranked = {}
    repeated = 0
    for utterance, ranks in texts.items():
        hyps: dict[str, Hypothesis] = {}
        for expected, rank in enumerate(sorted(ranks), start=1):
            place, text = ranks[rank]
            if rank != expected:
                found = f"{rank} after {expected - 1}"
                raise DataError(place, f"the ranks 1, 2, ... of {utterance}", found, "number anew")
            repeated += text in hyps
            key = f"{utterance}-{rank}"
            scores = {lm: 0.0 - costs[key] for lm, costs in lms.items()}
            hyps.setdefault(text, Hypothesis(len(hyps) + 1, text, 0.0 - acoustic[key], scores))
        ranked[utterance] = tuple(hyps.values())
    if repeated:
        log.info("%s: %d hypotheses with the words of a better one are left out", folder, repeated)
    if (folder / "no_path").is_file():
        for number, line in read_lines(folder / "no_path"):
            name = line.strip()
            if name in ranked:
                what = "which has words" if ranked[name] else "again"
                place, found = f"{folder / 'no_path'}:{number}", f"{name} {what}"
                wanted = "every utterance without a path, once"
                raise DataError(place, wanted, found, "take the line out")
            if name:
                ranked[name] = ()
    return ranked


def write_ctm(lists: NbestLists, path: Path) -> None:
    """Write the best hypotheses as CTM: ``utt channel start duration word confidence``.

    Times are in seconds, rounded to milliseconds; a word without confidence has five columns.
    Utterances without words have no line.

    Raises:
        DataError: words without times.
    """
    lines = []
    for nbest in lists.lists:
        for hyp in nbest.hyps[:1]:
            words = hyp.words.split()
            if words and hyp.times is None:
                place, found = lists.lines[nbest.id], f"none for {nbest.id}"
                raise DataError(place, "word times", found, _NO_TIMES)
            for n, (word, (start, end)) in enumerate(zip(words, hyp.times or ())):
                confidence = "" if hyp.confidences is None else f" {hyp.confidences[n]:.6f}"
                lines.append(
                    f"{nbest.id} {_CHANNEL} {start:.3f} {end - start:.3f} {word}{confidence}\n"
                )
    write_text(path, "".join(lines))


def read_ctm(paths: Iterable[Path]) -> Ranked:
    """Read CTM files as lists of one hypothesis, words sorted by their starts.

    Times stay those of the file, which begin with the recording; ``am_score`` is 0.

    Raises:
        DataError: a file without words; with file and line: a wrong column, alternatives, several
            channels of one utterance, confidences of only some words.
    """
    spoken: dict[str, list[tuple[float, float, str, float | None]]] = defaultdict(list)
    channels: dict[str, str] = {}
    for path in paths:
        empty = True
        for number, line in read_lines(path):
            if not line.strip() or line.startswith(";;"):
                continue
            empty = False
            place, fields = f"{path}:{number}", line.split()
            if len(fields) not in (5, 6):
                expected = "utt channel start duration word [confidence]"
                raise DataError(place, expected, f"{len(fields)} columns", "correct the line")
            name, channel, start, duration, word = fields[:5]
            if word.startswith("<ALT"):
                found = f"alternatives ({word})"
                raise DataError(place, "one word at a time", found, "choose one of them")
            if channels.setdefault(name, channel) != channel:
                expected, found = (
                    f"the channel {channels[name]} of {name}",
                    f"the channel {channel}",
                )
                way_out = "give channels names of their own in the first column"
                raise DataError(place, expected, found, way_out)
            begin = _in_range(place, "a start", start, math.inf)
            length = _in_range(place, "a duration", duration, math.inf)
            _in_range(place, "an end", repr(begin + length), math.inf)
            sure = _in_range(place, "a confidence", fields[5], 1.0) if len(fields) == 6 else None
            if spoken[name] and (spoken[name][-1][3] is None) != (sure is None):
                expected = f"confidences of all words of {name}, or of none"
                raise DataError(place, expected, line, "add the missing ones")
            spoken[name].append((begin, begin + length, word, sure))
        if empty:
            expected = "words with times"
            raise DataError(path, expected, "none", "write it again, or leave the file out")
    ranked: Ranked = {}
    for name, words in spoken.items():
        words.sort(key=lambda word: word[0])
        confidences = tuple(word[3] for word in words if word[3] is not None)
        times = tuple((word[0], word[1]) for word in words)
        text = " ".join(word[2] for word in words)
        ranked[name] = (Hypothesis(1, text, 0.0, {}, confidences or None, times),)
    return ranked


def write_trn(lists: NbestLists, path: Path, *, references: bool = False) -> None:
    """Write the best hypotheses, or the references, as trn: ``words (utt)``."""
    lines = []
    for nbest in lists.lists:
        words = nbest.ref if references else nbest.hyps[0].words if nbest.hyps else ""
        lines.append(f"{words} ({nbest.id})\n".lstrip())
    write_text(path, "".join(lines))


def read_trn(path: Path) -> Ranked:
    """Read a trn file as lists of one hypothesis; ``am_score`` is 0.

    Raises:
        DataError: with file and line: no utterance in brackets, an utterance twice, alternatives.
    """
    ranked: Ranked = {}
    for number, line in read_lines(path):
        if not line.strip() or line.startswith(";;"):
            continue
        place, match = f"{path}:{number}", _TRN.match(line)
        if match is None:
            raise DataError(place, "words (utterance)", repr(line)[:60], "correct the line")
        words, name = match[1].split(), match[2]
        if "{" in words:
            expected = "one word at a time"
            raise DataError(place, expected, "alternatives in { }", "choose one of them")
        if name in ranked:
            raise DataError(place, "every utterance once", f"{name} again", "keep one of the two")
        ranked[name] = (Hypothesis(1, " ".join(words), 0.0, {}),)
    return ranked


def _cost_file(lm: str) -> str:
    return "lm_cost" if lm == GRAPH else f"lm_cost.{lm}"


def _entries(path: Path) -> Iterator[tuple[str, str, str]]:
    """``file:line``, key and the rest of each line."""
    if not path.is_file():
        expected = "a cost for every hypothesis"
        raise DataError(path, expected, "nothing", "write it with nbest-to-linear")
    for number, line in read_lines(path):
        key, _, value = line.strip().replace("\t", " ").partition(" ")
        if key:
            yield f"{path}:{number}", key, value.strip()


def _utterance_and_rank(place: str, key: str) -> tuple[str, int]:
    utterance, _, rank = key.rpartition("-")
    if not utterance or not _RANK.fullmatch(rank):
        expected = "a key such as utt-1, utt-2, ..."
        raise DataError(place, expected, key, "write it with lattice-to-nbest")
    return utterance, int(rank)


def _costs(path: Path, known: set[str]) -> dict[str, float]:
    costs: dict[str, float] = {}
    for place, key, value in _entries(path):
        if key not in known or key in costs:
            what = "again" if key in costs else "without words"
            expected = "one cost for every hypothesis"
            raise DataError(place, expected, f"{key} {what}", "take the line out")
        costs[key] = _in_range(place, f"the cost of {key}", value, math.inf, -math.inf)
    if missing := sorted(known - set(costs)):
        lost = f"{len(missing)} of {len(known)} missing: {some_of(missing)}"
        raise DataError(path, "a cost for every hypothesis", lost, "write it with nbest-to-linear")
    return costs


def _in_range(place: str, what: str, text: str, most: float, least: float = 0.0) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and least <= number <= most):
        limits = f" from {least:g} to {most:g}" if math.isfinite(most) else ""
        expected = f"{what}, a number{limits or (' from 0' if least == 0 else '')}"
        raise DataError(place, expected, repr(text), "correct it")
    return number
