"""Adapting, approximating and mixing language models, each against a direct loop over a sample.

    . ./path.sh; python benchmarks/lm_adaptation.py

* fast marginal adaptation of the trigrams of 7.2 million words of books; the loop sums over the
  vocabulary for every one of ``--histories``
* an LSTM's trigram approximation on the training words of AMI; the loop fills dictionaries. Weights
  are random without --in-lstm
* EM weights of three models on AMI's dev words: trigrams of AMI's training words, an adapted model
  of the books, the approximation; the loop is over words

The results must be the same. Data: PRIVASR_SHARED_DATA, or ../shared/data beside the checkout.
"""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import mebibytes, timed
from benchmarks.rows import Row, append_rows, flags
from privasr_k2 import config
from privasr_k2.fileio import read_lines
from privasr_k2.lm.approximate import approximate, probs_of_text
from privasr_k2.lm.arpa import EOS, Arpa
from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.interpolate import em_weights
from privasr_k2.lm.marginals import adapt, smoothed_unigrams
from privasr_k2.lm.ngram import count_ngrams, estimate, perplexity
from privasr_k2.randomness import stream
from privasr_k2.text.normalize import normalize_english

ROOT = Path(__file__).resolve().parents[1]
Sentences = list[list[str]]


def ami(folder: Path, split: str) -> Sentences:
    """The words of AMI's turns of one split, without markers."""
    rows = (line.split("\t") for _, line in read_lines(folder / "ami" / "turns.tsv.gz"))
    turns = (normalize_english(row[4]).split() for row in rows if row[1] == split)
    return [turn for turn in turns if turn]


def adaptation(books: Sentences, text: Sentences, histories: int) -> dict[str, object]:
    """Equation 1 and 2 on the trigrams of the books."""
    words = sorted({word for sentence in books for word in sentence})
    counted = partial(count_ngrams, books, words, order=3)
    estimating, model = timed(lambda: estimate(counted(), "modified_kneser_ney"))
    target = smoothed_unigrams(text, model, 0.0)
    before = mebibytes() / 1024
    seconds, adapted = {}, {}
    for n in (1, 2):
        seconds[n], adapted[n] = timed(partial(adapt, model, target, 0.5, equation=n))
    after = mebibytes() / 1024
    all_histories = len(model.keys) - model.counts[-1]
    sample = stream(1, "histories").integers(0, all_histories, histories)
    known = np.flatnonzero(target > 0)
    looping, direct = timed(lambda: [evaluated(model, target, known, n) for n in sample.tolist()])
    difference = largest_difference(adapted, known, sample, direct)
    assert difference < 1e-6, difference
    return {
        "ngrams": list(model.counts),
        "estimation_s": estimating,
        "adaptation_s": seconds,
        "memory_before_gib": before,
        "memory_after_gib": after,
        "loop_histories": histories,
        "loop_s": looping,
        "loop_s_for_all_histories": looping / (2 * histories) * all_histories,
        "largest_difference": difference,
    }


def evaluated(
    model: Arpa, target: np.ndarray, words: np.ndarray, node: int
) -> dict[int, np.ndarray]:
    """P of ``words`` after a history by each equation, summed over the vocabulary."""
    unigrams = 10.0 ** model.log10_probs[words]
    given = 10.0 ** model.log10_conditional(np.full(len(words), node), words)
    values = {
        1: np.sqrt(target[words] / unigrams) * given,
        2: np.sqrt(given / unigrams) * target[words],
    }
    return {equation: value / value.sum() for equation, value in values.items()}


def largest_difference(
    adapted: dict[int, Arpa],
    words: np.ndarray,
    sample: np.ndarray,
    direct: list[dict[int, np.ndarray]],
) -> float:
    """Of an adapted probability from the formula's, over ``words`` after the sampled histories."""
    largest = 0.0
    for node, probs in zip(sample.tolist(), direct):
        history = np.full(len(words), node)
        for equation, model in adapted.items():
            ours = 10.0 ** model.log10_conditional(history, words)
            largest = max(largest, float(np.abs(ours - probs[equation]).max()))
    return largest


