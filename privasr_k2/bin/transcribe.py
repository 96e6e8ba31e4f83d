"""Transcribe audio files with what a recipe has trained.

    privasr transcribe --in-exp egs/mini/exp/ctc_tdnn_phone FILE.wav...

Prints a line a file: its name, a tab, the words. Files have one channel, in any format that
libsndfile reads; another sampling rate than the training data's is resampled.

    privasr transcribe --in-exp egs/mini/exp/ctc_tdnn_phone --hotwords contacts.txt FILE.wav...

With a list of names and phrases, one a line, maybe with a tab and a bonus, the graph is made anew
before the first file: it has all their words, and prefers them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.text.hotwords import read_hotwords


def main() -> None:
    """Parse, recognize, print."""
    parser = cli.parser(
        __doc__,
        in_exp="PATH a recipe's folder in exp/",
        in_hotwords="[FILE]|--hotwords names and phrases that are likely to be said",
        hotword_bonus="[X] of each of their words, natural log (default: the recipe's)",
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    args = cli.parse(parser, config=False, device=True)

    from privasr_k2.decoding.jobs import choose_device
    from privasr_k2.decoding.recognizer import Recognizer, read_audio

    if args.in_hotwords is None and args.hotword_bonus is not None:
        place, expected = "--hotword-bonus", "--hotwords with it"
        raise ConfigError(place, expected, "none", "give a list: --hotwords FILE")
    hotwords = None if args.in_hotwords is None else read_hotwords(args.in_hotwords)
    recordings = [(path, *read_audio(path)) for path in args.files]
    recognizer = Recognizer.from_folder(
        args.in_exp,
        device=choose_device(args.device),
        hotwords=hotwords,
        bonus=args.hotword_bonus,
    )
    for path, samples, sampling_rate in recordings:
        words = recognizer.transcribe(samples, sampling_rate)
        if words is None:
            print(f"{path}: the search found no path", file=sys.stderr)
        print(f"{path}\t{words or ''}", flush=True)


if __name__ == "__main__":
    cli.run(main)
