"""Earnings-21 as the text of clients: a recognizer's words with confidences, by call and speaker.

Each recognized word gets the speaker of the gold word it is aligned with; an inserted one, that of
the word before it. An utterance ends where the speaker changes, or at a pause.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from privasr_k2.constraints import Checked, Positive
from privasr_k2.corpora.earnings21 import ROLES, Earnings21Config, deal, gold_files, read_recognized
from privasr_k2.corpora.spoken_numbers import spoken_words
from privasr_k2.errors import DataError
from privasr_k2.scoring.align import align
from privasr_k2.text.tag_gold import earnings21_rows

_ENDS = frozenset(".?!")
Line = dict[str, object]


@dataclass(frozen=True)
class Earnings21ClientsConfig(Checked):
    """Section ``earnings21_clients`` of ``conf/corpora.yaml``."""

    recognizer: str
    pause: Positive


@dataclass(frozen=True)
class DealtClientsConfig(Earnings21ClientsConfig, Earnings21Config):
    """The sections ``earnings21`` and ``earnings21_clients``."""


def read_clients_of(corpus: Path, config: DealtClientsConfig) -> dict[str, dict[str, list[Line]]]:
    """Role -> ``recognized`` and ``gold`` -> lines of a clients' file (``docs/formats.md``).

    Gold sentences end at ``.``, ``?``, ``!``, and where the speaker changes.

    Raises:
        DataError: no gold words, or no words of the recognizer for a call.
    """
    gold = gold_files(corpus)
    roles = deal(list(gold), config)
    by_role: dict[str, dict[str, list[Line]]] = {r: {"recognized": [], "gold": []} for r in ROLES}
    for call, path in gold.items():
        ctm = corpus / f"ctm_{config.recognizer}" / f"{call}.ctm.gz"
        if not ctm.is_file():
            expected = "the words of a recognizer"
            raise DataError(ctm, expected, "no such file", "correct recognizer or --corpus-dir")
        sentences = list(gold_sentences(path))
        lines = by_role[roles[call]]
        lines["gold"] += [_line(call, *sentence, None, n) for n, sentence in enumerate(sentences)]
        lines["recognized"] += recognized_lines(ctm, call, sentences, config.pause)
    return by_role


def gold_sentences(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The sentences of a call as (speaker, spoken words); those without a word are left out.

    Raises:
        DataError: with line: other columns than the corpus's.
    """
    speaker, tokens = "", list[str]()
    sentences: list[tuple[str, list[str]]] = []
    for _, (_, token, speaker_, mark, _) in earnings21_rows(path):
        if speaker_ != speaker:
            sentences.append((speaker, tokens))
            tokens = []
        speaker = speaker_
        tokens.append(token)
        if mark[-1:] in _ENDS:
            sentences.append((speaker, tokens))
            tokens = []
    spoken = ((s, " ".join(spoken_words(t)).split()) for s, t in [*sentences, (speaker, tokens)])
    return (sentence for sentence in spoken if sentence[1])


def recognized_lines(
    ctm: Path, call: str, sentences: list[tuple[str, list[str]]], pause: float
) -> list[Line]:
    """The recognizer's utterances in a call."""
    hyp = read_recognized(ctm, call)
    words, times, confidences = hyp.words.split(), hyp.times or (), hyp.confidences or ()
    speakers = speakers_of(words, sentences)
    begins = [
        n
        for n in range(1, len(words))
        if speakers[n] != speakers[n - 1] or times[n][0] - times[n - 1][1] > pause
    ]
    runs = itertools.pairwise([0, *begins, len(words)])
    return [
        _line(call, speakers[a], words[a:b], list(confidences[a:b]), number)
        for number, (a, b) in enumerate(runs)
        if b > a
    ]


def speakers_of(words: list[str], sentences: list[tuple[str, list[str]]]) -> list[str]:
    """The speaker of each recognized word, by alignment with the gold words.

    >>> speakers_of("a x c d".split(), [("1", ["a", "b"]), ("2", ["d"])])
    ['1', '1', '1', '2']
    """
    gold = [word for _, said in sentences for word in said]
    owners = iter([speaker for speaker, said in sentences for _ in said])
    speaker, speakers = sentences[0][0], []
    for ref, hyp in align(gold, words):
        speaker = speaker if ref is None else next(owners)
        if hyp is not None:
            speakers.append(speaker)
    return speakers


def _line(
    call: str, speaker: str, words: list[str], confidences: list[float] | None, number: int
) -> Line:
    name = f"{call}-{speaker}"
    return {
        "client": name,
        "unit": "speaker",
        "speaker": name,  # numbers of speakers are those of one call
        "id": f"{name}-{number:05}",
        "words": " ".join(words),
        "num_words": len(words),
        "confidences": confidences,
    }
