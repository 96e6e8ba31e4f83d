"""k2's search beside kaldi_decoder's in graphs of one LG, at equal word error rates.

    . ./path.sh; ./run.sh mini ctc; python benchmarks/first_pass.py [--work-dir egs/mini]

The network's outputs are computed once; timed is the search alone, every setting in a process of
its own. Both back ends search with the LM weight of ``weights.json``, without insertion penalty,
for the best words only (k2 with ``output_beam`` 1). Compared are the fastest settings whose WER is
at most ``--tolerance`` above that of the widest beams. RTF is processor seconds by seconds of
speech, ``wall`` elapsed time by the same. ``peak`` is the largest memory of the process in MiB,
``graph`` what loading the graph added, ``added`` what graph and search added to the peak. Of k2's
search its own ``intersect_dense_pruned`` is timed apart: no code around it can make it faster.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# One core for both: before torch is imported.
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

from benchmarks.measuring import mebibytes
from benchmarks.rows import Row, append_rows, flags, library

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "conf/common.yaml#decode"
WIDE, BEAMS = 40.0, (4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 17.0, 20.0, 25.0)
REPEATS = 3


def make_outputs(args: argparse.Namespace) -> None:
    """Log-probabilities in batches, references and seconds of speech, in one file."""
    import torch

    from privasr_k2.am.checkpoints import load_model
    from privasr_k2.data.manifests import load_cuts
    from privasr_k2.decoding.jobs import batches

    model = load_model(args.work_dir / args.exp / "am")
    cuts, seconds = [], 0.0
    for cut in sorted(load_cuts(args.work_dir / args.feats, args.role), key=lambda cut: cut.id):
        if seconds < args.seconds:
            cuts, seconds = [*cuts, cut], seconds + cut.duration
    found: dict[str, Any] = {"seconds": seconds}
    refs = []
    longest_first = sorted(cuts, key=lambda cut: -cut.duration)
    for number, batch in enumerate(batches(longest_first, 60.0)):
        features = [torch.from_numpy(cut.load_features()).float() for cut in batch]
        lengths = torch.tensor([len(one) for one in features])
        padded = torch.nn.utils.rnn.pad_sequence(features, batch_first=True)
        log_probs, out_lengths = model.log_probs(padded, lengths)
        found[f"log_probs{number}"] = log_probs.numpy()
        found[f"lengths{number}"] = out_lengths.numpy()
        refs += [cut.supervisions[0].text for cut in batch]
    np.savez(args.outputs, refs=np.array(refs), **found)


def counted(function: Callable[..., Any], seconds: list[float]) -> Callable[..., Any]:
    """The function, which adds the processor time of each call to the first of ``seconds``."""

    def timed(*args: Any, **kwargs: Any) -> Any:
        used = time.process_time()
        found = function(*args, **kwargs)
        seconds[0] += time.process_time() - used
        return found

    return timed


def search(args: argparse.Namespace) -> None:
    """Search with one setting; prints what it found and took as JSON."""
    import torch

    from privasr_k2 import config
    from privasr_k2.decoding.first_pass import SearchConfig
    from privasr_k2.decoding.jobs import DecodeConfig
    from privasr_k2.decoding.kaldi_backend import open_decoder
    from privasr_k2.scoring.counts import ErrorCounts, count_errors

    within = [0.0]
    if args.backend == "k2":
        import k2  # no part of what graph and search need

        k2.intersect_dense_pruned = counted(k2.intersect_dense_pruned, within)

    torch.set_num_threads(1)
    stored = np.load(args.outputs)
    count = sum(name.startswith("lengths") for name in stored)
    arrays = [
        [torch.from_numpy(stored[f"{name}{n}"]) for name in ("log_probs", "lengths")]
        for n in range(count)
    ]
    weight = json.loads((args.work_dir / args.exp / "weights.json").read_text())["lm_weight"]
    settings = config.load(
        DecodeConfig,
        [CONF],
        [f"backend={args.backend}", f"search_beam={args.beam}", f"search_lm_weight={weight}",
         f"lm_weights=[{weight}]", "insertion_penalties=[0.0]", "output_beam=1.0",
         *(["max_active_states=1000000"] if args.beam >= WIDE else [])],
    )  # fmt: skip
    before = mebibytes("VmRSS")
    search_config: SearchConfig = settings.search()
    decoder = open_decoder(args.work_dir / args.graph, search_config)
    loaded = mebibytes("VmRSS")
    wall, processor, alone = [], [], []
    for _ in range(1 if args.beam >= WIDE else REPEATS):
        within[0] = 0.0
        started, used = time.perf_counter(), time.process_time()
        with torch.no_grad():
            found = [hyps for batch in arrays for hyps in decoder.decode(*batch)]
        wall.append(time.perf_counter() - started)
        processor.append(time.process_time() - used)
        alone.append(within[0])
    errors = ErrorCounts()
    for ref, hyps in zip(stored["refs"].tolist(), found, strict=True):
        errors += count_errors(tuple(ref.split()), tuple(hyps[0].words.split()) if hyps else ())
    speech = float(stored["seconds"])
    peak = mebibytes("VmHWM")
    row = {
        **{"backend": args.backend, "beam": args.beam, "lm_weight": weight, "wer": errors.percent},
        **{"rtf": min(processor) / speech, "wall_rtf": min(wall) / speech, "speech": speech},
        "alone_rtf": min(alone) / speech,
        **{"peak": peak, "graph": loaded - before, "added": peak - before},
        "no_path": sum(hyps is None for hyps in found),
        "utterances": len(found),
        "words": [hyps[0].words if hyps else None for hyps in found],
    }
    print(json.dumps(row))


def run(*arguments: str) -> str:
    """What this file prints in a process of its own."""
    command, env = [sys.executable, __file__, *sys.argv[1:], *arguments], {**os.environ}
    env["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)} ended with {done.returncode}")
    return done.stdout


def report(row: dict[str, Any]) -> None:
    """Print one setting."""
    print(
        f"{row['backend']:8}{row['beam']:6g}{row['wer']:8.2f}{row['no_path']:9}{row['rtf']:10.4f}"
        f"{row['wall_rtf']:10.4f}{row['peak']:8.0f}{row['graph']:8.0f}{row['added']:8.0f}",
        flush=True,
    )


def main() -> None:
    """Print a line for every setting, the fastest of each back end and their ratio."""
    parser = flags(__doc__)
    parser.add_argument(
        "--work-dir", type=Path, default=ROOT / "egs/mini", help="of a finished recipe ctc"
    )
    parser.add_argument(
        "--exp", default="exp/ctc_tdnn_phone", help="with am/ and weights.json, in the work folder"
    )
    parser.add_argument("--graph", default="data/graph_phone")
    parser.add_argument("--feats", default="data/feats_fbank")
    parser.add_argument("--role", default="test")
    parser.add_argument("--seconds", type=float, default=300.0, help="of speech, at most")
    parser.add_argument(
        "--tolerance", type=float, default=0.1, help="WER above the widest beams', percent points"
    )
    parser.add_argument(
        "--beams", type=float, nargs="+", default=BEAMS, help="narrower than the widest"
    )
    hidden = {"--step": str, "--outputs": Path, "--backend": str, "--beam": float}
    for name, kind in hidden.items():
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.work_dir = args.work_dir.resolve()
    if args.step:
        {"outputs": make_outputs, "search": search}[args.step](args)
        return
    if not (args.work_dir / args.exp / "weights.json").is_file():
        raise SystemExit(
            f"{args.work_dir / args.exp}: no weights.json; run ./run.sh mini ctc first"
        )
    with tempfile.TemporaryDirectory() as folder:
        outputs = ("--work-dir", str(args.work_dir), "--outputs", f"{folder}/outputs.npz")
        run(*outputs, "--step", "outputs")
        rows = []
        widths = {"beam": 6, "WER": 8, "no path": 9, "RTF": 10, "wall": 10, "peak": 8}
        columns = {**widths, "graph": 8, "added": 8}.items()
        print(" " * 8 + "".join(f"{name:>{width}}" for name, width in columns))
        for beam in (WIDE, *args.beams):
            for backend in ("k2", "kaldi"):
                text = run(*outputs, "--step", "search", "--backend", backend, "--beam", str(beam))
                rows.append(json.loads(text.splitlines()[-1]))
                report(rows[-1])
    wide = rows[:2]
    same = sum(one == other for one, other in zip(wide[0]["words"], wide[1]["words"], strict=True))
    first = rows[0]
    speech = f"{first['speech']:.0f} s, LM weight {first['lm_weight']}"
    print(f"{first['utterances']} utterances, {speech}")
    print(f"widest beams: the same words in {same} utterances")
    limit = min(row["wer"] for row in wide) + args.tolerance
    accurate = [row for row in rows if row["wer"] <= limit]
    slowest_first = sorted(accurate, key=lambda row: (row["backend"], -row["rtf"]))
    best = {row["backend"]: row for row in slowest_first}
    print(f"fastest with a WER of at most {limit:.2f}:")
    for row in best.values():
        report(row)
    if len(best) == 2:
        ours, theirs = best["k2"], best["kaldi"]
        measures = ("rtf", "wall_rtf", "peak", "added")
        ratio = {name: f"{ours[name] / theirs[name]:.2f}" for name in measures}
        print(
            f"k2 takes {ratio['rtf']} times kaldi_decoder's time (wall {ratio['wall_rtf']}),"
            f" {ratio['peak']} times its peak memory, {ratio['added']} times what is added"
        )
        print(
            f"k2's intersect_dense_pruned alone takes {ours['alone_rtf'] / ours['rtf']:.0%} of it,"
            f" {ours['alone_rtf'] / theirs['rtf']:.2f} times kaldi_decoder's whole search"
        )
        what = f"first pass, {first['speech']:.0f} s of speech at a WER of at most {limit:.2f} %: "
        peer, unit = library("kaldi-decoder"), "processor s/s of speech"
        search_row = Row(f"{what}search", ours["rtf"], theirs["rtf"], unit, peer, "less")
        memory = Row(f"{what}peak memory", ours["peak"], theirs["peak"], "MiB", peer, "less")
        alone = Row(
            f"{what}k2's intersect_dense_pruned alone", ours["alone_rtf"], theirs["rtf"], unit,
            f"{peer}, its whole search: a limit", "less",
        )  # fmt: skip
        append_rows(args.out_rows, [search_row, alone, memory])


if __name__ == "__main__":
    main()
