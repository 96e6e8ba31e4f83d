"""Compact lattices without k2: determinization of small lattices of tokens, and checks."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from privasr_k2 import config
from privasr_k2.decoding.acyclic import Dag
from privasr_k2.decoding.compact_lattice import compact
from privasr_k2.decoding.lattices import END, Lattice, LatticeConfig, as_word_lattice, widest
from privasr_k2.decoding.nbest import NbestConfig, nbest
from privasr_k2.decoding.word_lattices import WordLattice
from privasr_k2.errors import ConfigError
from privasr_k2.randomness import stream
from privasr_k2.scoring.hypotheses import Weights
from tests.support.conf import section
from tests.support.word_lattices import paths, random_lattice

WEIGHTS = Weights(0.5, 0.25)
Row = tuple[int, int, tuple[int, ...], float, float]


def word_lattice(rows: list[Row], final: int) -> WordLattice:
    """Rows of source, target, words, acoustic and LM score; the last arcs have no token."""
    sources, targets = (np.array([row[n] for row in rows]) for n in (0, 1))
    am, lm = (np.array([row[n] for row in rows], dtype=np.float64) for n in (3, 4))
    splits = np.cumsum([0, *(len(row[2]) for row in rows)])
    values = np.array([word for row in rows for word in row[2]], dtype=np.int64)
    totals = am + WEIGHTS.lm_weight * lm - WEIGHTS.insertion_penalty * np.diff(splits)
    dag = Dag(final + 1, sources, targets)
    come, go = dag.best_from(0, totals), dag.best_to(final, totals)
    with np.errstate(invalid="ignore"):
        starts = go[sources], go[0] - come[sources]
        costs, excess = (start - totals - go[targets] for start in starts)
    labels = np.where(targets == final, -1, 1)
    costs, excess = (np.where(np.isfinite(e), np.maximum(e, 0), np.inf) for e in (costs, excess))
    return WordLattice(final, sources, targets, labels, splits, values, am, lm, costs, excess)


def best_of_each(rows: list[Row], final: int) -> dict[tuple[int, ...], tuple[float, float, float]]:
    """Total, acoustic and LM score of the best of all paths of every word sequence."""
    leaving: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        leaving[row[0]].append(row)
    found: dict[tuple[int, ...], tuple[float, float, float]] = {}
    stack: list[tuple[int, tuple[int, ...], float, float]] = [(0, (), 0.0, 0.0)]
    while stack:
        state, words, am, lm = stack.pop()
        if state == final:
            total = am + WEIGHTS.lm_weight * lm - WEIGHTS.insertion_penalty * len(words)
            found[words] = max(found.get(words, (-np.inf, 0.0, 0.0)), (total, am, lm))
        stack += [(to, (*words, *said), am + a, lm + g) for _, to, said, a, g in leaving[state]]
    return found


def random_rows(seed: int, final: int = 9) -> list[Row]:
    """Arcs of up to two words, or none, that go up to three states on; some states lead nowhere."""
    generator, rows = stream(seed, "rows"), []
    for source in range(final):
        for _ in range(4 if source != 4 else 0):
            target = min(source + int(generator.integers(1, 4)), final)
            number = generator.choice([0, 1, 2], p=[0.5, 0.4, 0.1])
            said = tuple(generator.integers(1, 4, size=number).tolist())
            # Round numbers make residuals that are equal by chance.
            am, lm = (-float(generator.integers(0, 9)) / 2 for _ in range(2))
            rows.append((source, target, said, am, lm))
    return rows


def listed(lattice: Lattice) -> dict[tuple[int, ...], tuple[float, float, float]]:
    scores = np.stack([lattice.totals(WEIGHTS), lattice.am_scores, lattice.lm_scores])
    return {path.words: tuple(scores[:, path.arcs].sum(axis=1).tolist()) for path in paths(lattice)}


def whole(rows: list[Row], final: int, beam: float) -> Lattice:
    made = compact(word_lattice(rows, final), beam, None)
    assert made is not None
    arcs = made.sources, made.targets, made.words, made.am_scores, made.lm_scores
    return Lattice("u", "", "", "", beam, made.frames.astype(np.float64), *arcs)


@pytest.mark.parametrize("seed", range(12))
def test_scores_stay_together(seed: int) -> None:
    """Equal totals of different scores are common here; scores are those of one alignment."""
    rows = random_rows(seed)
    truth = best_of_each(rows, 9)
    found = listed(whole(rows, 9, 1000.0))
    assert set(found) == set(truth) and len(truth) > 20
    for words, (total, am, lm) in found.items():
        assert total == pytest.approx(truth[words][0], abs=1e-9)
        penalty = WEIGHTS.insertion_penalty * len(words)
        assert total == pytest.approx(am + WEIGHTS.lm_weight * lm - penalty)
    narrow = listed(whole(rows, 9, 2.0))
    best = max(total for total, _, _ in truth.values())
    assert {words for words, scores in truth.items() if scores[0] >= best - 2.0} <= set(narrow)
    assert len(narrow) < len(truth)


def test_different_scores_with_one_residual_are_kept_apart() -> None:
    """Behind 1 and behind 2 the same two states with the same residual, made of other scores."""
    rows = [
        (0, 1, (1,), -1.0, 0.0), (0, 2, (1,), -2.0, 0.0),
        (0, 1, (2,), -1.0, 0.0), (0, 2, (2,), -1.0, -2.0),
        (1, 3, (3,), -4.0, 0.0), (2, 3, (4,), -4.0, 0.0), (3, 4, (), 0.0, 0.0),
    ]  # fmt: skip
    truth = best_of_each(rows, 4)
    assert listed(whole(rows, 4, 100.0)) == truth
    assert truth[(1, 4)][1:] == (-6.0, 0.0) and truth[(2, 4)][1:] == (-5.0, -2.0)


def test_equal_futures_are_one_state() -> None:
    """Two words, or one, lead to the same state: what follows is there once."""
    rows = [
        (0, 2, (1,), -1.0, 0.0), (0, 1, (2,), -1.0, 0.0), (1, 2, (3,), -1.0, 0.0),
        (2, 3, (4,), -1.0, 0.0), (3, 4, (5,), -1.0, 0.0), (4, 5, (), 0.0, 0.0),
    ]  # fmt: skip
    made = whole(rows, 5, 100.0)
    assert made.num_states == 6 and len(made.words) == 6
    assert sorted(listed(made)) == [(1, 4, 5), (2, 3, 4, 5)]
    # The word behind an arc without words ends where that arc does not reach.
    assert made.seconds.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 4.0]


def test_a_word_ends_where_its_best_alignment_does() -> None:
    """The word ends in frame 1, 2 or 3; frame 2 is best."""
    words = [(0, 1, (1,), -3.0, 0.0), (4, 2, (1,), -1.0, 0.0), (5, 3, (1,), -1.5, 0.0)]
    silent = [(0, 4), (4, 5), (1, 2), (2, 3), (3, 6)]
    rows = [*words, *((source, target, (), -1.0, 0.0) for source, target in silent)]
    made = whole(rows, 6, 100.0)
    assert made.seconds.tolist() == [0.0, 2.0, 3.0]


def test_the_empty_sentence() -> None:
    made = whole([(0, 1, (), -1.0, -2.0), (1, 2, (), -3.0, 0.0)], 2, 8.0)
    assert made.num_states == 2 and made.words.tolist() == [END]
    assert made.am_scores.tolist() == [-4.0] and made.lm_scores.tolist() == [-2.0]


def test_limits() -> None:
    one = word_lattice(random_rows(1), 9)
    free = widest(one, LatticeConfig(8.0, 10_000))
    assert not free.limited and free.beam == 8.0
    assert not widest(one, LatticeConfig(8.0, len(free.arrays.frames))).limited
    tight = widest(one, LatticeConfig(8.0, len(free.arrays.frames) // 2))
    assert tight.limited and tight.beam in (4.0, 2.0, 1.0, 0.5)
    assert compact(one, 2 * tight.beam, len(free.arrays.frames) // 2) is None
    least = widest(one, LatticeConfig(8.0, 2))
    assert least.limited and least.beam == 0.0


def test_n_best_of_a_lattice() -> None:
    lattice = random_lattice(2, num_words=9)
    totals = lattice.totals(WEIGHTS)
    every = sorted(paths(lattice), key=lambda path: -totals[list(path.arcs)].sum())
    made = as_word_lattice(lattice, totals)
    best = nbest(made, NbestConfig(15, 0.1, 10_000)).paths
    assert [path.words for path in best] == [path.words for path in every[:15]]
    for path, other in zip(best, every):
        assert tuple(path.arcs.tolist()) == other.arcs
        assert not len(path.labels)
    for arc in range(len(totals)):
        through = max(totals[list(path.arcs)].sum() for path in every if arc in path.arcs)
        assert made.excess[arc] == pytest.approx(totals[list(every[0].arcs)].sum() - through)


def test_totals_count_words_and_no_ends() -> None:
    lattice = random_lattice(2, num_words=9)
    plain = lattice.totals(Weights(0.0, 0.0))
    np.testing.assert_array_equal(plain, lattice.am_scores)
    penalties = plain - lattice.totals(Weights(0.0, 2.0))
    np.testing.assert_allclose(penalties, 2.0 * (lattice.words != END))
    new = np.ones(len(plain))
    np.testing.assert_allclose(lattice.totals(Weights(3.0, 0.0), new) - plain, 3.0)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"words": np.array([7])}, "different lengths"),
        ({"seconds": np.zeros(0)}, "arcs without states"),
        ({"sources": np.array([1, 0])}, "not sorted by source"),
        ({"targets": np.array([1, 1])}, "topological order"),
        ({"words": np.array([7, 8])}, "the word 0 stands elsewhere"),
        ({"words": np.array([-7, 0])}, "the word 0 stands elsewhere"),
        ({"am_scores": np.array([0.0, np.nan])}, "not finite"),
        ({"seconds": np.zeros(4), "targets": np.array([1, 3])}, "on no path"),
    ],
)
def test_what_is_no_lattice(changed: dict[str, Any], problem: str) -> None:
    sources, targets, words = np.array([0, 1]), np.array([1, 2]), np.array([7, 0])
    arcs = sources, targets, words, np.zeros(2), np.zeros(2)
    right = Lattice("u", "", "", "", 1.0, np.zeros(3), *arcs)
    with pytest.raises(ValueError, match=problem):
        replace(right, **changed)


def test_cycles_are_found() -> None:
    with pytest.raises(ValueError, match="cycle"):
        _ = Dag(3, np.array([0, 1, 2]), np.array([1, 2, 1])).levels


def test_settings() -> None:
    for wrong in ("beam=-1", "beam=.inf", "max_states=1"):
        with pytest.raises(ConfigError, match="allows"):
            config.load(LatticeConfig, [section("lattices")], [wrong])
