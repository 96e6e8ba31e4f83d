"""Transcribe audio files, and folders of them, with what a recipe has trained.

    privasr transcribe --in-exp egs/mini/exp/ctc_tdnn_phone FILE.wav...
    privasr transcribe --in-exp EXP FOLDER --out-jsonl words.jsonl --out-text words.txt

Prints a line a file: its name, a tab, the words. Of a folder, files *.wav *.flac *.sph *.ogg *.opus
in it and below it are read, and their names are relative to it. --out-jsonl has path, seconds and
words of each; words are null where the search found no path.

Files have one channel, in any format that libsndfile reads; another sampling rate than the training
data's is resampled. A file that cannot be read is reported and left out; the exit code is then 2.

    privasr transcribe --in-exp egs/mini/exp/ctc_tdnn_phone --hotwords contacts.txt FILE.wav...

With a list of names and phrases, one a line, maybe with a tab and a bonus, the graph is made anew
before the first file: it has all their words, and prefers them.

    privasr transcribe --in-exp egs/mini/exp/ctc_tdnn_phone --contacts contacts.txt FILE.wav...

--contacts puts such a list into the graph as a class of names, without compiling it again. The
first call compiles a graph for all lists and keeps it in the recipe's folder.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import write_jsonl, write_text
from privasr_k2.text.hotwords import read_hotwords


def main() -> None:
    """Parse, recognize, print and write."""
    parser = cli.parser(
        __doc__,
        in_exp="PATH a recipe's folder in exp/",
        in_hotwords="[FILE]|--hotwords names and phrases that are likely to be said",
        hotword_bonus="[X] of each of their words, natural log (default: the recipe's)",
        in_contacts="[FILE]|--contacts names that a user may say, put into the graph at once",
        contact_log_prob="[X] ln P of any of them where the history is empty (the recipe's)",
        out_jsonl="[FILE] path, seconds and words of each file, JSON Lines",
        out_text="[FILE] the lines that are printed",
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="a file or a folder")
    args = cli.parse(parser, config=False, device=True)

    from privasr_k2.decoding.jobs import choose_device
    from privasr_k2.decoding.recognizer import Recognizer
    from privasr_k2.decoding.transcription import find_audio, transcribe_files

    if args.in_hotwords is None and args.hotword_bonus is not None:
        place, expected = "--hotword-bonus", "--hotwords with it"
        raise ConfigError(place, expected, "none", "give a list: --hotwords FILE")
    if args.in_contacts is None and args.contact_log_prob is not None:
        place, expected = "--contact-log-prob", "--contacts with it"
        raise ConfigError(place, expected, "none", "give a list: --contacts FILE")
    if args.in_contacts is not None and args.in_hotwords is not None:
        raise ConfigError("--contacts", "one list", "--hotwords, too", "give one of them")
    hotwords = None if args.in_hotwords is None else read_hotwords(args.in_hotwords)
    contacts = None if args.in_contacts is None else read_hotwords(args.in_contacts)
    files = find_audio(args.files)
    recognizer = Recognizer.from_folder(
        args.in_exp,
        device=choose_device(args.device),
        hotwords=hotwords,
        bonus=args.hotword_bonus,
        contacts=contacts,
        contact_log_prob=args.contact_log_prob,
    )
    transcripts, lines = [], []
    for result in transcribe_files(recognizer, files):
        if isinstance(result, DataError):
            if len(files) == 1:
                raise result
            print(f"error: {result}", file=sys.stderr, flush=True)
            continue
        if result.words is None:
            print(f"{result.path}: the search found no path", file=sys.stderr)
        transcripts.append(result)
        lines.append(f"{result.path}\t{result.words or ''}\n")
        print(lines[-1], end="", flush=True)
    if args.out_jsonl is not None:
        write_jsonl(args.out_jsonl, map(asdict, transcripts))
    if args.out_text is not None:
        write_text(args.out_text, "".join(lines))
    failed = len(files) - len(transcripts)
    if failed:
        found = f"{failed} that cannot be read"
        way_out = "mend them or leave them out; the errors above name them"
        raise DataError("privasr transcribe", f"{len(files)} files of audio", found, way_out)


if __name__ == "__main__":
    cli.run(main)
