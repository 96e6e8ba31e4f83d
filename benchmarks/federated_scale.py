"""Memory of a million clients: on the disk, and a list of them.

    . ./path.sh; python benchmarks/federated_scale.py

Simulated clients have ``--words`` words in 20 sentences. Ours stores them
(``privasr_k2.federated.client_store``) and reads ``--cohorts`` cohorts of 100 that Poisson sampling
draws; the peer holds them in a list and takes the same cohorts. Each runs in a process of its own;
what counts is by how much its memory grows. The words of the cohorts must be the same. A second row
is the way from a file of clients, ``--file-clients`` of them, to numbers: ``ClientFile`` against
``read_clients``. Files are in the temporary folder (TMPDIR): 4 GB for a million clients.
"""

from __future__ import annotations

import functools
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.measuring import Usage, measured
from benchmarks.rows import Row, append_rows, flags
from privasr_k2.federated.client_store import ClientData, StoredClients
from privasr_k2.federated.clients import (
    ClientFile,
    ClientText,
    Utterance,
    read_clients,
    write_clients,
)
from privasr_k2.federated.cohorts import sampling_of
from privasr_k2.federated.weighting import Weighting, prepare
from privasr_k2.lm.neural.vocabulary import SYMBOLS, Text, Vocabulary
from privasr_k2.privacy.streams import Drawn

SENTENCES, COHORT, WORDS = 20, 100, 10_000
VOCABULARY = Vocabulary((*SYMBOLS, *(f"w{number}" for number in range(WORDS - len(SYMBOLS)))))


def simulated(count: int, words: int) -> Iterator[ClientData]:
    """Clients with random words."""
    generator = np.random.default_rng(1)
    starts = np.linspace(0, words, SENTENCES + 1).astype(np.int64)
    for number in range(count):
        text = generator.integers(2, WORDS, size=words, dtype=np.int32)
        weights = np.ones(words + SENTENCES, dtype=np.float32)
        yield ClientData(f"client-{number:07}", Text(text, starts.copy()), weights, words)


def stored(clients: Iterator[ClientData]) -> Sequence[ClientData]:
    """Ours: on the disk."""
    found = StoredClients()
    for client in clients:
        found.add(client)
    return found


def cohorts_of(kind: str, count: int, words: int, cohorts: int, out: Path) -> Callable[[], None]:
    """The clients made, and the words of cohorts, whose sum is written to ``out``."""

    def work() -> None:
        clients = stored(simulated(count, words)) if kind == "ours" else [*simulated(count, words)]
        sampling = sampling_of("poisson", clients=count, cohort=COHORT, client_fraction=None)
        streams, total = Drawn("cohorts", 1), 0
        for number in range(cohorts):
            for index in sampling.cohort(number, count, streams.stream).tolist():
                total += int(clients[index].text.words.sum(dtype=np.int64))
        out.write_text(str(total))

    return work


def numbers_of(kind: str, path: Path, out: Path) -> Callable[[], None]:
    """The clients of a file as numbers; how many words are known is written to ``out``."""

    def work() -> None:
        clients = ClientFile(path) if kind == "ours" else read_clients(path)
        data = prepare(clients, VOCABULARY, Weighting("all", 0.0))
        out.write_text(str(sum(int((client.text.words > 1).sum()) for client in data)))

    return work


def written(path: Path, count: int, words: int) -> None:
    """A file of such clients."""
    sizes = np.full(SENTENCES, words // SENTENCES)

    def texts() -> Iterator[ClientText]:
        generator = np.random.default_rng(2)
        for number in range(count):
            name = f"client-{number:07}"
            said = tuple(
                Utterance(f"{name}-{n}", tuple(f"w{word}" for word in line.tolist()), None, name)
                for n, line in enumerate(generator.integers(0, 9000, size=(len(sizes), sizes[0])))
            )
            yield ClientText(name, said, "speaker")

    write_clients(path, texts())


def compared(
    prepared: Callable[..., Callable[[], None]], folder: Path, *args: object
) -> dict[str, Usage]:
    """What both take."""
    used, found = {}, {}
    for kind in ("ours", "peer"):
        out = folder / f"{kind}.txt"
        used[kind] = measured(functools.partial(prepared, kind), *args, out)
        found[kind] = out.read_text()
    if found["ours"] != found["peer"]:
        sys.exit(f"the words differ: {found}")
    return used


def main() -> None:
    """Measure and print."""
    sizes = {"clients": 1_000_000, "words": 400, "cohorts": 100, "file_clients": 20_000}
    parser = flags(__doc__, **{name.replace("_", "-"): value for name, value in sizes.items()})
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        tasks = {
            f"memory of {args.clients} clients of {args.words} words, {args.cohorts} cohorts of"
            f" {COHORT}": (cohorts_of, args.clients, args.words, args.cohorts),
            f"memory of {args.file_clients} clients from a file to numbers": (
                numbers_of,
                folder / "clients.jsonl.gz",
            ),
        }
        written(folder / "clients.jsonl.gz", args.file_clients, args.words)
        for what, (prepared, *given) in tasks.items():
            used = compared(prepared, folder, *given)
            against = "a list of them" if prepared is cohorts_of else "read_clients"
            rows.append(Row(what, used["ours"].grown, used["peer"].grown, "MiB", against, "less"))
            for kind, usage in used.items():
                print(f"{what}, {kind}: {usage.grown:.0f} MiB more, {usage.seconds:.1f} s")
    append_rows(args.out_rows, rows)


if __name__ == "__main__":
    main()
