"""Make compact word lattices of one role, or of one job's share of it, with an acoustic model and a graph.

A lattice holds every word sequence within a beam of the best one, each with the scores of its best alignment
at the weights that were chosen on dev: what rescore_lattices reads.

    python -m privasr_k2.bin.make_lattices --in-model exp/ctc/am --in-graph data/graph_phone \\
        --in-weights exp/ctc/weights.json --in-feats data/feats_fbank \\
        --out-lattices exp/ctc/lattices_dev/1.safetensors \\
        --config conf/common.yaml#decode conf/common.yaml#lattices \\
        --set role=dev job=1 num_jobs=2

With --out-kaldi FILE the same as text for Kaldi's lattice-copy, words by their numbers in the graph.
"""

from __future__ import annotations

from pathlib import Path

from privasr_k2.bin import cli
from privasr_k2.decoding.first_pass import Decoder
from privasr_k2.decoding.jobs import choose_device
from privasr_k2.decoding.lattice_files import kaldi_text, write_lattices
from privasr_k2.decoding.lattice_jobs import LatticeJobConfig, lattice_cuts
from privasr_k2.decoding.lattices import LatticeSearch
from privasr_k2.decoding.tune import read_weights
from privasr_k2.fileio import write_text


def main() -> None:
    """Parse, search, write."""
    made = cli.parser(__doc__)
    made.add_argument("--in-model", type=Path, required=True, help="the acoustic model's folder")
    made.add_argument("--in-graph", type=Path, required=True, help="the graph folder")
    made.add_argument("--in-weights", type=Path, required=True, help="weights.json, chosen on dev")
    made.add_argument("--in-feats", type=Path, required=True, help="the feature folder")
    made.add_argument("--out-lattices", type=Path, required=True, metavar="FILE", help="*.safetensors")
    made.add_argument("--out-kaldi", type=Path, metavar="FILE", help="the same as Kaldi's text")
    cli.add_device(made)
    cli.add_config(made)
    args = cli.parse(made)
    config = cli.load(LatticeJobConfig, args)
    weights = read_weights(args.in_weights)
    from privasr_k2.am.checkpoints import load_model
    from privasr_k2.data.manifests import load_cuts

    device = choose_device(args.device)
    model = load_model(args.in_model, device)
    decoder = Decoder.from_folder(args.in_graph, config, device=device)
    decoder.check_model(model.num_tokens, model.tokens, args.in_model, model.ctc_topology)
    cuts, search = load_cuts(args.in_feats, config.role), LatticeSearch(decoder, weights, config)
    lattices = list(lattice_cuts(model, search, cuts, config, device))
    write_lattices(args.out_lattices, lattices, decoder.graph.words, weights)
    if args.out_kaldi:
        write_text(args.out_kaldi, "".join(kaldi_text(one) for one in lattices if one.num_states))


if __name__ == "__main__":
    cli.run(main)
