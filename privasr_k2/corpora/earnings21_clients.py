"""Earnings-21 as the text of clients: a recognizer's words with confidences, by call and speaker.

The recognizer tells neither speakers nor utterances. Each of its words gets the speaker of the gold
word that it is aligned with (an inserted one that of the word before it), so that the *clients* are
those of the gold words, while their text, errors and confidences are the recognizer's. An utterance
ends where the speaker changes, or at a pause.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from privasr_k2.constraints import Checked, Positive
from privasr_k2.corpora.earnings21 import ROLES, Earnings21Config, deal, read_recognized
from privasr_k2.corpora.spoken_numbers import spoken_words
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines
from privasr_k2.scoring.align import align

_GOLD, _CTM = ".tsv.gz", ".ctm.gz"
_ENDS = frozenset(".?!")
Line = dict[str, object]


@dataclass(frozen=True)
class Earnings21ClientsConfig(Checked):
    """``conf/corpora.yaml#earnings21_clients``, where every number is explained."""

    recognizer: str
    pause: Positive


@dataclass(frozen=True)
class DealtClientsConfig(Earnings21ClientsConfig, Earnings21Config):
    """Both files."""


def read_clients_of(corpus: Path, config: DealtClientsConfig) -> dict[str, dict[str, list[Line]]]:
    """Role -> ``recognized`` and ``gold`` -> lines of a clients' file (``docs/formats.md``).

    Gold sentences end where the corpus has a full stop, a question mark or an exclamation mark, and
    where the speaker changes.

    Raises:
        DataError: no gold words, or no words of the recognizer for a call.
    """
    gold = {
        path.name.removesuffix(_GOLD): path for path in sorted((corpus / "gold").glob(f"*{_GOLD}"))
    }
    roles = deal(list(gold), config)
    found: dict[str, dict[str, list[Line]]] = {
        role: {"recognized": [], "gold": []} for role in ROLES
    }
    for call, path in gold.items():
        ctm = corpus / f"ctm_{config.recognizer}" / f"{call}{_CTM}"
        if not ctm.is_file():
            raise DataError(
                ctm,
                "the words of a recognizer",
                "no such file",
                "correct recognizer or --corpus-dir",
            )
        sentences = list(gold_sentences(path))
        lines = found[roles[call]]
        lines["gold"] += [
            _line(call, speaker, number, words, None)
            for number, (speaker, words) in enumerate(sentences)
        ]
        lines["recognized"] += recognized_lines(ctm, call, sentences, config.pause)
    return found


def gold_sentences(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The sentences of a call with their speakers, as they are said; those without a word are left
    out.

    Raises:
        DataError: with line: not the columns that the corpus has.
    """
    speaker, tokens = "", list[str]()
    for number, line in read_lines(path):
        fields = line.split("\t")
        if len(fields) != 5:
            raise DataError(f"{path}:{number}", "five columns", repr(line)[:60], "correct the line")
        if number == 1:
            continue
        if tokens and fields[2] != speaker:
            yield from _said(speaker, tokens)
            tokens = []
        speaker = fields[2]
        tokens.append(fields[1])
        if fields[3][-1:] in _ENDS:
            yield from _said(speaker, tokens)
            tokens = []
    yield from _said(speaker, tokens)


def _said(speaker: str, tokens: list[str]) -> Iterator[tuple[str, list[str]]]:
    words = " ".join(spoken_words(tokens)).split()
    if words:
        yield speaker, words


def recognized_lines(
    ctm: Path, call: str, sentences: list[tuple[str, list[str]]], pause: float
) -> list[Line]:
    """The recognizer's utterances in a call."""
    hyp = read_recognized(ctm, call)
    words, times, confidences = hyp.words.split(), hyp.times or (), hyp.confidences or ()
    speakers = speakers_of(words, sentences)
    begins = [0] + [
        place
        for place in range(1, len(words))
        if speakers[place] != speakers[place - 1] or times[place][0] - times[place - 1][1] > pause
    ]
    lines = []
    for number, (begin, end) in enumerate(itertools.pairwise([*begins, len(words)])):
        if end > begin:
            own = list(confidences[begin:end])
            lines.append(_line(call, speakers[begin], number, words[begin:end], own))
    return lines


def speakers_of(words: list[str], sentences: list[tuple[str, list[str]]]) -> list[str]:
    """The speaker of each recognized word, by alignment with the gold words.

    >>> speakers_of("a x c d".split(), [("1", ["a", "b"]), ("2", ["d"])])
    ['1', '1', '1', '2']
    """
    gold = [word for _, said in sentences for word in said]
    owners = iter([speaker for speaker, said in sentences for _ in said])
    speaker, found = sentences[0][0], []
    for ref, hyp in align(gold, words):
        if ref is not None:
            speaker = next(owners)
        if hyp is not None:
            found.append(speaker)
    return found


def _line(
    call: str, speaker: str, number: int, words: list[str], confidences: list[float] | None
) -> Line:
    name = f"{call}-{speaker}"
    return {
        "client": name,
        "id": f"{name}-{number:05}",
        "words": " ".join(words),
        "num_words": len(words),
        "confidences": confidences,
    }
