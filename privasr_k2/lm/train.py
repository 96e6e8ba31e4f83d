"""From text to a pruned n-gram model, with the figures that say how good it is."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from privasr_k2.errors import DataError, GraphError
from privasr_k2.lm.arpa import Arpa, read_arpa
from privasr_k2.lm.ngram import DISCOUNTINGS, count_ngrams, estimate, history_frequencies, perplexity
from privasr_k2.lm.pruning import prune_to

log = logging.getLogger(__name__)

Sentences = Sequence[Sequence[str]]


@dataclass(frozen=True)
class NgramConfig:
    """How an n-gram model is estimated; defaults in ``conf/lm_ngram.yaml``.

    Args:
        order: the length of the longest n-grams.
        discounting: ``modified_kneser_ney``, ``kneser_ney`` or ``witten_bell``.
        max_ngrams: entropy pruning keeps at most so many n-grams of all orders together; 0 keeps all.
        text: ``train``, ``lm_text``, ``both``, or ``auto``: ``lm_text`` where there is one, else ``train``.
        train_repeat: how often the training text is taken.
    """

    order: int
    discounting: str
    max_ngrams: int
    text: str
    train_repeat: int

    def __post_init__(self) -> None:
        if self.order < 1 or self.train_repeat < 1 or self.max_ngrams < 0:
            raise ValueError("order and train_repeat must be above 0, max_ngrams at least 0")
        if self.discounting not in DISCOUNTINGS:
            raise ValueError(f"discounting must be one of {' '.join(DISCOUNTINGS)}, got {self.discounting!r}")
        if self.text not in ("auto", "train", "lm_text", "both"):
            raise ValueError(f"text must be auto, train, lm_text or both, got {self.text!r}")


def choose_text(config: NgramConfig, train: Sentences, lm_text: Sentences | None, place: Path) -> Sentences:
    """The sentences that ``config.text`` asks for.

    Raises:
        DataError: ``lm_text`` is asked for where the corpus has none.
    """
    if config.text == "train" or (config.text == "auto" and lm_text is None):
        return list(train) * config.train_repeat
    if lm_text is None:
        raise DataError(place, f"text for text={config.text}", "no such file", "choose --set text=train")
    return lm_text if config.text in ("auto", "lm_text") else [*lm_text, *list(train) * config.train_repeat]


def train_ngram(
    sentences: Sentences, vocabulary: Sequence[str], config: NgramConfig, *, held_out: Sentences
) -> Arpa:
    """Estimate and prune; sizes, seconds and the perplexity of ``held_out`` are logged before and after."""
    clock = time.perf_counter()
    counts = count_ngrams(sentences, vocabulary, order=config.order)
    model = estimate(counts, config.discounting)
    seconds = time.perf_counter() - clock
    log.info("estimated in %.1f s from %d sentences", seconds, len(sentences))
    log_figures("before pruning", model, held_out)
    if 0 < config.max_ngrams < len(model.keys):
        model, threshold = prune_to(model, config.max_ngrams, history_frequencies(counts))
        log_figures(f"pruned at threshold {threshold:.2e}", model, held_out)
    return model


def import_arpa(path: Path, vocabulary: Sequence[str], config: NgramConfig, *, held_out: Sentences) -> Arpa:
    """Someone's ARPA file, checked and pruned.

    Raises:
        GraphError: a malformed line, or a model without any word of the vocabulary.
    """
    model = read_arpa(path)
    known = sum(word in model.word_ids for word in vocabulary)
    if not known:
        raise GraphError(
            path,
            "words of words.txt (lower case)",
            f"none of its {len(model.words)} words",
            "normalize the model's text as the corpus's text",
        )
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
