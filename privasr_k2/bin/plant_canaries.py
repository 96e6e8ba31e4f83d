r"""Plant canaries in private speech or text, to see later what models of it remember.

    privasr verb plant_canaries --in-feats data/sides_fbank/private \
        --in-lang data/lang_char_public --out-dir data/canaries_fbank \
        --config conf/redteam.yaml#plant_canaries
    privasr verb plant_canaries --in-text data/gold/train.jsonl.gz \
        --in-public-lists data/public/lists --out-dir exp/planted \
        --config conf/classlm.yaml#plant_names

Each canary is a synthetic speaker who says one sentence of random words of --in-lang, sped up. The
sentence is one of several candidates, drawn uniformly. --out-dir is a features folder: its train
has the speakers of --in-feats and the canaries, the role candidates everything that could have been
planted. canaries.json tells what was. Models of such data are for audits, not for release.

With --in-text a canary is a drawn name in real sentences that name a person. --out-dir then has the
text (gold.jsonl.gz), canaries.json, and lists/ without the names that are held out of them.
"""

from __future__ import annotations

import argparse

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError


def main() -> None:
    """Parse, draw, speak, write."""
    args = cli.arguments(
        __doc__,
        in_feats="[DIR] private speech, roles train and dev",
        in_lang="[DIR] public words, for speech",
        in_text="[FILE] annotated private text, in place of speech",
        in_public_lists="[DIR] name lists, for text",
        in_definition="[FILE] the corpus, for how it normalizes text",
        out_dir="DIR features with canaries, or text",
    )
    of_text = (args.in_text, args.in_public_lists)
    if all(of_text) and not (args.in_feats or args.in_lang):
        _plant_names(args)
        return
    if not (args.in_feats and args.in_lang) or any((*of_text, args.in_definition)):
        expected = "--in-feats and --in-lang, or --in-text and --in-public-lists"
        raise ConfigError("the command line", expected, "something else", "see --help")
    from privasr_k2.attack.speech_canaries import SpeechCanaryConfig, plant_canaries
    from privasr_k2.graph.lang import load_lang

    config = cli.load(SpeechCanaryConfig, args)
    lang = load_lang(args.in_lang)
    plant_canaries(args.in_feats, lang, config, args.out_dir, num_jobs=args.num_jobs)


def _plant_names(args: argparse.Namespace) -> None:
    from privasr_k2.attack.planted_names import NameCanaryConfig, plant_names, write_planted
    from privasr_k2.corpora.base import load_corpus
    from privasr_k2.text.name_lists import read_name_lists
    from privasr_k2.text.normalize import normalize_english
    from privasr_k2.text.tagged_files import needs_entities, read_tagged

    config = cli.load(NameCanaryConfig, args)
    change = load_corpus(args.in_definition).normalize if args.in_definition else normalize_english
    lists = read_name_lists(args.in_public_lists, normalize_english)
    texts = read_tagged([args.in_text])
    needs_entities(texts, "--in-text")
    planted = plant_names(texts, lists, config, lambda tokens: change(" ".join(tokens)).split())
    write_planted(planted, args.out_dir)


if __name__ == "__main__":
    cli.run(main)
