"""The perplexity of language models on one text, n-gram and neural ones alike, as a table.

The vocabulary is closed, that of the language folder, and treated the same for all models: sentence ends are
counted; OOV words are read as <unk>, and the figure is given without and with their predictions.

    python -m privasr_k2.bin.perplexity --in-cuts data/manifests/cuts_dev.jsonl.gz \\
        --in-lang data/lang_phone --in-lm data/lm/phone.arpa.gz exp/lm_lstm \\
        --out-perplexity exp/perplexity_dev.json
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import write_json


def main() -> None:
    """Parse, score, write, print."""
    made = cli.parser(__doc__)
    text = made.add_mutually_exclusive_group(required=True)
    text.add_argument("--in-cuts", type=Path, help="cuts_<role>.jsonl.gz, whose texts are scored")
    text.add_argument("--in-text", type=Path, metavar="FILE", help="*.jsonl(.gz), or plain")
    made.add_argument("--in-lang", type=Path, required=True, help="language folder: words.txt")
    made.add_argument(
        "--in-lm", type=Path, nargs="+", required=True, metavar="LM", help="ARPA files, folders of train_lm"
    )
    made.add_argument("--out-perplexity", type=Path, required=True, help="the figures, JSON")
    cli.add_device(made)
    args = cli.parse(made)

    from privasr_k2.graph.lang import load_lang
    from privasr_k2.lm.names import read_words
    from privasr_k2.lm.neural.perplexity import TREATMENT, open_lm, perplexity, table

    words = list(load_lang(args.in_lang).word_ids)
    sentences = _of_cuts(args.in_cuts) if args.in_cuts else read_words([args.in_text])
    results = [
        perplexity(open_lm(path, args.device), [s for s in sentences if s], words) for path in args.in_lm
    ]
    write_json(args.out_perplexity, {"treatment": TREATMENT, "lms": [result.record() for result in results]})
    print(table(results))


def _of_cuts(path: Path) -> list[list[str]]:
    from privasr_k2.data.manifests import load_cuts

    role = path.name.removeprefix("cuts_").removesuffix(".jsonl.gz")
    if path.name != f"cuts_{role}.jsonl.gz":
        raise ConfigError("--in-cuts", "cuts_<role>.jsonl.gz", path.name, "give one, or --in-text")
    return [cut.supervisions[0].text.split() for cut in load_cuts(path.parent, role, lazy=True)]


if __name__ == "__main__":
    cli.run(main)
