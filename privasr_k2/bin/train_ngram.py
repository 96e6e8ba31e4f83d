"""Estimate a word n-gram model and prune it by entropy; or check and take over an ARPA file.

Its vocabulary is closed: that of the language folder. Other words of the text count as <unk>.

    python -m privasr_k2.bin.train_ngram --in-manifests data/manifests --in-lang data/lang_phone \\
        --out-lm data/lm/phone.arpa.gz --config conf/lm_ngram.yaml --set order=3
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.data.manifests import cuts_path, load_cuts
from privasr_k2.fileio import read_lines
from privasr_k2.graph.lang import load_lang
from privasr_k2.lm.arpa import write_arpa
from privasr_k2.lm.train import NgramConfig, choose_text, import_arpa, train_ngram


def main() -> None:
    """Parse, estimate, write."""
    made = cli.parser(__doc__)
    made.add_argument(
        "--in-manifests", type=Path, required=True, help="cuts_train.jsonl.gz, maybe lm_text.txt.gz"
    )
    made.add_argument("--in-lang", type=Path, required=True, help="the language folder")
    made.add_argument("--raw-arpa", type=Path, help="an ARPA file to take instead of estimating one")
    made.add_argument(
        "--out-lm", type=Path, required=True, help="the model, ARPA; gzipped if the name ends in .gz"
    )
    cli.add_config(made)
    args = cli.parse(made)
    config = cli.load(NgramConfig, args)
    vocabulary = list(load_lang(args.in_lang).word_ids)
    held_out = _texts(args.in_manifests, "dev")
    if args.raw_arpa is not None:
        model = import_arpa(args.raw_arpa, vocabulary, config, held_out=held_out)
    else:
        lm_text = args.in_manifests / "lm_text.txt.gz"
        further = [line.split() for _, line in read_lines(lm_text)] if lm_text.exists() else None
        sentences = choose_text(config, _texts(args.in_manifests, "train"), further, lm_text)
        model = train_ngram(sentences, vocabulary, config, held_out=held_out)
    write_arpa(model, args.out_lm)


def _texts(manifests: Path, role: str) -> list[list[str]]:
    if not cuts_path(manifests, role).exists():
        return []
    return [cut.supervisions[0].text.split() for cut in load_cuts(manifests, role, lazy=True)]


if __name__ == "__main__":
    cli.run(main)
