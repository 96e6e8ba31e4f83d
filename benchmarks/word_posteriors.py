"""Word posteriors of a lattice, beside sparse products level by level: ``. ./path.sh; python
benchmarks/word_posteriors.py``.

The lattice is made up: so many frames and states in each, arcs without a word in most places. Both
sums are of the next word in each frame; they are compared before they are timed.
"""

from __future__ import annotations

import time

import numpy as np
from scipy import sparse

from benchmarks.measuring import least
from benchmarks.rows import Row, append_rows, flags, library
from privasr_k2.decoding.posteriors import Chain, coming_words
from privasr_k2.randomness import stream

ARCS, SPOKEN = 3, 0.15  # arcs that leave a state, and those with a word


def make_chain(frames: int, states: int, words: int) -> tuple[Chain, np.ndarray, np.ndarray]:
    """A chain, which arcs have no word, and the first word of each; ``words`` for none."""
    rng = stream(1, "benchmark", "posteriors")
    sizes = np.array([1, *[states] * (frames - 1), 1])
    splits = np.concatenate([[0], np.cumsum(sizes)])
    sources = np.repeat(np.arange(splits[-2]), ARCS)
    levels = np.searchsorted(splits, sources, side="right") - 1
    targets = splits[levels + 1] + rng.integers(0, 1 << 30, len(sources)) % sizes[levels + 1]
    chances = rng.random(len(sources))
    chances /= np.repeat(np.add.reduceat(chances, np.arange(0, len(chances), ARCS)), ARCS)
    occupancy = np.zeros(splits[-1])
    occupancy[0] = 1.0
    for level in range(frames):
        arcs = levels == level
        occupancy += np.bincount(
            targets[arcs], occupancy[sources[arcs]] * chances[arcs], minlength=len(occupancy)
        )
    silent = rng.random(len(sources)) >= SPOKEN
    first = np.where(silent, words, rng.integers(0, words, len(sources)))
    chain = Chain(splits, occupancy, np.arange(len(sources)), sources, targets, levels, chances)
    return chain, silent, first


def by_level(chain: Chain, silent: np.ndarray, first: np.ndarray, none: int) -> np.ndarray:
    """The same from the last frame to the first, by a matrix of states and words in each."""
    splits = chain.state_splits
    frames = np.zeros((len(splits) - 2, none + 1))
    coming = sparse.csr_matrix(([1.0], ([0], [none])), shape=(1, none + 1))
    for level in range(len(frames) - 1, -1, -1):
        here = chain.levels == level
        size = splits[level + 1] - splits[level]
        quiet, spoken = np.flatnonzero(here & silent), np.flatnonzero(here & ~silent)
        onward, word = (
            sparse.csr_matrix(
                (chain.chances[arcs], (chain.sources[arcs] - splits[level], columns)), shape
            )
            for arcs, columns, shape in (
                (quiet, chain.targets[quiet] - splits[level + 1], (size, coming.shape[0])),
                (spoken, first[spoken], (size, none + 1)),
            )
        )
        coming = onward @ coming + word
        frames[level] = coming.T @ chain.occupancy[splits[level] : splits[level + 1]]
    return frames


def main() -> None:
    """Print processor seconds and the ratio."""
    parser = flags(__doc__, frames=200, states=40, words=150, repeats=20)
    args = parser.parse_args()
    made = *make_chain(args.frames, args.states, args.words), args.words
    functions = {"ours": lambda: coming_words(*made), "peer": lambda: by_level(*made)}
    seconds, results = least(functions, args.repeats, time.process_time)
    if not np.allclose(results["ours"], results["peer"], rtol=0, atol=1e-12):
        raise SystemExit("the two do not agree: a benchmark of different results says nothing")
    what = f"next words of a lattice of {args.frames} frames, {len(made[1])} arcs"
    against = f"products of sparse matrices, level by level, {library('scipy')}"
    row = Row(what, seconds["ours"], seconds["peer"], "processor s", against, "less")
    print(f"{what}: ratio {row.ratio:.2f}")
    append_rows(args.out_rows, [row])


if __name__ == "__main__":
    main()
