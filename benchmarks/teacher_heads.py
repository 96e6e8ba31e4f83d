"""Many teachers as heads of one model beside teachers one by one.

``. ./path.sh; python benchmarks/teacher_heads.py``: trains and asks heads on shards of 30
utterances in the size of the corpus ``mini`` (a TDNN of 256 channels, characters), then some of
them as whole models, the plain way: through all layers, one teacher at a time. Prints seconds of
all processors together, which other work on the machine does not lengthen, what they mean for 250
teachers, and peak memory beside.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from benchmarks.measuring import mebibytes, timed
from benchmarks.rows import Row, append_rows, flags
from privasr_k2.am.ctc import CtcModel, CtcSpec
from privasr_k2.am.encoders import EncoderConfig
from privasr_k2.am.encoders.tdnn import TdnnConfig
from privasr_k2.am.losses import ctc_loss
from privasr_k2.config import load
from privasr_k2.pate.ensembles import TeacherEnsemble
from privasr_k2.pate.heads import HeadConfig, HeadEnsemble
from privasr_k2.pate.heads_training import Utterances, batches, train_group
from privasr_k2.pate.trainable_layers import TrainableLayers, trainable_layers
from privasr_k2.training.trainable import LAST_BLOCK, OUTPUT

ROOT = Path(__file__).resolve().parents[1]

UTTERANCES, FRAMES, FEATURES, TOKENS, LABELS = 30, 450, 80, 30, 55
HYPS, QUERIES, FULL, ALONE = 8, 4, 250, 2


class Data(NamedTuple):
    """Utterances of all shards, shard by shard; all have LABELS tokens."""

    features: Tensor
    lengths: Tensor
    targets: Tensor
    sizes: Tensor


def make_data(heads: int) -> Data:
    """Random utterances of 3 to 4.5 seconds."""
    generator, num = torch.Generator().manual_seed(1), heads * UTTERANCES
    features = torch.randn(num, FRAMES, FEATURES, generator=generator)
    lengths = torch.randint(FRAMES * 2 // 3, FRAMES + 1, (num,), generator=generator)
    targets = torch.randint(1, TOKENS, (num, LABELS), generator=generator)
    return Data(features, lengths, targets, torch.full((num,), LABELS))


def make_model() -> CtcModel:
    """The network of ``egs/mini/corpus.yaml#conf.am_ctc`` with random weights."""
    torch.manual_seed(1)
    tdnn = TdnnConfig(dim=256, kernel=5, dilations=[1, 1, 2, 2, 3, 3], subsampling=3, dropout=0.1)
    encoder = EncoderConfig("tdnn", tdnn)
    return CtcModel(CtcSpec("ctc", FEATURES, TOKENS, True, encoder)).eval()


def read(layers: TrainableLayers, data: Data, heads: int) -> Utterances:
    """What the frozen layers make of all utterances."""
    num = len(data.lengths)
    parts = [
        layers.lower(data.features[n : n + 10], data.lengths[n : n + 10]) for n in range(0, num, 10)
    ]
    longest = max(part.size(1) for part, _ in parts)
    return Utterances(
        ids=tuple(map(str, range(num))),
        lower=torch.cat([pad(part, (0, 0, 0, longest - part.size(1))) for part, _ in parts]),
        lengths=torch.cat([kept for _, kept in parts]),
        states=torch.zeros(num, LABELS + 1, 0),
        targets=data.targets,
        target_lengths=data.sizes,
        shards=torch.arange(heads).repeat_interleave(UTTERANCES),
    )


def train_alone(names: tuple[str, ...], data: Data, number: int, config: HeadConfig) -> None:
    """One teacher the plain way."""
    model = make_model()
    for name, value in model.named_parameters():
        value.requires_grad_(name in names)
    own = [value for value in model.parameters() if value.requires_grad]
    optimizer = torch.optim.AdamW(own, lr=config.lr)
    order = batches(UTTERANCES, config.steps, config.batch, 1, number) + UTTERANCES * (number - 1)
    for places in order:
        optimizer.zero_grad(set_to_none=True)
        log_probs, kept = model(data.features[places], data.lengths[places])
        ctc_loss(log_probs, kept, data.targets[places], data.sizes[places]).sum().backward()
        torch.nn.utils.clip_grad_norm_(own, config.clip_norm)
        optimizer.step()


def measure(trained: str, data: Data, heads: int, config: HeadConfig) -> list[Row]:
    """Print the seconds of training and of votes, and return them as rows."""
    model = make_model()
    layers = trainable_layers(model, trained)
    start = {
        name: value.detach() for name, value in model.named_parameters() if name in layers.names
    }
    clock = time.process_time
    reading, utterances = timed(lambda: read(layers, data, heads), clock)
    training, found = timed(
        lambda: train_group(layers, start, utterances, range(1, heads + 1), config), clock
    )
    alone, _ = timed(
        lambda: [train_alone(layers.names, data, n, config) for n in range(1, ALONE + 1)], clock
    )
    together, apart = reading + training, alone / ALONE * heads
    peer = f"whole models one by one, scaled from {ALONE}"
    what = f"training {heads} teachers as heads ({trained}), {config.steps} steps of {config.batch}"
    rows = [Row(what, together, apart, "processor s", peer, "less")]
    print(
        f"{trained}: {heads} heads, {config.steps} steps of {config.batch}: frozen layers"
        f" {reading:.1f} s, training {training:.1f} s; one by one {apart:.1f} s ({ALONE} of them"
        f" measured), ratio {apart / together:.1f}; {FULL} heads"
        f" {together * FULL / heads / 60:.1f} min",
        flush=True,
    )
    ensemble = HeadEnsemble(model, found, trained=trained, per_token=True)
    few = TeacherEnsemble(ensemble.models[:ALONE], per_token=True)
    hyps = [[one[: LABELS - k].tolist() for k in range(HYPS)] for one in data.targets[:QUERIES]]
    given = (data.features[:QUERIES], data.lengths[:QUERIES], hyps)
    asked, scores = timed(lambda: ensemble.hypothesis_scores(*given), clock)
    slow, wanted = timed(lambda: few.hypothesis_scores(*given), clock)
    if not np.allclose(scores[:ALONE], wanted, atol=1e-3):
        raise SystemExit(f"{trained}: heads and whole models do not agree")
    apart = slow / ALONE * heads
    print(
        f"{trained}: votes of {heads} heads on {QUERIES} utterances with {HYPS} hypotheses"
        f" {asked:.2f} s; whole models {apart:.2f} s, ratio {apart / asked:.1f}; {FULL} heads,"
        f" 1,000 utterances {asked * FULL / heads * 1000 / QUERIES / 60:.1f} min",
        flush=True,
    )
    what = f"votes of {heads} heads ({trained}) on {QUERIES} utterances with {HYPS} hypotheses"
    return [*rows, Row(what, asked, apart, "processor s", peer, "less")]


def main() -> None:
    """Print seconds and ratios."""
    args = flags(__doc__, heads=25, steps=60, batch=8).parse_args()
    data = make_data(args.heads)
    for trained in (OUTPUT, LAST_BLOCK):
        words = f"trained={trained} steps={args.steps} batch={args.batch}".split()
        settings = [*words, f"heads_at_once={args.heads}"]
        config = load(HeadConfig, [ROOT / "conf/pate.yaml#heads"], settings)
        append_rows(args.out_rows, measure(trained, data, args.heads, config))
    print(f"peak memory {mebibytes() / 1024:.2f} GiB")


if __name__ == "__main__":
    main()
