"""Decode the utterances of one role, or one job's share of them, with an end-to-end model and no graph.

Without --in-weights every point of the grid of insertion penalties is written (dev); with it only the chosen
point; LM weights are 0. --out-nbest gets the N-best lists of the same search. Units: characters or BPE. Of a
folder of train_heads --set head=K decodes.

    python -m privasr_k2.bin.decode_e2e --in-model exp/rnnt/am --in-feats data/feats_fbank \\
        --out-hyps exp/rnnt/decode_dev/1.jsonl --out-nbest exp/rnnt/nbest_dev/1.jsonl \\
        --config conf/pate.yaml#decode_e2e --set role=dev job=1 num_jobs=2
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.decoding.end_to_end import EndToEndConfig, decode_e2e, prepare
from privasr_k2.decoding.tune import read_weights
from privasr_k2.fileio import write_jsonl
from privasr_k2.scoring.nbest_lists import write_nbest


def main() -> None:
    """Parse, decode, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-model", type=Path, required=True, help="the acoustic model's folder, or heads")
    made.add_argument("--in-feats", type=Path, required=True, help="the feature folder")
    made.add_argument("--in-weights", type=Path, help="weights.json, chosen on dev")
    made.add_argument("--out-hyps", type=Path, required=True, help="the records, JSON Lines")
    made.add_argument("--out-nbest", type=Path, help="the N-best lists, JSON Lines")
    cli.add_device(made)
    cli.add_config(made)
    args = cli.parse(made)
    config = cli.load(EndToEndConfig, args)
    if args.in_weights is not None:
        config = dataclasses.replace(
            config, insertion_penalties=[read_weights(args.in_weights).insertion_penalty]
        )
    import torch

    from privasr_k2.am.checkpoints import load_recognizer
    from privasr_k2.data.manifests import load_cuts
    from privasr_k2.pate.heads import load_heads
    from privasr_k2.training.distributed import choose_device

    torch.set_num_threads(args.num_jobs)
    device = str(choose_device(args.device))
    if config.head:
        [model] = load_heads(args.in_model, device, per_token=False, chosen=[config.head]).models
    else:
        model = load_recognizer(args.in_model, device)
    prepare(model, args.in_model, config)
    found = list(decode_e2e(model, load_cuts(args.in_feats, config.role), config, device))
    write_jsonl(args.out_hyps, (record.to_dict() for record, _ in found))
    if args.out_nbest is not None:
        write_nbest(args.out_nbest, (lists for _, lists in found))


if __name__ == "__main__":
    cli.run(main)
