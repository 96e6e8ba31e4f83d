"""An n-gram model of numbers of speakers: what was released of words and bigrams, and no text.

A word has the weight of the speakers who voted for it. How often a sentence ends cannot be seen in
votes for words; it is a public number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privasr_k2.constraints import Checked, Positive
from privasr_k2.errors import DataError
from privasr_k2.lm.arpa import BOS, EOS, UNK, Arpa
from privasr_k2.lm.ngram import Counts, estimate


@dataclass(frozen=True)
class VotedLmConfig(Checked):
    """How a model is made of votes; see ``conf/wordvotes.yaml#voted_lm``."""

    sentence_words: Positive
    unreleased: bool


def train_on_votes(
    words: Mapping[str, int],
    bigrams: Mapping[tuple[str, str], int],
    vocabulary: Sequence[str],
    config: VotedLmConfig,
) -> Arpa:
    """A bigram model, smoothed by Witten and Bell; without bigrams words are independent.

    Args:
        words, bigrams: votes; ``<s>`` and ``</s>`` are the sentence's ends.
        vocabulary: words that can be spoken; others are left out. With ``unreleased`` all of them
            share a little probability, else the model has the released words alone. Where nothing
            was released all are equally likely then.

    Raises:
        DataError: none of the words can be spoken, and the others are left out.

    >>> config = VotedLmConfig(sentence_words=2.0, unreleased=False)
    >>> model = train_on_votes({"yes": 6, "no": 2}, {}, ["no", "yes"], config)
    >>> dict(zip(model.words, (10**model.log10_probs).round(4).tolist()))
    {'<s>': 0.0, '</s>': 0.3167, '<unk>': 0.05, 'no': 0.1833, 'yes': 0.45}
    """
    spoken = set(vocabulary)
    kept = {word: votes for word, votes in words.items() if word in spoken}
    if not kept and not config.unreleased:
        expected, way_out = "a word of the language folder", "ask for a larger epsilon"
        raise DataError("the released words", expected, "none", way_out)
    names = (BOS, EOS, UNK, *(word for word in vocabulary if config.unreleased or word in kept))
    numbers = {word: number for number, word in enumerate(names)}
    unigrams = np.array([kept.get(word, 0) for word in names])
    unigrams[:2] = max(round(unigrams.sum() / config.sentence_words), 1)
    counts = Counts(
        names, [np.arange(len(names))], [unigrams], [np.zeros(len(names), dtype=np.int64)]
    )
    pairs = {pair: n for pair, n in bigrams.items() if set(pair) <= {BOS, EOS, *kept}}
    if pairs:
        first, second = np.array([[numbers[a], numbers[b]] for a, b in pairs], dtype=np.int64).T
        keys = first * len(names) + second
        order = np.argsort(keys)
        counts.keys.append(keys[order])
        counts.counts.append(np.array(list(pairs.values()))[order])
        counts.suffixes.append(second[order])
        return estimate(counts, "witten_bell")
    return _with_a_bigram(estimate(counts, "witten_bell"))


def _with_a_bigram(unigrams: Arpa) -> Arpa:
    """The same probabilities as a bigram model: KenLM reads no unigram model.

    The empty sentence, which would back off with weight 1, has its probability in full.
    """
    bos, eos = unigrams.word_ids[BOS], unigrams.word_ids[EOS]
    size = len(unigrams.words)
    return Arpa(
        unigrams.words,
        (size, 1),
        np.append(unigrams.keys, (bos + 1) * size + eos),
        np.append(unigrams.log10_probs, unigrams.log10_probs[eos]),
        np.append(unigrams.log10_backoffs, 0.0),
    )
