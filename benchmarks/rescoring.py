"""100-best lists scored by neural language models, in three ways.

    . ./path.sh; python benchmarks/rescoring.py

* each path: every hypothesis of a list in one padded batch, as icefall's ``rescore_with_rnn_lm``
* batches: ``score_sentences``: hypotheses of all lists, of similar length together
* shared: ``score_with_shared_prefixes``: every distinct prefix once

Synthetic lists are the 100 best combinations of alternatives at a few places of a sentence;
``--nbest FILE...`` takes the lists of ``decode``. All three must agree within 1e-4.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from benchmarks.measuring import least
from benchmarks.rows import Row, append_rows, flags
from privasr_k2 import config
from privasr_k2.lm.neural.kinds import kind_of, new_lm, spec_of
from privasr_k2.lm.neural.scoring import NeuralScorer
from privasr_k2.lm.neural.softmax import FullSoftmax
from privasr_k2.lm.neural.vocabulary import SYMBOLS, Vocabulary
from privasr_k2.randomness import stream

WORDS, SIZE, REPEATS = 10_000, 100, 3
CONF = Path(__file__).resolve().parents[1] / "conf"


def made_lists(count: int, vocabulary: Vocabulary) -> list[list[list[str]]]:
    """Sentences of 8 to 30 words; one place in four has alternatives, whose costs give 100 best."""
    generator = stream(1, "lists")
    shares = 1.0 / np.arange(1, WORDS + 1)  # words as frequent as Zipf says

    def some_words(size: int) -> list[str]:
        return list(generator.choice(vocabulary.words, size=size, p=shares / shares.sum()))

    lists = []
    for _ in range(count):
        length = int(generator.integers(8, 31))
        rivals = [some_words(1) for _ in range(length)]
        for place in generator.choice(length, size=max(4, length // 4), replace=False):
            rivals[place] += some_words(int(generator.integers(1, 4)))
        costs = [np.concatenate([[0.0], generator.exponential(size=len(r) - 1)]) for r in rivals]
        best: list[tuple[float, list[str]]] = [(0.0, [])]
        for words, extra in zip(rivals, costs):
            grown = [(c + e, [*hyp, str(w)]) for c, hyp in best for w, e in zip(words, extra)]
            best = sorted(grown)[:SIZE]
        lists.append([list(words) for words in dict.fromkeys(tuple(hyp) for _, hyp in best)])
    return lists


def read_lists(paths: list[Path]) -> list[list[list[str]]]:
    """The lists of ``decode``, those without a path left out."""
    records = [json.loads(line) for path in paths for line in path.open(encoding="utf-8")]
    return [
        [hyp["words"].split() for hyp in record["hyps"]] for record in records if record["hyps"]
    ]


@torch.no_grad()
def each_path(lm: NeuralScorer, lists: list[list[list[str]]]) -> list[np.ndarray]:
    """A list's hypotheses as one padded batch, padding computed as well and left out afterwards."""
    found = []
    for nbest in lists:
        text = lm.vocabulary.encode(nbest)
        padded = torch.from_numpy(text.padded(np.arange(len(text))))
        inputs, targets = padded[:, :-1], padded[:, 1:].contiguous()
        if isinstance(lm.model.output, FullSoftmax):
            scores = lm.model.output.linear(lm.model.hidden(inputs)).flatten(0, 1)
            losses = cross_entropy(scores, targets.flatten(), reduction="none")
            log_probs = -losses.view(targets.shape)
        else:
            log_probs = lm.model(inputs, targets)
        valid = torch.arange(log_probs.size(1)) < torch.from_numpy(text.lengths).unsqueeze(1)
        found.append((log_probs * valid).sum(dim=1).double().numpy())
    return found


def main() -> None:
    """Print a line for every kind and softmax."""
    parser = flags(__doc__)
    parser.add_argument("--nbest", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--lists", type=int, help="default: 10 synthetic ones, all of --nbest")
    parser.add_argument("--kinds", nargs="+", default=["lstm", "char_lstm", "transformer"])
    args = parser.parse_args()
    torch.set_num_threads(1)
    vocabulary = Vocabulary((*SYMBOLS, *(f"w{n:05d}" for n in range(WORDS))))
    if args.nbest:
        lists = read_lists(args.nbest)[: args.lists]
        words = {word for nbest in lists for hyp in nbest for word in hyp}
        vocabulary = Vocabulary((*SYMBOLS, *sorted(words)))
    else:
        lists = made_lists(args.lists or 10, vocabulary)
    hyps = [hyp for nbest in lists for hyp in nbest]
    prefixes = {tuple(hyp[:n]) for hyp in hyps for n in range(len(hyp) + 1)}
    positions = sum(len(hyp) + 1 for hyp in hyps)
    print(f"{len(lists)} lists, {len(hyps)} hypotheses, V = {len(vocabulary)}")
    ratio = f"{positions / len(prefixes):.1f} to 1"
    print(f"{positions} positions, {len(prefixes)} distinct prefixes: {ratio}")
    head = f"{'model':24}{'each path':>12}{'batches':>12}{'shared':>12}"
    print(f"{head}   seconds; gain of shared on each path")
    for kind, softmax in itertools.product(args.kinds, ("full", "adaptive")):
        files = [CONF / f"common.yaml#lm_{kind}"]
        settings = config.load(kind_of(files).config, files, [f"output.softmax={softmax}"])
        lm = NeuralScorer(new_lm(spec_of(settings), vocabulary, 1).eval(), vocabulary)
        ways: dict[str, Callable[[], list[np.ndarray]]] = {
            "each path": partial(each_path, lm, lists),
            "batches": lambda lm=lm: [lm.score_sentences(hyps)],
            "shared": partial(lm.score_with_shared_prefixes, lists),
        }
        times, scores = least(ways, REPEATS)
        for way in ("batches", "shared"):
            found, expected = (np.concatenate(scores[name]) for name in (way, "each path"))
            np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)
        path_time, shared_time = times["each path"], times["shared"]
        shown = "".join(f"{seconds:12.2f}" for seconds in times.values())
        print(f"{kind + ' ' + softmax:24}{shown}   {path_time / shared_time:.1f}", flush=True)
        source = "of decoded speech" if args.nbest else "made up"
        what = f"rescoring {len(hyps)} hypotheses {source}, {kind} with {softmax} softmax"
        against = "each path by itself, as icefall's rescore_with_rnn_lm"
        append_rows(args.out_rows, [Row(what, shared_time, path_time, "s", against, "less")])


if __name__ == "__main__":
    main()