def approximation(
    train: Sentences, lstm: Path | None, sample: int
) -> tuple[dict[str, object], Arpa]:
    """Trigrams with an LSTM's probabilities."""
    import torch

    from privasr_k2.lm.mixtures import open_lm
    from privasr_k2.lm.neural.kinds import kind_of, new_lm, spec_of
    from privasr_k2.lm.neural.scoring import NeuralScorer
    from privasr_k2.lm.neural.vocabulary import order_by_count
    from privasr_k2.lm.perplexity import LanguageModel

    torch.set_num_threads(1)
    words = sorted({word for sentence in train for word in sentence})
    lm: LanguageModel
    if lstm is None:
        files = [ROOT / "conf/common.yaml#lm_lstm"]
        vocabulary = order_by_count(words, train)
        model = new_lm(spec_of(config.load(kind_of(files).config, files)), vocabulary, 1)
        lm = NeuralScorer(model.eval(), vocabulary)
    else:
        lm = open_lm(lstm)
    reading, probs = timed(lambda: probs_of_text(lm, train, 200_000))
    seconds, found = timed(lambda: approximate(train, probs, words, order=3, unigrams="average"))
    some = train[:sample]
    size = sum(len(sentence) + 1 for sentence in some)
    part = approximate(some, probs[:size], words, order=3, unigrams="average")
    looping, expected = timed(lambda: slow_trigrams(some, probs[:size].tolist(), len(words) + 2))
    difference = max(
        abs(10.0 ** part.log10_probs[row] - expected[tuple(ngram)]) for row, ngram in trigrams(part)
    )
    assert difference < 1e-9, difference
    figures = {
        "words": len(probs),
        "reading_s": reading,
        "words_a_second": len(probs) / reading,
        "ngrams": list(found.counts),
        "approximation_s": seconds,
        "loop_words": size,
        "loop_s": looping,
        "loop_s_for_all_words": looping / size * len(probs),
        "largest_difference": difference,
    }
    return figures, found


def trigrams(model: Arpa) -> list[tuple[int, list[str]]]:
    """The rows of the trigrams and their words."""
    rows = range(sum(model.counts[:2]), sum(model.counts))
    parents, last = model.parents, model.last_words
    found = []
    for row in rows:
        pair = int(parents[row]) - 1
        numbers = (int(parents[pair]) - 1, int(last[pair]), int(last[row]))
        found.append((row, [model.words[number] for number in numbers]))
    return found


def slow_trigrams(
    text: Sentences, probs: list[float], predictable: int
) -> dict[tuple[str, ...], float]:
    """P of every n-gram up to trigrams; ``predictable``: words, sentence ends and <unk>."""
    sums: dict[tuple[str, ...], float] = defaultdict(float)
    counts: dict[tuple[str, ...], int] = defaultdict(int)
    place = 0
    for sentence in text:
        padded = ["<s>", *sentence, EOS]
        for end in range(1, len(padded)):
            for order in range(1, min(3, end + 1) + 1):
                ngram = tuple(padded[end + 1 - order : end + 1])
                sums[ngram] += probs[place]
                counts[ngram] += 1
            place += 1
    mass: dict[tuple[str, ...], float] = defaultdict(float)
    total: dict[tuple[str, ...], int] = defaultdict(int)
    kinds: dict[tuple[str, ...], int] = defaultdict(int)
    for ngram, count in counts.items():
        mass[ngram[:-1]] += sums[ngram] / count
        total[ngram[:-1]] += count
        kinds[ngram[:-1]] += 1
    found: dict[tuple[str, ...], float] = {}
    for ngram in sorted(counts, key=len):
        history = ngram[:-1]
        left = kinds[history] / (kinds[history] + total[history])
        lower = found[ngram[1:]] if history else 1.0 / predictable
        found[ngram] = (1 - left) * sums[ngram] / counts[ngram] / mass[history] + left * lower
    return found


