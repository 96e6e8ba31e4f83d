"""A million votes, beside one after the other: ``. ./path.sh; python
benchmarks/pate_accounting.py``.

The direct evaluation is the formulas as they stand in the paper, for one query and one order at a
time, with plain floats and scipy; it is timed on a sample and scaled.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import time

# One core for both: before numpy is imported.
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from scipy.special import erfc

from benchmarks.measuring import mebibytes
from benchmarks.rows import Row, add_rows_flag, append_rows
from privasr_k2.privacy.pate.gnmax import gnmax_epsilon
from privasr_k2.randomness import stream

CLASSES, TEACHERS = 100, 250
SIGMA, DELTA = 20.0, 1e-8
ORDERS = 1.0 + np.geomspace(0.1, 200.0, 60)


def make_votes(rng: np.random.Generator, queries: int) -> np.ndarray:
    """Votes of which the first class has between none and all, and the others share the rest: (Q,
    C).
    """
    votes = np.empty((queries, CLASSES), dtype=np.int16)
    for start in range(0, queries, 50_000):
        block = min(50_000, queries - start)
        agreement = rng.beta(3.0, 1.0, size=block)
        others = rng.dirichlet(np.full(CLASSES, 0.1), size=block) * (1.0 - agreement)[:, None]
        others[:, 0] += agreement
        votes[start : start + block] = rng.multinomial(
            TEACHERS, others / others.sum(axis=1, keepdims=True)
        )
    return votes


def direct_q(votes: np.ndarray) -> float:
    """Proposition 7 for one query."""
    top = int(np.argmax(votes))
    counts = votes.tolist()
    pairs = (
        0.5 * erfc((counts[top] - count) / (2.0 * SIGMA))
        for i, count in enumerate(counts)
        if i != top
    )
    return min(float(sum(pairs)), 1.0 - 1.0 / CLASSES)


def direct_rdp(q: float, order: float) -> float:
    """Theorem 6 with proposition 10 for one query and one order."""
    independent = order / SIGMA**2
    mu2 = SIGMA * math.sqrt(math.log(1.0 / q))
    mu1 = mu2 + 1.0
    if order > mu1 or mu2 <= 1.0:
        return independent
    eps1, eps2 = mu1 / SIGMA**2, mu2 / SIGMA**2
    if math.log(q) > (mu2 - 1.0) * eps2 - mu2 * math.log(mu1 / (mu1 - 1.0) * mu2 / (mu2 - 1.0)):
        return independent
    a = (1.0 - q) / (1.0 - (q * math.exp(eps2)) ** ((mu2 - 1.0) / mu2))
    log_b = eps1 - math.log(q) / (mu1 - 1.0)
    powers = (1.0 - q) * a ** (order - 1.0) + math.exp(math.log(q) + (order - 1.0) * log_b)
    return min(math.log(powers) / (order - 1.0), independent)


def direct_epsilon(votes: np.ndarray) -> float:
    """All queries and orders, one after the other, and the best order by the accountants'
    conversion.
    """
    totals = [0.0] * len(ORDERS)
    for row in votes:
        q = direct_q(row)
        for at, order in enumerate(ORDERS.tolist()):
            totals[at] += direct_rdp(q, order)
    return min(
        rdp + math.log1p(-1.0 / order) - math.log(DELTA * order) / (order - 1.0)
        for order, rdp in zip(ORDERS.tolist(), totals, strict=True)
    )


def main() -> None:
    """Print seconds, their ratio and how far the results are apart."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--queries", type=int, default=1_000_000)
    made.add_argument("--sample", type=int, default=500, help="queries of the direct evaluation")
    add_rows_flag(made)
    args = made.parse_args()
    votes = make_votes(stream(1, "benchmark"), args.queries)
    before = mebibytes()
    start = time.perf_counter()
    found = gnmax_epsilon(votes, sigma=SIGMA, discrete=False, delta=DELTA, orders=ORDERS)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    searched = gnmax_epsilon(votes, sigma=SIGMA, discrete=False, delta=DELTA)
    ours_searched = time.perf_counter() - start
    peak = mebibytes()
    sample = votes[: args.sample]
    start = time.perf_counter()
    direct = direct_epsilon(sample)
    theirs = (time.perf_counter() - start) * len(votes) / len(sample)
    same = gnmax_epsilon(sample, sigma=SIGMA, discrete=False, delta=DELTA, orders=ORDERS).epsilon
    if not math.isclose(direct, same, rel_tol=1e-8):
        raise SystemExit(f"{direct} and {same}: a benchmark of different results says nothing")
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, one thread, numpy {np.__version__}")
    print(
        f"{len(votes)} histograms of {CLASSES} classes, {len(ORDERS)} orders: privasr_k2"
        f" {ours:.2f} s"
    )
    print(f"the same with the order searched: {ours_searched:.2f} s")
    print(
        f"direct evaluation: {theirs:.0f} s (scaled from {len(sample)} queries), ratio"
        f" {theirs / ours:.0f}"
    )
    before, peak = before / 1024, peak / 1024
    print(
        f"largest memory before {before:.2f} GiB (with the votes), with accounting {peak:.2f} GiB"
    )
    print(
        f"epsilon {found.epsilon:.6g} at order {found.order:.4g}; searched {searched.epsilon:.6g}"
    )
    print(f"on the sample: {same:.12g} and direct {direct:.12g}")
    what = f"PATE accounting, {len(votes)} votes, {CLASSES} classes, {len(ORDERS)} orders"
    against = f"direct evaluation, scaled from {len(sample)} votes"
    append_rows(args.out_rows, [Row(what, ours, theirs, "s", against, "less")])


if __name__ == "__main__":
    main()
