"""A federated round by ours, by pfl-research and by Flower: the same clients, model and batches.

In an environment of its own (docs/benchmarks.md), as pfl asks for an older dp-accounting than ours:

    PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/federated_peers.py

As federated_round.py, with updates weighted by sentences. Start and first round, in which pfl
evaluates every client, are not timed; the least of the later rounds counts. Flower runs in one
process of Ray. After the first round the weights must agree within 1e-4 of the update's norm.
"""

from __future__ import annotations

import argparse
import copy
import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from benchmarks.federated_round import (
    LOCAL,
    loss_of,
    made_clients,
    made_model,
    our_round,
    padded_batches,
    train_plainly,
)
from benchmarks.rows import Row, append_rows, flags
from privasr_k2.federated.client import LocalTrainer
from privasr_k2.federated.client_store import ClientData
from privasr_k2.training.distributed import Process

ALONE = Process(0, 1, torch.device("cpu"))
#: Weights of all parameters in their order after the first round, and the seconds of the rounds
#: after it.
Found = tuple[torch.Tensor, list[float]]


def flat(model: torch.nn.Module) -> torch.Tensor:
    """All parameters as one vector, (P,)."""
    return torch.cat([value.detach().reshape(-1) for value in model.parameters()])


def by_ours(model: torch.nn.Module, cohort: list[ClientData], args: argparse.Namespace) -> Found:
    """What recipe fedlm does, without a claim."""
    ours = copy.deepcopy(model)
    trainer = LocalTrainer(ours, LOCAL, seed=1)
    total = sum(client.num_words for client in cohort)
    weights, first, seconds = trainer.vector.clone(), None, []
    for _ in range(args.rounds + 1):
        begun = time.perf_counter()
        weights -= our_round(trainer, weights, cohort, args, ALONE).to(weights) / total
        seconds.append(time.perf_counter() - begun)
        first = weights.clone() if first is None else first
    assert first is not None
    return first, seconds[1:]


