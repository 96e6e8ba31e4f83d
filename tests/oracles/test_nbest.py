"""Exact N-best lists against all paths of a lattice, written down one by one."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from privasr_k2.decoding.first_pass import Decoder, total_scores
from privasr_k2.decoding.nbest import (
    Nbest,
    NbestConfig,
    NbestSearch,
    NbestSearchConfig,
    nbest,
    of_paths,
)
from privasr_k2.decoding.sampled import draw_paths
from privasr_k2.decoding.word_lattices import word_lattices
from privasr_k2.scoring.hypotheses import Weights
from tests.support.conf import section
from tests.support.nbest import WEIGHTS, Best, enumerated, noise, random_lattice, total
from tests.support.nbest import decoder as decoder  # a fixture

if TYPE_CHECKING:
    import k2

pytestmark = pytest.mark.k2


def within(lattice: k2.Fsa, weights: Weights, beam: float) -> list[Best]:
    """As :func:`enumerated`, but only within a beam, for larger lattices."""
    one = lattice[0]
    leaving: dict[int, list[tuple[int, int, list[int], float, float, float]]] = defaultdict(list)
    arcs = one.arcs.values()[:, :3].tolist()
    scores = one.am_scores.tolist(), one.lm_scores.tolist()
    columns = zip(arcs, one.aux_labels.tolist(), *scores, strict=True)
    for (source, target, label), said, am, lm in columns:
        spoken = [w for w in said if w > 0]
        score = am + weights.lm_weight * lm - weights.insertion_penalty * len(spoken)
        leaving[source].append((target, label, spoken, am, lm, score))
    final, best = one.shape[0] - 1, {}
    to_go = {final: 0.0}
    for state in range(final - 1, -1, -1):
        onward = [score + to_go[target] for target, *_, score in leaving[state] if target in to_go]
        if onward:
            to_go[state] = max(onward)
    start: tuple[int, tuple[int, ...], float, float, float, tuple[int, ...]] = (0, (), 0, 0, 0, ())
    stack = [start]
    while stack:
        state, words, am, lm, total, labels = stack.pop()
        if state == final and (words not in best or total > best[words].total):
            best[words] = Best(total, words, am, lm, labels)
        for target, label, spoken, arc_am, arc_lm, score in leaving[state]:
            if target in to_go and total + score + to_go[target] >= to_go[0] - beam:
                seen = labels if label < 0 else (*labels, label)
                sums = am + arc_am, lm + arc_lm, total + score
                stack.append((target, (*words, *spoken), *sums, seen))
    return sorted(best.values(), reverse=True)


def same(found: Nbest, truth: list[Best]) -> None:
    """The list is the beginning of ``truth``, scores, tokens and all."""
    expected = truth[: len(found.paths)]
    assert [path.words for path in found.paths] == [best.words for best in expected]
    for path, best in zip(found.paths, expected):
        assert path.am_score == pytest.approx(best.am, abs=1e-4)
        assert path.lm_score == pytest.approx(best.lm, abs=1e-4)
        assert total(path, WEIGHTS) == pytest.approx(best.total, abs=1e-4)
        assert tuple(path.labels.tolist()) == best.labels


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("first_beam", "num_paths"), [(0.05, 10), (2.0, 40), (1000.0, 40), (3.0, 100_000), (0.5, 1)]
)
def test_the_best_of_all_paths(seed: int, first_beam: float, num_paths: int) -> None:
    lattice = random_lattice(seed, levels=7, width=3, spread=1.0)
    truth = enumerated(lattice, WEIGHTS)
    assert len(truth) > 100
    [one] = word_lattices(lattice, WEIGHTS)
    assert one is not None
    found = nbest(one, NbestConfig(num_paths, first_beam, 1_000_000))
    assert not found.limited
    assert len(found.paths) == min(num_paths, len(truth))
    same(found, truth)


@pytest.mark.parametrize("max_states", [1, 3, 10, 20, 30])
def test_a_list_that_is_cut_short_is_still_exact_and_says_so(max_states: int) -> None:
    lattice = random_lattice(3, levels=8, width=3, spread=0.3)
    truth = enumerated(lattice, WEIGHTS)
    [one] = word_lattices(lattice, WEIGHTS)
    assert one is not None
    found = nbest(one, NbestConfig(len(truth), 1.0, max_states))
    assert found.limited and 1 <= len(found.paths) < len(truth)
    same(found, truth)
    within = [best for best in truth if best.total >= truth[0].total - found.beam]
    # Rounding decides about what lies on the beam's edge.
    assert abs(len(found.paths) - len(within)) <= 1 or found.beam == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_lattices_of_a_search(decoder: Decoder, seed: int) -> None:
    lengths = [4, 8, 0, 6]
    log_probs, frames = noise(seed, lengths)
    search = NbestSearch(decoder, WEIGHTS, NbestSearchConfig(25, 1.0, 100_000, 1.0, "exact"))
    lists = search.decode(log_probs, frames)  # type: ignore[arg-type]
    assert lists[2] is None
    for n in (0, 1, 3):
        truth = enumerated(decoder.lattice(log_probs, frames, [n]), WEIGHTS)  # type: ignore[arg-type]
        found = lists[n]
        assert found is not None and not found.limited
        assert len(found.paths) == min(25, len(truth)) > 1
        same(found, truth)
        for path in found.paths:
            assert len(path.labels) == lengths[n]
            spoken = log_probs[n].numpy()[np.arange(lengths[n]), path.labels]  # type: ignore[attr-defined]
            assert path.am_score == pytest.approx(float(spoken.sum()), abs=1e-3)


def test_the_first_of_the_list_is_the_first_pass(decoder: Decoder) -> None:
    log_probs, frames = noise(9, [9, 7, 5])
    config = NbestSearchConfig(5, 1.0, 100_000, 1.0, "exact")
    search = NbestSearch(decoder, Weights(1.0, 0.0), config)
    lists = search.decode(log_probs, frames)  # type: ignore[arg-type]
    for found, hyps in zip(lists, decoder.decode(log_probs, frames)):  # type: ignore[arg-type]
        assert found is not None and hyps is not None
        best = found.paths[0]
        assert " ".join(decoder.graph.words[word] for word in best.words) == hyps[0].words
        assert best.am_score == pytest.approx(hyps[0].am_score, abs=1e-3)
        assert best.lm_score == pytest.approx(hyps[0].lm_score, abs=1e-3)


def test_drawn_paths_miss_what_is_among_the_best() -> None:
    """Why lists are exact: with many sequences of nearly one score, few of the best are drawn."""
    lattice = random_lattice(0, levels=8, width=3, spread=0.1)
    truth = {best.words: best for best in enumerated(lattice, WEIGHTS)}
    assert len(truth) > 800
    [one] = word_lattices(lattice, WEIGHTS)
    assert one is not None
    same(nbest(one, NbestConfig(50, 1.0, 1_000_000)), [*truth.values()])
    [paths] = draw_paths(lattice, total_scores(lattice, WEIGHTS), 200)
    found = of_paths(one, paths)
    words = [path.words for path in found.paths]
    assert len(paths) == 200 and len(set(words)) == len(words) < 200
    same(found, [truth[path] for path in words])
    totals = [truth[path].total for path in words]
    assert totals == sorted(totals, reverse=True)
    assert not set(list(truth)[:50]) <= set(words)


@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_a_path_is_drawn_as_often_as_it_is_likely(scale: float) -> None:
    """Out of two lattices with an empty one between them, and the same again."""
    import k2
    import torch

    both = [random_lattice(seed, levels=3, width=2, spread=1.0) for seed in (1, 2)]
    empty = k2.connect(k2.Fsa(torch.tensor([[0, 1, 1, 0], [2, 3, -1, 0]], dtype=torch.int32)))
    first, last = (k2.Fsa(lattice[0].arcs.clone()) for lattice in both)
    lattices = k2.create_fsa_vec([first, empty, last])
    scores = scale * torch.cat([total_scores(lattice, WEIGHTS) for lattice in both])
    drawn = draw_paths(lattices, scores, 20_000)
    assert [len(paths) for paths in drawn] == [20_000, 0, 20_000]
    for lattice, paths in zip(both, drawn[::2]):
        totals = (scale * total_scores(lattice, WEIGHTS)).double().numpy()
        often = Counter(tuple(path.tolist()) for path in paths)
        shares = {path: np.exp(totals[list(path)].sum()) for path in often}
        arcs = lattice.arcs.values()[:, :2].numpy()
        for path in often:  # from state to state, from the first to the last
            steps = arcs[list(path)]
            assert steps[0, 0] == 0 and steps[-1, 1] == arcs.max()
            assert (steps[1:, 0] == steps[:-1, 1]).all()
        forward = lattice.clone()
        forward.scores = scale * total_scores(lattice, WEIGHTS)
        mass = float(forward.get_tot_scores(use_double_scores=True, log_semiring=True).exp())
        for path, share in shares.items():
            assert often[path] / 20_000 == pytest.approx(share / mass, abs=1e-3)
        assert sum(shares.values()) / mass == pytest.approx(1, abs=0.01)
    again = draw_paths(lattices, scores, 20_000)
    assert all(np.array_equal(a, b) for one, two in zip(drawn, again) for a, b in zip(one, two))


def test_drawn_lists_of_a_search(decoder: Decoder) -> None:
    """Parts of the exact lists, at the same scores, ranked by them."""
    log_probs, frames = noise(5, [4, 8, 0, 6])
    exact, sampled = (
        NbestSearch(decoder, WEIGHTS, NbestSearchConfig(400, 1.0, 100_000, 1.0, method)).decode(
            log_probs,  # type: ignore[arg-type]
            frames,  # type: ignore[arg-type]
        )
        for method in ("exact", "sampled")
    )
    assert sampled[2] is None
    for whole, drawn in zip(exact, sampled):
        if whole is None or drawn is None:
            continue
        assert not whole.limited and not drawn.limited and len(drawn.paths) > 1
        by_words = {path.words: path for path in whole.paths}
        ranks = [list(by_words).index(path.words) for path in drawn.paths]
        assert ranks == sorted(ranks)
        for path in drawn.paths:
            other = by_words[path.words]
            assert path.am_score == pytest.approx(other.am_score, abs=1e-4)
            assert path.lm_score == pytest.approx(other.lm_score, abs=1e-4)
            assert path.labels.tolist() == other.labels.tolist()
            np.testing.assert_allclose(path.posteriors, other.posteriors)


@pytest.mark.recipe
def test_real_lattices(finished: Path) -> None:
    """Of the tiny corpus, within 1.2 of the best path: some ten thousand paths an utterance."""
    import torch

    from privasr_k2 import config
    from privasr_k2.am.checkpoints import load_model
    from privasr_k2.data.manifests import load_cuts
    from privasr_k2.decoding.jobs import DecodeConfig

    settings = config.load(DecodeConfig, [section("decode")])
    decoder = Decoder.from_folder(finished / "data/graph_phone", settings)
    model, beam, longest = load_model(finished / "exp/ctc_tdnn_phone/am", "cpu"), 1.2, 0
    for cut in itertools.islice(load_cuts(finished / "data/feats_fbank", "test"), 6):
        features = torch.from_numpy(cut.load_features())[None]
        with torch.no_grad():
            frames = torch.tensor([features.shape[1]])
            lattice = decoder.lattice(*model.log_probs(features, frames), [0])
            truth = within(lattice, WEIGHTS, beam)
            [one] = word_lattices(lattice, WEIGHTS)
        assert one is not None
        found = nbest(one, NbestConfig(100, 0.3, 200_000))
        shared = min(len(truth), len(found.paths))
        longest = max(longest, shared)
        assert found.paths[0].words == truth[0].words
        words = [path.words for path in found.paths[:shared]]
        assert words == [best.words for best in truth[:shared]]
        for path, best in zip(found.paths, truth):
            assert total(path, WEIGHTS) == pytest.approx(best.total, abs=1e-3)
        if len(truth) < len(found.paths):
            assert total(found.paths[len(truth)], WEIGHTS) < truth[0].total - beam + 1e-3
    assert longest > 3
