"""The n-gram caches of devices: the words that a user said, against the whole vocabulary.

    . ./path.sh; python benchmarks/personal_cache.py

Clients say sentences of words as frequent as Zipf says, in ``--groups``. After each group a device
estimates its n-gram model again and scores the next group with ten weights, as verb personalize
does (conf/personal.yaml#personal_cache). The peer estimates a model of all ``--words`` and scores
by the prefix tree of a class LM. All log-probabilities must agree within 1e-9. Processor time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from benchmarks.federated_round import made_clients
from benchmarks.measuring import least
from benchmarks.rows import Row, append_rows, flags
from privasr_k2.federated.client_ngrams import ClientWords
from privasr_k2.federated.personal import Device
from privasr_k2.federated.personal_methods import Cache
from privasr_k2.lm.classes import ClassLm
from privasr_k2.lm.interpolate import mixed_log_probs
from privasr_k2.lm.ngram import count_ngrams, estimate

SHARES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6)
Sentences = list[list[str]]


class WholeCache:
    """A cache that holds the whole vocabulary: what :class:`Cache` was before."""

    reads_shared = True

    def __init__(self, words: Sequence[str], order: int, shares: Sequence[float]) -> None:
        self._words, self._order, self._shares = words, order, shares
        self._said: list[Sequence[str]] = []
        self.kept_bytes = 0

    def learn(self, sentences: Sequence[Sequence[str]]) -> None:
        """Estimate anew."""
        self._said += sentences
        counts = count_ngrams(self._said, self._words, order=self._order)
        self.kept_bytes = 8 * sum(np.count_nonzero(of_order) for of_order in counts.counts)
        self._lm = ClassLm(estimate(counts, "witten_bell"), {})

    def log_probs(self, nbests: Sequence[Sequence[Sequence[str]]], plain: np.ndarray) -> np.ndarray:
        """(W, K) of lists."""
        both = np.stack([plain, self._lm.nbest_token_log_probs(nbests)], axis=1)
        columns = [
            plain if share == 0 else mixed_log_probs(both, np.array([1 - share, share]))
            for share in self._shares
        ]
        return np.stack(columns, axis=1)


def gone_through(
    begin: Callable[[], Device], clients: Sequence[Sequence[Sentences]]
) -> tuple[np.ndarray, int]:
    """All log-probabilities, each group's by the groups before; and bytes that devices keep."""
    found, kept = [], 0
    for groups in clients:
        device = begin()
        for said, following in pairwise(groups):
            device.learn(said)
            plain = np.full(sum(len(words) + 1 for words in following), -5.0)
            found.append(device.log_probs([[words] for words in following], plain))
        kept += device.kept_bytes
    return np.concatenate(found), kept


def main() -> None:
    """Measure and print."""
    parser = flags(__doc__, words=30_000, clients=4, utterances=60, groups=11, order=3, repeats=3)
    args = parser.parse_args()
    words = [f"w{n:05d}" for n in range(args.words)]
    clients = []
    for client in made_clients(args.clients, args.words + 2, float(args.utterances)):
        text = client.text
        said = [words[n - 2] for n in text.words.tolist()]
        bounds = text.starts.tolist()
        sentences = [said[start:end] for start, end in pairwise(bounds)]
        cuts = np.linspace(0, len(sentences), args.groups + 1).astype(int).tolist()
        clients.append([sentences[a:b] for a, b in pairwise(cuts) if b > a])
    numbers = ClientWords(words)
    ways: dict[str, Callable[[], Device]] = {
        "ours": lambda: Cache(numbers, args.order, SHARES),
        "whole": lambda: WholeCache(words, args.order, SHARES),
    }
    runs = {name: partial(gone_through, begin, clients) for name, begin in ways.items()}
    seconds, found = least(runs, args.repeats, time.process_time)
    (ours, kept), (whole, whole_kept) = found["ours"], found["whole"]
    if np.abs(ours - whole).max() > 1e-9 or kept != whole_kept:
        raise SystemExit("the caches differ")
    what = f"{args.order}-gram caches of {args.clients} clients, {len(ours)} tokens scored"
    print(f"{what}: ours {seconds['ours']:.3f} s, whole vocabulary {seconds['whole']:.3f} s, "
          f"ratio {seconds['whole'] / seconds['ours']:.1f}")  # fmt: skip
    against = f"models of all {args.words} words, as before"
    append_rows(
        args.out_rows,
        [Row(what, seconds["ours"], seconds["whole"], "processor s", against, "less")],
    )


if __name__ == "__main__":
    main()
