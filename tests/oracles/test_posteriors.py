"""Word posteriors of lattices against all paths, written down one by one."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest

from privasr_k2.decoding.nbest import NbestConfig, nbest, with_posteriors
from privasr_k2.decoding.posteriors import word_posteriors
from privasr_k2.decoding.word_lattices import WordLattice
from privasr_k2.randomness import stream

NONE = -1


def random_lattice(
    seed: int, *, levels: int, width: int, spread: float, dead: bool = True
) -> WordLattice:
    """Each state leads to some of the next level; arcs have no word, one, two or three."""
    generator = stream(seed, "posteriors")
    rows = [[0], *([1 + width * t + n for n in range(width)] for t in range(levels - 1))]
    rows.append([rows[-1][-1] + 1])
    ends: list[tuple[int, int]] = []
    said: list[list[int]] = []
    for here, there in itertools.pairwise(rows):
        for source in here:
            if dead and source != here[0] and generator.random() < 0.15:
                continue
            for target in there:
                if target == there[0] or generator.random() < 0.7:
                    ends.append((source, target))
                    number = generator.choice([0, 1, 2, 3], p=[0.5, 0.35, 0.1, 0.05])
                    words = generator.integers(1, 5, size=number).tolist()
                    said.append([*words, -1] if there is rows[-1] else words)
    final = rows[-1][0]
    sources, targets = zip(*ends)
    labels = np.where(np.array(targets) == final, -1, 1)
    scores = generator.normal(-3.0, spread, len(sources))
    order = generator.permutation(len(sources))  # nothing may rest on the arcs' order
    columns = [np.array(column)[order] for column in (sources, targets, labels, scores)]
    words = [said[n] for n in order]
    return made_lattice(final, *columns, words)


def made_lattice(
    final: int, sources: np.ndarray, targets: np.ndarray, labels: np.ndarray, scores: np.ndarray,
    said: list,
) -> WordLattice:  # fmt: skip
    """A lattice with the costs that its scores give."""
    come, go = np.full(final + 1, -np.inf), np.full(final + 1, -np.inf)
    come[0], go[final] = 0.0, 0.0
    for _ in range(final + 1):
        np.maximum.at(come, targets, come[sources] + scores)
        np.maximum.at(go, sources, go[targets] + scores)
    alive = np.isfinite(come[sources]) & np.isfinite(go[targets])
    costs, excess = np.full(len(scores), np.inf), np.full(len(scores), np.inf)
    onward = scores[alive] + go[targets[alive]]
    costs[alive] = np.maximum(go[sources[alive]] - onward, 0)
    excess[alive] = np.maximum(go[0] - come[sources[alive]] - onward, 0)
    # Words of other lattices stand before and behind.
    splits = 3 + np.concatenate([[0], np.cumsum([len(words) for words in said])])
    values = np.array([9, 9, 9, *(w for words in said for w in words), 9])
    arcs = final, sources, targets, labels, splits, values
    return WordLattice(*arcs, scores, np.zeros(len(scores)), costs, excess)


def paths(lattice: WordLattice) -> Iterator[tuple[float, list[int]]]:
    """Score and arcs of every path."""
    leaving = defaultdict(list)
    for arc, source in enumerate(lattice.sources.tolist()):
        leaving[source].append(arc)
    stack: list[tuple[int, float, list[int]]] = [(0, 0.0, [])]
    while stack:
        state, score, arcs = stack.pop()
        if state == lattice.final:
            yield score, arcs
        for arc in leaving[state]:
            stack.append((int(lattice.targets[arc]), score + lattice.am_scores[arc], [*arcs, arc]))


def words_of(lattice: WordLattice, arc: int) -> list[int]:
    span = slice(lattice.word_splits[arc], lattice.word_splits[arc + 1])
    return [word for word in lattice.word_values[span].tolist() if word > 0]


def under_way(lattice: WordLattice, arcs: list[int]) -> list[int]:
    """For each arc of a path the place of its word: its last one, or else the next to come."""
    places, total = [], sum(len(words_of(lattice, arc)) for arc in arcs)
    said = 0
    for arc in arcs:
        number = len(words_of(lattice, arc))
        place = said + number - 1 if number else said
        places.append(place if place < total else NONE)
        said += number
    return places


def slow_frames(lattice: WordLattice, scale: float) -> list[dict[int, float]]:
    """Each frame's distribution over words, by summing over paths."""
    every = list(paths(lattice))
    most = max(score for score, _ in every)
    total = sum(math.exp(scale * (score - most)) for score, _ in every)
    frames: list[dict[int, float]] = [defaultdict(float) for _ in every[0][1]]
    for score, arcs in every:
        words = [word for arc in arcs for word in words_of(lattice, arc)]
        for frame, place in zip(frames, under_way(lattice, arcs)):
            word = NONE if place == NONE else words[place]
            frame[word] += math.exp(scale * (score - most)) / total
    return frames


