"""A step of DP-SGD beside a plain step on the same speech: python benchmarks/dpsgd_step.py.

Plain: torch's own LSTM, the gradient of the summed loss, its norm clipped, Adam. Private: every
utterance a unit, with a gradient of its own, clip, exact sum, cryptographic noise, Adam.
``--opacus-lstm true``: the gradients of examples alone, with Opacus's ``DPLSTM``. Each runs in a
process of its own; printed are processor time and the memory that the steps add.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import nn

from benchmarks.measuring import best_seconds, forget_peak, mebibytes
from benchmarks.rows import Row, append_rows, flags, library
from privasr_k2 import config
from privasr_k2.am.grad_samplers import register, with_replaceable_layers
from privasr_k2.am.kinds import KINDS, kind_of, new_model, spec_of
from privasr_k2.am.model import AcousticModel
from privasr_k2.data.batches import Batch, pad_batch
from privasr_k2.dpsgd.settings import DpSgdConfig
from privasr_k2.dpsgd.trainer import PrivateData, Trainer
from privasr_k2.dpsgd.units import Unit
from privasr_k2.privacy.streams import Drawn
from privasr_k2.randomness import stream
from privasr_k2.recipe.layers import layers

CONF = Path(__file__).resolve().parents[1] / "conf"
FEATURES, TOKENS = 80, 30
WAYS = ("plain", "private", "opacus")


class MadeSpeech:
    """Utterances of noise, with 12 tokens a second."""

    frame_shift = 0.01

    def __init__(self, number: int, frames: int) -> None:
        drawn = stream(1, "benchmark")
        lengths = drawn.integers(frames * 3 // 4, frames * 5 // 4, size=number)
        self._features = {
            f"u{n}": torch.from_numpy(drawn.normal(size=(length, FEATURES))).float()
            for n, length in enumerate(lengths.tolist())
        }
        self.targets = {
            name: tuple(drawn.integers(1, TOKENS, size=len(one) * 12 // 100).tolist())
            for name, one in self._features.items()
        }

    def frames(self, name: str) -> int:
        return len(self._features[name])

    def features(self, name: str) -> torch.Tensor:
        return self._features[name]

    def batch(self, names: list[str]) -> Batch:
        return pad_batch(names, [*map(self.features, names)], [self.targets[n] for n in names])


def made_model(kind: str, encoder: str, changes: list[str]) -> AcousticModel:
    """A model of the default size."""
    files = layers(CONF.parent, f"am_{kind}")
    numbers = config.load(kind_of(files).config, files, [f"encoder.kind={encoder}", *changes])
    return new_model(spec_of(numbers, FEATURES, TOKENS), 1)


def plain_step(
    model: AcousticModel, speech: MadeSpeech, trained: Sequence[nn.Parameter]
) -> Callable[[], object]:
    """One step without privacy."""
    batch = speech.batch([*speech.targets])
    task, optimizer = KINDS[model.spec.kind].task(), torch.optim.Adam(trained, lr=1e-4)
    model.train()

    def run() -> None:
        optimizer.zero_grad(set_to_none=True)
        (task.loss(model, batch, torch.Generator()).sums / batch.target_lengths).sum().backward()
        nn.utils.clip_grad_norm_(trained, 5.0)
        optimizer.step()

    return run


def private_step(
    model: AcousticModel, speech: MadeSpeech, numbers: DpSgdConfig
) -> Callable[[], object]:
    """One step with it."""
    units = [Unit(name, ((name,),)) for name in speech.targets]
    trainer = Trainer(model, PrivateData(units, speech), numbers, 1.0)  # type: ignore[arg-type]
    secrets = Drawn("batches", 1)
    return lambda: trainer.step(0, units, secrets.noise(0, "gradient"))


def opacus_step(model: AcousticModel, speech: MadeSpeech) -> Callable[[], object]:
    """Gradients of examples by Opacus's own layers alone."""
    from opacus.grad_sample import GradSampleModule

    register()
    batch = speech.batch([*speech.targets])
    task = KINDS[model.spec.kind].task()
    wrapped = GradSampleModule(with_replaceable_layers(model).train(), loss_reduction="sum")

    def run() -> None:
        (task.loss(wrapped, batch, torch.Generator()).sums / batch.target_lengths).sum().backward()
        wrapped.zero_grad(set_to_none=True)

    return run


def step_of(way: str, model: AcousticModel, speech: MadeSpeech) -> Callable[[], object]:
    """A step in one of :data:`WAYS`."""
    if way == "plain":
        return plain_step(model, speech, [*model.parameters()])
    if way == "opacus":
        return opacus_step(model, speech)
    numbers = config.load(DpSgdConfig, [CONF / "pate.yaml#dpsgd"], ["noise=1.0", "data=made/train"])
    return private_step(model, speech, numbers)


def measure(args: argparse.Namespace) -> None:
    """One way in this process: seconds of the fastest step, MB at the peak, parameters."""
    torch.set_num_threads(args.threads)
    speech = MadeSpeech(args.utterances, args.frames)
    model = made_model(args.kind, args.encoder, args.set)
    run = step_of(args.way, model, speech)
    before = forget_peak()
    # The time that this process computes, so that others on the machine do not count.
    seconds = best_seconds(run, args.repeats, time.process_time)
    peak = mebibytes() - before
    size = sum(one.numel() for one in model.parameters())
    print(json.dumps({"seconds": seconds, "peak": peak, "size": size}))


def main() -> None:
    """Measure and print."""
    numbers = {"utterances": 12, "frames": 300, "repeats": 3, "threads": 1}
    parser = flags(__doc__, **numbers)
    parser.add_argument("--kinds", nargs="*", default=["ctc", "rnnt", "ctc_attention", "las"])
    parser.add_argument("--encoder", default="blstm", help="tdnn, blstm, conformer or pyramid")
    parser.add_argument("--opacus-lstm", choices=("true", "false"), default="false")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="K=V", help="of the model's configuration"
    )
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.way:
        measure(args)
        return
    sizes = f"{args.encoder}, {args.utterances} utterances of about {args.frames / 100:.1f} s"
    print(f"{sizes}, {args.threads} threads")
    shared = [word for name in numbers for word in (f"--{name}", str(getattr(args, name)))]
    for kind in args.kinds:
        found = {}
        for way in WAYS if args.opacus_lstm == "true" else WAYS[:2]:
            own = ["--way", way, "--kind", kind, "--encoder", args.encoder]
            command = [sys.executable, __file__, *own, *shared, "--set", *args.set]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[way] = json.loads(done.stdout.splitlines()[-1])
        times = [f"{w} {row['seconds']:.2f} s, {row['peak']:.0f} MiB" for w, row in found.items()]
        plain, private = found["plain"], found["private"]
        ratio = f"private / plain {private['seconds'] / plain['seconds']:.2f}"
        print(f"{kind}, {plain['size'] / 1e6:.2f} M: {'; '.join(times)}; {ratio}", flush=True)
        what = f"DP-SGD step, {kind}, {sizes}"
        peers = {"plain": "a plain step: no gradients of utterances, no noise"}
        peers["opacus"] = f"the gradients of utterances alone, DPLSTM of {library('opacus')}"
        append_rows(
            args.out_rows,
            [
                Row(what, private["seconds"], found[way]["seconds"], "processor s", against, "less")
                for way, against in peers.items()
                if way in found
            ],
        )


if __name__ == "__main__":
    main()
