"""What federated marginal personalization adds to rescoring one client's N-best lists.

    . ./path.sh; python benchmarks/fmp.py

One client's utterances are rescored round by round with conf/common.yaml#lm_transformer, with a
full and an adaptive softmax:

* plain: ``NeuralScorer.nbest_token_log_probs``, and the best hypothesis of each list
* unnormalized: with marginals counted and averaged, and lambda ln(g/u) added to every word, as in
  the paper
* normalized: with Z(h), which needs P of every word after every prefix; also for ten settings

Runs alternate; the least time counts. lambda = 0 must give the plain scores bit for bit. Then the
memory of the marginals of ``--clients``. Lists of ``--size`` hypotheses (20 as the paper for AMI)
are those of benchmarks/rescoring.py; ``--nbest FILE...`` takes real ones.
"""

from __future__ import annotations

import json
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measuring import least
from benchmarks.rescoring import made_lists, read_lists
from benchmarks.rows import Row, append_rows, flags
from privasr_k2 import config
from privasr_k2.federated.adapted_lm import Mixing, adapted_log_probs
from privasr_k2.federated.fmp_simulation import (
    CacheConfig,
    epochs,
    normalized_log_probs,
    rounds_of,
    token_log_ratios,
)
from privasr_k2.federated.fmp_spoken import Spoken, Turn, numbers_of_vocabulary, spoken_of
from privasr_k2.federated.marginals import background_unigrams
from privasr_k2.lm.neural.kinds import kind_of, new_lm, spec_of
from privasr_k2.lm.neural.scoring import NeuralScorer
from privasr_k2.lm.neural.vocabulary import SYMBOLS, Vocabulary
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList, NbestLists

CONF = Path(__file__).resolve().parents[1] / "conf"
WORDS = 10_000
_KERNEL = dict(kernel_bandwidth=1.0, normalized_kernel=False, prior_words=0.0, decay=1.0)
CACHES = CacheConfig(rounds=5, **_KERNEL, refresh="round", client_fraction=1.0, seed=1)
MIXING = Mixing(0.5, 0.5, 0.25)


def world(nbests: list[list[list[str]]], vocabulary: Vocabulary, clients: int) -> Spoken:
    """The lists as arrays, told to clients in turn."""
    lists = []
    for number, nbest in enumerate(nbests):
        hyps = (Hypothesis(rank, " ".join(words), 0.0, {}) for rank, words in enumerate(nbest, 1))
        speaker = f"c{number % clients}"
        lists.append(NbestList(f"u{number:06d}", "test", speaker, "", False, tuple(hyps)))
    timeline = [Turn(nbest.id, nbest.speaker, nbest.speaker, "speaker") for nbest in lists]
    numbers = numbers_of_vocabulary(vocabulary, unknown=True)
    return spoken_of(NbestLists(Path("nbest"), tuple(lists), {}, ()), timeline, numbers)


def chosen(spoken: Spoken, log_probs: np.ndarray) -> np.ndarray:
    """The best hypothesis of each list."""
    totals = np.bincount(spoken.token_hyps, log_probs, minlength=len(spoken.ranks))
    starts = np.flatnonzero(spoken.ranks == 1)
    return np.maximum.reduceat(totals, starts)


