"""A client's part of a round: plain SGD on its own text [liu2021, eq. 1-4].

    theta <- theta - eta_l gradient(batch),    update = theta_t - theta_i

The first batches of a chunk of clients see the same weights, and are run together with the
gradients apart (:mod:`privasr_k2.federated.lstm_gradients`). Later batches are run client by client
in one buffer, so that memory does not grow with the cohort. There is no dropout.

Where only what follows the LSTM is trained, a client reads its text through the LSTM once a round.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from privasr_k2.constraints import Checked, Count, NotNegative, Positive
from privasr_k2.federated.client_store import ClientData
from privasr_k2.federated.local_batch import LocalBatch, batch_of
from privasr_k2.federated.lstm_steps import LstmSteps
from privasr_k2.lm.neural.lstm import RecurrentLm
from privasr_k2.lm.neural.model import NeuralLm
from privasr_k2.ragged import ranges
from privasr_k2.randomness import stream

#: Positions whose LSTM states are computed together where they stay as they are.
_POSITIONS = 4096


@dataclass(frozen=True)
class ClientConfig(Checked):
    """A client's training in a round; see ``client`` of ``conf/fedlm.yaml#fedlm``."""

    epochs: Count
    batch_size: Count
    lr: Positive
    max_seconds: NotNegative


@dataclass(frozen=True)
class Failure:
    """Why a client sends nothing."""

    reason: str


def local_batches(
    client: ClientData, config: ClientConfig, seed: int, round_number: int
) -> list[np.ndarray]:
    """The sentences of each batch of a client's round, reordered in every round and epoch."""
    batches, starts = [], range(0, len(client.text), config.batch_size)
    for epoch in range(config.epochs):
        generator = stream(seed, "client", client.name, round_number, epoch)
        order = generator.permutation(len(client.text))
        batches += [order[start : start + config.batch_size] for start in starts]
    return batches


