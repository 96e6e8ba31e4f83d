"""Scoring against slow, obvious twins and against jiwer."""

from __future__ import annotations

import itertools
import math
from functools import cache

import jiwer
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privasr_k2.randomness import stream
from privasr_k2.scoring.align import Pair, align
from privasr_k2.scoring.bootstrap import difference_over_speakers, replicate_rates
from privasr_k2.scoring.characters import count_character_errors
from privasr_k2.scoring.counts import ErrorCounts, count_errors, total
from privasr_k2.scoring.matched_pairs import mapsswe, segment_errors

words = st.lists(st.sampled_from(["a", "b", "c"]), max_size=7)


def _best_alignments(ref: tuple[str, ...], hyp: tuple[str, ...]) -> set[ErrorCounts]:
    """Counts of all alignments with the fewest errors, by trying every way."""

    @cache
    def ways(i: int, j: int) -> frozenset[ErrorCounts]:
        if i == len(ref) and j == len(hyp):
            return frozenset({ErrorCounts()})
        found = set()
        if i < len(ref) and j < len(hyp):
            step = ErrorCounts(hits=1) if ref[i] == hyp[j] else ErrorCounts(substitutions=1)
            found |= {step + rest for rest in ways(i + 1, j + 1)}
        if i < len(ref):
            found |= {ErrorCounts(deletions=1) + rest for rest in ways(i + 1, j)}
        if j < len(hyp):
            found |= {ErrorCounts(insertions=1) + rest for rest in ways(i, j + 1)}
        return frozenset(found)

    everything = ways(0, 0)
    fewest = min(c.errors for c in everything)
    return {c for c in everything if c.errors == fewest}


@settings(max_examples=150, deadline=None)
@given(words, words)
def test_counts_are_those_of_a_best_alignment(ref: list[str], hyp: list[str]) -> None:
    assert count_errors(ref, hyp) in _best_alignments(tuple(ref), tuple(hyp))


@settings(max_examples=150, deadline=None)
@given(words, words)
def test_an_alignment_holds_all_words_of_both_sides_in_order(
    ref: list[str], hyp: list[str]
) -> None:
    pairs = align(ref, hyp)
    assert [r for r, _ in pairs if r is not None] == ref
    assert [h for _, h in pairs if h is not None] == hyp
    assert (None, None) not in pairs


def _random_texts(rng: np.random.Generator, count: int) -> list[tuple[list[str], list[str]]]:
    vocabulary = np.array([f"w{i}" for i in range(30)])
    texts = []
    for _ in range(count):
        ref = rng.choice(vocabulary, size=rng.integers(1, 25)).tolist()
        hyp = []
        for word in ref:
            draw = rng.random()
            hyp += [] if draw < 0.1 else [str(rng.choice(vocabulary))] if draw < 0.25 else [word]
            hyp += [str(rng.choice(vocabulary))] if draw > 0.95 else []
        texts.append((ref, hyp))
    return texts


def test_jiwer_counts_the_same_errors() -> None:
    texts = _random_texts(stream(1, "jiwer"), 400)
    ours = [count_errors(ref, hyp) for ref, hyp in texts]
    for (ref, hyp), counts in zip(texts, ours, strict=True):
        theirs = jiwer.process_words(" ".join(ref), " ".join(hyp))
        errors = theirs.substitutions + theirs.deletions + theirs.insertions
        # Libraries choose among the best alignments, which have equally many errors.
        assert counts.errors == errors
        assert counts.insertions - counts.deletions == theirs.insertions - theirs.deletions
    joined = [[" ".join(words) for words in side] for side in zip(*texts)]
    everything = jiwer.process_words(*joined)
    assert total(ours).rate == pytest.approx(everything.wer, abs=1e-12)


def test_jiwer_counts_the_same_character_errors() -> None:
    texts = _random_texts(stream(4, "cer"), 300)
    ours = [count_character_errors(ref, hyp) for ref, hyp in texts]
    for (ref, hyp), counts in zip(texts, ours, strict=True):
        theirs = jiwer.process_characters(" ".join(ref), " ".join(hyp))
        assert counts.errors == theirs.substitutions + theirs.deletions + theirs.insertions
        assert counts.insertions - counts.deletions == theirs.insertions - theirs.deletions
        assert counts.ref_words == len(" ".join(ref))
    expected = jiwer.cer([" ".join(r) for r, _ in texts], [" ".join(h) for _, h in texts])
    assert total(ours).rate == pytest.approx(expected, abs=1e-12)


