"""A step of DP-SGD on a public encoder's blocks: python benchmarks/dpsgd_public.py.

The blocks of Whisper base (``--encoder-model DIR``) and a CTC head read noise of about 3 s at its
true length; utterances of AN4 are about as long. Trained are adapters of queries and values
(``lora``), ``bias``, ``last_block`` or ``all``, with the head. Plain: one batch, the gradient of
the summed loss, its norm clipped, Adam. Private: every utterance a unit, clip, exact sum,
cryptographic noise, Adam; ``alone`` computes each unit by itself (``isolate_units=true``, the
default), ``together`` the gradients of all examples of a batch. Each runs in a process of its own,
after one step that does not count. Printed are the median of the processor time, and the memory
that the training adds to model and data.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.dpsgd_step import CONF, TOKENS, MadeSpeech, plain_step, private_step
from benchmarks.measuring import forget_peak, mebibytes, timed
from benchmarks.rows import Row, append_rows, flags
from privasr_k2 import config
from privasr_k2.am.ctc import CtcConfig
from privasr_k2.am.kinds import new_model, spec_of
from privasr_k2.am.model import AcousticModel
from privasr_k2.dpsgd.settings import DpSgdConfig
from privasr_k2.encoders.chunks import ChunkConfig
from privasr_k2.encoders.common import PublicEncoder
from privasr_k2.encoders.loading import load_encoder
from privasr_k2.encoders.upper import upper_of, upper_spec
from privasr_k2.randomness import stream
from privasr_k2.training.trainable import choose_trained

PARTS = ("lora", "bias", "last_block", "all")
WAYS = {"plain": [], "alone": ["isolate_units=true"], "together": ["isolate_units=false"]}


class BlockInputs(MadeSpeech):
    """What the first block reads of noise, and 12 tokens a second."""

    def __init__(self, encoder: PublicEncoder, number: int, milliseconds: int) -> None:
        super().__init__(number, milliseconds // 10)
        self.frame_shift = encoder.frame_shift
        drawn = stream(1, "audio")
        for name, frames in {name: self.frames(name) for name in self.targets}.items():
            audio = torch.from_numpy(0.1 * drawn.normal(size=(1, 160 * frames))).float()
            inputs, lengths = encoder.features(audio, torch.tensor([audio.size(1)]))
            with torch.no_grad():
                self._features[name] = encoder(inputs, lengths, layers=[0])[0][0, 0]


def model_of(encoder: PublicEncoder) -> AcousticModel:
    """A head upon the encoder's blocks, as recipe ``encoder`` trains it."""
    files = [CONF / "ctc.yaml#am_ctc", CONF / "ctc.yaml#am_head"]
    numbers = config.load(CtcConfig, files, ["encoder.kind=tdnn"])
    upper = upper_spec(encoder, 0, ChunkConfig(28.0, 4.0, batch=1))
    model = new_model(replace(spec_of(numbers, encoder.dim, TOKENS), public=upper), 1)
    model.public.load_state_dict(upper_of(encoder, 0).state_dict())
    return model


def measure(args: argparse.Namespace) -> None:
    """One way in this process: seconds of the median step, MiB at the peak, parameters."""
    torch.set_num_threads(args.threads)
    encoder = load_encoder(args.encoder_model)
    speech = BlockInputs(encoder, args.utterances, args.milliseconds)
    model = model_of(encoder)
    trained = args.part if args.part in ("last_block", "all") else f"{args.part},head"
    changes = ["noise=1.0", "data=made/train", f"trained=[{trained}]", *WAYS[args.way]]
    changes += [f"lora.rank={args.rank}", "lora.layers=[query,value]", *args.set]
    numbers = config.load(DpSgdConfig, [CONF / "pate.yaml#dpsgd"], changes)
    before = forget_peak()
    if args.way == "plain":
        names = choose_trained(model, numbers.trained, numbers.lora, numbers.seed)
        run = plain_step(model, speech, [*map(model.get_parameter, names)])
    else:
        run = private_step(model, speech, numbers)
    run()
    # The time that this process computes, so that others on the machine do not count.
    seconds = [timed(run, time.process_time)[0] for _ in range(args.repeats)]
    size = sum(one.numel() for one in model.parameters() if one.requires_grad)
    found = {"seconds": statistics.median(seconds), "peak": mebibytes() - before}
    print(json.dumps({**found, "model": before, "trained": size}))


def main() -> None:
    """Measure and print."""
    numbers = {"utterances": 4, "milliseconds": 3000, "repeats": 5, "rank": 8, "threads": 1}
    parser = flags(__doc__, **numbers)
    parser.add_argument("--encoder-model", type=Path, required=True, help="of Whisper base")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--set", nargs="*", default=[], metavar="K=V", help="of section dpsgd")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.way:
        measure(args)
        return
    length = f"{args.utterances} utterances of about {args.milliseconds / 1000:.1f} s"
    print(f"{args.encoder_model.name}, {length}, {args.threads} threads")
    shared = [word for name in numbers for word in (f"--{name}", str(getattr(args, name)))]
    shared += ["--encoder-model", str(args.encoder_model), "--set", *args.set]
    for part in args.parts:
        found = {}
        for way in WAYS:
            command = [sys.executable, __file__, "--way", way, "--part", part, *shared]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found[way] = json.loads(done.stdout.splitlines()[-1])
        plain = found["plain"]
        times = [f"{w} {row['seconds']:.2f} s, {row['peak']:.0f} MiB" for w, row in found.items()]
        print(f"{part}, {plain['trained']:,} parameters: {'; '.join(times)}", flush=True)
        rows = []
        for way in ("alone", "together"):
            what = f"DP-SGD step, {args.encoder_model.name}, {part}, {length}, {way}"
            for name, unit in (("seconds", "processor s"), ("peak", "MiB")):
                figures = found[way][name], plain[name]
                rows.append(Row(what, *figures, unit, "a plain step of the same part", "less"))
        append_rows(args.out_rows, rows)


if __name__ == "__main__":
    main()
