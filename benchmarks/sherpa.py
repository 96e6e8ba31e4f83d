"""A recognizer's words and processor time beside those of sherpa-onnx from its export.

    . ./path.sh; ./run.sh mini ctc; python benchmarks/sherpa.py [--work-dir egs/mini]

Both go from samples to words, utterance by utterance and with one thread: ours as ``privasr
transcribe`` does, sherpa-onnx with the folder that ``privasr export --sherpa`` writes. Fewer than
99.5 % of utterances with the same words are no row. ``--out-words`` keeps what both found where
they differ.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

# One core for both: before torch is imported.
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

from benchmarks.measuring import of_verb
from benchmarks.rows import Row, append_rows, flags, library
from privasr_k2.fileio import write_jsonl

ROOT = Path(__file__).resolve().parents[1]
AGREEMENT = 0.995


def peer(folder: Path) -> tuple[Any, list[str]]:
    """sherpa-onnx's recognizer of an exported folder, with the parameters of its README."""
    import sherpa_onnx

    found = re.search(r"ctc_max_active=(\d+)", (folder / "README.md").read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit(f"{folder}/README.md: no ctc_max_active; is there a graph?")
    recognizer = sherpa_onnx.OfflineRecognizer.from_zipformer_ctc(
        str(folder / "model.onnx"), str(folder / "tokens.txt"), ctc_graph=str(folder / "HLG.fst"),
        ctc_max_active=int(found[1]), num_threads=1,
    )  # fmt: skip
    lines = (folder / "words.txt").read_text(encoding="utf-8").splitlines()
    return recognizer, [line.split()[0] for line in lines]


def theirs(recognizer: Any, words: list[str], samples: np.ndarray, rate: int) -> str:
    """What sherpa-onnx finds."""
    stream = recognizer.create_stream()
    stream.accept_waveform(rate, samples)
    recognizer.decode_stream(stream)
    return " ".join(words[number] for number in stream.result.words)


def timed(search: Callable[[np.ndarray, int], str | None], cut: Any) -> tuple[str, float]:
    """What a search finds, and the processor seconds that it takes, without reading the audio."""
    samples = np.ascontiguousarray(cut.load_audio()[0])
    started = time.process_time()
    found = search(samples, cut.sampling_rate)
    return found or "", time.process_time() - started


def main() -> None:
    """Print in how many utterances both find the same words, and the processor time of both."""
    parser = flags(__doc__, utterances=1_000_000)
    parser.add_argument(
        "--work-dir", type=Path, default=ROOT / "egs/mini", help="of a finished recipe ctc"
    )
    parser.add_argument("--exp", default="exp/ctc_tdnn_phone", help="with recognizer.yaml")
    parser.add_argument("--role", default="test")
    parser.add_argument("--out-words", type=Path, metavar="FILE", help="where the words differ")
    args = parser.parse_args()

    import torch

    from privasr_k2.data.manifests import load_cuts
    from privasr_k2.decoding.recognizer import Recognizer

    torch.set_num_threads(1)
    exp = args.work_dir / args.exp
    ours = Recognizer.from_folder(exp)
    cuts = list(load_cuts(args.work_dir / "data/manifests", args.role))[: args.utterances]
    taken = {"ours": 0.0, "sherpa-onnx": 0.0}
    differ = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "sherpa"
        of_verb("export", "--in-recognizer", exp, "--sherpa", folder)
        recognizer, words = peer(folder)
        searches = {"ours": ours.transcribe, "sherpa-onnx": partial(theirs, recognizer, words)}
        for number, cut in enumerate(cuts):
            found = {}
            for name in sorted(searches, reverse=number % 2 == 1):  # each first as often
                found[name], used = timed(searches[name], cut)
                taken[name] += used
            if len({*found.values()}) > 1:
                differ.append({"id": cut.id, "ref": cut.supervisions[0].text, **found})
    if args.out_words is not None:
        write_jsonl(args.out_words, differ)
    seconds, same = sum(cut.duration for cut in cuts), len(cuts) - len(differ)
    share = same / len(cuts)
    print(f"the same words in {same} of {len(cuts)} utterances ({share:.2%}), {seconds:.0f} s")
    for name, used in taken.items():
        print(f"{name}: {used:.1f} processor s, RTF {used / seconds:.4f}")
    if share < AGREEMENT:
        raise SystemExit(f"the same words are wanted in {AGREEMENT:.1%}: no row")
    what = f"samples to words, {seconds:.0f} s of speech: the same words in {same} of {len(cuts)}"
    figures = taken["ours"], taken["sherpa-onnx"]
    row = Row(f"{what} utterances", *figures, "processor s", library("sherpa-onnx"), "less")
    append_rows(args.out_rows, [row])


if __name__ == "__main__":
    main()
