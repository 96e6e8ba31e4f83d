"""Pieces of a public model's ``tokenizer.json``: those that spell words in lower case.

The file is read by Hugging Face's ``tokenizers``. Its pieces are byte-level [Radford et al. 2019,
GPT-2]; a piece that begins a word has :data:`privasr_k2.graph.lexicon.WORD_START` in front here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import read_json
from privasr_k2.graph.lexicon import WORD_START, Spellings
from privasr_k2.text.byte_pieces import BYTES

#: Its name in a model's folder, and in a language folder.
TOKENIZER = "tokenizer.json"


class Tokenizer:
    """A tokenizer.

    Raises:
        ConfigError: the package ``tokenizers`` is not installed.
        DataError: no such file, or another one.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            expected, way_out = "a tokenizer of Hugging Face", "copy it from the public model"
            raise DataError(path, expected, "no such file", way_out)
        try:
            from tokenizers import Tokenizer as Reader
        except ImportError as error:
            way_out = "pip install tokenizers"
            raise ConfigError("tokenizer.json", "tokenizers", str(error), way_out) from error
        content = read_json(path)
        model = content.get("model") if isinstance(content, dict) else None
        if not isinstance(model, dict) or not {"vocab", "merges"} <= model.keys():
            expected, found = "a tokenizer of Hugging Face with merges", "another file"
            raise DataError(path, expected, found, "copy it from the public model")
        self._reader = Reader.from_file(str(path))
        #: Numbers of all pieces by their own names, special ones included.
        self.numbers: dict[str, int] = self._reader.get_vocab(with_added_tokens=True)

    @cached_property
    def pieces(self) -> dict[str, int]:
        """Our name -> number of each piece of lower-case letters, in the order of the numbers."""
        ordered = sorted(self.numbers.items(), key=lambda item: item[1])
        named = ((self._text(name), number) for name, number in ordered)
        return {
            text.replace(" ", WORD_START): number
            for text, number in named
            if _spells(text.removeprefix(" "))
        }

    def spell(self, words: Iterable[str]) -> Spellings:
        """Each word in pieces, as it follows a space; words of other characters are left out."""
        names = {number: name for name, number in self.pieces.items()}
        words = sorted(set(words))
        encoded = self._reader.encode_batch(
            [f" {word}" for word in words], add_special_tokens=False
        )
        variants = {
            word: [tuple(names[number] for number in one.ids)]
            for word, one in zip(words, encoded)
            if one.ids and all(number in names for number in one.ids)
        }
        counts = {"spelled": len(variants), "left out": len(words) - len(variants)}
        return Spellings(tuple(self.pieces), variants, counts)

    def _text(self, name: str) -> str:
        """What a piece spells; empty where it is special or a part of a character."""
        try:
            return bytes(BYTES[character] for character in name).decode()
        except (KeyError, UnicodeDecodeError):
            return ""


def _spells(text: str) -> bool:
    """Whether a text is of lower-case letters, marks and apostrophes."""
    kinds = {unicodedata.category(character)[0] for character in text if character != "'"}
    return bool(text) and kinds <= {"L", "M"} and text == text.lower()
