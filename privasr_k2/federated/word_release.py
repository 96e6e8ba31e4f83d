"""The files of a release of words: noisy votes, written once, and what is chosen from them.

``votes.safetensors`` holds the noisy counts of all candidates. ``words.tsv``, ``bigrams.tsv`` (a
line each: words, a tab, the noisy count) and ``votes.json`` are computed from it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2.config import from_values
from privasr_k2.errors import DataError
from privasr_k2.federated.fmp_release import write_once
from privasr_k2.federated.word_votes import (
    Texts,
    WordVotes,
    WordVotesConfig,
    count_votes,
    said_bigrams,
    said_words,
)
from privasr_k2.fileio import read_arrays, read_json, read_lines, write_json, write_text
from privasr_k2.lm.arpa import BOS, EOS
from privasr_k2.privacy.accounting import account
from privasr_k2.privacy.events import is_unprotected
from privasr_k2.privacy.release import Release

VOTES, WORDS, BIGRAMS, ABOUT = "votes.safetensors", "words.tsv", "bigrams.tsv", "votes.json"
_FORMAT = "privasr_k2 word votes 1"


@dataclass(frozen=True)
class ReleasedWords:
    """What was released.

    Attributes:
        words: word -> noisy number of speakers, above 0; the most frequent first.
        bigrams: the same; ``<s>`` and ``</s>`` are the sentence's ends.
    """

    words: dict[str, int]
    bigrams: dict[tuple[str, str], int]


def above(noisy: np.ndarray, least: float) -> list[int]:
    """The places of counts above ``least`` (at least 0), the largest first; ties by place.

    >>> above(np.array([3, 9, -4, 9, 5]), 4.5)
    [1, 3, 4]
    """
    order = np.argsort(-noisy, kind="stable")
    return [int(place) for place in order if noisy[place] > max(least, 0.0)]


def write_release(
    folder: Path, texts: Texts, candidates: Sequence[str], mechanism: WordVotes, begun: Release
) -> ReleasedWords:
    """Draw the noise once, finish the release, and write the words that are chosen.

    Raises:
        PrivacyError: the release is finished, and its file is gone.
    """
    config = mechanism.config

    def noisy() -> dict[str, np.ndarray]:
        begun.stream("check")  # refused where the release is finished
        said = said_words(texts, candidates)
        counts = count_votes(
            said, len(candidates), config.max_words, config.choose,
            lambda speaker: begun.stream("words", speaker),
        )  # fmt: skip
        arrays = {"words": mechanism.noise.add(counts)}
        if config.max_bigrams:
            kept = [candidates[place] for place in above(arrays["words"], mechanism.least)]
            counts = count_votes(
                said_bigrams(texts, kept), (len(kept) + 1) ** 2, config.max_bigrams, config.choose,
                lambda speaker: begun.stream("bigrams", speaker),
            )  # fmt: skip
            arrays["bigrams"] = mechanism.noise.add(counts)
        return arrays

    header = {"config": config, "words": digest_of(candidates)}
    folder.mkdir(parents=True, exist_ok=True)
    write_once(folder / VOTES, begun, lambda: (noisy(), header))
    _, arrays = read_arrays(folder / VOTES, expected="noisy votes", way_out="release them again")
    found = chosen(arrays, candidates, mechanism.least)
    write_text(folder / WORDS, "".join(f"{w}\t{n}\n" for w, n in found.words.items()))
    if config.max_bigrams:
        lines = (f"{a} {b}\t{n}\n" for (a, b), n in found.bigrams.items())
        write_text(folder / BIGRAMS, "".join(lines))
    write_json(folder / ABOUT, about(mechanism, begun, len(candidates), found))
    return found


def digest_of(candidates: Sequence[str]) -> str:
    """SHA-256 of the candidates in their order."""
    return hashlib.sha256(json.dumps(list(candidates)).encode()).hexdigest()


def chosen(arrays: dict[str, np.ndarray], candidates: Sequence[str], least: float) -> ReleasedWords:
    """The words and bigrams whose noisy counts are above ``least``: post-processing."""
    words = {candidates[n]: int(arrays["words"][n]) for n in above(arrays["words"], least)}
    bigrams: dict[tuple[str, str], int] = {}
    if "bigrams" in arrays:
        names = list(words)
        for place in above(arrays["bigrams"], least):
            first, second = divmod(place, len(names) + 1)
            if first or second:  # nobody says an empty sentence
                pair = (names[first - 1] if first else BOS, names[second - 1] if second else EOS)
                bigrams[pair] = int(arrays["bigrams"][place])
    return ReleasedWords(words, bigrams)


def about(
    mechanism: WordVotes, release: Release, candidates: int, found: ReleasedWords
) -> dict[str, Any]:
    """The content of ``votes.json``, which reveals no more than the noisy votes."""
    config, spending = mechanism.config, release.entry.spending
    cost, epsilon = account(spending.event, spending.relation, spending.delta), None
    if not is_unprotected(spending.event):
        epsilon = {"value": cost.value, "delta": cost.delta, "rdp": cost.rdp, "pld": cost.pld}
    return {
        "format": _FORMAT,
        "release": release.entry.release,
        "unit": spending.unit,
        "max_words": config.max_words,
        "max_bigrams": config.max_bigrams,
        "choose": config.choose,
        "sensitivity": {"l1": mechanism.votes, "l2": mechanism.votes**0.5, "linf": 1},
        "noise": mechanism.noise.sigma,
        "threshold": mechanism.least,
        "candidates": candidates,
        "words": len(found.words),
        "bigrams": len(found.bigrams),
        "epsilon": epsilon,
    }


def read_released(folder: Path) -> ReleasedWords:
    """The words and bigrams of a folder of ``vote_words``.

    Raises:
        DataError: another folder, or a line that is no word with its count.
    """
    content = read_json(folder / ABOUT) if (folder / ABOUT).is_file() else None
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        found = "no such file" if content is None else "another file"
        raise DataError(folder / ABOUT, _FORMAT, found, "run vote_words")
    words = {word: count for (word,), count in _lines(folder / WORDS, 1)}
    pairs = _lines(folder / BIGRAMS, 2) if content["max_bigrams"] else []
    return ReleasedWords(words, {(a, b): count for (a, b), count in pairs})


def mechanism_of(folder: Path) -> WordVotes:
    """The mechanism of a folder of ``vote_words``.

    Raises:
        DataError: another folder.
    """
    way_out = "release them again"
    header, _ = read_arrays(folder / VOTES, (), expected="noisy votes", way_out=way_out)
    return WordVotes(from_values(WordVotesConfig, header.get("config"), folder / VOTES))


def _lines(path: Path, size: int) -> list[tuple[tuple[str, ...], int]]:
    found = []
    for number, line in read_lines(path):
        ngram, _, count = line.partition("\t")
        words = tuple(ngram.split())
        if len(words) != size or not count.isdecimal() or int(count) < 1:
            expected = f"{size} words, a tab, a count above 0"
            raise DataError(f"{path}:{number}", expected, repr(line), "run vote_words again")
        found.append((words, int(count)))
    return found
