"""Transcribe audio files with what a recipe has trained.

    privasr transcribe --in-exp egs/mini/exp/ctc_tdnn_phone FILE.wav...

Prints a line a file: its name, a tab, the words. Files have one channel, in any format that
libsndfile reads; another sampling rate than the training data's is resampled.
"""

from __future__ import annotations

import sys
from pathlib import Path

from privasr_k2.bin import cli


def main() -> None:
    """Parse, recognize, print."""
    parser = cli.parser(__doc__, in_exp="PATH a recipe's folder in exp/")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    args = cli.parse(parser, config=False, device=True)

    from privasr_k2.decoding.jobs import choose_device
    from privasr_k2.decoding.recognizer import Recognizer, read_audio

    recordings = [(path, *read_audio(path)) for path in args.files]
    recognizer = Recognizer.from_folder(args.in_exp, device=choose_device(args.device))
    for path, samples, sampling_rate in recordings:
        words = recognizer.transcribe(samples, sampling_rate)
        if words is None:
            print(f"{path}: the search found no path", file=sys.stderr)
        print(f"{path}\t{words or ''}", flush=True)


if __name__ == "__main__":
    cli.run(main)
