"""A federated round: seconds for a cohort of clients, ours against a plain PyTorch loop.

    . ./path.sh; python benchmarks/federated_round.py
    . ./path.sh; torchrun --standalone --redirects 1 --tee 1 --nproc_per_node 2 \\
        benchmarks/federated_round.py --plain false

The model is the paper's (characters of 100 dimensions, LSTM of 2 x 512) with 10,000 words and a
full softmax. The plain loop copies the model for each client, runs ``torch.optim.SGD`` batch by
batch and adds the difference of all parameters in double precision; ours uses ``LocalTrainer`` and
``UnitSum``. The least time of ``--repeats`` counts, and the sums must agree within 1e-4 of their
norm. Beside them stand the matrix products of ours alone, as if all else took no time.
``--positions``: of first batches that run together. Threads: OMP_NUM_THREADS. Without redirects the
torchrun of torch 1.13 fails on Python 3.11.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from benchmarks.measuring import forget_peak, mebibytes
from benchmarks.products import Products
from benchmarks.rows import Row, append_rows, flags
from privasr_k2 import config
from privasr_k2.federated.client import ClientConfig, Failure, LocalTrainer, local_batches
from privasr_k2.federated.client_store import ClientData
from privasr_k2.federated.cohorts import chunks
from privasr_k2.lm.neural.kinds import kind_of, new_lm, spec_of
from privasr_k2.lm.neural.model import NeuralLm
from privasr_k2.lm.neural.vocabulary import SYMBOLS, Text, Vocabulary
from privasr_k2.randomness import stream
from privasr_k2.training.distributed import Process, join
from privasr_k2.training.unit_sum import UnitSum

CONF = Path(__file__).resolve().parents[1] / "conf"
LOCAL = ClientConfig(epochs=1, batch_size=8, lr=1.0, max_seconds=0)


def made_model(words: int, dim: int, layers: int) -> NeuralLm:
    """The paper's model with random weights."""
    files = [CONF / "common.yaml#lm_char_lstm", CONF / "presets/paper.yaml#lm_char_lstm"]
    kind = kind_of(files)
    sizes = [f"network.dim={dim}", f"network.layers={layers}"]
    spec = spec_of(config.load(kind.config, files, sizes))
    spellings = stream(1, "spellings").integers(97, 123, size=(2 * words, 12))
    lengths = stream(1, "letters").integers(3, 12, size=2 * words)
    names = {bytes(row[:n].tolist()).decode(): None for row, n in zip(spellings, lengths)}
    return new_lm(spec, Vocabulary((*SYMBOLS, *list(names)[:words])), seed=1).eval()


def made_clients(count: int, words: int, utterances: float) -> list[ClientData]:
    """Clients with 1 + Poisson many sentences of 4 to 20 words, words as frequent as Zipf says."""
    generator = stream(1, "clients")
    shares = 1.0 / np.arange(1, words - 1)
    found = []
    for number in range(count):
        lengths = generator.integers(4, 21, size=1 + generator.poisson(utterances - 1))
        numbers = generator.choice(words - 2, size=lengths.sum(), p=shares / shares.sum())
        text = numbers.astype(np.int32) + 2
        starts = np.concatenate([[0], np.cumsum(lengths)])
        weights = np.ones(len(text) + len(lengths), dtype=np.float32)
        found.append(ClientData(f"client-{number}", Text(text, starts), weights, len(text)))
    return found


def padded_batches(client: ClientData) -> Iterator[list[torch.Tensor]]:
    """Words, next words and lengths of each batch, in our order."""
    for sentences in local_batches(client, LOCAL, 1, 0):
        words, lengths = client.text.padded(sentences), client.text.lengths[sentences]
        yield [torch.from_numpy(part.copy()) for part in (words[:, :-1], words[:, 1:], lengths)]


