"""A Whisper model (Radford et al. 2022) with its own decoder, run by CTranslate2."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import torch

from privasr_k2.config import plain
from privasr_k2.constraints import Checked, Count, NotNegative, Positive, one_of
from privasr_k2.encoders.common import SAMPLE_RATE
from privasr_k2.encoders.loading import describe_files
from privasr_k2.encoders.log_mel import log_mel
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import read_json, read_lines
from privasr_k2.text.byte_pieces import BYTES

if TYPE_CHECKING:
    import ctranslate2

MOST_SAMPLES = 30 * SAMPLE_RATE
"""Of one pass; shorter audio is followed by silence up to this length."""
_FILES = ("model.bin", "config.json")
_GET = "privasr encoder get tiny.en --out DIR, or convert a model with ct2-transformers-converter"


@dataclass(frozen=True)
class BeamConfig(Checked):
    """Whisper's beam search.

    Attributes:
        beam_size: 1 is greedy; at least num_hypotheses is taken.
        num_hypotheses: texts of an utterance.
        patience: beam_size * patience finished hypotheses end the search.
        length_penalty: hypotheses compete by log-probability / tokens ** length_penalty.
        language: of multilingual models, as in the name of its token: en, de, ...
        compute_type: of CTranslate2: float32, float16, int8, ...
    """

    beam_size: Count
    num_hypotheses: Count
    patience: Positive
    length_penalty: NotNegative
    language: str
    compute_type: Annotated[
        str, one_of("auto", "float32", "float16", "int8", "int8_float32", "int8_float16")
    ]


@dataclass(frozen=True)
class Written:
    """One text that the decoder wrote.

    Attributes:
        log_prob: natural log of P(its tokens and the end | audio).
        tokens: how many, without the end.
    """

    text: str
    log_prob: float
    tokens: int

    def score(self, length_penalty: float) -> float:
        """What the decoder ranks texts by: short ones are too probable (Stahlberg & Byrne 2019)."""
        return self.log_prob / max(1, self.tokens) ** length_penalty


@dataclass(frozen=True)
class WhisperModel:
    """A model in memory.

    Attributes:
        model: ``ctranslate2.models.Whisper``.
        vocabulary: its tokens.
        place: its folder, for errors.
    """

    model: Any
    vocabulary: Container[str]
    place: Path

    def transcribe(self, audio: Sequence[np.ndarray], config: BeamConfig) -> list[list[Written]]:
        """Texts of N signals, each (S,) float32 of 1 to 480,000 samples at 16 kHz, the best first.

        Tokens of timestamps are never written. Probabilities are those after CTranslate2 has taken
        out the tokens that ``config.json`` suppresses.
        """
        lengths = torch.tensor([len(signal) for signal in audio])
        padded = torch.zeros(len(audio), int(lengths.max()))
        for row, signal in zip(padded, audio):
            row[: len(signal)] = torch.from_numpy(signal)
        features, _ = log_mel(padded, lengths, self.model.n_mels, MOST_SAMPLES)
        results = self.model.generate(
            _view(features.transpose(1, 2).contiguous().numpy()),
            [self.prompt(config.language)] * len(audio),
            beam_size=max(config.beam_size, config.num_hypotheses),
            num_hypotheses=config.num_hypotheses,
            patience=config.patience,
            length_penalty=config.length_penalty,
            return_scores=True,
        )
        return [self._written(result, config.length_penalty) for result in results]

    def prompt(self, language: str) -> list[str]:
        """The tokens that the decoder goes on from.

        Raises:
            ConfigError: a language that the model does not have.
        """
        tokens = ["<|startoftranscript|>"]
        if self.model.is_multilingual:
            tokens += [f"<|{language}|>", "<|transcribe|>"]
        elif language != "en":
            way_out = "set language=en, or take a multilingual model"
            raise ConfigError(self.place, "English alone (a model .en)", language, way_out)
        tokens.append("<|notimestamps|>")
        if missing := [token for token in tokens if token not in self.vocabulary]:
            expected, way_out = "a language of the model", "set language to en, de, fr, ..."
            raise ConfigError(self.place, expected, f"no token {missing[0]}", way_out)
        return tokens

    def _written(self, result: Any, length_penalty: float) -> list[Written]:
        # A score is the summed log-probability divided by tokens ** length_penalty.
        lengths = [len(tokens) for tokens in result.sequences]
        return [
            Written(text_of(tokens), score * max(1, length) ** length_penalty, length)
            for tokens, score, length in zip(result.sequences, result.scores, lengths)
        ]


def open_whisper(folder: Path, config: BeamConfig, *, device: str, threads: int) -> WhisperModel:
    """Read a folder of CTranslate2's format.

    Raises:
        ConfigError: CTranslate2 is not installed; a language that the model lacks.
        DataError: a file is missing, or is no Whisper model.
    """
    missing = [name for name in _FILES if not (folder / name).is_file()]
    if missing:
        expected = f"a Whisper model for CTranslate2: {' '.join(_FILES)}"
        raise DataError(folder, expected, f"no {' '.join(missing)}", _GET)
    try:
        import ctranslate2
    except ImportError as error:
        way_out = "pip install ctranslate2"
        raise ConfigError("Whisper", "the package ctranslate2", str(error), way_out) from error
    index = int(device.partition(":")[2] or 0)
    try:
        model = ctranslate2.models.Whisper(
            str(folder),
            device=device.partition(":")[0],
            device_index=index,
            compute_type=config.compute_type,
            intra_threads=threads,
        )
    except (RuntimeError, ValueError) as error:
        raise DataError(folder, "a Whisper model for CTranslate2", _first(error), _GET) from error
    opened = WhisperModel(model, _vocabulary(folder), folder)
    opened.prompt(config.language)
    return opened


def text_of(tokens: Sequence[str]) -> str:
    """What byte-level tokens spell, without ``<|special|>`` ones (Radford et al. 2019, GPT-2).

    A token holds a character for each byte: that of Latin-1 where it is visible, else the next one
    from U+0100 on. Bytes that are no UTF-8 are replaced.

    >>> text_of(["\u0120Caf", "\u00c3\u00a9", ".", "<|endoftext|>"])
    ' Caf\xe9.'
    """
    spelled = "".join(token for token in tokens if not _is_special(token))
    return bytes(BYTES[character] for character in spelled).decode(errors="replace")


def about_whisper(whisper: WhisperModel, config: BeamConfig) -> dict[str, Any]:
    """What lists were made with: name, sha256, licence and source of the model, and the settings.

    The compute type is the one that was taken, where ``auto`` was asked for.
    """
    import ctranslate2

    taken = {"compute_type": whisper.model.compute_type, "ctranslate2": ctranslate2.__version__}
    settings = {**plain(config), **taken}
    return {"encoder": describe_files(whisper.place), "settings": settings}


def _is_special(token: str) -> bool:
    return token.startswith("<|") and token.endswith("|>")


def _vocabulary(folder: Path) -> frozenset[str]:
    """The tokens, in the file that the converter of the time wrote."""
    if (folder / "vocabulary.json").is_file():
        return frozenset(read_json(folder / "vocabulary.json"))
    return frozenset(line for _, line in read_lines(folder / "vocabulary.txt"))


def _view(features: np.ndarray) -> ctranslate2.StorageView:
    import ctranslate2

    return ctranslate2.StorageView.from_array(features)


def _first(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
