"""The text that a language model learns from, and its way to a pruned n-gram model."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

from privasr_k2.constraints import Checked, Count, Natural, one_of
from privasr_k2.data.manifests import cuts_path, load_cuts
from privasr_k2.errors import ConfigError, DataError, GraphError
from privasr_k2.fileio import read_lines
from privasr_k2.lm.arpa import BOS, EOS, UNK, Arpa, read_arpa
from privasr_k2.lm.letter_case import arpa_in_case_of
from privasr_k2.lm.names import read_words
from privasr_k2.lm.ngram import (
    DISCOUNTINGS,
    Counts,
    count_ngrams,
    estimate,
    history_frequencies,
    perplexity,
)
from privasr_k2.lm.pruning import prune_to
from privasr_k2.text.tags import is_tag

log = logging.getLogger(__name__)

Sentences = Sequence[Sequence[str]]

TEXTS = ("auto", "train", "lm_text", "both", "beside")


@dataclass(frozen=True)
class NgramConfig(Checked):
    """How an n-gram model is estimated; see ``conf/common.yaml#lm_ngram``."""

    order: Count
    discounting: Annotated[str, one_of(*DISCOUNTINGS)]
    max_ngrams: Natural
    text: Annotated[str, one_of(*TEXTS)]
    train_repeat: Count


class TextConfig(Protocol):
    """The settings that select a corpus's text; see ``conf/common.yaml#lm_ngram``."""

    @property
    def text(self) -> str: ...

    @property
    def train_repeat(self) -> int: ...


def training_text(
    config: TextConfig,
    manifests: Path | None,
    given: Sequence[Path] | None,
    further: Path | None = None,
) -> Sentences:
    """The sentences of the files ``given``, or those of a corpus selected by ``config.text``.

    Args:
        manifests: the folder of ``cuts_train.jsonl.gz`` and, maybe, ``lm_text.txt.gz``.
        given: text in the forms of :func:`privasr_k2.lm.names.read_text`.
        further: normalized sentences in place of ``lm_text.txt.gz``, or beside it with ``beside``.

    Raises:
        ConfigError: neither files nor a corpus, or files and a selection from a corpus.
        DataError: as :func:`choose_text` and :func:`privasr_k2.lm.names.read_text`.
    """
    if given:
        _refuse_choices(config)
        return read_words(given)
    if manifests is None:
        raise ConfigError("--in-manifests", "a corpus, or files of text", "neither", "give one")
    own = manifests / "lm_text.txt.gz"
    if config.text == "beside":
        of_corpus = _text_of_lines(own) if own.exists() else _text_of_cuts(manifests, "train")
        return [*(_text_of_lines(further) if further else []), *of_corpus * config.train_repeat]
    source = further or own
    lm_text = _text_of_lines(source) if further or source.exists() else None
    needless = lm_text is not None and config.text in ("auto", "lm_text")
    return choose_text(
        config, [] if needless else _text_of_cuts(manifests, "train"), lm_text, source
    )


def dev_text(manifests: Path | None, given: Path | None) -> Sentences:
    """The sentences of the file ``given``, or of the corpus's dev cuts, if any."""
    if given is not None:
        return read_words([given])
    if manifests is None or not cuts_path(manifests, "dev").exists():
        return []
    return _text_of_cuts(manifests, "dev")


def _text_of_cuts(manifests: Path, role: str) -> Sentences:
    return [cut.supervisions[0].text.split() for cut in load_cuts(manifests, role, lazy=True)]


def _text_of_lines(path: Path) -> Sentences:
    return [line.split() for _, line in read_lines(path)]


def _refuse_choices(config: TextConfig) -> None:
    """Refuse a selection from a corpus beside files, which would have no effect."""
    for name, wanted, way_out in (
        ("text", "auto", "take one out"),
        ("train_repeat", 1, "name a file as often as it is to count"),
    ):
        found = getattr(config, name)
        if found != wanted:
            raise ConfigError(name, f"{name}={wanted} with --in-text", f"{name}={found}", way_out)


