r"""Adapt an n-gram model to a little text by fast marginal adaptation.

    privasr verb adapt_lm --in-lm data/lm/phone.arpa.gz --in-text data/adapt.txt \
        --in-dev data/dev.txt --out-lm exp/adapted.arpa.gz --out-choice exp/fma.json \
        --config conf/classlm.yaml#fma

The model is an ARPA file or a class LM's folder; the adapted one has the same n-grams. Of a class
LM the root model is adapted, on texts that are marked (*.jsonl) or have tags; its names stay. beta
is chosen by the perplexity of --in-dev. --in-unigrams takes the unigrams of a model, such as that
of released votes, in place of those of --in-text. --in-background-text replaces the model's
unigrams, which Kneser-Ney estimates for backing off, by those of its training text.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import write_json
from privasr_k2.lm.arpa import read_arpa, write_arpa
from privasr_k2.lm.class_files import is_class_lm, load_class_lm, save_class_lm
from privasr_k2.lm.marginals import (
    MarginalsConfig,
    adapt_on_dev,
    smoothed_unigrams,
    unigrams_of,
)
from privasr_k2.lm.names import read_texts, read_words
from privasr_k2.text.tags import with_tags


def main() -> None:
    """Parse, adapt, write."""
    args = cli.arguments(
        __doc__,
        in_lm="LM an ARPA file, a class LM's folder",
        in_text="[FILE+] the adaptation text",
        in_unigrams="[ARPA] a model whose unigrams are taken in its place",
        in_background_text="[FILE+] the text of the model",
        in_dev="[FILE]|--in-public-dev-text text that beta is chosen by",
        out_lm="LM of the form of --in-lm",
        out_choice="FILE beta and what was tried, JSON",
    )
    if (args.in_text is None) == (args.in_unigrams is None):
        expected, way_out = "--in-text or --in-unigrams", "give one of them"
        found = "neither" if args.in_text is None else "both"
        raise ConfigError("the command line", expected, found, way_out)
    config = cli.load(MarginalsConfig, args)
    class_lm = load_class_lm(args.in_lm) if is_class_lm(args.in_lm) else None
    root = class_lm.root if class_lm else read_arpa(args.in_lm)

    def sentences(paths: list[Path]) -> list[list[str]]:
        if class_lm is None:
            return read_words(paths)
        return [list(with_tags(text).words) for text in read_texts(paths, class_lm.sub_lms)]

    def unigrams(paths: list[Path]) -> np.ndarray:
        place = " ".join(map(str, paths))
        return smoothed_unigrams(sentences(paths), root, config.prior_words, place)

    background = unigrams(args.in_background_text) if args.in_background_text is not None else None
    dev = sentences([args.in_dev]) if args.in_dev is not None else []
    if args.in_unigrams is not None:
        wanted = unigrams_of(read_arpa(args.in_unigrams), root)
    else:
        wanted = unigrams(args.in_text)
    adapted = adapt_on_dev(root, wanted, config, dev, background=background)
    if class_lm is None:
        write_arpa(adapted.model, args.out_lm)
    else:
        save_class_lm(args.out_lm, class_lm.with_root(adapted.model))
    tried = [
        {"equation": equation, "beta": beta, "ppl": ppl}
        for (equation, beta), ppl in adapted.perplexities.items()
    ]
    choice = {"equation": adapted.equation, "beta": adapted.beta, "tried": tried}
    write_json(args.out_choice, choice)


if __name__ == "__main__":
    cli.run(main)
