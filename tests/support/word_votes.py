"""Speakers of a few words, and the configuration of their votes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from privasr_k2.federated.word_votes import Texts, WordVotes, WordVotesConfig
from privasr_k2.fileio import write_jsonl
from privasr_k2.randomness import NoiseStream, noise_stream

CONFIG = WordVotesConfig(
    data="tiny/train",
    max_words=3,
    max_bigrams=0,
    choose="most_said",
    threshold=4.0,
    epsilon=8.0,
    delta=1e-5,
)
WORDS = [f"w{number}" for number in range(12)]


def mechanism(**changes: object) -> WordVotes:
    """The usual one with some values changed."""
    return WordVotes(dataclasses.replace(CONFIG, **changes))  # type: ignore[arg-type]


def secret(speaker: str) -> NoiseStream:
    """A stream of a speaker's own."""
    return noise_stream(bytes(32), speaker)


def random_texts(seed: int, speakers: int = 9) -> dict[str, list[list[str]]]:
    """Sentences of words inside and outside of :data:`WORDS`, often the same ones."""
    rng = np.random.default_rng(seed)
    spoken = [*WORDS, "out", "side"]
    return {
        f"s{number}": [
            [spoken[int(place)] for place in rng.integers(0, len(spoken), rng.integers(0, 7)) % 9]
            for _ in range(int(rng.integers(1, 6)))
        ]
        for number in range(speakers)
    }


def write_texts(folder: Path, texts: Texts) -> Path:
    """A manifests folder whose train holds these sentences."""
    cuts = [
        {
            "id": f"{speaker}-{number}",
            "start": 0.0,
            "duration": 1.0,
            "channel": 0,
            "supervisions": [
                {
                    "id": f"{speaker}-{number}",
                    "recording_id": f"{speaker}-{number}",
                    "start": 0.0,
                    "duration": 1.0,
                    "channel": 0,
                    "text": " ".join(sentence),
                    "speaker": speaker,
                }
            ],
            "type": "MonoCut",
        }
        for speaker, sentences in texts.items()
        for number, sentence in enumerate(sentences)
    ]
    write_jsonl(folder / "cuts_train.jsonl.gz", cuts)
    return folder
