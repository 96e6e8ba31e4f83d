r"""Train a class n-gram model: a root model of text with tags, and a sub-model of each class's names.

The text is JSON Lines with marked names (tag_entities), or plain text with tags such as <PER>; names come
from the marks and from lists (per.txt, org.txt, ... in one folder; a name a line, maybe with a tab and its
probability).

    python -m privasr_k2.bin.train_class_lm --in-text data/sanitized/train.jsonl.gz \
        --in-public-lists data/manifests/public_lists --in-lang data/lang_phone --out-lm exp/class_lm \
        --config conf/common.yaml#class_lm --set order=3
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.graph.lang import load_lang
from privasr_k2.lm.class_files import ClassLmConfig, save_class_lm, train_class_lm
from privasr_k2.lm.names import list_places, read_lists, read_text, read_texts
from privasr_k2.text.normalize import normalize_english


def main() -> None:
    """Parse, train, write."""
    made = cli.parser(__doc__)
    made.add_argument(
        "--in-text",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help="*.jsonl(.gz), or text with tags",
    )
    made.add_argument(
        "--in-public-lists", type=Path, metavar="DIR", help="lists of names: per.txt, org.txt, ..."
    )
    made.add_argument("--in-dev", type=Path, metavar="FILE", help="text whose perplexity is logged")
    made.add_argument("--in-lang", type=Path, required=True, help="language folder: words.txt")
    made.add_argument("--out-lm", type=Path, required=True, metavar="DIR", help="the class LM's folder")
    cli.add_config(made)
    args = cli.parse(made)
    config = cli.load(ClassLmConfig, args)
    texts = read_texts(args.in_text, config.classes)
    dev = read_text(args.in_dev, config.classes) if args.in_dev is not None else []
    lists, places = {}, {}
    if args.in_public_lists is not None:
        lists = read_lists(args.in_public_lists, normalize_english)
        places = list_places(args.in_public_lists, normalize_english)
    words = list(load_lang(args.in_lang).word_ids)
    lm = train_class_lm(texts, words, lists, config, places=places, dev=dev)
    save_class_lm(args.out_lm, lm)


if __name__ == "__main__":
    cli.run(main)
