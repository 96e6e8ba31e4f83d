"""Rescored lattices against every path of a lattice, scored one by one."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privasr_k2.decoding.lattice_lms import stepping
from privasr_k2.decoding.lattice_rescoring import LatticeSearchConfig, Rescored, rescore
from privasr_k2.decoding.lattices import Lattice, as_word_lattice
from privasr_k2.decoding.nbest import NbestConfig, nbest
from privasr_k2.lm.arpa import write_arpa
from privasr_k2.lm.ngram import count_ngrams, estimate
from privasr_k2.lm.perplexity import KenlmModel, LanguageModel
from privasr_k2.randomness import stream
from privasr_k2.scoring.hypotheses import Weights
from tests.support.small_lm import KINDS, WORDS, scorer
from tests.support.word_lattices import paths, random_lattice

SYMBOLS = ("<eps>", *WORDS, "strange", "#0")
WEIGHTS = Weights(0.8, 0.4)
SHARE = 0.6
MANY = 10**9


def lattices(*seeds: int, states: int = 10) -> list[Lattice]:
    return [random_lattice(seed, num_words=len(SYMBOLS) - 1, states=states) for seed in seeds]


def config(**changed: Any) -> LatticeSearchConfig:
    return LatticeSearchConfig(
        **{"neural_share": SHARE, "order": 0, "beam": math.inf, "max_histories": MANY} | changed
    )


class Scored(dict[tuple[int, ...], tuple[float, float, float, float]]):
    """For the words of each path the total of the search, and am, graph and LM score."""

    @property
    def ranked(self) -> list[tuple[int, ...]]:
        return sorted(self, key=lambda words: -self[words][0])


def one_by_one(lattice: Lattice, lm: LanguageModel) -> Scored:
    """Every path of a lattice, its sentence scored from its beginning."""
    found, every = Scored(), paths(lattice)
    sentences = [[SYMBOLS[word] for word in path.words] for path in every]
    ends = np.cumsum([len(sentence) + 1 for sentence in sentences])
    for path, log_probs in zip(every, np.split(lm.token_log_probs(sentences), ends[:-1])):
        arcs = list(path.arcs)
        am, graph = lattice.am_scores[arcs].sum(), lattice.lm_scores[arcs].sum()
        new = log_probs.sum()
        mixed = SHARE * new + (1 - SHARE) * graph
        total = am + WEIGHTS.lm_weight * mixed - WEIGHTS.insertion_penalty * len(path.words)
        found[path.words] = total, am, graph, new
    return found


def listed(found: Rescored, num_paths: int = 100_000) -> Scored:
    """The N-best list of a rescored lattice, in its order."""
    totals = found.lattice.totals(WEIGHTS, found.mixed(SHARE))
    made = Scored()
    for path in nbest(
        as_word_lattice(found.lattice, totals), NbestConfig(num_paths, 5.0, 1_000_000)
    ).paths:
        assert path.words not in made
        made[path.words] = (
            float(totals[path.arcs].sum()),
            path.am_score,
            path.lm_score,
            float(found.lm_scores[path.arcs].sum()),
        )
    return made


def same(found: Scored, truth: Scored) -> None:
    assert set(found) == set(truth)
    assert list(found)[:20] == truth.ranked[:20]
    for words, scores in found.items():
        assert scores == pytest.approx(truth[words], abs=1e-4)


def trigram(folder: Path, order: int = 3) -> KenlmModel:
    generator = stream(1, "text")
    text = [list(generator.choice(WORDS[:12], size=generator.integers(1, 9))) for _ in range(300)]
    write_arpa(estimate(count_ngrams(text, WORDS, order=order), "witten_bell"), folder / "lm.arpa")
    return KenlmModel(folder / "lm.arpa")


@pytest.mark.parametrize("kind", KINDS)
def test_without_merging_every_path_has_its_score(kind: str) -> None:
    lm, made = scorer(kind), lattices(1, 2, 3)
    for one, found in zip(
        made, rescore(made, SYMBOLS, stepping(lm), WEIGHTS, config()), strict=True
    ):
        truth = one_by_one(one, lm)
        assert found is not None and len(truth) > 50
        same(listed(found), truth)
        assert list(listed(found, 10)) == truth.ranked[:10]


def test_an_n_gram_of_the_order_of_the_histories_is_exact(tmp_path: Path) -> None:
    lm, made = trigram(tmp_path), lattices(4, 5, 6)
    wrong = 0
    for order in (0, 3, 4, 2):
        for one, found in zip(
            made, rescore(made, SYMBOLS, stepping(lm), WEIGHTS, config(order=order))
        ):
            truth = one_by_one(one, lm)
            assert found is not None
            if order != 2:
                same(listed(found), truth)
            else:
                made_scores = listed(found)
                assert set(made_scores) == set(truth)
                wrong += sum(abs(made_scores[w][3] - truth[w][3]) > 1e-3 for w in truth)
    # Bigram histories do merge what a trigram tells apart.
    assert wrong > 0


@pytest.mark.parametrize("order", [1, 2, 3])
def test_merged_paths_take_the_scores_of_the_best_one(order: int) -> None:
    """The slow twin: state by state, each with the best partial path's own sentence."""
    lm, made = scorer("lstm"), lattices(1, 7, 8, 9, 12)
    for one, found in zip(made, rescore(made, SYMBOLS, stepping(lm), WEIGHTS, config(order=order))):
        assert found is not None
        same(listed(found), slowly_merged(one, lm, order))


