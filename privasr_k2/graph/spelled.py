"""Words as token numbers, including words that the lexicon lacks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from privasr_k2.data.batches import drop_unspelled, encode_texts
from privasr_k2.fileio import read_yaml
from privasr_k2.graph.lang import Lang
from privasr_k2.graph.lexicon import (
    WORD_START,
    Pronunciations,
    cmudict_path,
    spell_in_characters,
    spell_in_phones,
    spell_in_pieces,
    spell_words,
)
from privasr_k2.graph.tokenizer import TOKENIZER, Tokenizer

if TYPE_CHECKING:
    from lhotse import CutSet


def spellings(lang: Lang, words: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Token numbers of words; those that the lexicon lacks have :func:`pronunciations`.

    Words that cannot be spelled are absent.
    """
    known = lang.first_pronunciations
    wanted = set(words)
    numbers = {word: known[word] for word in sorted(wanted & known.keys())}
    for word, (tokens, *_) in pronunciations(lang, wanted - known.keys()).items():
        numbers[word] = tuple(lang.token_ids[token] for token in tokens)
    return numbers


def pronunciations(lang: Lang, words: Iterable[str]) -> Pronunciations:
    """Pronunciations in the tokens of a language folder, of words that its lexicon lacks.

    Characters and pieces are those of :func:`spellings`. Phones come from what ``lang.yaml`` names,
    CMUdict and espeak-ng. Words that cannot be spelled so are absent.
    """
    words = set(words)
    about_lang = lang.folder / "lang.yaml"
    if not words or spell_words(lang.tokens) or not about_lang.is_file():
        return _as_written(lang, words)
    about = read_yaml(about_lang)
    sources = {"corpus_lexicon": None, "cmudict": cmudict_path(about["cmudict"])}
    spelled = spell_in_phones((), words, **sources, g2p=about["g2p"])
    return _in_tokens(lang, spelled.variants)


def _as_written(lang: Lang, words: Iterable[str]) -> Pronunciations:
    """Words in characters or pieces; none in a language folder of phones."""
    words, pieces = sorted(words), lang.folder / "bpe.model"
    if not words or not spell_words(lang.tokens):
        return {}
    if (lang.folder / TOKENIZER).is_file():
        return _in_tokens(lang, Tokenizer(lang.folder / TOKENIZER).spell(words).variants)
    if pieces.is_file():
        return _in_tokens(lang, spell_in_pieces((), words, pieces).variants)
    known = set(lang.tokens[1:]) - {WORD_START}
    return _in_tokens(lang, spell_in_characters((), words, known=known).variants)


def _in_tokens(lang: Lang, variants: Pronunciations) -> Pronunciations:
    tokens = lang.token_ids.keys()
    kept = {word: [v for v in spelled if tokens >= set(v)] for word, spelled in variants.items()}
    return {word: spelled for word, spelled in kept.items() if spelled}


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
