"""Write recognizer.yaml: which model, graph, features and weights make up a recipe's recognizer.

bin.transcribe reads it. Paths in it are relative, so that a tree may be moved.
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2 import config
from privasr_k2.bin import cli
from privasr_k2.decoding.jobs import DecodeConfig
from privasr_k2.decoding.recognizer import describe


def main() -> None:
    """Parse, describe, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-model", type=Path, required=True, help="the acoustic model's folder")
    made.add_argument("--in-graph", type=Path, required=True, help="the graph folder")
    made.add_argument("--in-feats", type=Path, required=True, help="the feature folder")
    made.add_argument("--in-weights", type=Path, required=True, help="weights.json, chosen on dev")
    made.add_argument("--out-recognizer", type=Path, required=True, help="the file to write")
    cli.add_config(made)
    args = cli.parse(made)
    spec = describe(
        model=args.in_model,
        graph=args.in_graph,
        features=args.in_feats,
        weights=args.in_weights,
        search=cli.load(DecodeConfig, args).search(),
        beside=args.out_recognizer.parent,
    )
    config.save(spec, args.out_recognizer)


if __name__ == "__main__":
    cli.run(main)