def rescoring(
    nbests: list[list[list[str]]], vocabulary: Vocabulary, softmax: str, repeats: int
) -> dict[str, object]:
    """Seconds of each way, and what it takes beyond the plain one."""
    files = [CONF / "common.yaml#lm_transformer"]
    settings = config.load(kind_of(files).config, files, [f"output.softmax={softmax}"])
    lm = NeuralScorer(new_lm(spec_of(settings), vocabulary, 1).eval(), vocabulary)
    spoken = world(nbests, vocabulary, 1)
    text = [hyp for nbest in nbests for hyp in nbest[:1]]
    background = background_unigrams(text, spoken.numbers, 1000.0)
    round_of = rounds_of(spoken, CACHES.rounds)
    rounds = [np.flatnonzero(round_of == t) for t in range(CACHES.rounds + 1)]

    def read() -> np.ndarray:
        lists = ([nbests[i] for i in own] for own in rounds)
        return np.concatenate([*map(lm.nbest_token_log_probs, lists)])

    def plain() -> np.ndarray:
        found = read()
        chosen(spoken, found)
        return found

    def unnormalized() -> np.ndarray:
        ratios = token_log_ratios(spoken, CACHES, background, [MIXING], [None])[:, 0]
        found = read() + MIXING.lam * ratios
        chosen(spoken, found)
        return found

    def normalized(mixings: list[Mixing]) -> np.ndarray:
        adapt, none = partial(adapted_log_probs, lm), [None] * len(mixings)
        found = normalized_log_probs(spoken, nbests, adapt, CACHES, background, mixings, none)
        for column in found.T:
            chosen(spoken, column)
        return found

    ten = [Mixing(0.1 * step, 0.5, 0.25) for step in range(10)]
    ways = {"plain": plain, "unnormalized": unnormalized}
    ways |= {"normalized": lambda: normalized([MIXING])}
    ways |= {"normalized, 10 settings": lambda: normalized(ten)}
    times, found = least(ways, repeats)
    with_lambda_0 = found["normalized, 10 settings"][:, 0]
    assert np.array_equal(with_lambda_0, found["plain"]), "lambda = 0 has other bits"
    over = {name: round(100 * (spent / times["plain"] - 1), 1) for name, spent in times.items()}
    return {"softmax": softmax, "seconds": times, "percent_beyond_plain": over}


def memory(vocabulary: Vocabulary, clients: int) -> dict[str, object]:
    """Bytes of the marginals of many clients while their rounds are gone through."""
    lists = [nbest[:3] for nbest in made_lists(10, vocabulary)]
    spoken = world(lists * (clients // 5), vocabulary, clients)
    background = np.full(len(vocabulary), 1 / (len(vocabulary) - 1))
    tracemalloc.start()
    held, kinds = 0, 0
    for epoch in epochs(spoken, CACHES, background):
        counts = epoch.caches.counts
        held = max(held, counts.data.nbytes + counts.indices.nbytes + counts.indptr.nbytes)
        kinds = max(kinds, counts.nnz)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "clients": clients,
        "different_words_of_all_clients": kinds,
        "bytes_of_marginals": held,
        "bytes_a_client": round(held / clients),
        "peak_bytes_with_the_counts_of_all_utterances": peak,
        "bytes_if_dense": 8 * clients * len(vocabulary),
    }


def main() -> None:
    """Measure and print JSON."""
    parser = flags(__doc__, utterances=60, size=20, repeats=5)
    parser.add_argument("--nbest", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--clients", type=int, nargs="+", default=[100, 1000])
    args = parser.parse_args()
    torch.set_num_threads(1)
    vocabulary = Vocabulary((*SYMBOLS, *(f"w{n:05d}" for n in range(WORDS))))
    lists = read_lists(args.nbest) if args.nbest else made_lists(args.utterances, vocabulary)
    lists = [nbest[: args.size] for nbest in lists[: args.utterances]]
    of_lists = vocabulary
    if args.nbest:
        words = {word for nbest in lists for hyp in nbest for word in hyp}
        of_lists = Vocabulary((*SYMBOLS, *sorted(words)))
    found: dict[str, Any] = {
        "utterances": len(lists),
        "hypotheses": sum(map(len, lists)),
        "words": len(of_lists),
        "rescoring": [
            rescoring(lists, of_lists, softmax, args.repeats) for softmax in ("full", "adaptive")
        ],
        "memory": [memory(vocabulary, clients) for clients in args.clients],
    }
    print(json.dumps(found, indent=2))
    append_rows(args.out_rows, table_rows(found))


def table_rows(found: dict[str, Any]) -> list[Row]:
    """What was found as rows."""
    rows = []
    for one in found["rescoring"]:
        times = one["seconds"]
        what = f"rescoring {found['hypotheses']} hypotheses with FMP, {one['softmax']} softmax, "
        against = "the same lists rescored without personalization"
        rows += [
            Row(f"{what}{name}", seconds, times["plain"], "s", against, "less")
            for name, seconds in times.items()
            if name != "plain"
        ]
    for one in found["memory"]:
        sizes = (one["bytes_of_marginals"] / 1e6, one["bytes_if_dense"] / 1e6)
        what = f"memory of the marginals of {one['clients']} clients"
        rows.append(Row(what, *sizes, "MB", "dense arrays (their size computed)", "less"))
    return rows


if __name__ == "__main__":
    main()
