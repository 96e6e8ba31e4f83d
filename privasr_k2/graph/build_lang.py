"""Making a language folder from text: vocabulary, spellings, out-of-vocabulary counts."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import yaml

from privasr_k2.constraints import Checked, Count, Matches
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import atomic_path, file_hash, write_json, write_text
from privasr_k2.graph.lang import (
    BACKOFF,
    BLANK,
    EPSILON,
    lexicon_text,
    parse_units,
    symbols_text,
)
from privasr_k2.graph.lexicon import (
    WORD_START,
    Pronunciations,
    Spellings,
    cmudict_path,
    spell_in_characters,
    spell_in_phones,
    spell_in_pieces,
    train_bpe,
)
from privasr_k2.graph.tokenizer import TOKENIZER, Tokenizer
from privasr_k2.text.languages import ENGLISH, PHONES_OF_OTHERS, is_english

#: In a language folder, one of the words of train alone (and of dev): what an acoustic model is
#: trained with. It does not change with the text of the language models, so that other text trains
#: no acoustic model anew.
SPOKEN = "spoken"


@dataclass(frozen=True)
class LangConfig(Checked):
    """Settings of a language folder; defaults in ``conf/common.yaml#lang``.

    Args:
        units: ``phone``, ``char``, ``bpe_N``, or ``tokenizer``: pieces of a ``tokenizer.json``.
        corpus_words: the vocabulary has the words of training text and LM text; else only those of
            further text.
        train_words: with ``corpus_words``: the training text's words are among them; else the LM
            text alone is a vocabulary that is independent of who was recorded.
        max_words: the vocabulary's size; words of training text and further text are always in it.
        min_count: rarer words of the LM text are left out.
        cmudict: ``auto``, ``none`` or a file.
        g2p: ``none``, ``espeak``, or ``espeak:LANGUAGE``.
    """

    units: str
    corpus_words: bool
    train_words: bool
    max_words: Count
    min_count: Count
    cmudict: str
    g2p: Annotated[str, Matches(r"none|espeak(:[a-z0-9-]+)?", "none, espeak or espeak:LANGUAGE")]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.train_words and parse_units(self.units)[0] == "bpe":
            raise ValueError(
                f"units must not be learned from train with train_words=false, got {self.units!r}"
            )


def in_language(config: LangConfig, language: str, has_lexicon: bool) -> LangConfig:
    """The settings for a language: CMUdict and English phones only where it is English.

    Raises:
        ConfigError: phones of another language without a lexicon or its G2P.
    """
    if is_english(language):
        return config
    english = replace(config, cmudict="none" if config.cmudict == "auto" else config.cmudict)
    if config.g2p != "espeak":
        return english
    if config.units == "phone" and not has_lexicon:
        place, expected = "units=phone", f"pronunciations of the corpus's language, {language}"
        found = "no lexicon: the words would get English phones"
        raise ConfigError(place, expected, found, PHONES_OF_OTHERS.format(language=language))
    return replace(english, g2p="none")


def choose_vocabulary(
    train_words: Mapping[str, int], lm_words: Mapping[str, int], *, max_words: int, min_count: int
) -> tuple[set[str], set[str]]:
    """The words of the training text, and the most frequent others of the LM text.

    >>> lm_words = {"b": 5, "c": 9, "d": 1}
    >>> train, other = choose_vocabulary({"a": 1}, lm_words, max_words=3, min_count=2)
    >>> sorted(train), sorted(other)
    (['a'], ['b', 'c'])
    """
    others = {word: count for word, count in lm_words.items() if word not in train_words}
    frequent = [word for word, count in others.items() if count >= min_count]
    frequent.sort(key=lambda word: (-lm_words[word], word))
    return set(train_words), set(frequent[: max(max_words - len(train_words), 0)])


def build_lang(
    folder: Path,
    config: LangConfig,
    *,
    texts: Mapping[str, Sequence[str]],
    lm_text: Iterable[str],
    corpus_lexicon: Path | None,
    further: Iterable[str] = (),
    model_tokens: Sequence[str] | None = None,
    model_pieces: Path | None = None,
    language: str = ENGLISH,
) -> dict[str, Any]:
    """Write a language folder, all or nothing.

    Args:
        texts: the normalized texts of each role; ``train`` makes the vocabulary, the others are
            only counted.
        lm_text: sentences.
        corpus_lexicon: the corpus's own lexicon.
        further: text or names, whose words are always in the vocabulary.
        model_tokens: the outputs of a model trained elsewhere, the blank first, to spell words in.
        model_pieces: the SentencePiece model of that model, for ``bpe_N``; its ``tokenizer.json``,
            for ``tokenizer``.
        language: of the corpus, as ``de``; CMUdict and the phones of English are for English alone.

    Returns:
        The content of ``oov.json``: words and out-of-vocabulary words of each role.

    Raises:
        ConfigError: phones of another language without a lexicon or its G2P.
        DataError: a reserved word in the text, or needed words without spelling.
    """
    config = in_language(config, language, corpus_lexicon is not None or model_tokens is not None)
    counts = {role: _count_words(lines) for role, lines in texts.items()}
    lm_words, needed = _count_words(lm_text), _count_words(further)
    of_train = counts.get("train", Counter())
    known = of_train if config.corpus_words and config.train_words else Counter()
    further_known = lm_words if config.corpus_words else Counter()
    limits = {"max_words": config.max_words, "min_count": config.min_count}
    must, may = choose_vocabulary(known + needed, further_known, **limits)
    learned = model_pieces is None and parse_units(config.units)[0] == "bpe"  # from train
    if not config.train_words or not (must or learned):  # tokens are those of what there must be
        must, may = must | may, set()
    if not must:
        way_out = "give --in-further-text, or set corpus_words=true"
        raise DataError("the vocabulary", "words", "none", way_out)
    reserved = {EPSILON, BLANK, BACKOFF, "<s>", "</s>", "<unk>"}
    if reserved & must:
        place = "the training text, further text and name lists"
        found = f"the reserved {sorted(reserved & must)[0]!r}"
        raise DataError(place, "words", found, "take it out of the text")
    may -= reserved
    with atomic_path(folder) as temporary:
        temporary.mkdir(parents=True)
        bpe_model = temporary / (TOKENIZER if config.units == "tokenizer" else "bpe.model")
        if model_pieces is not None:
            shutil.copyfile(model_pieces, bpe_model)
        spellings = _spell(must, may, bpe_model, config, corpus_lexicon, texts.get("train", ()))
        _needs(needed, spellings)
        if model_tokens is not None:
            spellings = _in_tokens(spellings, model_tokens, must)
        dev_only = set(counts.get("dev", ())) - set(spellings.variants) - reserved
        characters = set(spellings.tokens) - {WORD_START}
        dev_spellings = (
            spell_in_characters((), dev_only, known=characters)
            if config.units == "char"
            else _spell(set(), dev_only, bpe_model, config, corpus_lexicon, ())
        )
        oov = {"lm_text": lm_words, **counts} if lm_words else counts
        report = {role: _out_of_vocabulary(found, spellings) for role, found in oov.items()}
        _write_lexicon(temporary, spellings.tokens, spellings.variants)
        _write_dev_lexicon(temporary, dev_spellings.variants, spellings.tokens)
        _write_about(temporary, config, spellings, report, corpus_lexicon, language)
        if known:
            every = {**dev_spellings.variants, **spellings.variants}
            of_dev = set(counts.get("dev", ())) - set(known)
            (temporary / SPOKEN).mkdir()
            _write_lexicon(temporary / SPOKEN, spellings.tokens, _of(every, set(known)))
            _write_dev_lexicon(temporary / SPOKEN, _of(every, of_dev), spellings.tokens)
    return report


def _count_words(lines: Iterable[str]) -> Counter[str]:
    return Counter(word for line in lines for word in line.split())


def _spell(
    must: set[str],
    may: set[str],
    bpe_model: Path,
    config: LangConfig,
    corpus_lexicon: Path | None,
    bpe_text: Sequence[str],
) -> Spellings:
    """Spell words in the units of ``config``; a missing BPE model is trained on ``bpe_text``."""
    kind, size = parse_units(config.units)
    if kind == "phone":
        sources = {"corpus_lexicon": corpus_lexicon, "cmudict": cmudict_path(config.cmudict)}
        return spell_in_phones(must, may, **sources, g2p=config.g2p)
    if kind == "char":
        return spell_in_characters(must, may)
    if kind == "tokenizer":
        return Tokenizer(bpe_model).spell(must | may)
    if not bpe_model.exists():
        train_bpe(bpe_text, size, bpe_model)
    return spell_in_pieces(must, may, bpe_model)


def _needs(words: Iterable[str], spellings: Spellings) -> None:
    """Refuse words of further text that the pieces cannot spell."""
    if lost := sorted(set(words) - set(spellings.variants)):
        expected = "words of characters that the training text has"
        found = f"{len(lost)} others: {' '.join(lost[:10])}{' ...' if len(lost) > 10 else ''}"
        way_out = "take them out, or choose units=phone or char"
        raise DataError("the further text and the name lists", expected, found, way_out)


def _in_tokens(spellings: Spellings, tokens: Sequence[str], must: set[str]) -> Spellings:
    """The spellings that a model's tokens can write, with the tokens in the model's order."""
    known = set(tokens[1:])
    kept = {
        word: [variant for variant in spelled if known.issuperset(variant)]
        for word, spelled in spellings.variants.items()
    }
    variants = {word: spelled for word, spelled in kept.items() if spelled}
    lost = sorted(must & set(spellings.variants) - set(variants))
    if lost:
        unknown = next(token for token in spellings.variants[lost[0]][0] if token not in known)
        expected = f"tokens of {len(lost)} words of the training text, further text and name lists"
        found = f"no {unknown!r}, which spells {lost[0]!r}"
        way_out = "give the model's lexicon (--lexicon) or BPE model (--am-bpe)"
        raise DataError("the model's tokens.txt", expected, found, way_out)
    made_up = spellings.made_up & set(variants)
    return Spellings(tuple(tokens[1:]), variants, spellings.sources, made_up)


def _of(variants: Pronunciations, words: set[str]) -> Pronunciations:
    return {word: variants[word] for word in sorted(words & set(variants))}


def _write_lexicon(folder: Path, tokens: Sequence[str], variants: Pronunciations) -> None:
    words = sorted(variants)
    write_text(folder / "tokens.txt", symbols_text([BLANK, *tokens]))
    write_text(folder / "words.txt", symbols_text([EPSILON, *words, BACKOFF]))
    write_text(folder / "lexicon.txt", _entries(variants))


def _write_dev_lexicon(folder: Path, variants: Pronunciations, tokens: Sequence[str]) -> None:
    """Write the spellings of words that only dev has: targets of the loss, in no graph."""
    usable = {
        word: [spelled for spelled in variants[word] if set(spelled) <= set(tokens)]
        for word in variants
    }
    write_text(folder / "dev_lexicon.txt", _entries(usable))


def _entries(variants: Pronunciations) -> str:
    return lexicon_text((word, spelled) for word in sorted(variants) for spelled in variants[word])


def _out_of_vocabulary(counts: Mapping[str, int], spellings: Spellings) -> dict[str, Any]:
    missing = {word: count for word, count in counts.items() if word not in spellings.variants}
    listed = spellings.from_lexicon
    digits = {
        word: count
        for word, count in counts.items()
        if any(map(str.isdigit, word)) and (word in missing or word not in listed)
    }
    return {
        "words": sum(counts.values()),
        "oov_words": sum(missing.values()),
        "types": len(counts),
        "oov_types": len(missing),
        "most_frequent": _most_frequent(missing),
        "digit_words": sum(digits.values()),
        "most_frequent_digits": _most_frequent(digits),
    }


def _most_frequent(counts: Mapping[str, int]) -> dict[str, int]:
    frequent = sorted(counts, key=lambda word: (-counts[word], word))[:20]
    return {word: counts[word] for word in frequent}


def _write_about(
    folder: Path,
    config: LangConfig,
    spellings: Spellings,
    report: dict[str, Any],
    corpus_lexicon: Path | None,
    language: str,
) -> None:
    write_json(folder / "oov.json", report)
    names = ("max_words", "min_count", "cmudict", "g2p")
    info = {
        "units": config.units,
        "num_tokens": 1 + len(spellings.tokens),
        "num_words": len(spellings.variants),
        "num_pronunciations": sum(map(len, spellings.variants.values())),
        "language": language,
        "words_from": dict(spellings.sources),
        "made_up_percent": round(100 * spellings.made_up_share, 2),
        "train_words": config.corpus_words and config.train_words,
        **{name: getattr(config, name) for name in names},
        "corpus_lexicon_sha256": file_hash(corpus_lexicon) if corpus_lexicon is not None else None,
    }
    write_text(folder / "lang.yaml", yaml.safe_dump(info, sort_keys=False))
