"""Algorithm 1 of [liu2021] round by round, with user-level privacy where it is claimed.

Liu, Li, Bakshi and Peng (2021), "Private language model adaptation for speech recognition".

The leader draws the cohort, the processes share its chunks, and clipped, weighted updates are
summed exactly. The leader adds noise, writes the result, and steps. Results do not depend on the
number of processes.

A failed client is left out and logged. Under a claim it counts as zero and the denominator stays.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from privasr_k2.federated import server
from privasr_k2.federated.client import Failure, LocalTrainer
from privasr_k2.federated.client_store import ClientData
from privasr_k2.federated.cohorts import chunks
from privasr_k2.federated.processes import from_leader, indices_from_leader, summed
from privasr_k2.federated.round_files import RoundFiles, Stand
from privasr_k2.federated.settings import FedLmConfig
from privasr_k2.privacy.correlated import RoundNoise
from privasr_k2.privacy.streams import Secrets
from privasr_k2.recipe.progress import report_progress
from privasr_k2.training.distributed import Process
from privasr_k2.training.unit_sum import UnitSum

log = logging.getLogger(__name__)

#: For each released vector of a round, its noise.
Noises = Mapping[str, RoundNoise]
#: In place of a cohort: the round was released, and is read back.
_READ_BACK = np.array([-1])
# Of a bit that is +1/2 or -1/2.
_BIT = 0.5


@dataclass(frozen=True, eq=False)
class Round:
    """The result of a round.

    Attributes:
        number: from 0.
        stand: after it.
        delta: (P,) float32, the noisy average; None without any client.
        figures: private: clients, failed, mean_norm. Empty where the round was read back.
    """

    number: int
    stand: Stand
    delta: Tensor | None
    figures: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Federation:
    """Clients and their trainer.

    Attributes:
        clients: sorted by name: a cohort is drawn by index.
        trainer: with the model.
        replaced: client's name -> its fixed update, for audits.
        fail: round and client's name -> why it fails, or None; for tests.
    """

    clients: Sequence[ClientData]
    trainer: LocalTrainer
    replaced: Mapping[str, Tensor] = dataclasses.field(default_factory=dict)
    fail: Callable[[int, str], str | None] = lambda number, name: None


def rounds(
    federation: Federation,
    config: FedLmConfig,
    process: Process,
    secrets: Secrets | None,
    files: RoundFiles | None,
) -> Iterator[Round]:
    """The rounds that are left to do.

    Args:
        secrets: of the leader: a release where the configuration claims one.
        files: where rounds are continued from and written; None = nowhere.

    Returns:
        the rounds; only the weights of a server state are right in processes that do not lead. At
        the end the trainer's model has the last weights.
    """
    trainer = federation.trainer
    stand = Stand(0, server.begin(trainer.vector.cpu(), config.server), config.privacy.clip)
    stand = files.resume(stand) if files is not None else stand
    begun = int(from_leader(process, torch.tensor([stand.round])))
    noises = _noises(config, len(federation.clients), secrets) if process.leads else {}
    for number in range(begun, config.rounds):
        if process.leads:
            report_progress(number, config.rounds, "round")
        from_leader(process, stand.server.weights)
        clip = stand.clip
        if clip is not None:
            clip = float(from_leader(process, torch.tensor([clip], dtype=torch.float64)))
        known = files.read_round(number) if files is not None and config.claims else None
        chosen = _READ_BACK if known is not None else np.zeros(0, dtype=np.int64)
        if process.leads and known is None:
            sampling = config.sampling_for(len(federation.clients))
            chosen = sampling.cohort(number, len(federation.clients), _leaders(secrets).stream)
        chosen = indices_from_leader(process, chosen)
        delta, figures = known[0] if known is not None else None, {}
        if not np.array_equal(chosen, _READ_BACK):
            trainer.load(stand.server.weights)
            total, failed = _sum(federation, config, process, chosen, number, clip)
            figures = {"clients": float(total.count), "failed": float(failed)}
            figures["mean_norm"] = total.norm / max(1, total.count)
            if process.leads:
                known = _averaged(total, config, len(federation.clients), number, clip, noises)
                delta = known[0]
                if files is not None and config.claims and delta is not None:
                    files.save_round(number, delta, known[1])
        if process.leads and known is not None:
            state = stand.server
            if delta is not None:
                state = server.step(state, delta, config.server)
            stand = Stand(number + 1, state, known[1])
            due = stand.round % config.save_every == 0 or stand.round == config.rounds
            if files is not None and due:
                files.save(stand)
        yield Round(number, stand, delta, figures)
    trainer.load(from_leader(process, stand.server.weights))


def _noises(config: FedLmConfig, clients: int, secrets: Secrets | None) -> Noises:
    """Noise on the sum and on the bits of every round; none without a claim."""
    if not config.claims:
        return {}
    strategy, sizes = config.strategy_for(clients), {"sum": config.privacy.sum_noise}
    if config.privacy.adaptive is not None:
        sizes["bits"] = config.privacy.count_noise / _BIT
    streams = _leaders(secrets).noise
    return {name: RoundNoise(strategy, size, name, streams) for name, size in sizes.items()}


def _leaders(secrets: Secrets | None) -> Secrets:
    if secrets is None:
        raise ValueError("the leader needs streams to draw from")
    return secrets


def _sum(
    federation: Federation,
    config: FedLmConfig,
    process: Process,
    chosen: np.ndarray,
    number: int,
    clip: float | None,
) -> tuple[UnitSum, int]:
    """The sum over a cohort, of all processes; and the number of failures."""
    trainer = federation.trainer
    cohort = [federation.clients[index] for index in chosen.tolist()]
    alone = config.claims and config.privacy.isolate_clients
    positions = 1 if alone else config.positions
    shared = chunks(cohort, batch_size=config.client.batch_size, positions=positions)
    total, failed = UnitSum(len(trainer.vector), clip, trainer.vector.device), 0
    for chunk in shared[process.rank :: process.world_size]:
        for client, update in _updates(federation, chunk, number):
            reason = update.reason if isinstance(update, Failure) else None
            weight = config.weights.of(client.num_words)
            if isinstance(update, Tensor) and not total.add([update.unsqueeze(0)], weight):
                reason = "values that are not finite"
            if reason is not None:
                failed += 1
                log.warning("round %d goes on without %s: %s", number + 1, client.name, reason)
    summed(process, total.steps)
    values = [total.weight, total.within, total.norm, total.count, failed]
    figures = torch.tensor(values, dtype=torch.float64)
    total.weight, total.within, total.norm, count, failures = summed(process, figures).tolist()
    total.count = int(count)
    return total, int(failures)


def _updates(
    federation: Federation, chunk: Sequence[ClientData], number: int
) -> Iterator[tuple[ClientData, Tensor | Failure | None]]:
    fails = {client.name: federation.fail(number, client.name) for client in chunk}
    real = [c for c in chunk if c.name not in federation.replaced and fails[c.name] is None]
    if real:
        yield from federation.trainer.updates(real, number)
    for client in chunk:
        reason = fails[client.name]
        if reason is not None:
            yield client, Failure(reason)
        elif client.name in federation.replaced:
            yield client, federation.replaced[client.name]


def _averaged(
    total: UnitSum,
    config: FedLmConfig,
    clients: int,
    number: int,
    clip: float | None,
    noises: Noises,
) -> tuple[Tensor | None, float | None]:
    """The average as float32, with noise under a claim, and the clip of the next round."""
    privacy, within = config.privacy, total.within
    if config.claims and clip is not None:
        noisy = noises["sum"].add(number, total.values().cpu().numpy(), bound=clip)
        delta = torch.from_numpy((noisy / config.denominator(clients)).astype(np.float32))
        if privacy.adaptive is not None:
            within = float(noises["bits"].add(number, np.array([within]), bound=_BIT)[0])
        size = config.denominator(clients) / config.weights.mean
    elif not total.weight:
        log.warning("round %d: nobody took part", number + 1)
        return None, clip
    else:
        delta, size = (total.values() / total.weight).float().cpu(), float(total.count)
    if privacy.adaptive is not None and clip is not None:
        clip = privacy.adaptive.next_clip(clip, within, size)
    return delta, clip