class LocalTrainer:
    """Trains clients in one copy of the model.

    Args:
        model: those of its parameters that want gradients are trained, and become views of
            :attr:`vector`; dropout is off.
        seed: of the order of sentences.

    Attributes:
        vector: (P,) float32 trained parameters; between clients those of the server.
        gradient: (P,) their gradients, or the update of a client.
        trained: the parameters, whose ``grad`` are views of it.
    """

    def __init__(self, model: NeuralLm, config: ClientConfig, seed: int) -> None:
        self.model, self._config, self._seed = model.eval(), config, seed
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._device = trained[0].device
        size = sum(parameter.numel() for parameter in trained)
        self.vector = torch.empty(size, device=self._device)
        self.gradient = torch.zeros(size, device=self._device)
        start = 0
        for parameter in trained:
            own = slice(start, start + parameter.numel())
            self.vector[own] = parameter.detach().reshape(-1)
            parameter.data = self.vector[own].view(parameter.shape)
            parameter.grad = self.gradient[own].view(parameter.shape)
            start += parameter.numel()
        self._base = self.vector.clone()
        self.trained = trained
        self._lstm_steps = (
            LstmSteps(model, self.trained) if isinstance(model, RecurrentLm) else None
        )

    def load(self, weights: Tensor) -> None:
        """Begin a round with the server's weights (P,)."""
        self._base.copy_(weights)
        self.vector.copy_(weights)

    def gradient_of(self, batch: LocalBatch) -> None:
        """Put the gradient of a batch's loss at :attr:`vector` into :attr:`gradient`."""
        for _ in self._gradients([self._moved(batch)]):
            pass

    def updates(
        self, clients: Sequence[ClientData], round_number: int
    ) -> Iterator[tuple[ClientData, Tensor | Failure | None]]:
        """The update theta_t - theta_i (P,) of each client of a chunk, valid until the next one.

        ``None``: no sentences. A chunk in which something fails is done again client by client.
        """
        settings = self._config, self._seed, round_number
        plans = {client.name: local_batches(client, *settings) for client in clients}
        busy = [client for client in clients if plans[client.name]]
        done, frozen = 0, self._lstm_steps is not None and self._lstm_steps.are_frozen
        run = self._on_states if frozen else self._together
        try:
            for client, update in run(busy, plans):
                yield client, update
                done += 1
        except RuntimeError as error:
            self.vector.copy_(self._base)
            if len(busy) == 1:
                yield busy[0], Failure(str(error).splitlines()[0])
            else:
                for client in busy[done:]:
                    yield from self.updates([client], round_number)
        for client in clients:
            if not plans[client.name]:
                yield client, None

    def _together(
        self, clients: Sequence[ClientData], plans: dict[str, list[np.ndarray]]
    ) -> Iterator[tuple[ClientData, Tensor | Failure]]:
        firsts = [self._moved(batch_of(client, plans[client.name][0])) for client in clients]
        for client, _ in zip(clients, self._gradients(firsts)):
            rest = plans[client.name][1:]
            if rest:
                yield client, self._alone(client, rest)
                self.vector.copy_(self._base)
            else:
                if self._config.lr != 1:
                    self.gradient.mul_(self._config.lr)
                yield client, self.gradient

    def _on_states(
        self, clients: Sequence[ClientData], plans: dict[str, list[np.ndarray]]
    ) -> Iterator[tuple[ClientData, Tensor | Failure]]:
        """Where only what follows the LSTM is trained: its states are computed once a round."""
        assert self._lstm_steps is not None
        for client in clients:
            begun, lengths = time.monotonic(), client.text.lengths
            starts = np.cumsum(lengths) - lengths
            groups = np.split(np.arange(len(lengths)), _cuts(lengths))
            whole = [self._moved(batch_of(client, sentences)) for sentences in groups]
            states = torch.cat([self._lstm_steps.states(batch) for batch in whole])
            failure = None
            for sentences in plans[client.name]:
                if failure := self._too_late(begun):
                    break
                rows = torch.from_numpy(ranges(starts[sentences], lengths[sentences]))
                batch = self._moved(batch_of(client, sentences))
                own = states[rows.to(states.device)]
                self._lstm_steps.descend(batch, self._config.lr, states=own)
            torch.sub(self._base, self.vector, out=self.gradient)
            self.vector.copy_(self._base)
            yield client, failure or self.gradient

    def _too_late(self, begun: float) -> Failure | None:
        if self._config.max_seconds and time.monotonic() - begun > self._config.max_seconds:
            return Failure(f"more than {self._config.max_seconds:g} seconds")
        return None

    def _alone(self, client: ClientData, rest: Sequence[np.ndarray]) -> Tensor | Failure:
        begun = time.monotonic()
        self.vector.sub_(self.gradient, alpha=self._config.lr)
        for sentences in rest:
            if failure := self._too_late(begun):
                return failure
            batch = self._moved(batch_of(client, sentences))
            if self._lstm_steps is not None:
                self._lstm_steps.descend(batch, self._config.lr)
            else:
                for _ in self._gradients([batch]):
                    self.vector.sub_(self.gradient, alpha=self._config.lr)
        return torch.sub(self._base, self.vector, out=self.gradient)

    def _gradients(self, batches: Sequence[LocalBatch]) -> Iterator[None]:
        """Put the gradient of each batch into :attr:`gradient`."""
        if self._lstm_steps is not None:
            yield from self._lstm_steps.gradients(batches)
            return
        for batch in batches:
            self.gradient.zero_()
            lengths = torch.from_numpy(batch.lengths).to(self._device)
            columns = torch.arange(int(batch.lengths.max()), device=self._device)
            inside = columns < lengths.unsqueeze(1)
            inputs, targets = (
                part.new_zeros(inside.shape).masked_scatter(inside, part)
                for part in (batch.inputs, batch.targets)
            )
            log_probs = self.model(inputs, targets, lengths)[inside]
            (-(batch.shares * log_probs).sum()).backward()
            yield

    def _moved(self, batch: LocalBatch) -> LocalBatch:
        parts = (part.to(self._device) for part in (batch.inputs, batch.targets, batch.shares))
        return LocalBatch(*parts, batch.lengths)


def _cuts(lengths: np.ndarray) -> np.ndarray:
    """Where sentences are cut into groups of about :data:`_POSITIONS` positions."""
    return np.flatnonzero(np.diff(np.cumsum(lengths) // _POSITIONS)) + 1
