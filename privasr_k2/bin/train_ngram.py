"""Estimate a word n-gram model and prune it by entropy; or check and take over an ARPA file.

Its text is that of a corpus (the cuts of the role train, lm_text.txt.gz; --set text=), or that of the files
of --in-text. Its vocabulary is closed: that of the language folder. Other words of the text count as <unk>.

    python -m privasr_k2.bin.train_ngram --in-manifests data/manifests --in-lang data/lang_phone \\
        --out-lm data/lm/phone.arpa.gz --config conf/common.yaml#lm_ngram --set order=3
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.graph.lang import load_lang
from privasr_k2.lm.arpa import write_arpa
from privasr_k2.lm.train import NgramConfig, dev_text, import_arpa, train_ngram, training_text


def main() -> None:
    """Parse, estimate, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-manifests", type=Path, help="cuts of train and dev, maybe lm_text.txt.gz")
    source = made.add_mutually_exclusive_group()
    source.add_argument(
        "--in-text", type=Path, nargs="+", metavar="FILE", help="*.jsonl(.gz) or plain, not the corpus's"
    )
    source.add_argument("--raw-arpa", type=Path, help="an ARPA file to take instead of estimating one")
    made.add_argument(
        "--in-dev", type=Path, metavar="FILE", help="text whose perplexity is logged, in place of the cuts'"
    )
    made.add_argument("--in-lang", type=Path, required=True, help="the language folder")
    made.add_argument(
        "--out-lm", type=Path, required=True, help="the model, ARPA; gzipped if the name ends in .gz"
    )
    cli.add_config(made)
    args = cli.parse(made)
    config = cli.load(NgramConfig, args)
    vocabulary = list(load_lang(args.in_lang).word_ids)
    held_out = dev_text(args.in_manifests, args.in_dev)
    if args.raw_arpa is not None:
        model = import_arpa(args.raw_arpa, vocabulary, config, held_out=held_out)
    else:
        sentences = training_text(config, args.in_manifests, args.in_text)
        model = train_ngram(sentences, vocabulary, config, held_out=held_out)
    write_arpa(model, args.out_lm)


if __name__ == "__main__":
    cli.run(main)
