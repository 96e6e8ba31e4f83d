"""From texts to tagged texts: restored capitals, a cascade of taggers, four classes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from annotated_types import MinLen

from privasr_k2.constraints import Checked, one_of
from privasr_k2.errors import DataError
from privasr_k2.text.entities import Entity, TaggedText, Tagger, fold, moved, united
from privasr_k2.text.truecase import Truecaser, has_case, is_clipped

log = logging.getLogger(__name__)

GOLD = "gold"
TAGGERS = ("spacy", "gazetteer", "presidio", GOLD)
BY_CAPITALS = frozenset({"spacy", "presidio"})
"""Taggers that need capitals: text without any gets them restored."""


@dataclass(frozen=True)
class TagConfig(Checked):
    """How text is tagged; defaults in ``conf/classlm.yaml#tag_entities``.

    Args:
        taggers: some of :data:`TAGGERS`; earlier ones win where entities overlap.
        spacy_models: the first that is installed is taken, by Presidio, too.
        case: ``auto`` looks for capitals, ``cased`` trusts them, ``caseless`` restores them.
        capital_unknown: whether restoring capitalizes words that the public text lacks.
        ignore_case: whether the gazetteer ignores capitals.
        normalize: how ``cased`` became ``text``; ``spoken`` spells figures out.
        documents: all texts of a ``user``, or those with one ``id`` up to the first hyphen.
        classes: label -> class; the empty class leaves its entities out.
        leave_out: names (up to the first dot) of CoNLL files that are not read.
    """

    taggers: Annotated[list[Annotated[str, one_of(*TAGGERS)]], MinLen(1)]
    spacy_models: list[str]
    case: Annotated[str, one_of("auto", "cased", "caseless")]
    capital_unknown: bool
    ignore_case: bool
    normalize: Annotated[str, one_of("english", "spoken")]
    documents: Annotated[str, one_of("user", "id")]
    classes: dict[str, str]
    leave_out: list[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        wrong = [c for c in self.classes.values() if c and not (c.isalpha() and c.isupper())]
        if wrong:
            raise ValueError(f"classes must be capital letters, got {wrong[0]}")


def tag_texts(
    texts: Sequence[TaggedText],
    taggers: Mapping[str, Tagger | None],
    config: TagConfig,
    normalize: Callable[[Sequence[str]], Sequence[str]],
    truecaser: Truecaser | None = None,
) -> list[TaggedText]:
    """Tag texts; their words do not change.

    Args:
        texts: tagged from ``cased`` where they have it, else from their words.
        taggers: by the names of ``config``; ``gold`` takes the entities of the text, in any labels.
        normalize: what made ``words`` of the tokens of ``cased``.

    Raises:
        DataError: a tagger of :data:`BY_CAPITALS` on text without capitals and no truecaser; words
            that are not the normalized ``cased``; ``gold`` without annotation; a label without a
            class.
    """
    tokens = [_tokens(text, normalize) for text in texts]
    is_cased = config.case == "cased" or (config.case == "auto" and has_case(tokens))
    if not is_cased and not BY_CAPITALS.isdisjoint(config.taggers):
        if truecaser is None:
            expected = "capitals, by which spaCy finds names"
            way_out = "give cased public text to learn them from (--in-public-cased), or use name"
            way_out += " lists alone: --set taggers=[gazetteer]"
            raise DataError("the text", expected, "none", way_out)
        log.warning("no capitals: they are restored from public text, and fewer names are found")
        tokens = [truecaser.restore(of_text) for of_text in tokens]
    tags: list[tuple[Entity, ...]] = [()] * len(texts)
    for name in config.taggers:
        tagger = taggers.get(name)
        spans = _gold(texts) if tagger is None else list(map(_whole, tokens, tagger.tag(tokens)))
        for number, (text, of_text) in enumerate(zip(texts, spans, strict=True)):
            folded = fold(of_text, config.classes, text.id)
            if tagger is not None and text.cased:
                folded = moved(tokens[number], folded, len(text.words), normalize)
            tags[number] = united(tags[number], folded)
    return [_with(text, entities, config) for text, entities in zip(texts, tags)]


def _whole(tokens: Sequence[str], found: Iterable[Entity]) -> tuple[Entity, ...]:
    """The entities without single clipped words: "'Kay" is no Kay."""
    return tuple(e for e in found if e.end - e.first > 1 or not is_clipped(tokens[e.first]))


def _tokens(text: TaggedText, normalize: Callable[[Sequence[str]], Sequence[str]]) -> Sequence[str]:
    if not text.cased:
        return text.words
    tokens = text.cased.split()
    if tuple(normalize(tokens)) != text.words:
        expected, found = f"the words of {text.cased!r}", repr(" ".join(text.words))
        way_out = "say how it was normalized: --set normalize=spoken, or --in-definition"
        raise DataError(text.id, expected, found, f"{way_out} of the corpus")
    return tokens


def _gold(texts: Sequence[TaggedText]) -> list[tuple[Entity, ...]]:
    for text in texts:
        if text.entities is None:
            raise DataError(
                text.id, "gold entities", "none", "choose another tagger: --set taggers=[spacy]"
            )
    return [text.entities or () for text in texts]


def _with(text: TaggedText, entities: tuple[Entity, ...], config: TagConfig) -> TaggedText:
    document = text.document
    if config.documents == "id":
        document = text.id.partition("-")[0]
    return replace(text, entities=entities, document=document)
