"""Federated training against slow twins: a copy of the model for each client."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch

from privasr_k2.federated import server
from privasr_k2.federated.client import ClientConfig, LocalTrainer, local_batches
from privasr_k2.federated.fedlm import Federation, chosen_parameters, rounds
from privasr_k2.federated.lstm_gradients import backward, forward, input_gradient, pack
from privasr_k2.federated.server import ServerConfig
from privasr_k2.federated.server_training import FinetuneConfig, epochs, pooled
from privasr_k2.federated.weighting import CONFIDENCE_USES, ClientData, Weighting, prepare
from privasr_k2.lm.neural.model import NeuralLm
from privasr_k2.privacy.streams import Drawn
from privasr_k2.randomness import stream
from privasr_k2.training.distributed import Process
from tests.support.fed_small import VOCABULARY, made_clients, settings, trainer
from tests.support.small_lm import MODELS, tiny

ALONE = Process(0, 1, torch.device("cpu"))


def twin(
    model: NeuralLm, trained: str, client: ClientData, config: ClientConfig, number: int = 0
) -> torch.Tensor:
    """Equations 1 to 4 sentence by sentence: a deep copy, plain SGD, the difference."""
    local = copy.deepcopy(model).requires_grad_(False)
    parameters = chosen_parameters(local, trained)
    for parameter in parameters:
        parameter.requires_grad_(True)
        parameter.grad = None
    optimizer = torch.optim.SGD(parameters, lr=config.lr)
    for sentences in local_batches(client, config, 1, number):
        loss = torch.zeros(())
        for j in sentences:
            words = client.text.words[client.text.starts[j] : client.text.starts[j + 1]].tolist()
            log_probs = local.log_probs(torch.tensor([[0, *words]]))[0]
            first = client.text.starts[j] + j
            for t, word in enumerate([*words, 0]):
                c = float(client.weights[first + t])
                loss = loss - c * log_probs[t, word] / len([*words, 0]) / len(sentences)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    pairs = zip(chosen_parameters(model, trained), parameters)
    return torch.cat([(old - new).detach().reshape(-1) for old, new in pairs])


@pytest.mark.parametrize(("kind", "softmax", "tied"), MODELS)
@pytest.mark.parametrize("trained", ["all", "output"])
@pytest.mark.parametrize("use", CONFIDENCE_USES)
def test_clients_against_copies(
    kind: str, softmax: str, tied: bool, trained: str, use: str
) -> None:
    if use != "token" and (kind, softmax) != ("lstm", "full"):
        pytest.skip("each use with one model")
    model, vocabulary = tiny(kind, softmax, tied)
    config = ClientConfig(epochs=2, batch_size=3, lr=0.4, max_seconds=0)
    clients = prepare(made_clients(4, most=7), vocabulary, Weighting(use, 0.4))
    expected = [twin(model, trained, client, config) for client in clients]
    ours = LocalTrainer(model, chosen_parameters(model, trained), config, seed=1)
    weights = ours.vector.clone()
    for chunk in ([*clients], clients[:1], clients[2:]):
        updates = ours.updates(chunk, 0)
        found = {c.name: None if update is None else update.clone() for c, update in updates}
        for client, update in zip(clients, expected):
            if client.name in found and len(client.text):
                torch.testing.assert_close(found[client.name], update, atol=3e-6, rtol=1e-4)
                assert float(update.norm()) > 1e-3
            elif client.name in found:
                assert found[client.name] is None
        assert torch.equal(ours.vector, weights)


def test_lstm_gradients_against_autograd() -> None:
    torch.manual_seed(1)
    lstm = torch.nn.LSTM(5, 4, 2, batch_first=True)
    lengths = np.array([3, 1, 6, 3])
    padded = torch.randn(4, 6, 5, requires_grad=True)
    inside = torch.arange(6) < torch.from_numpy(lengths).unsqueeze(1)
    outputs = lstm(padded)[0][inside]
    wanted = torch.randn(outputs.shape)
    (outputs * wanted).sum().backward()
    packing = pack(lengths)
    packed = torch.empty(13, 5)
    packed[packing.places] = padded.detach()[inside]
    layers = forward(lstm, packed, packing)
    torch.testing.assert_close(layers[-1].hidden[packing.places], outputs.detach())
    d_hidden = torch.empty(13, 4)
    d_hidden[packing.places] = wanted
    d_gates = backward(lstm, layers, d_hidden, packing)
    torch.testing.assert_close(input_gradient(lstm, d_gates)[packing.places], padded.grad[inside])


@pytest.mark.parametrize("optimizer", server.OPTIMIZERS)
def test_server_against_the_equations(optimizer: str) -> None:
    config = ServerConfig(optimizer=optimizer, lr=0.3, beta1=0.8, beta2=0.95, adam_eps=0.01)
    generator = np.random.default_rng(1)
    theta, m, v = generator.normal(size=5).tolist(), [0.0] * 5, [0.0] * 5
    state = server.begin(torch.tensor(theta), config)
    for t in range(1, 8):
        delta = (generator.normal(size=5) * 0.2).tolist()
        before = state.weights.clone()
        after = server.step(state, torch.tensor(delta), config)
        assert torch.equal(state.weights, before)  # states are values
        state = after
        for i, d in enumerate(delta):
            if optimizer == "fedavg":
                theta[i] -= 0.3 * d
            elif optimizer == "fedavgm":
                m[i] = 0.8 * m[i] + d
                theta[i] -= 0.3 * m[i]
            else:
                m[i] = 0.8 * m[i] + 0.2 * d
                v[i] = 0.95 * v[i] + 0.05 * d * d
                m_hat, v_hat = m[i] / (1 - 0.8**t), v[i] / (1 - 0.95**t)
                theta[i] -= 0.3 * m_hat / math.sqrt(v_hat + 0.01)
        np.testing.assert_allclose(state.weights.numpy(), theta, rtol=2e-5, atol=1e-6)
    assert state.steps == 7


def test_rounds_against_algorithm_1() -> None:
    """Everyone takes part, in two rounds."""
    config = settings("sampling=everyone", "rounds=2", "confidences.use=token")
    ours = trainer(config)
    clients = prepare(made_clients(6), VOCABULARY, config.confidences)
    plain = copy.deepcopy(ours.model)
    state = server.begin(ours.vector, config.server)
    for one in rounds(Federation(clients, ours), config, ALONE, Drawn("cohorts", 1), None):
        total, words = torch.zeros(len(state.weights), dtype=torch.float64), 0
        for client in clients:
            update = twin(plain, "all", client, config.client, one.number)
            total += client.num_words * update.double()
            words += client.num_words
        state = server.step(state, (total / words).float(), config.server)
        torch.testing.assert_close(one.stand.server.weights, state.weights, atol=2e-5, rtol=0)
        torch.nn.utils.vector_to_parameters(one.stand.server.weights, plain.parameters())
    assert torch.equal(ours.vector, one.stand.server.weights)


def test_server_training_against_adam() -> None:
    """All sentences in one pool, ``torch.optim.Adam``, the mean over symbols, then sentences."""
    data = pooled(prepare(made_clients(5), VOCABULARY, Weighting("token", 0.0)))
    chosen = FinetuneConfig(
        "pretrained", "all", 2, "last", 6, 0.02, Weighting("token", 0.0), seed=4
    )
    ours = trainer(settings())
    plain = copy.deepcopy(ours.model).requires_grad_(True)
    optimizer = torch.optim.Adam(plain.parameters(), lr=0.02)
    for epoch in epochs(ours, data, chosen):
        order = stream(4, "server", epoch).permutation(len(data.text))
        for at in range(0, len(order), 6):
            loss = torch.zeros(())
            for j in order[at : at + 6]:
                words = data.text.words[data.text.starts[j] : data.text.starts[j + 1]].tolist()
                log_probs = plain.log_probs(torch.tensor([[0, *words]]))[0]
                own = torch.from_numpy(data.weights[data.text.starts[j] + j :][: len(words) + 1])
                symbols = log_probs[torch.arange(len(words) + 1), torch.tensor([*words, 0])]
                loss = loss - (own * symbols).mean() / len(order[at : at + 6])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    expected = torch.nn.utils.parameters_to_vector(plain.parameters())
    torch.testing.assert_close(ours.vector, expected, atol=2e-4, rtol=0)
