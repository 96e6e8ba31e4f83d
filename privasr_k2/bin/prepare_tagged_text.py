r"""Earlier way: tag_entities --raw-conll.

Turn annotated text into tagged text, with the labels of its annotation.

    python -m privasr_k2.bin.prepare_tagged_text --raw-earnings21 corpus/earnings21 --out-dir data/gold \
        --config conf/earnings21.yaml
    python -m privasr_k2.bin.prepare_tagged_text --raw-conll wikigold.conll.txt.gz --out-dir data/public

Earnings-21's calls are dealt to train, dev and test as prepare_earnings21 deals them, and figures are spelled
out; each file in the CoNLL format keeps its name. Of a folder all *.conll and *.conll.txt beneath it are
taken, gzipped or not. bin.tag_entities --set taggers=[gold] brings the labels to
four classes. Writes NAME.jsonl.gz to --out-dir.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.corpora.earnings21 import Earnings21Config, deal
from privasr_k2.corpora.spoken_numbers import spoken_words
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import atomic_path
from privasr_k2.text.entities import TaggedText
from privasr_k2.text.normalize import normalize_english
from privasr_k2.text.tag_gold import conll_files, read_conll, read_earnings21, tagged
from privasr_k2.text.tagged_files import write_tagged

log = logging.getLogger(__name__)
_GOLD = ".tsv.gz"


def main() -> None:
    """Parse, read, write."""
    made = cli.parser(__doc__)
    made.add_argument(
        "--raw-conll", type=Path, nargs="+", default=[], metavar="PATH", help="files, folders: a token a line"
    )  # fmt: skip
    made.add_argument("--raw-earnings21", type=Path, metavar="DIR", help="the corpus, with gold/")
    made.add_argument("--out-dir", type=Path, required=True, metavar="DIR", help="NAME.jsonl.gz")
    cli.add_config(made)
    args = cli.parse(made)
    if bool(args.raw_conll) == bool(args.raw_earnings21):
        raise ConfigError(
            "the command line", "--raw-conll or --raw-earnings21", "both or neither", "name one"
        )
    if args.raw_earnings21:
        texts = _calls(args.raw_earnings21, cli.load(Earnings21Config, args))
    else:
        files = conll_files(args.raw_conll)
        texts = {name: tagged(read_conll(path), normalized) for name, path in files.items()}
    with atomic_path(args.out_dir) as folder:
        folder.mkdir()
        for name, of_file in texts.items():
            write_tagged(folder / f"{name}.jsonl.gz", of_file)
            log.info("%s: %d texts, %d words", name, len(of_file), sum(len(text.words) for text in of_file))


def normalized(tokens: Sequence[str]) -> list[str]:
    """The words of tokens."""
    return normalize_english(" ".join(tokens)).split()


def _calls(corpus: Path, config: Earnings21Config) -> dict[str, list[TaggedText]]:
    paths = {path.name.removesuffix(_GOLD): path for path in sorted((corpus / "gold").glob(f"*{_GOLD}"))}
    if not paths:
        raise DataError(corpus, f"gold/*{_GOLD}", "none", "correct the folder of the corpus")
    texts: dict[str, list[TaggedText]] = {}
    for call, role in deal(list(paths), config).items():
        texts.setdefault(role, []).extend(tagged(read_earnings21(paths[call]), spoken_words))
    return texts


if __name__ == "__main__":
    cli.run(main)
