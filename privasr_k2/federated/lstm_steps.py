"""Gradients and steps of clients of an LSTM LM, with each client's gradient apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from privasr_k2.federated import lstm_gradients
from privasr_k2.federated.local_batch import LocalBatch
from privasr_k2.lm.neural.lstm import RecurrentLm
from privasr_k2.lm.neural.softmax import FullSoftmax
from privasr_k2.training.trainable import adapter_of

Product = Callable[[nn.Parameter, Tensor, Tensor], None]


def _store(parameter: nn.Parameter, left: Tensor, right: Tensor) -> None:
    """Set the gradient to ``left.T @ right``, for a vector to the sum over the rows of ``left``."""
    if parameter.dim() == 1:
        torch.sum(left, dim=0, out=parameter.grad)
    else:
        torch.mm(left.t(), right, out=parameter.grad)


class LstmSteps:
    """Gradients of an LSTM LM: words and softmax client by client, LSTM layers for all.

    What lies before everything trained is not gone back through.

    Args:
        trained: the parameters that want gradients.
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
        with torch.enable_grad():
            reads = model.embed(torch.zeros(1, dtype=torch.int64, device=trained[0].device))
        #: Nothing before the last LSTM layer's output is trained.
        self.are_frozen = not reads.requires_grad and self._lowest == self._lstm.num_layers

    def states(self, batch: LocalBatch) -> Tensor:
        """(M, D) what the last LSTM layer gives for a batch, sentence by sentence."""
        packing = lstm_gradients.pack(batch.lengths).to(batch.inputs.device)
        with torch.no_grad():
            read = self._model.embed(batch.inputs)
            inputs = read.new_empty(read.shape)
            inputs[packing.places] = read
            return lstm_gradients.forward(self._lstm, inputs, packing)[-1].hidden[packing.places]

    def gradients(self, batches: Sequence[LocalBatch]) -> Iterator[None]:
        """Put the gradient of each batch into the parameters' ``grad``."""
        yield from self._run(batches, _store)

    def descend(self, batch: LocalBatch, lr: float, states: Tensor | None = None) -> None:
        """A step of SGD. A gradient that is one product is subtracted at once.

        Args:
            states: (M, D) those of the batch, where :attr:`are_frozen`.
        """
        kept = {*self._model.output.parameters()} & self._trained if self._tied else set()

        def take_off(parameter: nn.Parameter, left: Tensor, right: Tensor) -> None:
            if parameter in kept:  # words will add their part
                _store(parameter, left, right)
            elif parameter.dim() == 1:
                parameter.data.sub_(left.sum(dim=0), alpha=lr)
            else:
                parameter.data.addmm_(left.t(), right, alpha=-lr)

        run = self._run([batch], take_off)
        if states is not None:
            run = self._run_behind(states, batch, take_off)
        for _ in run:
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
        write = self._written(product)
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

    def _run_behind(self, states: Tensor, batch: LocalBatch, product: Product) -> Iterator[None]:
        _, finish = self._loss(states, batch, self._written(product), back=False)
        for parameter in self._added:
            parameter.grad.zero_()  # type: ignore[union-attr]
        finish()
        yield

    def _written(self, product: Product) -> Product:
        """The product for parameters that are trained, and nothing for others."""

        def write(parameter: nn.Parameter, left: Tensor, right: Tensor) -> None:
            if parameter in self._trained:
                product(parameter, left, right)

        return write

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
