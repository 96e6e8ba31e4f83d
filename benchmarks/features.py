"""Filter banks of speech, computed and stored, beside lhotse's: ``. ./path.sh; python
benchmarks/features.py``.

Timed are ``privasr_k2.data.features.extract`` against ``Fbank().extract`` on samples in memory, and
the verb's ``compute`` against ``CutSet.compute_and_store_features``, both from a manifest and FLAC
files to lilcom's archives and a manifest, in one process with one thread. Runs alternate; the least
processor time counts. Computed values must agree within 1e-5, stored ones within a step of lilcom.
Data: LibriSpeech in PRIVASR_SHARED_DATA, or ../shared/data beside the checkout.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from lhotse import CutSet, Fbank

from benchmarks.measuring import least
from benchmarks.rows import Row, append_rows, flags, library
from privasr_k2 import config
from privasr_k2.corpora.utterances import Utterance, make_cuts
from privasr_k2.data.audio import load_samples
from privasr_k2.data.features import FeatureConfig, compute, extract, load_features
from privasr_k2.data.manifests import load_cuts, save_cuts

ROOT = Path(__file__).resolve().parents[1]
ROLE, TICK_POWER = "test", -5
"""lhotse's default, for both."""


def speech(utterances: int) -> CutSet:
    """The first files of LibriSpeech, as many or all."""
    data = Path(os.environ.get("PRIVASR_SHARED_DATA", ROOT.parent / "shared" / "data"))
    paths = sorted((data / "LibriSpeech").glob("*/*/*/*.flac"))[:utterances]
    if not paths:
        raise SystemExit(f"{data / 'LibriSpeech'}: no FLAC files")
    return make_cuts([Utterance(path.stem, "a", "s", ROLE, path) for path in paths])


def main() -> None:
    """Print how many times as fast as the speech both are, and the ratios."""
    args = flags(__doc__, utterances=100, repeats=5).parse_args()
    torch.set_num_threads(1)
    cuts, theirs = speech(args.utterances), Fbank()
    signals = [load_samples(cut) for cut in cuts]
    seconds, numbers = sum(cut.duration for cut in cuts), itertools.count()
    settings = config.load(FeatureConfig, [ROOT / "conf/common.yaml#features"])
    settings = replace(settings, tick_power=TICK_POWER)
    with tempfile.TemporaryDirectory() as made:
        manifests, names = Path(made) / "manifests", (f"{made}/{n}" for n in numbers)
        save_cuts(cuts, manifests, ROLE)

        def verb() -> CutSet:
            folder = Path(next(names))
            compute(manifests, folder, settings)
            return load_cuts(folder, ROLE)

        def call() -> CutSet:
            path = next(names)
            read = CutSet.from_file(manifests / f"cuts_{ROLE}.jsonl.gz")
            stored = read.compute_and_store_features(theirs, path, progress_bar=False)
            stored.to_file(f"{path}.jsonl.gz")
            return CutSet.from_file(f"{path}.jsonl.gz")

        computed = {
            "ours": lambda: [extract(samples, 16000) for samples in signals],
            "lhotse": lambda: [theirs.extract(samples, 16000) for samples in signals],
        }
        stages = {"ours": verb, "lhotse": call}
        times, values = least(computed, args.repeats, time.process_time)
        stage_times, found = least(stages, args.repeats, time.process_time)
        pairs = [
            *((ours, peer, 1e-5) for ours, peer in zip(*values.values(), strict=True)),
            *(
                (load_features(ours), load_features(peer), 2.0**TICK_POWER)
                for ours, peer in zip(*found.values(), strict=True)
            ),
        ]
    if any(one.shape != other.shape or np.abs(one - other).max() > by for one, other, by in pairs):
        raise SystemExit("the two do not agree: a benchmark of different results says nothing")
    rows = []
    for what, taken, peer_call in (
        ("computed", times, "Fbank().extract"),
        ("from manifests to manifests", stage_times, "CutSet.compute_and_store_features"),
    ):
        speed = {name: seconds / needed for name, needed in taken.items()}
        times_real = f"{speed['ours']:.0f}, lhotse {speed['lhotse']:.0f} times real time"
        print(f"{what}: {times_real}, ratio {speed['ours'] / speed['lhotse']:.2f}")
        title = f"filter banks of {seconds:.0f} s of speech in {len(cuts)} files, {what}"
        against = f"{library('lhotse')}, {peer_call}"
        rows.append(Row(title, taken["ours"], taken["lhotse"], "processor s", against, "less"))
    append_rows(args.out_rows, rows)


if __name__ == "__main__":
    main()
