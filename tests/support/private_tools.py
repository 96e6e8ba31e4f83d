"""A small private verb for the tests of releases: noisy sums of a file's numbers, one a round."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from privasr_k2.privacy.keys import seal_of
from privasr_k2.privacy.ledger import Entry, Ledger
from tests.support.stage_tools import Tree

#: Reads numbers of units (one a line), writes --out-dir with a file for each round; --set seconds=S
#: waits between drawing and writing, so that a kill can come there.
VERB = f"""#!{sys.executable}
import argparse, dataclasses, json, time
from pathlib import Path
from privasr_k2 import config
from privasr_k2.bin import cli
from privasr_k2.fileio import write_json
from privasr_k2.privacy import events, release
from privasr_k2.privacy.accounting import Relation
from privasr_k2.privacy.noise import GaussianNoise
from privasr_k2.privacy.sampling import PoissonSampling
from privasr_k2.privacy.spending import Spending

@dataclasses.dataclass(frozen=True)
class Config:
    rounds: int
    noise: float
    rate: float

@dataclasses.dataclass(frozen=True)
class All(Config):
    seconds: float

def main():
    made = cli.parser("noisy sums")
    for flag in ("in-private-data", "in-public-words", "out-dir", "out-privacy", "ledger"):
        made.add_argument("--" + flag, type=Path)
    made.add_argument("--max-epsilon", type=float)
    args = cli.parse(made)
    given = cli.load(All, args)
    numbers = [float(line) for line in args.in_private_data.read_text().split()]
    sampling = PoissonSampling(given.rate)
    event = sampling.event(events.gaussian(given.noise), given.rounds, Relation.ADD_OR_REMOVE_ONE)
    spending = Spending(data="toy/train", released="noisy sums", unit="user", units=1000,
        relation=Relation.ADD_OR_REMOVE_ONE, event=event, sampling=sampling.describe(), delta=1e-5,
        does_not_cover=("how many rounds there are",))
    config_ = Config(given.rounds, given.noise, given.rate)
    with release.begin(args.ledger, beside=args.out_privacy, spending=spending,
                       fingerprint=release.fingerprint_of(config_, [args.in_private_data]),
                       max_epsilon=args.max_epsilon) as made:
        for number in range(given.rounds):
            path = args.out_dir / f"{{number}}.json"
            if path.exists():
                continue
            drawn = sampling.cohort(number, len(numbers), made.stream)
            noise = GaussianNoise(noise_multiplier=given.noise, l2_sensitivity=1.0)
            noisy = noise.add([float(sum(numbers[i] for i in drawn))], made.noise(number))
            time.sleep(given.seconds)
            write_json(path, noisy[0])
        made.finish()

if __name__ == "__main__":
    cli.run(main)
"""


def private_recipe(path: Path, *, seconds: float = 0.0) -> Tree:
    """Stages: data -> noisy sums (private) -> mean; and an unprotected lexicon of the corpus."""
    tree = Tree(path)
    tree.write("corpus.txt", "".join(f"{n % 2}\n" for n in range(40)))
    tree.write("words.txt", "public words\n")
    tree.write("noisy_sums", VERB)
    (path / "noisy_sums").chmod(0o755)
    tree.stage(0, "data", "--raw-corpus", "corpus.txt", "--out-data", "data/d.txt")
    tree.stage(1, "lang", "--in-data", "data/d.txt", "--out-lang", "data/lang.txt")
    # What ./copy writes are no numbers: the sums read the corpus.
    flags = (
        "--in-private-data corpus.txt --in-public-words words.txt --out-dir exp/sums"
        " --out-privacy exp/privacy.json --ledger privacy/ledger.json"
        f" --set rounds=6 noise=2.0 rate=0.5 seconds={seconds}"
    )
    tree.stage(2, "noisy sums", "./noisy_sums", *flags.split())
    tree.stage(3, "mean", "--in-sums", "exp/sums", "--out-mean", "exp/mean.txt")
    flags = "--in-mean exp/mean.txt --in-lang data/lang.txt --out-mixed exp/mixed.txt"
    tree.stage(4, "mixed", *flags.split())
    return tree


def entries(tree: Tree) -> tuple[Entry, ...]:
    """The ledger's entries, with the seal checked."""
    path = tree.path / "privacy" / "ledger.json"
    return Ledger(path, seal_of(path)).entries()


def sums(tree: Tree) -> dict[str, float]:
    """What has been released so far, by round; also what a killed attempt has left."""
    files = (tree.path / "exp" / "sums").glob("[0-9]*.json")
    return {file.stem: json.loads(file.read_text()) for file in files}