def loss_of(
    model: NeuralLm, words: torch.Tensor, following: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """The mean over sentences of the mean over their words."""
    return -(model(words, following, lengths).sum(dim=1) / lengths).mean()


def train_plainly(model: NeuralLm, client: ClientData) -> None:
    """One pass of SGD over a client's batches."""
    optimizer = torch.optim.SGD(model.parameters(), lr=LOCAL.lr)
    for batch in padded_batches(client):
        optimizer.zero_grad()
        loss_of(model, *batch).backward()
        optimizer.step()


def plain_round(model: NeuralLm, cohort: list[ClientData]) -> torch.Tensor:
    """The sum of words times (theta - theta_i), one client after the other."""
    total = torch.zeros(sum(p.numel() for p in model.parameters()), dtype=torch.float64)
    for client in cohort:
        local = copy.deepcopy(model)
        train_plainly(local, client)
        start = 0
        for old, new in zip(model.parameters(), local.parameters()):
            difference = (old.detach() - new.detach()).reshape(-1)
            total[start : start + len(difference)].add_(difference, alpha=client.num_words)
            start += len(difference)
    return total


def our_round(
    trainer: LocalTrainer, weights: torch.Tensor, cohort: list[ClientData], args, process: Process
):
    """The same sum."""
    total = UnitSum(len(weights), None, weights.device)
    trainer.load(weights)
    shared = chunks(cohort, batch_size=LOCAL.batch_size, positions=args.positions)
    for chunk in shared[process.rank :: process.world_size]:
        for client, update in trainer.updates(chunk, 0):
            if isinstance(update, Failure):
                raise SystemExit(update.reason)
            if update is not None:
                total.add([update.unsqueeze(0)], client.num_words)
    if process.world_size > 1:
        torch.distributed.all_reduce(total.steps)
    return total.values()


def main() -> None:
    """Measure and print."""
    parser = flags(__doc__, words=10_000, dim=512, layers=2, clients=100, repeats=3, positions=2048)
    parser.add_argument("--utterances", type=float, default=8.0, help="of a client, on the average")
    parser.add_argument("--plain", choices=("true", "false"), default="true")
    args = parser.parse_args()
    model = made_model(args.words, args.dim, args.layers)
    cohort = made_clients(args.clients, model.num_words, args.utterances)
    batches = sum(len(local_batches(client, LOCAL, 1, 0)) for client in cohort)
    with join("cpu") as process:
        ours = copy.deepcopy(model)
        trainer = LocalTrainer(ours, LOCAL, seed=1)
        weights = trainer.vector.clone()
        times: dict[str, list[float]] = {"ours": [], "plain": []}
        begun = forget_peak()
        for number in range(args.repeats):
            clock = time.perf_counter()
            found = our_round(trainer, weights, cohort, args, process)
            times["ours"].append(time.perf_counter() - clock)
            if number == 0:
                grown = mebibytes() - begun
            if args.plain == "true" and process.leads:
                clock = time.perf_counter()
                expected = plain_round(model, cohort)
                times["plain"].append(time.perf_counter() - clock)
                if (found - expected).norm() > 1e-4 * expected.norm():
                    raise SystemExit("the sums differ")
            process.wait()
        with Products() as products:
            our_round(trainer, weights, cohort, args, process)
        if process.leads:
            what = f"{len(weights) / 1e6:.1f} M parameters, {args.clients} clients"
            print(f"{what}, {batches} batches, {process.world_size} processes")
            threads = torch.get_num_threads()
            print(f"{threads} threads a process, memory of the first round {grown:.0f} MiB")
            for name, seconds in times.items():
                if seconds:
                    speed = args.clients / min(seconds)
                    print(f"{name}: {min(seconds):.2f} s a round, {speed:.1f} clients/s")
            if times["plain"]:
                print(f"plain / ours: {min(times['plain']) / min(times['ours']):.2f}")
                what = f"federated round, {what}"
                figures = (min(times["ours"]), min(times["plain"]), "s")
                against = f"a plain loop over clients, torch {torch.__version__}"
                limit = min(products.seconds() for _ in range(args.repeats))
                print(f"matrix products of ours alone: {limit:.2f} s")
                alone = "its matrix products alone, in cached factors: a limit"
                of_products = Row(what, min(times["ours"]), limit, "s", alone, "less")
                append_rows(args.out_rows, [Row(what, *figures, against, "less"), of_products])


if __name__ == "__main__":
    main()