def test_the_difference_of_two_systems_has_the_distribution_of_an_obvious_loop() -> None:
    words = [50, 90, 20, 200, 10, 100]
    systems = [
        [ErrorCounts(hits=w - e, deletions=e) for w, e in zip(words, errors, strict=True)]
        for errors in ([3, 10, 7, 40, 0, 12], [5, 9, 7, 52, 2, 11])
    ]
    rng, loop = stream(1, "loop"), []
    for _ in range(20_000):
        drawn = rng.integers(0, 6, size=6)
        first, second = (total(system[s] for s in drawn).rate for system in systems)
        assert first is not None and second is not None
        loop.append(first - second)
    found = difference_over_speakers(
        *systems, stream(1, "ours"), num_replicates=20_000, confidence=0.9
    )
    assert found is not None
    expected = tuple(np.quantile(loop, [0.05, 0.95]))
    assert (found.low, found.high) == pytest.approx(expected, abs=0.002)


def test_the_bootstrap_has_the_distribution_of_an_obvious_loop() -> None:
    errors, ref_words = np.array([3, 10, 7, 40, 0, 12]), np.array([50, 90, 20, 200, 10, 100])
    rng, loop_rates = stream(1, "loop"), []
    for _ in range(20_000):
        drawn = rng.integers(0, 6, size=6)
        loop_rates.append(sum(errors[s] for s in drawn) / sum(ref_words[s] for s in drawn))
    rates = replicate_rates(errors, ref_words, stream(1, "ours"), 20_000)
    for quantile in (0.025, 0.25, 0.5, 0.75, 0.975):
        expected = np.quantile(loop_rates, quantile)
        assert np.quantile(rates, quantile) == pytest.approx(expected, abs=0.003)


def test_the_bootstrap_has_the_distribution_of_all_draws_there_are() -> None:
    errors, ref_words = np.array([1, 5, 2]), np.array([10, 20, 5])
    draws = map(list, itertools.product(range(3), repeat=3))
    exact = [errors[draw].sum() / ref_words[draw].sum() for draw in draws]
    rates = replicate_rates(errors, ref_words, stream(2, "ours"), 60_000)
    for rate in set(exact):
        expected = np.mean(np.isclose(exact, rate))
        assert np.mean(np.isclose(rates, rate)) == pytest.approx(expected, abs=0.01)


def _slow_segments(
    pairs_a: tuple[Pair, ...], pairs_b: tuple[Pair, ...], num_words: int
) -> list[tuple[int, int]]:
    """Mark wrong words and gaps, then join errors unless two right words stand between them."""
    # Position (words at 0, 1, ...; gaps at -0.5, 0.5, ...) and the errors of both systems.
    wrong: list[tuple[float, int, int]] = []
    for system, pairs in enumerate((pairs_a, pairs_b)):
        position = -1
        for ref, hyp in pairs:
            position += ref is not None
            if ref != hyp:
                where = position + 0.5 if ref is None else float(position)
                wrong.append((where, int(system == 0), int(system == 1)))
    wrong.sort()
    segments: list[tuple[int, int]] = []
    last = -math.inf
    for where, a, b in wrong:
        right = [w for w in range(num_words) if last < w < where]
        if segments and len(right) < 2:
            segments[-1] = (segments[-1][0] + a, segments[-1][1] + b)
        else:
            segments.append((a, b))
        last = where
    return segments


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=12), st.data())
def test_segments_equal_a_slow_twin(ref: list[str], data: st.DataObject) -> None:
    pieces = {
        "": lambda w: [w],
        "d": lambda w: [],
        "s": lambda w: ["x"],
        "i": lambda w: [w, "y"],
    }
    edit = st.sampled_from(["", "", "", "d", "s", "i"])
    hyps = []
    for _ in range(2):
        edits = data.draw(st.lists(edit, min_size=len(ref), max_size=len(ref)))
        hyps.append([piece for word, name in zip(ref, edits) for piece in pieces[name](word)])
    pairs_a, pairs_b = align(ref, hyps[0]), align(ref, hyps[1])
    assert segment_errors(pairs_a, pairs_b) == _slow_segments(pairs_a, pairs_b, len(ref))


def test_the_p_value_is_near_that_of_a_permutation_test() -> None:
    """Systems that do not differ can change places in every segment."""
    rng = stream(3, "permutation")
    errors = np.stack([rng.poisson(1.3, size=150), rng.poisson(1.0, size=150)], axis=1)
    differences = errors[:, 0] - errors[:, 1]
    signs = rng.choice([-1, 1], size=(20_000, 150))
    permuted = np.abs((signs * differences).sum(axis=1))
    expected = np.mean(permuted >= abs(differences.sum()))
    assert 0.001 < expected < 0.5
    assert mapsswe(errors).p_value == pytest.approx(expected, abs=0.02)
