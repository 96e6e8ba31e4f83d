"""Alignment and counting of 5,000 utterances, beside jiwer: ``. ./path.sh; python
benchmarks/scoring.py``.
"""

from __future__ import annotations

import jiwer
import numpy as np

from benchmarks.measuring import best_seconds
from benchmarks.rows import Row, append_rows, flags, library
from privasr_k2.randomness import stream
from privasr_k2.scoring.bootstrap import interval_over_speakers, speaker_draws
from privasr_k2.scoring.counts import ErrorCounts, count_errors, total
from privasr_k2.scoring.matched_pairs import compare

WORDS, VOCABULARY, SPEAKERS = 20, 2000, 50


def make_texts(
    rng: np.random.Generator, utterances: int
) -> tuple[list[list[str]], list[list[str]]]:
    """References, and hypotheses with about 10 % substitutions and 5 % deletions."""
    vocabulary = np.array([f"word{i}" for i in range(VOCABULARY)])
    refs = rng.choice(vocabulary, size=(utterances, WORDS))
    hyps = np.where(rng.random(refs.shape) < 0.1, rng.choice(vocabulary, size=refs.shape), refs)
    kept = rng.random(refs.shape) > 0.05
    return refs.tolist(), [hyp[keep].tolist() for hyp, keep in zip(hyps, kept, strict=True)]


def main() -> None:
    """Print seconds and the ratio."""
    args = flags(__doc__, utterances=5000, repeats=5).parse_args()
    refs, hyps = make_texts(stream(1, "benchmark"), args.utterances)
    others = make_texts(stream(2, "benchmark"), args.utterances)[1]
    ref_texts, hyp_texts = [" ".join(r) for r in refs], [" ".join(h) for h in hyps]
    counts = [count_errors(r, h) for r, h in zip(refs, hyps, strict=True)]
    if total(counts).rate != jiwer.process_words(ref_texts, hyp_texts).wer:
        raise SystemExit("the two do not agree: a benchmark of different results says nothing")
    both = [*zip(ref_texts, hyp_texts, strict=True)]
    ours = best_seconds(lambda: [count_errors(r.split(), h.split()) for r, h in both], args.repeats)
    theirs = best_seconds(lambda: jiwer.process_words(ref_texts, hyp_texts), args.repeats)
    times = f"privasr_k2 {ours:.3f} s, jiwer {theirs:.3f} s, ratio {ours / theirs:.2f}"
    print(f"{len(refs)} utterances: {times}")
    what = f"alignment and counting of {len(refs)} utterances of {WORDS} words"
    append_rows(args.out_rows, [Row(what, ours, theirs, "s", library("jiwer"), "less")])

    speakers = [total(counts[i::SPEAKERS]) for i in range(SPEAKERS)]
    interval = best_seconds(
        lambda: interval_over_speakers(speakers, stream(1), num_replicates=10_000, confidence=0.95),
        args.repeats,
    )
    print(f"interval, {SPEAKERS} speakers, 10,000 replicates: {interval:.3f} s")
    time_draws(SPEAKERS, args.repeats)
    time_draws(1_500, args.repeats)
    print(f"MAPSSWE: {best_seconds(lambda: compare(refs, hyps, others), args.repeats):.3f} s")
    adding = best_seconds(lambda: sum(counts, ErrorCounts()), args.repeats)
    print(f"adding {len(refs)} counts: {adding:.3f} s")


def time_draws(speakers: int, repeats: int) -> None:
    """Print the seconds of 2,000 draws of speakers, beside those of numpy's multinomial."""
    even = np.full(speakers, 1 / speakers)
    ours = best_seconds(lambda: [*speaker_draws(speakers, stream(1), 2_000)], repeats)
    twin = best_seconds(lambda: stream(1).multinomial(speakers, even, size=2_000), repeats)
    print(f"2,000 draws of {speakers} speakers: {ours:.4f} s, multinomial: {twin / ours:.1f} times")


if __name__ == "__main__":
    main()
