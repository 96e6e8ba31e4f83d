"""Decode the utterances of one role, or one job's share of them, with an acoustic model and a graph.

Without --in-weights every point of the grid is written (dev); with it only the chosen point. With
--set backend=kaldi, kaldi_decoder searches in place of k2.

    python -m privasr_k2.bin.decode --in-model exp/ctc/am --in-graph data/graph_phone \\
        --in-feats data/feats_fbank --out-hyps exp/ctc/decode_dev/1.jsonl \\
        --config conf/common.yaml#decode --set role=dev job=1 num_jobs=2
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.decoding.jobs import DecodeConfig, choose_device, decode_cuts
from privasr_k2.decoding.kaldi_backend import open_decoder
from privasr_k2.decoding.tune import read_weights
from privasr_k2.fileio import write_jsonl


def main() -> None:
    """Parse, decode, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-model", type=Path, required=True, help="the acoustic model's folder")
    made.add_argument("--in-graph", type=Path, required=True, help="the graph folder")
    made.add_argument("--in-feats", type=Path, required=True, help="the feature folder")
    made.add_argument("--in-weights", type=Path, help="weights.json, chosen on dev")
    made.add_argument("--out-hyps", type=Path, required=True, help="the records, JSON Lines")
    cli.add_device(made)
    cli.add_config(made)
    args = cli.parse(made)
    config = cli.load(DecodeConfig, args)
    if args.in_weights is not None:
        weights = read_weights(args.in_weights)
        config = dataclasses.replace(
            config, lm_weights=[weights.lm_weight], insertion_penalties=[weights.insertion_penalty]
        )
    from privasr_k2.am.checkpoints import load_model
    from privasr_k2.data.manifests import load_cuts

    device = choose_device(args.device)
    model = load_model(args.in_model, device)
    decoder = open_decoder(args.in_graph, config, device=device)
    decoder.check_model(model.num_tokens, model.tokens, args.in_model, model.ctc_topology)
    cuts = load_cuts(args.in_feats, config.role)
    write_jsonl(
        args.out_hyps, (record.to_dict() for record in decode_cuts(model, decoder, cuts, config, device))
    )


if __name__ == "__main__":
    cli.run(main)
