"""Sampling contracts: cohorts are drawn as the accountant assumes, from secret streams only."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom, chi2

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import events
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.sampling import AllUnits, FixedCohort, PartitionedEpochs, PoissonSampling
from privasr_k2.randomness import noise_stream

AOR, REPLACE = Relation.ADD_OR_REMOVE_ONE, Relation.REPLACE_ONE
SECRET = bytes(range(32))


def streams(*names):
    """Streams under a key that the tests fix, so that nothing here is left to chance."""
    return noise_stream(SECRET, *names)


def test_poisson_cohorts_are_binomial_and_independent():
    sizes = [len(PoissonSampling(0.03).cohort(t, 60, streams)) for t in range(4000)]
    expected = binom.pmf(np.arange(8), 60, 0.03)
    expected = np.append(expected[:7], 1 - expected[:7].sum()) * 4000
    observed = np.bincount(np.minimum(sizes, 7), minlength=8)
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, 7) > 1e-6
    assert 0 in sizes, "an empty cohort is a cohort"


def test_each_unit_has_the_rate():
    drawn = np.zeros(50)
    for t in range(3000):
        drawn[PoissonSampling(0.2).cohort(t, 50, streams)] += 1
    assert abs(drawn - 600).max() < 6 * math.sqrt(3000 * 0.2 * 0.8)


def test_fixed_cohorts_are_uniform_over_all_subsets():
    cohort = FixedCohort(2, 5)
    seen = [tuple(cohort.cohort(t, 5, streams)) for t in range(5000)]
    observed = np.array([seen.count(pair) for pair in itertools.combinations(range(5), 2)])
    assert observed.sum() == 5000
    assert chi2.sf(((observed - 500) ** 2 / 500).sum(), 9) > 1e-6


def test_partitioned_epochs_give_every_unit_one_batch():
    sampling = PartitionedEpochs(4)
    for epoch in range(5):
        batches = [sampling.cohort(4 * epoch + b, 30, streams) for b in range(4)]
        assert sorted(np.concatenate(batches)) == list(range(30))
    sizes = [len(sampling.cohort(t, 30, streams)) for t in range(8)]
    assert sizes[:4] != sizes[4:]


def test_one_order_for_all_epochs():
    sampling = PartitionedEpochs(4, same_order=True)
    cohorts = [tuple(sampling.cohort(t, 30, streams)) for t in range(12)]
    assert cohorts[:4] == cohorts[4:8] == cohorts[8:] and len(set(cohorts)) == 4
    assert sorted(itertools.chain(*cohorts[:4])) == list(range(30))
    step = events.gaussian(1.5)
    assert sampling.event(step, 9, AOR) == events.repeated(step, 3)


@pytest.mark.parametrize(
    "sampling", [AllUnits(), PartitionedEpochs(4), PartitionedEpochs(4, same_order=True)]
)
@pytest.mark.parametrize("rounds", [1, 4, 5, 12])
def test_turns_are_those_of_the_cohorts(sampling, rounds):
    """Of many units some come as near and as often as the contract says, and none nearer."""
    turns = sampling.turns(rounds)
    places = [[] for _ in range(400)]
    for t in range(rounds):
        for unit in sampling.cohort(t, 400, streams):
            places[unit].append(t)
    assert max(map(len, places)) == turns.most
    distances = (b - a for own in places for a, b in itertools.pairwise(own))
    assert min(distances, default=turns.apart) == turns.apart


@pytest.mark.parametrize("sampling", [PoissonSampling(0.5), FixedCohort(9, 20)])
def test_cohorts_that_are_drawn_anew_have_no_turns(sampling):
    with pytest.raises(PrivacyError, match="correlated over rounds"):
        sampling.turns(5)


@pytest.mark.parametrize(
    "sampling", [PoissonSampling(0.5), FixedCohort(9, 20), PartitionedEpochs(2)]
)
def test_draws_repeat_under_a_key_and_differ_under_others(sampling):
    def drawn(secret):
        keyed = partial(noise_stream, secret)
        return [tuple(sampling.cohort(t, 20, keyed)) for t in range(20)]

    assert drawn(SECRET) == drawn(SECRET) != drawn(bytes(32))
    assert len(set(drawn(SECRET))) > 10
    with pytest.raises(PrivacyError, match="secret cryptographic stream"):
        sampling.cohort(0, 20, lambda *names: np.random.default_rng(1))


def test_only_poisson_gets_the_poisson_number():
    step = events.gaussian(1.5)
    sampled = events.poisson_sampled(0.01, step)
    assert PoissonSampling(0.01).event(step, 7, AOR) == events.repeated(sampled, 7)
    # Whoever is drawn displaces another: adding or removing one moves the sum by two contributions.
    assert FixedCohort(100, 10_000).event(step, 7, AOR) == events.repeated(events.gaussian(0.75), 7)
    sampled = events.fixed_size_sampled(100, 10_000, step)
    assert FixedCohort(100, 10_000).event(step, 7, REPLACE) == events.repeated(sampled, 7)
    assert AllUnits().event(step, 7, AOR) == events.repeated(step, 7)
    with pytest.raises(PrivacyError, match="adding or removing"):
        PoissonSampling(0.01).event(step, 7, REPLACE)


@pytest.mark.parametrize(("rounds", "epochs"), [(0, 0), (1, 1), (4, 1), (5, 2), (8, 2)])
def test_a_begun_epoch_counts_whole(rounds, epochs):
    step = events.gaussian(1.5)
    assert PartitionedEpochs(4).event(step, rounds, AOR) == events.repeated(step, epochs)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PoissonSampling(0.0),
        lambda: PoissonSampling(1.1),
        lambda: FixedCohort(0, 5),
        lambda: FixedCohort(6, 5),
        lambda: PartitionedEpochs(0),
        lambda: FixedCohort(2, 5).cohort(0, 6, streams),
        lambda: PoissonSampling(0.1).cohort(-1, 6, streams),
    ],
)
def test_contracts_that_cannot_be(make):
    with pytest.raises(PrivacyError):
        make()