def slowly_merged(lattice: Lattice, lm: LanguageModel, order: int) -> Scored:
    """All paths; a state (lattice state, last words) scores with the best partial path into it."""
    numbers = stepping(lm).symbols(SYMBOLS)
    best: dict[tuple[Any, ...], tuple[float, tuple[int, ...]]] = {
        (0, (-1,) * (order - 1)): (0.0, ())
    }
    partial: dict[tuple[Any, ...], list[tuple[tuple[int, ...], float, float, float, float]]] = (
        defaultdict(list)
    )
    partial[next(iter(best))].append(((), 0.0, 0.0, 0.0, 0.0))
    final, found = lattice.num_states - 1, Scored()
    for state in range(final):
        for key in [key for key in partial if key[0] == state]:
            prefix = max(partial[key], key=lambda item: item[1])[0]
            for arc in np.flatnonzero(lattice.sources == state).tolist():
                word, target = int(lattice.words[arc]), int(lattice.targets[arc])
                said = [SYMBOLS[w] for w in prefix]
                sentence = said if target == final else [*said, SYMBOLS[word]]
                log_probs = lm.token_log_probs([sentence])
                new = float(log_probs[len(said)])
                am, graph = float(lattice.am_scores[arc]), float(lattice.lm_scores[arc])
                step = am + WEIGHTS.lm_weight * (SHARE * new + (1 - SHARE) * graph)
                step -= WEIGHTS.insertion_penalty * (target != final)
                after = (
                    () if target == final else (*key[1], int(numbers[word]))[1 - order or order :]
                )
                for words, total, a, g, n in partial[key]:
                    whole = words if target == final else (*words, word)
                    made = whole, total + step, a + am, g + graph, n + new
                    if target == final:
                        found[whole] = made[1:]
                    else:
                        partial[(target, after)].append(made)
    return found


def test_together_as_alone() -> None:
    lm, made = stepping(scorer("transformer")), lattices(8, 9, 10, states=14)
    settings = config(order=3, beam=6.0, max_histories=4)
    together = list(rescore(made, SYMBOLS, lm, WEIGHTS, settings))
    for one, found in zip(made, together, strict=True):
        [alone] = rescore([one], SYMBOLS, lm, WEIGHTS, settings)
        assert alone is not None and found is not None
        np.testing.assert_array_equal(alone.lattice.targets, found.lattice.targets)
        np.testing.assert_array_equal(alone.lattice.words, found.lattice.words)
        np.testing.assert_allclose(alone.lm_scores, found.lm_scores, atol=1e-5)


def test_wider_searches_are_never_worse_and_end_at_the_best_path() -> None:
    lm, narrow = scorer("lstm"), 0
    for one in lattices(*range(8), states=12):
        best = max(scores[0] for scores in one_by_one(one, lm).values())

        def found_best(one: Lattice = one, **changed: Any) -> float:
            [found] = rescore([one], SYMBOLS, stepping(lm), WEIGHTS, config(**changed))
            assert found is not None
            return max(scores[0] for scores in listed(found, 5).values())

        by_beam = [found_best(beam=beam) for beam in (0.01, 1.0, 3.0, 8.0, 100.0)]
        by_histories = [found_best(max_histories=number) for number in (1, 4, 100)]
        for totals in (by_beam, by_histories):
            assert all(a <= b + 1e-5 for a, b in itertools.pairwise(totals)), totals
            assert totals[-1] == pytest.approx(best, abs=1e-4)
            narrow += totals[0] < best - 1e-3
    assert narrow > 0


def test_a_narrow_beam_leaves_less() -> None:
    lm, made, sizes = stepping(scorer("lstm")), lattices(*range(6), states=14), []
    for beam in (0.5, 5.0, 15.0, math.inf):
        found = list(rescore(made, SYMBOLS, lm, WEIGHTS, config(order=3, beam=beam)))
        sizes.append(sum(len(one.lm_scores) for one in found if one is not None))
    assert sizes == sorted(set(sizes)), sizes
