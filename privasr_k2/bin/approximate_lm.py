r"""Approximate a language model, neural or any other, by an n-gram model, for the first pass.

The model reads the text; the ARPA file holds the text's n-grams with the model's probabilities.

    python -m privasr_k2.bin.approximate_lm --in-lm exp/lm_lstm --in-text data/sanitized/train.jsonl.gz \
        --in-lang data/lang_phone --out-lm exp/lstm_3gram.arpa.gz --config conf/approximate.yaml
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.lm.approximate import ApproximationConfig, approximate, probs_of_text
from privasr_k2.lm.arpa import write_arpa
from privasr_k2.lm.names import read_words
from privasr_k2.lm.pruning import prune_to
from privasr_k2.lm.train import log_figures

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, let the model read, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-lm", type=Path, required=True, metavar="LM", help="a folder of train_lm")
    made.add_argument(
        "--in-text", type=Path, nargs="+", required=True, metavar="FILE", help="text, *.jsonl(.gz) or plain"
    )
    made.add_argument("--in-dev", type=Path, metavar="FILE", help="text whose perplexity is logged")
    made.add_argument("--in-lang", type=Path, required=True, help="language folder: words.txt")
    made.add_argument("--out-lm", type=Path, required=True, metavar="FILE", help="*.arpa.gz")
    cli.add_device(made)
    cli.add_config(made)
    args = cli.parse(made)
    config = cli.load(ApproximationConfig, args)

    from privasr_k2.graph.lang import load_lang
    from privasr_k2.lm.mixtures import open_lm

    words = list(load_lang(args.in_lang).word_ids)
    sentences = read_words(args.in_text)
    dev = read_words([args.in_dev]) if args.in_dev is not None else []
    started = time.perf_counter()
    probs = probs_of_text(open_lm(args.in_lm, args.device), sentences, config.block_words)
    log.info("%d words read in %.1f s", len(probs), time.perf_counter() - started)
    model = approximate(sentences, probs, words, order=config.order, unigrams=config.unigrams)
    log_figures("approximated", model, dev)
    if 0 < config.max_ngrams < len(model.keys):
        model, threshold = prune_to(model, config.max_ngrams)
        log_figures(f"pruned at threshold {threshold:.2e}", model, dev)
    write_arpa(model, args.out_lm)


if __name__ == "__main__":
    cli.run(main)
