r"""Decode one role, or one job's share of it: first-pass records, N-best lists or word lattices.

The --out flag chooses. --out-hyps: records of the whole grid of weights (dev), or with --in-weights
of the chosen point; --set backend=kaldi searches with kaldi_decoder. --out-nbest: lists of
different word sequences, exactly the best ones of the lattice, or with method=sampled of drawn
paths; --in-lang, the graph's language folder, adds word times. --out-lattices: all word sequences
within a beam, each with the scores of its best alignment; --out-kaldi writes them for Kaldi's
lattice-copy.

With --in-contact-graph of compile_graph and --in-contacts, a speaker, a tab and a name a line, each
speaker is decoded with their names: --out-hyps, with --in-lang. Other speakers have none. Section
contacts has the probability of names.

Without --in-graph the model is an end-to-end one: --out-hyps, and --out-nbest from the same search;
LM weights are 0. --set head=K decodes with one head of a folder of train_heads, either way;
--in-shards with all teachers of a folder, by the mean of their posteriors [yang2022, eq. 3].

    privasr verb decode --in-model exp/ctc/am --in-graph data/graph_phone \
        --in-feats data/feats_fbank --out-hyps exp/ctc/decode_dev/1.jsonl \
        --config conf/common.yaml#decode --set role=dev job=1 num_jobs=2
    privasr verb decode --in-model exp/ctc/am --in-graph data/graph_phone \
        --in-feats data/feats_fbank --in-weights exp/ctc/weights.json \
        --out-nbest exp/ctc/nbest_dev/1.jsonl \
        --config conf/common.yaml#decode conf/common.yaml#nbest --set role=dev
    privasr verb decode --in-model exp/rnnt/am --in-feats data/feats_fbank \
        --out-hyps exp/rnnt/decode_dev/1.jsonl --config conf/pate.yaml#decode_e2e --set role=dev
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError, GraphError
from privasr_k2.fileio import write_jsonl, write_text
from privasr_k2.scoring.nbest_lists import write_nbest


def main() -> None:
    """Parse, decode, write."""
    args = cli.arguments(
        __doc__,
        device=True,
        in_model="PATH the model's folder, heads, or with --in-shards all teachers",
        in_shards="[PATH] the teachers' shards: all decode together",
        in_graph="[PATH] the graph folder; not for end-to-end models",
        in_contact_graph="[FILE] in its place: a graph that takes names of each speaker",
        in_contacts="[FILE] with it: a speaker, a tab and a name a line",
        in_feats="PATH the feature folder",
        in_weights="[PATH] weights.json, chosen on dev",
        in_lang="[PATH] the graph's language folder, for word times",
        out_hyps="[FILE] the records, JSON Lines",
        out_nbest="[FILE] the N-best lists, JSON Lines",
        out_lattices="[FILE] *.safetensors",
        out_kaldi="[FILE] the lattices as Kaldi's text",
    )
    _check(args)
    if args.in_contact_graph is not None:
        _with_contacts(args)
    elif args.in_graph is None:
        _end_to_end(args)
    elif args.out_hyps:
        _first_pass(args)
    elif args.out_nbest:
        _nbest(args)
    else:
        _lattices(args)


def _check(args: argparse.Namespace) -> None:
    given = {name for name, value in vars(args).items() if value is not None}
    if given & {"in_contact_graph", "in_contacts"}:
        needs = "--in-contact-graph, --in-contacts, --in-lang and --out-hyps"
        wrong = sorted(given & {"in_graph", "in_shards", "out_nbest", "out_lattices", "out_kaldi"})
        fits = not wrong and given >= {"in_contact_graph", "in_contacts", "in_lang", "out_hyps"}
    elif args.in_graph is None:
        wrong = sorted(given & {"in_lang", "out_lattices", "out_kaldi"})
        fits, needs = not wrong and args.out_hyps, "--out-hyps, or --in-graph for the others"
    else:
        wrong = sorted(given & {"out_hyps", "out_nbest", "out_lattices"})
        fits = len(wrong) == 1 and (args.out_hyps or args.in_weights)
        fits = fits and (args.out_nbest or not args.in_lang)
        fits = fits and (args.out_lattices or not args.out_kaldi)
        needs = (
            "--out-hyps; --out-nbest with --in-weights, maybe --in-lang; or --out-lattices with "
            "--in-weights, maybe --out-kaldi"
        )
    if args.in_shards is not None and not (args.out_hyps or args.out_nbest):
        fits, wrong, needs = False, ["in_shards"], "--in-shards with --out-hyps or --out-nbest"
    if not fits:
        found = " ".join(f"--{name.replace('_', '-')}" for name in wrong) or "none of them"
        raise ConfigError("the command line", needs, found, "see --help")


def _opened(args: argparse.Namespace, config: Any, open_decoder: Callable[..., Any]) -> tuple:
    """The device, the model, the decoder that fits it, and the utterances.

    Args:
        open_decoder: of the graph, the settings and the device.
    """
    from privasr_k2.am.checkpoints import load_model
    from privasr_k2.data.manifests import load_cuts
    from privasr_k2.decoding.jobs import choose_device
    from privasr_k2.graph.folder import check_outputs

    device = choose_device(args.device)
    model = _teachers(args, config.head, device) or load_model(args.in_model, device)
    decoder = open_decoder(args.in_graph or args.in_contact_graph, config, device=device)
    outputs = model.num_tokens, model.tokens, model.ctc_topology
    check_outputs(decoder.graph, *outputs, args.in_model)
    return device, model, decoder, load_cuts(args.in_feats, config.role)


def _teachers(args: argparse.Namespace, head: int, device: str) -> Any:
    """All teachers as one model, or one head; None for a model by itself."""
    from privasr_k2.pate.heads import load_heads
    from privasr_k2.pate.loading import open_ensemble
    from privasr_k2.pate.shards import read_shards

    if args.in_shards is not None:
        teachers = read_shards(args.in_shards).teachers
        return open_ensemble(args.in_model, teachers, device, per_token=False)
    if head:
        return load_heads(args.in_model, device, per_token=False, chosen=[head]).models[0]
    return None


def _first_pass(args: argparse.Namespace) -> None:
    from privasr_k2.decoding.jobs import DecodeConfig, decode_cuts
    from privasr_k2.decoding.kaldi_backend import open_decoder
    from privasr_k2.decoding.tune import read_weights

    config = cli.load(DecodeConfig, args)
    if args.in_weights is not None:
        config = config.at(read_weights(args.in_weights))
    device, model, decoder, cuts = _opened(args, config, open_decoder)
    records = decode_cuts(model, decoder, cuts, config, device)
    write_jsonl(args.out_hyps, (record.to_dict() for record in records))


def _with_contacts(args: argparse.Namespace) -> None:
    from privasr_k2.decoding.contact_jobs import (
        ContactDecodeConfig,
        ContactSearch,
        decode_with_contacts,
    )
    from privasr_k2.decoding.tune import read_weights
    from privasr_k2.graph.contacts import ContactGraph
    from privasr_k2.graph.lang import load_lang
    from privasr_k2.text.hotwords import read_speaker_lists

    config, lists = cli.load(ContactDecodeConfig, args), read_speaker_lists(args.in_contacts)
    if args.in_weights is not None:
        config = config.at(read_weights(args.in_weights))

    def open_search(path: Path, config: ContactDecodeConfig, device: str) -> ContactSearch:
        graph = ContactGraph.load(path, load_lang(args.in_lang), "")
        if graph is None:
            raise GraphError(path, "a graph of compile_graph", "no such file", "correct the name")
        return ContactSearch(graph, lists, config, log_prob=config.contact_log_prob, device=device)

    device, model, search, cuts = _opened(args, config, open_search)
    records = decode_with_contacts(model, search, cuts, config, device)
    write_jsonl(args.out_hyps, (record.to_dict() for record in records))


def _nbest(args: argparse.Namespace) -> None:
    from privasr_k2.decoding.first_pass import Decoder
    from privasr_k2.decoding.nbest import NbestSearch
    from privasr_k2.decoding.nbest_jobs import NbestJobConfig, WordTimes, nbest_cuts
    from privasr_k2.decoding.tune import read_weights
    from privasr_k2.graph.lang import load_lang

    weights = read_weights(args.in_weights)
    config = cli.load(NbestJobConfig, args).at(weights)
    device, model, decoder, cuts = _opened(args, config, Decoder.from_folder)
    times = WordTimes(load_lang(args.in_lang), decoder.graph) if args.in_lang else None
    search = NbestSearch(decoder, weights, config)
    lists = nbest_cuts(model, search, cuts, config, device, word_times=times)
    write_nbest(args.out_nbest, lists)


def _lattices(args: argparse.Namespace) -> None:
    from privasr_k2.decoding.first_pass import Decoder
    from privasr_k2.decoding.lattice_files import kaldi_text, write_lattices
    from privasr_k2.decoding.lattice_jobs import LatticeJobConfig, lattice_cuts
    from privasr_k2.decoding.lattices import LatticeSearch
    from privasr_k2.decoding.tune import read_weights

    weights = read_weights(args.in_weights)
    config = cli.load(LatticeJobConfig, args).at(weights)
    device, model, decoder, cuts = _opened(args, config, Decoder.from_folder)
    search = LatticeSearch(decoder, weights, config)
    lattices = list(lattice_cuts(model, search, cuts, config, device))
    write_lattices(args.out_lattices, lattices, decoder.graph.words, weights)
    if args.out_kaldi:
        text = (kaldi_text(lattice) for lattice in lattices if lattice.num_states)
        write_text(args.out_kaldi, "".join(text))


def _end_to_end(args: argparse.Namespace) -> None:
    import torch

    from privasr_k2.am.checkpoints import load_recognizer
    from privasr_k2.data.manifests import load_cuts
    from privasr_k2.decoding.end_to_end import EndToEndConfig, decode_e2e, prepare
    from privasr_k2.decoding.tune import read_weights
    from privasr_k2.training.distributed import choose_device

    config = cli.load(EndToEndConfig, args)
    if args.in_weights is not None:
        penalty = read_weights(args.in_weights).insertion_penalty
        config = dataclasses.replace(config, insertion_penalties=[penalty])
    torch.set_num_threads(args.num_jobs)
    device = str(choose_device(args.device))
    model = _teachers(args, config.head, device) or load_recognizer(args.in_model, device)
    prepare(model, args.in_model, config)
    decoded = list(decode_e2e(model, load_cuts(args.in_feats, config.role), config, device))
    write_jsonl(args.out_hyps, (record.to_dict() for record, _ in decoded))
    if args.out_nbest is not None:
        write_nbest(args.out_nbest, (lists for _, lists in decoded))


if __name__ == "__main__":
    cli.run(main)
