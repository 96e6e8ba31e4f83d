"""Train a neural language model, or continue a training that was interrupted.

Reads text as train_ngram does: that of the cuts of the role train and lm_text.txt.gz, or --raw-text in
place of the latter; epochs are scored on the cuts of the role dev. The vocabulary is that of the language
folder, other words count as <unk>. The first YAML file says which kind: conf/lm_lstm.yaml,
conf/lm_char_lstm.yaml or conf/lm_transformer.yaml. Writes checkpoints/, train_log.jsonl, tensorboard/,
config.yaml and, last, the averaged model to --out-dir. For several GPUs start it with torchrun, as
train_am.

    python -m privasr_k2.bin.train_lm --in-manifests data/manifests --in-lang data/lang_phone \\
        --out-dir exp/lm_lstm --config conf/lm_lstm.yaml --set epochs=5
"""

from __future__ import annotations

import argparse
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.data.manifests import load_cuts
from privasr_k2.fileio import read_lines


def main() -> None:
    """Parse and train."""
    made = cli.parser(__doc__)
    made.add_argument(
        "--in-manifests", type=Path, required=True, help="cuts of train and dev, maybe lm_text.txt.gz"
    )
    made.add_argument("--in-lang", type=Path, required=True, help="language folder")
    made.add_argument(
        "--raw-text", type=Path, help="a normalized sentence a line, in place of lm_text.txt.gz"
    )
    made.add_argument(
        "--in-init", type=Path, metavar="DIR", help="train this model further: of the same form and words"
    )
    made.add_argument("--out-dir", type=Path, required=True, help="the model's folder")
    cli.add_config(made)
    cli.add_device(made)
    args = cli.parse(made)

    import torch

    from privasr_k2.graph.lang import load_lang
    from privasr_k2.lm.neural.files import kind_of
    from privasr_k2.lm.neural.train import train_lm
    from privasr_k2.lm.train import choose_text
    from privasr_k2.training.distributed import join

    torch.set_num_threads(args.num_jobs)
    config = cli.load(kind_of(args.config).config, args)
    words = list(load_lang(args.in_lang).word_ids)
    further = args.raw_text or args.in_manifests / "lm_text.txt.gz"
    lm_text = [line.split() for _, line in read_lines(further)] if args.raw_text or further.exists() else None
    train = [] if lm_text is not None and config.text in ("auto", "lm_text") else _texts(args, "train")
    sentences = [sentence for sentence in choose_text(config, train, lm_text, further) if sentence]
    with join(args.device) as process:
        train_lm(sentences, _texts(args, "dev"), words, args.out_dir, config, process, init=args.in_init)


def _texts(args: argparse.Namespace, role: str) -> list[list[str]]:
    return [cut.supervisions[0].text.split() for cut in load_cuts(args.in_manifests, role, lazy=True)]


if __name__ == "__main__":
    cli.run(main)
