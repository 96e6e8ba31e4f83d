"""Compile the decoding graphs from a language folder and an ARPA file: HLG for k2, TLG for Kaldi's decoders.

    python -m privasr_k2.bin.compile_graph --in-lang data/lang_phone --in-lm data/lm/phone.arpa.gz \\
        --out-dir data/graph_phone --config conf/graph.yaml
"""

from __future__ import annotations

import logging
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.graph.hlg import GraphConfig, compile_graph, save_graph
from privasr_k2.graph.lang import file_hash, load_lang
from privasr_k2.lm.arpa import read_arpa

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, compile, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-lang", type=Path, required=True, help="the language folder")
    made.add_argument("--in-lm", type=Path, required=True, help="the n-gram model, ARPA")
    made.add_argument("--out-dir", type=Path, required=True, help="the graph folder")
    cli.add_config(made)
    args = cli.parse(made)
    config = cli.load(GraphConfig, args)
    lang = load_lang(args.in_lang)
    graphs, info = compile_graph(lang, read_arpa(args.in_lm), config, model_path=args.in_lm)
    sources = {
        path.name: file_hash(path)
        for path in (lang.folder / "lexicon.txt", lang.folder / "tokens.txt", args.in_lm)
    }
    save_graph(graphs, lang, {**info, "sha256": sources}, args.out_dir)
    for name in ("HLG", "TLG"):
        log.info("%s: %d states, %d arcs", name, info["num_states"][name], info["num_arcs"][name])


if __name__ == "__main__":
    cli.run(main)