def choose_text(
    config: TextConfig, train: Sentences, lm_text: Sentences | None, place: Path
) -> Sentences:
    """The sentences that ``config.text`` selects.

    Raises:
        DataError: ``lm_text`` is selected where the corpus has none.
    """
    if config.text == "train" or (config.text == "auto" and lm_text is None):
        return list(train) * config.train_repeat
    if lm_text is None:
        raise DataError(place, f"text for text={config.text}", "no such file", "set text=train")
    if config.text in ("auto", "lm_text"):
        return lm_text
    return [*lm_text, *list(train) * config.train_repeat]


def train_ngram(
    sentences: Sentences, vocabulary: Sequence[str], config: NgramConfig, *, held_out: Sentences
) -> Arpa:
    """Estimate and prune; logs sizes, seconds and the perplexity of ``held_out``.

    Raises:
        DataError: text without any word of the vocabulary, as one in another case.
    """
    clock = time.perf_counter()
    counts = count_ngrams(sentences, vocabulary, order=config.order)
    _check_known(counts, sentences)
    model = estimate(counts, config.discounting)
    seconds = time.perf_counter() - clock
    log.info("estimated in %.1f s from %d sentences", seconds, len(sentences))
    log_figures("before pruning", model, held_out)
    if 0 < config.max_ngrams < len(model.keys):
        model, threshold = prune_to(model, config.max_ngrams, history_frequencies(counts))
        log_figures(f"pruned at threshold {threshold:.2e}", model, held_out)
    return model


def _check_known(counts: Counts, sentences: Sentences) -> None:
    """Refuse text whose words are all unknown, and warn of more than half; tags do not count."""
    number_of = dict(zip(counts.words, counts.counts[0].tolist()))
    unknown = number_of.pop(UNK)
    known = sum(n for word, n in number_of.items() if word not in (BOS, EOS) and not is_tag(word))
    if unknown <= known:
        return
    words = (word for sentence in sentences for word in sentence)
    examples = " ".join(itertools.islice((word for word in words if word not in number_of), 3))
    if not known:
        found, way_out = f"none of {unknown}: {examples} ...", "write it in the case of words.txt"
        raise DataError("the text of the language model", "words of words.txt", found, way_out)
    share = 100 * unknown / (unknown + known)
    log.warning("%.0f %% of the text's words are not in words.txt: %s ...", share, examples)


def import_arpa(
    path: Path, vocabulary: Sequence[str], config: NgramConfig, *, held_out: Sentences
) -> Arpa:
    """Someone's ARPA file, checked and pruned.

    Its words are put in upper or lower case where the vocabulary then has more of them.

    Raises:
        GraphError: a malformed line, or a model without any word of the vocabulary.
    """
    model = arpa_in_case_of(vocabulary, read_arpa(path), path)
    known = sum(word in model.word_ids for word in vocabulary)
    if not known:
        found = f"none of its {len(model.words)} words"
        raise GraphError(path, "words of words.txt", found, "normalize its text alike")
    log.info("%s: %d of the %d words of words.txt", path, known, len(vocabulary))
    log_figures("before pruning", model, held_out)
    if 0 < config.max_ngrams < len(model.keys):
        model, threshold = prune_to(model, config.max_ngrams)
        log_figures(f"pruned at threshold {threshold:.2e}", model, held_out)
    return model


def log_figures(when: str, model: Arpa, held_out: Sentences) -> None:
    """Log the numbers of n-grams and the held-out perplexity."""
    sizes = " ".join(f"{order}-grams {count}" for order, count in enumerate(model.counts, start=1))
    shown = f", perplexity of dev {perplexity(model, held_out):.1f}" if held_out else ""
    log.info("%s: %s%s", when, sizes, shown)