def mixing(models: list[Arpa], dev: Sentences, sample: int) -> dict[str, object]:
    """EM over all words of dev, and by a loop over the first ones."""
    log_probs = np.stack([ClassLm(model, {}).token_log_probs(dev) for model in models], axis=1)
    seconds, (weights, mean) = timed(lambda: em_weights(log_probs))
    some, steps = log_probs[:sample], 50
    same, (fast, _) = timed(lambda: em_weights(some, max_steps=steps, tolerance=-math.inf))
    looping, slow = timed(lambda: slow_em(np.exp(some).tolist(), steps))
    difference = float(np.abs(fast - slow).max())
    assert difference < 1e-9, difference
    return {
        "words": len(log_probs),
        "em_s": seconds,
        "weights": weights.round(4).tolist(),
        "ppl": math.exp(-mean),
        "ppl_of_each": [perplexity(model, dev) for model in models],
        "loop_words": len(some),
        "loop_steps": steps,
        "loop_s": looping,
        "same_words_and_steps_s": same,
        "largest_difference": difference,
    }


def slow_em(probs: list[list[float]], steps: int) -> list[float]:
    """The same steps, word by word."""
    weights = [1.0 / len(probs[0])] * len(probs[0])
    for _ in range(steps):
        shares = [0.0] * len(weights)
        for row in probs:
            total = sum(w * p for w, p in zip(weights, row))
            for number, (weight, prob) in enumerate(zip(weights, row)):
                shares[number] += weight * prob / total
        weights = [share / len(probs) for share in shares]
    return weights


def main() -> None:
    """Measure and print JSON."""
    parser = flags(__doc__, histories=100)
    parser.add_argument("--in-lstm", type=Path, help="of train_lm, on AMI's training words")
    parser.add_argument("--sentences", type=int, help="at most, of the books and of AMI's training")
    args = parser.parse_args()
    data = Path(os.environ.get("PRIVASR_SHARED_DATA", ROOT.parent / "shared" / "data"))
    split = (line.split() for _, line in read_lines(data / "books" / "books.txt.gz"))
    books = [sentence for sentence in split if sentence][: args.sentences]
    train, dev = ami(data, "train")[: args.sentences], ami(data, "val")
    words = sorted({word for sentence in train for word in sentence})
    known = set(words)
    dev = [[word for word in sentence if word in known] for sentence in dev[:2000]]
    adapted = adaptation(books, train, args.histories)
    approximated, lstm = approximation(train, args.in_lstm, 2000)
    own = estimate(count_ngrams(train, words, order=3), "modified_kneser_ney")
    foreign = estimate(count_ngrams(books, words, order=3), "modified_kneser_ney")
    foreign = adapt(foreign, smoothed_unigrams(train, foreign, 0.0), 0.5, equation=1)
    mixed = mixing([own, foreign, lstm], dev, 2000)
    found = {"adaptation": adapted, "approximation": approximated, "em": mixed}
    print(json.dumps(found, indent=2))
    append_rows(args.out_rows, table_rows(found))


def table_rows(found: dict[str, dict[str, Any]]) -> list[Row]:
    """What was found as rows."""
    adapted, approximated, mixed = found["adaptation"], found["approximation"], found["em"]
    scaled = f"direct evaluation, scaled from {adapted['loop_histories']} histories"
    what, direct = f"{sum(adapted['ngrams'])} n-grams", adapted["loop_s_for_all_histories"]
    rows = [
        Row(f"marginal adaptation of {what}, equation {n}", seconds, direct, "s", scaled, "less")
        for n, seconds in adapted["adaptation_s"].items()
    ]
    what = f"n-gram approximation from the LSTM's probabilities of {approximated['words']} words"
    scaled = f"a loop with dictionaries, scaled from {approximated['loop_words']} words"
    times = (approximated["approximation_s"], approximated["loop_s_for_all_words"])
    rows.append(Row(what, *times, "s", scaled, "less"))
    sizes = f"{mixed['loop_steps']} steps of EM on {mixed['loop_words']} words"
    times = (mixed["same_words_and_steps_s"], mixed["loop_s"])
    peer = "direct evaluation word by word"
    return [*rows, Row(f"interpolation weights: {sizes}", *times, "s", peer, "less")]


if __name__ == "__main__":
    main()