@pytest.mark.parametrize("scale", [1.0, 0.3])
@pytest.mark.parametrize("seed", range(8))
def test_frames_are_sums_over_all_paths(seed: int, scale: float) -> None:
    lattice = random_lattice(seed, levels=6, width=3, spread=1.5)
    found, truth = word_posteriors(lattice, scale), slow_frames(lattice, scale)
    assert found.frames.sum(axis=1) == pytest.approx(np.ones(len(truth)), abs=1e-12)
    columns = {word: n for n, word in enumerate(found.words.tolist())} | {NONE: len(found.words)}
    for row, frame in zip(found.frames, truth, strict=True):
        expected = np.zeros(len(columns))
        for word, probability in frame.items():
            expected[columns[word]] = probability
        assert row == pytest.approx(expected, abs=1e-10)
    entropy = [-sum(p * math.log(p) for p in frame.values()) for frame in truth]
    assert found.depths == pytest.approx(np.exp(entropy), abs=1e-8)


def span_of(lattice: WordLattice, arcs: list[int], arc: int) -> tuple[int, int]:
    """First and last place of the words that a path's arc carries, the last one exclusive."""
    before = sum(len(words_of(lattice, other)) for other in arcs[: arcs.index(arc)])
    return before, before + len(words_of(lattice, arc))


def carrying(lattice: WordLattice, scale: float, frame: int, word: int) -> float:
    """The probability of the paths whose arc at a frame carries a word."""
    every = list(paths(lattice))
    most = max(score for score, _ in every)
    weights = [math.exp(scale * (score - most)) for score, _ in every]
    with_it = [word in words_of(lattice, arcs[frame]) for _, arcs in every]
    return sum(w for w, yes in zip(weights, with_it) if yes) / sum(weights)


@pytest.mark.parametrize("seed", range(8))
def test_words_of_every_path(seed: int) -> None:
    lattice = random_lattice(seed, levels=5, width=3, spread=1.5)
    found, truth = word_posteriors(lattice, 0.7), slow_frames(lattice, 0.7)
    for _, arcs in paths(lattice):
        words = [word for arc in arcs for word in words_of(lattice, arc)]
        posteriors, depths = found.of_path(np.array(arcs))
        places = under_way(lattice, arcs)
        assert len(posteriors) == len(depths) == len(words)
        for place, word in enumerate(words):
            spans = [frame[word] for frame, here in zip(truth, places) if here == place]
            if spans:
                assert posteriors[place] == pytest.approx(max(spans), abs=1e-10)
            else:
                ranges = [range(*span_of(lattice, arcs, arc)) for arc in arcs]
                [at] = [n for n, here in enumerate(ranges) if place in here]
                expected = carrying(lattice, 0.7, at, word)
                assert posteriors[place] == pytest.approx(expected, abs=1e-10)


def test_a_word_without_a_frame_has_the_probability_of_the_arcs_that_carry_it() -> None:
    sources, targets = np.array([0, 0, 1]), np.array([1, 1, 2])
    scores = np.log(np.array([0.75, 0.25, 1.0]))
    lattice = made_lattice(2, sources, targets, np.array([1, 2, -1]), scores, [[1, 2], [3], [-1]])
    posteriors, depths = word_posteriors(lattice, 1.0).of_path(np.array([0, 2]))
    assert posteriors == pytest.approx([0.75, 0.75])
    depth = np.exp(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    assert depths == pytest.approx([depth, depth])


def test_homophones_at_the_end_share_their_frames() -> None:
    """Both words stand on arcs into the final state, which have no frame of their own."""
    sources, targets = np.array([0, 1, 1]), np.array([1, 2, 2])
    scores = np.log(np.array([1.0, 0.6, 0.4]))
    words = [[], [1, -1], [2, -1]]
    lattice = made_lattice(2, sources, targets, np.array([1, -1, -1]), scores, words)
    found = word_posteriors(lattice, 1.0)
    assert found.frames[0] == pytest.approx([0.6, 0.4, 0.0])
    assert found.of_path(np.array([0, 2]))[0] == pytest.approx([0.4])


def test_many_paths_of_one_cost_do_not_overflow() -> None:
    lattice = random_lattice(1, levels=900, width=8, spread=0.0, dead=False)
    found = word_posteriors(lattice, 1.0)
    assert np.isfinite(found.frames).all()
    assert found.frames.sum(axis=1) == pytest.approx(np.ones(900))


def test_a_cheap_path_of_many_is_certain() -> None:
    lattice = random_lattice(2, levels=50, width=4, spread=400.0)
    one = with_posteriors(nbest(lattice, NbestConfig(1, 1.0, 10_000)), lattice, 1.0)
    assert one.paths[0].posteriors is not None
    assert one.paths[0].posteriors.min() > 0.5


def test_arcs_that_are_no_frames_are_refused() -> None:
    sources, targets = np.array([0, 0, 1]), np.array([1, 2, 2])
    lattice = made_lattice(2, sources, targets, np.array([1, 1, -1]), np.zeros(3), [[1], [2], []])
    with pytest.raises(ValueError, match="frames"):
        word_posteriors(lattice, 1.0)
