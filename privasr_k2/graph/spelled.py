"""Words as token numbers, including words that the lexicon lacks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from privasr_k2.data.batches import drop_unspelled, encode_texts
from privasr_k2.graph.lang import Lang
from privasr_k2.graph.lexicon import WORD_START, spell_in_characters, spell_in_pieces

if TYPE_CHECKING:
    from lhotse import CutSet


def spellings(lang: Lang, words: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Token numbers of words; those that the lexicon lacks are spelled in its characters or pieces.

    Words that cannot be spelled are absent.
    """
    known = lang.first_pronunciations
    wanted = set(words)
    rest = sorted(wanted - known.keys())
    numbers = {word: known[word] for word in sorted(wanted & known.keys())}
    if rest and any(token.startswith(WORD_START) for token in lang.tokens):
        pieces = lang.folder / "bpe.model"
        known_characters = set(lang.tokens[1:]) - {WORD_START}
        spelled = (
            spell_in_pieces((), rest, pieces)
            if pieces.is_file()
            else spell_in_characters((), rest, known=known_characters)
        )
        for word, (tokens, *_) in spelled.variants.items():
            if lang.token_ids.keys() >= set(tokens):
                numbers[word] = tuple(lang.token_ids[token] for token in tokens)
    return numbers


def spelled_targets(cuts: CutSet, lang: Lang, *, role: str) -> tuple[CutSet, dict[str, list[int]]]:
    """The cuts whose words can be spelled, and their texts in token numbers, by the cut's name.

    Raises:
        NothingLeftError: none is left.
    """
    texts = [supervision.text or "" for cut in cuts for supervision in cut.supervisions]
    spelled = spellings(lang, {word for text in texts for word in text.split()})
    cuts = drop_unspelled(cuts, spelled, role=role)

    def encode(text: str) -> list[int]:
        return [token for word in text.split() for token in spelled[word]]

    return cuts, encode_texts(cuts, encode)
