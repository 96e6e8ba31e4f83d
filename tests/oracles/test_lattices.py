"""Compact lattices against all paths of their lattices, and against exact N-best lists."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from privasr_k2.decoding.lattices import (
    Found,
    Lattice,
    LatticeConfig,
    LatticeSearch,
    as_word_lattice,
    widest,
)
from privasr_k2.decoding.nbest import Nbest, NbestConfig, NbestSearch, NbestSearchConfig, nbest
from privasr_k2.decoding.nbest import Path as SearchPath
from privasr_k2.decoding.word_lattices import word_lattices
from privasr_k2.scoring.hypotheses import Weights
from tests.support.conf import section
from tests.support.nbest import (
    WEIGHTS,
    Best,
    decoder,  # noqa: F401
    enumerated,
    noise,
    random_lattice,
    total,
)

if TYPE_CHECKING:
    from privasr_k2.decoding.first_pass import Decoder

pytestmark = pytest.mark.k2


def as_lattice(found: Found, seconds: float = 0.01) -> Lattice:
    return found.lattice(("u", "p", "s", "r"), found.arrays.frames * seconds)


def listed(
    found: Found, weights: Weights = WEIGHTS, num_paths: int = 100_000
) -> tuple[SearchPath, ...]:
    """The N-best list of a compact lattice; it is deterministic."""
    lattice = as_lattice(found)
    pairs = list(zip(lattice.sources.tolist(), lattice.words.tolist()))
    assert len(set(pairs)) == len(pairs)
    word_lattice = as_word_lattice(lattice, lattice.totals(weights))
    return nbest(word_lattice, NbestConfig(num_paths, 3.0, 10**6)).paths


def starts_with(paths: tuple[SearchPath, ...], truth: list[Best]) -> None:
    assert [path.words for path in paths[: len(truth)]] == [best.words for best in truth]
    for path, best in zip(paths, truth):
        assert path.am_score == pytest.approx(best.am, abs=1e-4)
        assert path.lm_score == pytest.approx(best.lm, abs=1e-4)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("beam", [0.0, 1.0, 4.0, 1000.0])
def test_every_word_sequence_within_the_beam(seed: int, beam: float) -> None:
    lattice = random_lattice(seed, levels=7, width=3, spread=1.0)
    truth = enumerated(lattice, WEIGHTS)
    [one] = word_lattices(lattice, WEIGHTS)
    assert one is not None
    found = widest(one, LatticeConfig(beam, 1_000_000))
    assert not found.limited and found.beam == beam
    paths = listed(found)
    starts_with(paths, [best for best in truth if best.total >= truth[0].total - beam + 1e-6])
    # What is there besides are word sequences of the lattice, at most with their best alignment.
    totals = {best.words: best.total for best in truth}
    assert all(total(path, WEIGHTS) <= totals[path.words] + 1e-4 for path in paths)
    assert len(truth) > 100 and (len(paths) < len(truth) or beam == 1000.0)


@pytest.mark.parametrize("max_states", [2, 8, 20, 40])
def test_a_limit_makes_the_beam_smaller_and_says_so(max_states: int) -> None:
    lattice = random_lattice(3, levels=8, width=3, spread=0.3)
    truth = enumerated(lattice, WEIGHTS)
    [one] = word_lattices(lattice, WEIGHTS)
    assert one is not None
    found = widest(one, LatticeConfig(16.0, max_states))
    assert found.limited and found.beam < 16.0
    assert len(found.arrays.frames) <= max_states or found.beam == 0.0
    inside = [best for best in truth if best.total >= truth[0].total - found.beam + 1e-6]
    starts_with(listed(found), inside)


@pytest.mark.parametrize("seed", range(4))
def test_lattices_of_a_search(decoder: Decoder, seed: int) -> None:  # noqa: F811
    log_probs, frames = noise(seed, [4, 8, 0, 6])
    config = NbestSearchConfig(25, 1.0, 100_000, 1.0, "exact")
    lists = NbestSearch(decoder, WEIGHTS, config).decode(log_probs, frames)  # type: ignore[arg-type]
    found = LatticeSearch(decoder, WEIGHTS, LatticeConfig(12.0, 10_000)).decode(log_probs, frames)  # type: ignore[arg-type]
    assert [one is None for one in found] == [False, False, True, False]
    for made, expected, length in zip(found, lists, (4, 8, 0, 6)):
        if made is not None:
            equal(expected, made, 25, WEIGHTS)
            assert made.arrays.frames[0] == 0 and made.arrays.frames[-1] == length


def equal(expected: Nbest | None, made: Found, num_paths: int, weights: Weights) -> None:
    """The same list from the lattice of tokens and from the compact one."""
    assert expected is not None
    paths = listed(made, weights, num_paths)
    assert [path.words for path in paths] == [path.words for path in expected.paths]
    for path, other in zip(paths, expected.paths):
        assert path.am_score == pytest.approx(other.am_score, abs=1e-4)
        assert path.lm_score == pytest.approx(other.lm_score, abs=1e-4)
        assert total(path, weights) == pytest.approx(total(other, weights), abs=1e-4)


@pytest.mark.recipe
def test_real_lattices(finished: Path) -> None:
    """Of the tiny corpus: lists of 100 from both."""
    import torch

    from privasr_k2 import config
    from privasr_k2.am.checkpoints import load_model
    from privasr_k2.data.manifests import load_cuts
    from privasr_k2.decoding.first_pass import Decoder
    from privasr_k2.decoding.jobs import DecodeConfig

    settings = config.load(DecodeConfig, [section("decode")])
    search = Decoder.from_folder(finished / "data/graph_phone", settings)
    model, compared = load_model(finished / "exp/ctc_tdnn_phone/am", "cpu"), 0
    for cut in itertools.islice(load_cuts(finished / "data/feats_fbank", "test"), 6):
        features = torch.from_numpy(cut.load_features())[None]
        with torch.no_grad():
            frames = torch.tensor([features.shape[1]])
            lattice = search.lattice(*model.log_probs(features, frames), [0])
            [one] = word_lattices(lattice, WEIGHTS)
        assert one is not None
        expected = nbest(one, NbestConfig(100, 2.0, 200_000))
        made, bar = widest(one, LatticeConfig(8.0, 20_000)), total(expected.paths[0], WEIGHTS) - 8.0
        inside = [path for path in expected.paths if total(path, WEIGHTS) > bar]
        compared += len(inside)
        equal(Nbest(tuple(inside), False, 8.0), made, len(inside), WEIGHTS)
    assert compared > 100
