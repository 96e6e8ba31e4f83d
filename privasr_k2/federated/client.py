"""A client's part of a round: plain SGD on its own text [liu2021, eq. 1-4].

    theta <- theta - eta_l gradient(batch),    update = theta_t - theta_i

The first batches of a chunk of clients see the same weights, and are run together with the
gradients apart (:mod:`privasr_k2.federated.lstm_gradients`). Later batches are run client by client
in one buffer, so that memory does not grow with the cohort. There is no dropout.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from privasr_k2.constraints import Checked, Count, NotNegative, Positive
from privasr_k2.federated import lstm_gradients
from privasr_k2.federated.client_store import ClientData
from privasr_k2.lm.neural.lstm import RecurrentLm
from privasr_k2.lm.neural.model import NeuralLm
from privasr_k2.lm.neural.softmax import FullSoftmax
from privasr_k2.randomness import stream
from privasr_k2.training.trainable import adapter_of


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


@dataclass(frozen=True, eq=False)
class LocalBatch:
    """Sentences of one client, one after the other.

    Attributes:
        inputs, targets: (M,) int64.
        shares: (M,) float32, weight of each symbol's -log P in the loss: c / (n_b T_j).
        lengths: (S,) positions of each sentence.
    """

    inputs: Tensor
    targets: Tensor
    shares: Tensor
    lengths: np.ndarray


def batch_of(client: ClientData, sentences: np.ndarray) -> LocalBatch:
    """The batch of a client's ``sentences``, on the CPU.

    >>> from privasr_k2.lm.neural.vocabulary import Text
    >>> text = Text(np.array([5, 6, 7]), np.array([0, 2, 3]))
    >>> found = batch_of(ClientData("a", text, np.ones(5, dtype=np.float32), 3), np.array([1, 0]))
    >>> found.inputs.tolist(), found.targets.tolist(), [round(s, 3) for s in found.shares.tolist()]
    ([0, 7, 0, 5, 6], [7, 0, 5, 6, 0], [0.25, 0.25, 0.167, 0.167, 0.167])
    """
    lengths = client.text.lengths[sentences]
    padded = client.text.padded(sentences)
    columns = np.arange(padded.shape[1] - 1)
    inside = columns < lengths[:, None]
    places = (client.text.starts[sentences] + sentences)[:, None] + columns
    shares = client.weights[places[inside]] / np.repeat(lengths * len(sentences), lengths)
    return LocalBatch(
        torch.from_numpy(padded[:, :-1][inside]),
        torch.from_numpy(padded[:, 1:][inside]),
        torch.from_numpy(shares.astype(np.float32)),
        lengths,
    )


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
        self._segments = _Segments(model, self.trained) if isinstance(model, RecurrentLm) else None

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
        done = 0
        try:
            for client, update in self._together(busy, plans):
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

    def _alone(self, client: ClientData, rest: Sequence[np.ndarray]) -> Tensor | Failure:
        begun = time.monotonic()
        self.vector.sub_(self.gradient, alpha=self._config.lr)
        for sentences in rest:
            if self._config.max_seconds and time.monotonic() - begun > self._config.max_seconds:
                return Failure(f"more than {self._config.max_seconds:g} seconds")
            batch = self._moved(batch_of(client, sentences))
            if self._segments is not None:
                self._segments.descend(batch, self._config.lr)
            else:
                for _ in self._gradients([batch]):
                    self.vector.sub_(self.gradient, alpha=self._config.lr)
        return torch.sub(self._base, self.vector, out=self.gradient)

    def _gradients(self, batches: Sequence[LocalBatch]) -> Iterator[None]:
        """Put the gradient of each batch into :attr:`gradient`."""
        if self._segments is not None:
            yield from self._segments.gradients(batches)
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


Product = Callable[[nn.Parameter, Tensor, Tensor], None]


def _store(parameter: nn.Parameter, left: Tensor, right: Tensor) -> None:
    """Set the gradient to ``left.T @ right``, for a vector to the sum over the rows of ``left``."""
    if parameter.dim() == 1:
        torch.sum(left, dim=0, out=parameter.grad)
    else:
        torch.mm(left.t(), right, out=parameter.grad)


class _Segments:
    """Gradients of an LSTM LM: words and softmax client by client, LSTM layers for all.

    What lies before everything trained is not gone back through.
    """

    def __init__(self, model: RecurrentLm, trained: Sequence[nn.Parameter]) -> None:
        self._model, self._lstm, self._trained = model, model.recurrent.lstm, set(trained)
        of_lstm, of_output = set(self._lstm.parameters()), {*model.output.parameters()}
        numbers = range(self._lstm.num_layers)
        layers = [{*lstm_gradients.parameters(self._lstm, number)} for number in numbers]
        #: The first layer with something trained; their number where there is none.
        self._lowest = next((n for n in numbers if layers[n] & self._trained), len(layers))
        # Words are read by the vectors of the softmax, and no copy of them.
        embedding, vectors = getattr(model, "embedding", self), getattr(model, "vectors", None)
        self._tied = embedding is None and vectors is None
        plain = isinstance(model.output, FullSoftmax) and adapter_of(model.output.linear) is None
        self._direct = plain and isinstance(model.project, nn.Identity)
        written = of_lstm | (of_output if self._direct else set())
        self._added = [parameter for parameter in trained if parameter not in written]
        behind = of_output | {*model.project.parameters()}
        self._behind = [parameter for parameter in trained if parameter in behind]

    def gradients(self, batches: Sequence[LocalBatch]) -> Iterator[None]:
        """Put the gradient of each batch into the parameters' ``grad``."""
        yield from self._run(batches, _store)

    def descend(self, batch: LocalBatch, lr: float) -> None:
        """A step of SGD. A gradient that is one product is subtracted at once."""
        kept = {*self._model.output.parameters()} & self._trained if self._tied else set()

        def take_off(parameter: nn.Parameter, left: Tensor, right: Tensor) -> None:
            if parameter in kept:  # words will add their part
                _store(parameter, left, right)
            elif parameter.dim() == 1:
                parameter.data.sub_(left.sum(dim=0), alpha=lr)
            else:
                parameter.data.addmm_(left.t(), right, alpha=-lr)

        for _ in self._run([batch], take_off):
            for parameter in {*self._added, *(kept if self._direct else ())}:
                parameter.data.sub_(parameter.grad, alpha=lr)  # type: ignore[arg-type]

    def _run(self, batches: Sequence[LocalBatch], product: Product) -> Iterator[None]:
        ends = np.cumsum([len(batch.inputs) for batch in batches])
        device = batches[0].inputs.device
        packing = lstm_gradients.pack(np.concatenate([batch.lengths for batch in batches]))
        packing = packing.to(device)
        rows = [packing.places[end - len(b.inputs) : end] for end, b in zip(ends.tolist(), batches)]
        with torch.enable_grad():
            vectors = [self._model.embed(batch.inputs) for batch in batches]
        reads, num_layers = vectors[0].requires_grad, self._lstm.num_layers
        lowest = 0 if reads else self._lowest
        inputs = vectors[0].new_empty(len(packing.places), vectors[0].size(-1))
        for own, part in zip(rows, vectors):
            inputs[own] = part.detach()
        layers = lstm_gradients.forward(self._lstm, inputs, packing)

        def write(parameter: nn.Parameter, left: Tensor, right: Tensor) -> None:
            if parameter in self._trained:
                product(parameter, left, right)

        losses = [
            self._loss(layers[-1].hidden[own], batch, write, back=lowest < num_layers)
            for own, batch in zip(rows, batches)
        ]
        if lowest < num_layers:
            d_hidden = torch.empty_like(layers[-1].hidden)
            for own, (d_own, _) in zip(rows, losses):
                d_hidden[own] = d_own
            d_gates = lstm_gradients.backward(self._lstm, layers, d_hidden, packing, lowest)
        if reads:
            d_inputs = lstm_gradients.input_gradient(self._lstm, d_gates)
        for own, part, (_, finish) in zip(rows, vectors, losses):
            for parameter in self._added:
                parameter.grad.zero_()  # type: ignore[union-attr]
            finish()
            if reads:
                part.backward(d_inputs[own])
            if self._lowest < num_layers:
                only = None if len(batches) == 1 else own
                lstm_gradients.weight_gradients(self._lstm, layers, d_gates, packing, only, write)
            yield

    def _loss(
        self, hidden: Tensor, batch: LocalBatch, product: Product, *, back: bool
    ) -> tuple[Tensor | None, Callable[[], None]]:
        """The gradient of a client's loss for ``hidden`` (M, D), and what adds the parameters'.

        None in place of the gradient unless it is to go ``back``.
        """
        if not self._direct:
            leaf = hidden.detach().requires_grad_(back)
            projected = self._model.project(leaf)
            log_probs = self._model.output.target_log_probs(projected, batch.targets)
            loss, behind = -(batch.shares * log_probs).sum(), self._behind
            d_leaf = None
            if back:
                (d_leaf,) = torch.autograd.grad(loss, leaf, retain_graph=bool(behind))
            return d_leaf, lambda: torch.autograd.backward(loss, inputs=behind) if behind else None
        linear = self._model.output.linear
        with torch.no_grad():
            d_scores = functional.linear(hidden, linear.weight, linear.bias).softmax(dim=1)
            d_scores[torch.arange(len(d_scores), device=d_scores.device), batch.targets] -= 1
            d_scores *= batch.shares.unsqueeze(1)
            d_hidden = d_scores @ linear.weight if back else None

        def finish() -> None:
            with torch.no_grad():
                for parameter in (linear.weight, linear.bias):
                    product(parameter, d_scores, hidden)

        return d_hidden, finish
