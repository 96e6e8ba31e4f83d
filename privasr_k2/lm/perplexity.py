"""Perplexity, computed alike for n-gram and neural language models.

The vocabulary is closed, that of ``words.txt``. Every other word (OOV) is read as ``<unk>``, whose
probability is not split over the words it stands for. Sentence ends are predicted and counted.
``ppl`` leaves out the predictions of OOVs; ``ppl_with_oov`` takes log P(<unk>) for them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from privasr_k2.errors import DataError, GraphError
from privasr_k2.lm.arpa import EOS, UNK, read_arpa
from privasr_k2.lm.neural.vocabulary import NO_WORDS

TREATMENT = (
    "closed vocabulary of words.txt; sentence ends predicted and counted; OOV words read as <unk>;"
    " ppl without their predictions, ppl_with_oov with log P(<unk>), not split over the words it"
    " stands for"
)

Sentences = Sequence[Sequence[str]]


class LanguageModel(Protocol):
    """The interface of models for perplexity and rescoring."""

    name: str

    @property
    def words(self) -> Collection[str]:
        """The words that have a probability of their own."""

    @property
    def scores_unknown(self) -> bool:
        """Whether ``<unk>`` has a probability."""

    def token_log_probs(self, sentences: Sentences) -> np.ndarray:
        """Natural log P of all words and sentence ends, (M,), sentence by sentence."""

    def nbest_token_log_probs(self, nbests: Sequence[Sentences]) -> np.ndarray:
        """The same for the hypotheses of N-best lists, which begin alike."""


@dataclass(frozen=True)
class Perplexity:
    """The figures of one model on one text.

    Attributes:
        lm: the model's name.
        sentences, words, oov: numbers of sentences, words, and words outside ``words.txt``.
        nats: -sum of log P over known words and sentence ends.
        oov_nats: -sum of log P(<unk>) over the others; None where the model has no ``<unk>``.
        words_beyond, words_lacking: words of the model that ``words.txt`` lacks, and the reverse.
        groups: the share of each group of sentences in ``nats``, and its number of predictions.

    >>> oov = Perplexity("a", sentences=1, words=2, oov=1, nats=2 * math.log(8), oov_nats=4.158883)
    >>> round(oov.ppl), round(oov.ppl_with_oov)
    (8, 16)
    """

    lm: str
    sentences: int
    words: int
    oov: int
    nats: float
    oov_nats: float | None
    words_beyond: int = 0
    words_lacking: int = 0
    groups: Mapping[str, tuple[float, int]] | None = None

    @property
    def ppl(self) -> float:
        """exp(nats / (words + sentence ends - OOVs))."""
        return _exp(self.nats / (self.words + self.sentences - self.oov))

    @property
    def ppl_with_oov(self) -> float | None:
        """exp((nats + oov_nats) / (words + sentence ends)); None without ``<unk>``."""
        if self.oov_nats is None:
            return None
        return _exp((self.nats + self.oov_nats) / (self.words + self.sentences))

    @property
    def shown(self) -> str:
        """One line of a log."""
        return (
            f"perplexity {self.ppl:.2f}, {_shown(self.ppl_with_oov)} with OOVs "
            f"({self.words} words, {self.oov} of them OOV, {self.sentences} sentence ends)"
        )

    def record(self) -> dict[str, Any]:
        """The figures as JSON has them."""
        figures = {**asdict(self), "ppl": self.ppl, "ppl_with_oov": self.ppl_with_oov}
        if self.groups is None:
            del figures["groups"]
        return figures


def perplexity(
    lm: LanguageModel,
    sentences: Sentences,
    words: Iterable[str],
    groups: Sequence[str] | None = None,
) -> Perplexity:
    """The perplexity of a text.

    Args:
        words: the closed vocabulary, one for all models of a table.
        groups: the group of each sentence, such as its speaker.

    Raises:
        DataError: an empty text.
        GraphError: a model that lacks a word of vocabulary and text.
    """
    if not len(sentences):
        raise DataError("the text", "sentences", "none", "give a text with at least one")
    known = set(words) - NO_WORDS
    own = set(lm.words)
    beyond, lacking = own - known, known - own
    missing = next((w for sentence in sentences for w in sentence if w in lacking), None)
    if missing is not None:
        expected = f"the vocabulary of words.txt ({len(known)} words)"
        found = f"{len(lacking)} of its words are missing, {missing!r} of the text among them"
        raise GraphError(lm.name, expected, found, "use its own lang folder")
    read = [[word if word in known else UNK for word in sentence] for sentence in sentences]
    is_oov = np.array([word == UNK for sentence in read for word in (*sentence, EOS)])
    log_probs = lm.token_log_probs(read)
    return Perplexity(
        lm=lm.name,
        sentences=len(read),
        words=len(is_oov) - len(read),
        oov=int(is_oov.sum()),
        nats=float(-log_probs[~is_oov].sum()),
        oov_nats=float(-log_probs[is_oov].sum()) if lm.scores_unknown or not is_oov.any() else None,
        words_beyond=len(beyond),
        words_lacking=len(lacking),
        groups=None if groups is None else _by_group(read, groups, log_probs, is_oov),
    )


def _by_group(
    sentences: Sentences, groups: Sequence[str], log_probs: np.ndarray, is_oov: np.ndarray
) -> dict[str, tuple[float, int]]:
    """-sum of log P and the number of predictions of each group, without those of OOVs."""
    names, places = np.unique(np.array(groups), return_inverse=True)
    owners = np.repeat(places, [len(sentence) + 1 for sentence in sentences])[~is_oov]
    nats = np.bincount(owners, -log_probs[~is_oov], minlength=len(names))
    counts = np.bincount(owners, minlength=len(names))
    return dict(zip(names.tolist(), zip(nats.tolist(), counts.tolist())))


class KenlmModel:
    """An ARPA model, scored exactly by kenlm, read and checked by ``read_arpa`` first.

    Attributes:
        model: the ``kenlm.Model``.

    Raises:
        GraphError: a file that ``read_arpa`` or kenlm refuses: kenlm wants bigrams at least, and
            tabs between columns.
    """

    def __init__(self, path: Path, name: str | None = None) -> None:
        import kenlm

        self.name = name or str(path)
        unigrams = frozenset(read_arpa(path).words)
        self.words = unigrams - NO_WORDS
        self.scores_unknown = bool(unigrams & {UNK, "<UNK>"})
        options = kenlm.Config()
        options.show_progress = False
        options.arpa_complain = kenlm.ARPALoadComplain.NONE
        try:
            self.model = kenlm.Model(str(path), options)
        except (OSError, RuntimeError) as error:
            reason = str(error).rpartition("threw ")[2].strip()[:200]
            raise GraphError(path, "an ARPA model", reason, "estimate or copy it again") from error

    def token_log_probs(self, sentences: Sentences) -> np.ndarray:
        """Natural log P of all words and sentence ends, (M,) float64, sentence by sentence."""
        scores = (self.model.full_scores(" ".join(sentence)) for sentence in sentences)
        return np.array([score for words in scores for score, _, _ in words]) * math.log(10.0)

    def nbest_token_log_probs(self, nbests: Sequence[Sentences]) -> np.ndarray:
        """The same for the hypotheses of N-best lists."""
        return self.token_log_probs([hyp for nbest in nbests for hyp in nbest])

    def score_sentences(self, sentences: Sentences) -> np.ndarray:
        """Natural log P(words, end) of every sentence, (S,) float64."""
        return np.array([self.model.score(" ".join(s)) for s in sentences]) * math.log(10.0)


def table(results: Sequence[Perplexity]) -> str:
    """A table of plain text, the treatment beneath it."""
    head = ["lm", "ppl", "ppl with OOV", "words", "ends", "OOV", "beyond", "lacking"]
    counts = attrgetter("words", "sentences", "oov", "words_beyond", "words_lacking")
    rows = [
        [result.lm, f"{result.ppl:.2f}", _shown(result.ppl_with_oov), *map(str, counts(result))]
        for result in results
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
        for row in (head, *rows)
    ]
    return "\n".join([*lines, TREATMENT])


def _exp(nats: float) -> float:
    return math.exp(nats) if nats < 700 else math.inf


def _shown(ppl: float | None) -> str:
    return "-" if ppl is None else f"{ppl:.2f}"