def by_pfl(model: torch.nn.Module, cohort: list[ClientData], args: argparse.Namespace) -> Found:
    """Federated averaging by pfl-research's simulation in one process."""
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.aggregate.weighting import WeightByDatapoints
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.hyperparam.base import NNTrainHyperParams
    from pfl.metrics import Metrics, Weighted
    from pfl.model.pytorch import PyTorchModel

    class Sentences(Dataset):
        """A client, whose batches are ours."""

        def __init__(self, client: ClientData) -> None:
            super().__init__(list(padded_batches(client)), user_id=client.name)
            self._sentences = len(client.text.lengths)

        def __len__(self) -> int:
            return self._sentences

        def iter(self, batch_size: int | None) -> Iterator[list[torch.Tensor]]:
            return iter(self.raw_data)

    class Wrapped(torch.nn.Module):
        """Our model as pfl wants it."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = copy.deepcopy(model)

        def loss(self, *batch: torch.Tensor) -> torch.Tensor:
            return loss_of(self.inner, *batch)

        def metrics(self, *batch: torch.Tensor) -> dict[str, Weighted]:
            return {}

    class Clock(TrainingProcessCallback):
        """When each round ended, and the weights after the first."""

        def __init__(self) -> None:
            self.ends: list[float] = []
            self.first: torch.Tensor | None = None

        def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):  # type: ignore[no-untyped-def]
            self.ends.append(time.perf_counter())
            if self.first is None:
                self.first = flat(model.pytorch_model)
            return False, Metrics()

    wrapped, clock = Wrapped(), Clock()
    clients, turn = {client.name: Sentences(client) for client in cohort}, iter(_forever(cohort))
    data = FederatedDataset(clients.__getitem__, lambda: next(turn).name)
    train = NNTrainHyperParams(
        local_num_epochs=1, local_learning_rate=LOCAL.lr, local_batch_size=LOCAL.batch_size
    )
    settings = NNAlgorithmParams(
        central_num_iterations=args.rounds + 1,
        evaluation_frequency=args.rounds + 2,
        train_cohort_size=len(cohort),
        val_cohort_size=0,
    )
    weighting = [WeightByDatapoints()]
    FederatedAveraging().run(
        algorithm_params=settings,
        backend=SimulatedBackend(training_data=data, val_data=data, postprocessors=weighting),
        model=PyTorchModel(wrapped, torch.optim.SGD, torch.optim.SGD(wrapped.parameters(), lr=1.0)),
        model_train_params=train,
        callbacks=[clock],
    )
    assert clock.first is not None
    return clock.first, list(np.diff(clock.ends))


def _forever(cohort: list[ClientData]) -> Iterator[ClientData]:
    while True:
        yield from cohort


@functools.cache
def model_and_clients(
    words: int, dim: int, layers: int, clients: int, utterances: float
) -> tuple[Any, Any]:
    """Once for each process, with one thread."""
    torch.set_num_threads(1)
    model = made_model(words, dim, layers)
    return model, made_clients(clients, model.num_words, utterances)


def by_flower(model: torch.nn.Module, cohort: list[ClientData], args: argparse.Namespace) -> Found:
    """Federated averaging by Flower's simulation, one client at a time in one process of Ray's."""
    from flwr.client import ClientApp, NumPyClient
    from flwr.common import Context, ndarrays_to_parameters, parameters_to_ndarrays
    from flwr.server import ServerApp, ServerAppComponents, ServerConfig
    from flwr.server.strategy import FedAvg
    from flwr.simulation import run_simulation

    sizes = (args.words, args.dim, args.layers, args.clients, args.utterances)

    class Client(NumPyClient):
        """One of the cohort."""

        def __init__(self, number: int) -> None:
            self.number = number

        def fit(self, parameters, config):  # type: ignore[no-untyped-def]
            # As a module: what it keeps belongs to Ray's process.
            from benchmarks import federated_peers

            local, clients = federated_peers.model_and_clients(*sizes)
            for value, given in zip(local.parameters(), parameters, strict=True):
                value.data.copy_(torch.from_numpy(given))
            train_plainly(local, clients[self.number])
            found = [value.detach().numpy() for value in local.parameters()]
            return found, len(clients[self.number].text.lengths), {}

    begun: list[float] = []
    seconds: list[float] = []
    first: list[torch.Tensor] = []

    class Timed(FedAvg):
        """From asking the clients to the new weights."""

        def configure_fit(self, server_round, parameters, client_manager):  # type: ignore[no-untyped-def]
            begun.append(time.perf_counter())
            return super().configure_fit(server_round, parameters, client_manager)

        def aggregate_fit(self, server_round, results, failures):  # type: ignore[no-untyped-def]
            if failures:
                raise SystemExit(f"Flower: {failures[0]}")
            found = super().aggregate_fit(server_round, results, failures)
            seconds.append(time.perf_counter() - begun[-1])
            if not first:
                arrays = parameters_to_ndarrays(found[0])
                first.append(torch.cat([torch.from_numpy(array).reshape(-1) for array in arrays]))
            return found

    def server(context: Context) -> ServerAppComponents:
        start = ndarrays_to_parameters([value.detach().numpy() for value in model.parameters()])
        strategy = Timed(
            fraction_fit=1.0, fraction_evaluate=0.0, min_fit_clients=len(cohort),
            min_available_clients=len(cohort), initial_parameters=start,
        )  # fmt: skip
        rounds = ServerConfig(num_rounds=args.rounds + 1)
        return ServerAppComponents(strategy=strategy, config=rounds)

    def client(context: Context) -> Any:
        return Client(int(context.node_config["partition-id"])).to_client()

    run_simulation(
        server_app=ServerApp(server_fn=server),
        client_app=ClientApp(client_fn=client),
        num_supernodes=len(cohort),
        backend_config={"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": 1}},
    )
    return first[0], seconds[1:]


def main() -> None:
    """Measure and print."""
    parser = flags(__doc__, words=10_000, dim=512, layers=2, clients=100, rounds=2, positions=2048)
    parser.add_argument("--utterances", type=float, default=8.0, help="of a client, on the average")
    parser.add_argument("--peers", nargs="+", choices=("pfl", "flower"), default=["pfl", "flower"])
    args = parser.parse_args()
    torch.set_num_threads(1)
    sizes = (args.words, args.dim, args.layers, args.clients, args.utterances)
    model, cohort = model_and_clients(*sizes)
    # What both frameworks can weigh by is the number of examples.
    counted = [replace(client, num_words=len(client.text.lengths)) for client in cohort]
    runners: dict[str, Callable[..., Found]] = {"pfl": by_pfl, "flower": by_flower}
    packages = {"pfl": "pfl", "flower": "flwr"}
    expected, ours = by_ours(model, counted, args)
    moved = (expected - flat(model)).norm()
    what = f"{len(expected) / 1e6:.1f} M parameters, {args.clients} clients"
    print(f"{what}; ours: {min(ours):.2f} s a round")
    for peer in args.peers:
        found, seconds = runners[peer](model, cohort, args)
        if (found - expected).norm() > 1e-4 * moved:
            raise SystemExit(f"the weights of {peer} differ from ours")
        name = f"{packages[peer]} {version(packages[peer])}, torch {torch.__version__}"
        ratio = min(seconds) / min(ours)
        print(f"{name}: {min(seconds):.2f} s a round; {peer} / ours: {ratio:.2f}")
        figures = (min(ours), min(seconds))
        append_rows(args.out_rows, [Row(f"federated round, {what}", *figures, "s", name, "less")])


if __name__ == "__main__":
    main()
