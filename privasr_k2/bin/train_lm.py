r"""Train a neural language model, or continue a training that was interrupted.

    privasr verb train_lm --in-manifests data/manifests --in-lang data/lang_phone \
        --out-dir exp/lm_lstm --config conf/common.yaml#lm_lstm --set epochs=5

Reads text as train_ngram does: that of the cuts of the role train and lm_text.txt.gz, or --raw-text
in place of the latter; or, in place of both, the files of --in-text. Epochs are scored on the cuts
of the role dev, or on --in-dev. The vocabulary is that of the language folder, or of a Kaldi
words.txt (--raw-words); other words count as <unk>. A model of --in-init is trained further, as a
whole or, with trained=output, in its softmax alone. The first YAML file says which kind: section
lm_lstm, lm_char_lstm or lm_transformer of conf/common.yaml. --out-dir gets checkpoints/,
train_log.jsonl, tensorboard/, config.yaml and, last, the averaged model. For several GPUs start it
with torchrun, as train_am.
"""

from __future__ import annotations

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError


def main() -> None:
    """Parse and train."""
    parser = cli.parser(__doc__, in_manifests="[PATH] cuts of train and dev, maybe lm_text.txt.gz")
    source = parser.add_mutually_exclusive_group()
    cli.add_flags(source, in_text="[FILE+] *.jsonl(.gz) or plain, not the corpus's")
    cli.add_flags(
        source, raw_text="[PATH] a normalized sentence a line, in place of lm_text.txt.gz"
    )
    cli.add_flags(
        parser,
        in_dev="[FILE]|--in-public-dev-text text in place of the cuts of dev",
        in_init="[DIR] train this model further: of the same form and words",
        out_dir="PATH the model's folder",
    )
    vocabulary = parser.add_mutually_exclusive_group(required=True)
    cli.add_flags(
        vocabulary,
        in_lang="[PATH] language folder",
        raw_words="[FILE] Kaldi's words.txt in its place",
    )
    args = cli.parse(parser, device=True)

    import torch

    from privasr_k2.graph.kaldi_lang import lang_of_words
    from privasr_k2.graph.lang import load_lang
    from privasr_k2.lm.neural.kinds import kind_of
    from privasr_k2.lm.neural.train import train_lm
    from privasr_k2.lm.train import dev_text, training_text
    from privasr_k2.training.distributed import join

    torch.set_num_threads(args.num_jobs)
    config = cli.load(kind_of(args.config).config, args)
    lang = lang_of_words(args.raw_words) if args.raw_words else load_lang(args.in_lang)
    words = list(lang.word_ids)
    if args.in_manifests is None and args.in_dev is None:
        expected = "dev text to score epochs on"
        raise ConfigError("--in-dev", expected, "none", "give it, or --in-manifests")
    text = training_text(config, args.in_manifests, args.in_text, args.raw_text)
    sentences = [sentence for sentence in text if sentence]
    dev = dev_text(args.in_manifests, args.in_dev)
    with join(args.device) as process:
        train_lm(sentences, dev, words, args.out_dir, config, process, init=args.in_init)


if __name__ == "__main__":
    cli.run(main)
