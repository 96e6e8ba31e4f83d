"""The cohort of a round, and its division among processes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privasr_k2.errors import PrivacyError
from privasr_k2.federated.client_store import ClientData
from privasr_k2.privacy.sampling import (
    AllUnits,
    FixedCohort,
    PartitionedEpochs,
    PoissonSampling,
    Sampling,
)

SCHEMES = ("poisson", "fixed", "partitioned", "ordered", "everyone")
#: Schemes that noise may be correlated over rounds with.
KNOWN_TURNS = ("partitioned", "ordered", "everyone")


def sampling_of(
    scheme: str, *, cohort: int, client_fraction: float | None, clients: int
) -> Sampling:
    """The sampling of a scheme.

    Args:
        scheme: ``poisson``: each client with probability ``client_fraction``, or cohort / clients;
            ``fixed``: ``cohort`` different ones; ``partitioned``: each once in about clients /
            cohort rounds; ``ordered``: so, and in the same order every time; ``everyone``.

    Raises:
        PrivacyError: client_fraction outside (0, 1], or a cohort larger than ``clients``.

    >>> sampling_of("poisson", cohort=100, client_fraction=None, clients=10_000).describe()
    'Poisson, rate 0.01'
    """
    drawn = scheme == "fixed" or (scheme == "poisson" and client_fraction is None)
    if drawn and cohort > clients:
        expected = f"at most {clients:,}, the number of clients"
        way_out = "take a smaller cohort, or a share of the clients: client_fraction"
        raise PrivacyError("cohort", expected, f"{cohort:,}", way_out)
    if scheme == "poisson":
        return PoissonSampling(cohort / clients if client_fraction is None else client_fraction)
    if scheme == "fixed":
        return FixedCohort(cohort, clients)
    if scheme in ("partitioned", "ordered"):
        return PartitionedEpochs(max(1, round(clients / cohort)), same_order=scheme == "ordered")
    return AllUnits()


def expected_size(sampling: Sampling, clients: int) -> float:
    """The expected number of clients in a round: public."""
    if isinstance(sampling, PoissonSampling):
        return sampling.rate * clients
    if isinstance(sampling, FixedCohort):
        return float(sampling.size)
    if isinstance(sampling, PartitionedEpochs):
        return clients / sampling.batches
    return float(clients)


def chunks(
    cohort: Sequence[ClientData], *, batch_size: int, positions: int
) -> list[list[ClientData]]:
    """A cohort in chunks of similar clients whose first batches have at most about ``positions``.

    The chunks depend on the cohort alone. ``positions=1`` isolates every client.
    """
    means = np.array([client.text.lengths.mean() if len(client.text) else 0.0 for client in cohort])
    chunked: list[list[ClientData]] = []
    room = 0.0
    for index in np.argsort(-means, kind="stable").tolist():
        size = means[index] * min(batch_size, len(cohort[index].text))
        if not chunked or size > room:
            chunked.append([])
            room = float(positions)
        chunked[-1].append(cohort[index])
        room -= size
    return chunked
