"""A million votes, beside one after the other: python benchmarks/pate_accounting.py.

The direct evaluation takes the paper's formulas for one query and one order at a time, with floats
and scipy; it is timed on a sample and scaled.
"""

from __future__ import annotations

import math
import os
import platform
import time

# One core for both: before numpy is imported.
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from scipy.special import erfc

from benchmarks.measuring import mebibytes
from benchmarks.rows import Row, append_rows, flags
from privasr_k2.privacy.pate.gnmax import gnmax_epsilon
from privasr_k2.randomness import stream

CLASSES, TEACHERS = 100, 250
SIGMA, DELTA = 20.0, 1e-8
ORDERS = 1.0 + np.geomspace(0.1, 200.0, 60)


def make_votes(rng: np.random.Generator, queries: int) -> np.ndarray:
    """(Q, C) votes: the first class has between none and all, and the others share the rest."""
    votes = np.empty((queries, CLASSES), dtype=np.int16)
    for start in range(0, queries, 50_000):
        block = min(50_000, queries - start)
        agreement = rng.beta(3.0, 1.0, size=block)
        others = rng.dirichlet(np.full(CLASSES, 0.1), size=block) * (1.0 - agreement)[:, None]
        others[:, 0] += agreement
        shares = others / others.sum(axis=1, keepdims=True)
        votes[start : start + block] = rng.multinomial(TEACHERS, shares)
    return votes


def direct_q(votes: np.ndarray) -> float:
    """Proposition 7 for one query."""
    top = int(np.argmax(votes))
    counts = votes.tolist()
    most = counts.pop(top)
    pairs = (0.5 * erfc((most - count) / (2.0 * SIGMA)) for count in counts)
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
    """All queries and orders, one after the other, and the best order."""
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
    parser = flags(__doc__)
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--sample", type=int, default=500, help="queries of the direct evaluation")
    args = parser.parse_args()
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
    sizes = f"{CLASSES} classes, {len(ORDERS)} orders"
    print(f"{len(votes)} histograms of {sizes}: privasr_k2 {ours:.2f} s")
    print(f"the same with the order searched: {ours_searched:.2f} s")
    scaled = f"scaled from {len(sample)} queries"
    print(f"direct evaluation: {theirs:.0f} s ({scaled}), ratio {theirs / ours:.0f}")
    memory = f"{before / 1024:.2f} GiB (with the votes), with accounting {peak / 1024:.2f} GiB"
    print(f"largest memory before {memory}")
    epsilons = f"{found.epsilon:.6g} at order {found.order:.4g}; searched {searched.epsilon:.6g}"
    print(f"epsilon {epsilons}")
    print(f"on the sample: {same:.12g} and direct {direct:.12g}")
    what = f"PATE accounting, {len(votes)} votes, {sizes}"
    against = f"direct evaluation, scaled from {len(sample)} votes"
    append_rows(args.out_rows, [Row(what, ours, theirs, "s", against, "less")])


if __name__ == "__main__":
    main()
