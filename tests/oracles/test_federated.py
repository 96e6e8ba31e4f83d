"""Federated training against slow twins: a copy of the model for each client."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

from privasr_k2.config import load
from privasr_k2.federated import server
from privasr_k2.federated.client import ClientConfig, LocalTrainer, local_batches
from privasr_k2.federated.client_store import ClientData
from privasr_k2.federated.fedlm import Federation, rounds
from privasr_k2.federated.lstm_gradients import backward, forward, input_gradient, pack
from privasr_k2.federated.server import ServerConfig
from privasr_k2.federated.server_training import FinetuneConfig, epochs, pooled
from privasr_k2.federated.weighting import CONFIDENCE_USES, Weighting, prepare
from privasr_k2.lm.neural.model import NeuralLm
from privasr_k2.privacy.streams import Drawn
from privasr_k2.randomness import stream
from privasr_k2.training.distributed import Process
from privasr_k2.training.trainable import LoraConfig, choose_trained
from tests.support.conf import section
from tests.support.fed_small import VOCABULARY, made_clients, settings, trainer
from tests.support.small_lm import MODELS, tiny

#: A (R, D_in) and B (D_out, R) of layers, by name.
Factors = dict[str, tuple[torch.Tensor, torch.Tensor]]
ALONE = Process(0, 1, torch.device("cpu"))


#: What each part is of the tiny models, whose last layers have number 1 (LSTM) or the last block's.
PARTS: dict[str, Callable[[str], bool]] = {
    "all": lambda name: True,
    "output": lambda name: name.startswith("output."),
    "bias": lambda name: "bias" in name,
    "last_block": lambda name: name.endswith("_l1") or name.startswith(
        ("blocks.1.", "norm.", "project.", "output.")),
    "recurrent": lambda name: name.startswith("recurrent."),
    "embedding": lambda name: name.startswith("embedding."),
}  # fmt: skip
#: Parts of every model, with the uses of confidences by one.
CASES = [
    (*model, trained, use)
    for model in MODELS
    for trained in PARTS
    for use in CONFIDENCE_USES
    if use == "token" or (model[:2] == ("lstm", "full") and trained == "all")
    if trained != "recurrent" or model[0] != "transformer"
    if trained != "embedding" or not (model[0] == "char_lstm" or model[2])
]
#: Adapters of every linear layer that there is.
EVERY_LINEAR = ["linear", "head", "0", "project", "transform", "gate", "query", "out", "outer"]
#: Those of the softmax: where words are read by others, the LSTM is read once a round.
OF_OUTPUT = ["output.linear", "output.head", "output.up.0", "project"]


def loss_of(local: NeuralLm, client: ClientData, sentences: np.ndarray) -> torch.Tensor:
    """Equations 1 to 4 sentence by sentence and word by word."""
    loss = torch.zeros(())
    for j in sentences:
        words = client.text.words[client.text.starts[j] : client.text.starts[j + 1]].tolist()
        log_probs = local.log_probs(torch.tensor([[0, *words]]))[0]
        first = client.text.starts[j] + j
        for t, word in enumerate([*words, 0]):
            c = float(client.weights[first + t])
            loss = loss - c * log_probs[t, word] / len([*words, 0]) / len(sentences)
    return loss


def twin(
    model: NeuralLm, trained: str, client: ClientData, config: ClientConfig, number: int = 0
) -> torch.Tensor:
    """A deep copy whose other parameters are frozen by hand, plain SGD, the difference."""
    local = copy.deepcopy(model).requires_grad_(True)
    for name, parameter in local.named_parameters():
        parameter.requires_grad_(PARTS[trained](name))
    parameters = [parameter for parameter in local.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(parameters, lr=config.lr)
    for sentences in local_batches(client, config, 1, number):
        optimizer.zero_grad()
        loss_of(local, client, sentences).backward()
        optimizer.step()
    before = [value for name, value in model.named_parameters() if PARTS[trained](name)]
    pairs = zip(before, parameters)
    return torch.cat([(old - new).detach().reshape(-1) for old, new in pairs])


def adapter_twin(
    plain: NeuralLm, begun: Factors, client: ClientData, config: ClientConfig
) -> torch.Tensor:
    """A model without adapters at W + B A: the chain rule gives A's and B's gradients by hand."""
    factors = dict(begun)
    for sentences in local_batches(client, config, 1, 0):
        local = copy.deepcopy(plain).requires_grad_(True)
        for name, (down, up) in factors.items():
            weight = local.get_submodule(name).weight
            weight.data.add_((up.flatten(1) @ down.flatten(1)).view_as(weight))
        loss_of(local, client, sentences).backward()
        for name, (down, up) in factors.items():
            of_product = local.get_submodule(name).weight.grad.flatten(1)
            of_down, of_up = up.flatten(1).T @ of_product, of_product @ down.flatten(1).T
            moved = config.lr * of_down.view_as(down), config.lr * of_up.view_as(up)
            factors[name] = down - moved[0], up - moved[1]
    pairs = [(old, new) for name in begun for old, new in zip(begun[name], factors[name])]
    return torch.cat([(old - new).reshape(-1) for old, new in pairs])


def check_updates(
    ours: LocalTrainer, clients: Sequence[ClientData], expected: Sequence[torch.Tensor]
) -> None:
    """What clients send, in several chunks, which leave the weights as they were."""
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


@pytest.mark.parametrize(("kind", "softmax", "tied", "trained", "use"), CASES)
def test_clients_against_copies(
    kind: str, softmax: str, tied: bool, trained: str, use: str
) -> None:
    model, vocabulary = tiny(kind, softmax, tied)
    config = ClientConfig(epochs=2, batch_size=3, lr=0.4, max_seconds=0)
    clients = prepare(made_clients(4, most=7), vocabulary, Weighting(use, 0.4))
    expected = [twin(model, trained, client, config) for client in clients]
    before = {name: value.clone() for name, value in model.state_dict().items()}
    names = choose_trained(model, [trained])
    assert names == tuple(name for name in before if PARTS[trained](name))
    check_updates(LocalTrainer(model, config, seed=1), clients, expected)
    after = model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())


@pytest.mark.parametrize("layers", [EVERY_LINEAR, OF_OUTPUT], ids=["every", "of output"])
@pytest.mark.parametrize(("kind", "softmax", "tied"), MODELS)
def test_adapters_against_copies_without(
    kind: str, softmax: str, tied: bool, layers: list[str]
) -> None:
    """B begins as something else than zero, as in later rounds."""
    model, vocabulary = tiny(kind, softmax, tied)
    plain = copy.deepcopy(model)
    names = choose_trained(model, ["lora"], LoraConfig(rank=2, scale=1.0, layers=layers), 3)
    ends = {len(name.split(".lora.")[0].split(".")) for name in names}
    assert names and max(ends) > (1 if layers == EVERY_LINEAR else 0)
    factors: Factors = {}
    for name, layer in model.named_modules():
        if hasattr(layer, "lora"):
            torch.nn.init.normal_(layer.lora.up.weight, std=0.3)
            pair = layer.lora.down.weight, layer.lora.up.weight
            factors[name] = pair[0].detach().clone(), pair[1].detach().clone()
    config = ClientConfig(epochs=2, batch_size=3, lr=0.4, max_seconds=0)
    clients = prepare(made_clients(4, most=7), vocabulary, Weighting("token", 0.4))
    expected = [adapter_twin(plain, factors, client, config) for client in clients]
    check_updates(LocalTrainer(model, config, seed=1), clients, expected)


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
    weights = ["confidences.use=token", "confidences.threshold=0.0", "select_epoch=last", "seed=4"]
    numbers = ["epochs=2", "batch_size=6", "lr=0.02", *weights]
    chosen = load(FinetuneConfig, [section("finetune_lm")], numbers)
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
