"""Make the N-best lists of one role, or of one job's share of it, with an acoustic model and a graph.

The hypotheses of an utterance have different words, and are exactly the best ones of its lattice at the
weights that were chosen on dev; with --set method=sampled, those of drawn paths. With --in-lang, the folder
that the graph was compiled from, words have times.

    python -m privasr_k2.bin.make_nbest --in-model exp/ctc/am --in-graph data/graph_phone \\
        --in-weights exp/ctc/weights.json --in-feats data/feats_fbank --in-lang data/lang_phone \\
        --out-nbest exp/ctc/nbest_dev/1.jsonl --config conf/common.yaml#decode conf/common.yaml#nbest \\
        --set role=dev job=1 num_jobs=2
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.decoding.first_pass import Decoder
from privasr_k2.decoding.jobs import choose_device
from privasr_k2.decoding.nbest import NbestSearch
from privasr_k2.decoding.nbest_jobs import NbestJobConfig, WordTimes, nbest_cuts
from privasr_k2.decoding.tune import read_weights
from privasr_k2.graph.lang import load_lang
from privasr_k2.scoring.nbest_lists import write_nbest


def main() -> None:
    """Parse, search, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-model", type=Path, required=True, help="the acoustic model's folder")
    made.add_argument("--in-graph", type=Path, required=True, help="the graph folder")
    made.add_argument("--in-weights", type=Path, required=True, help="weights.json, chosen on dev")
    made.add_argument("--in-feats", type=Path, required=True, help="the feature folder")
    made.add_argument("--in-lang", type=Path, help="the graph's language folder, for word times")
    made.add_argument("--out-nbest", type=Path, required=True, help="the lists, JSON Lines")
    cli.add_device(made)
    cli.add_config(made)
    args = cli.parse(made)
    config = cli.load(NbestJobConfig, args)
    weights = read_weights(args.in_weights)
    from privasr_k2.am.checkpoints import load_model
    from privasr_k2.data.manifests import load_cuts

    device = choose_device(args.device)
    model = load_model(args.in_model, device)
    decoder = Decoder.from_folder(args.in_graph, config, device=device)
    decoder.check_model(model.num_tokens, model.tokens, args.in_model, model.ctc_topology)
    word_times = WordTimes(load_lang(args.in_lang), decoder.graph) if args.in_lang else None
    cuts, search = load_cuts(args.in_feats, config.role), NbestSearch(decoder, weights, config)
    write_nbest(args.out_nbest, nbest_cuts(model, search, cuts, config, device, word_times=word_times))


if __name__ == "__main__":
    cli.run(main)
