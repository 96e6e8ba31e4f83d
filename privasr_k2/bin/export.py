r"""Export an acoustic model, a recognizer for privasr transcribe, a graph, lattices or lists.

    privasr export --in-model exp/ctc/am --out-torchscript model.pt --out-onnx model.onnx \
        --out-tokens tokens.txt
    privasr export --in-model exp/ctc/am --in-public-encoder models/base \
        --out-difference trained.safetensors
    privasr export --in-difference trained.safetensors --in-public-encoder models/base \
        --out-model exp/theirs/am
    privasr export --in-graph data/graph_bpe_500 --in-lang data/lang_bpe_500 \
        --out-hlg /their/data/lang_private
    privasr export --in-lattices exp/ctc/lattices_test --out-k2 /their/lattices_test
    privasr export --in-recognizer exp/ctc/recognizer.yaml --sherpa folder
    privasr export --in-nbest exp/ctc/nbest_test --out-kaldi kaldi_nbest_test --out-ctm test.ctm \
        --out-trn test.trn --out-ref-trn test.ref.trn
    privasr export --in-lattices exp/ctc/lattices_test --out-kaldi-lattices lat.1.gz \
        --out-words words.txt
    privasr export --in-class-lm data/lm/m2 --raw-words data/lang/words.txt \
        --out-kaldi-g data/lang/G.fst --out-kaldi-grammar data/lang_grammar

A model maps (features (N, T, F) float32, lengths (N,) int64) to (log_probs (N, T', C), lengths
(N,)). A difference is what was trained of a model that holds layers of a public encoder, without
the public weights. With the same encoder it becomes the model again.

--out-hlg is a folder of HLG.pt, tokens.txt and words.txt, with --in-lang also L.pt, which icefall's
decode.py opens, for its decoding and rescoring;
--out-k2 one of lattices.pt, a vector of word lattices for k2.Fsa.from_dict.

recognizer.yaml names a model, graph, features and weights by relative paths, so the tree can be
moved. With --in-lang, --in-lm and the layers of graph, hotwords and contacts, too, it says how
privasr transcribe makes another graph with a list. CTM needs lists with word times. With
--in-scores, the output of lm_scores, Kaldi's archives also have the costs of these LMs:
lm_cost.NAME.

A class LM becomes G.fst with its names in it, for mkgraph.sh, or a folder for make-grammar-fst:
G.fst with #nonterm:CLASS, and CLASS/G.fst with the names of each class. An n-gram model (--in-arpa)
becomes G.fst as by arpa2fst. Words are those of --raw-words, Kaldi's words.txt, and the model's are
taken in their case.

Lattices become compact lattices in Kaldi's binary archive: costs unscaled, no transition ids.

--sherpa writes a folder that sherpa-onnx takes as it is, with a README.md that says how: of a
recognizer with its graph, of a model (--in-model, maybe with its --in-feats) without one.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import atomic_path, write_text

#: What is written, with what it needs.
_NEEDS = {
    "out_torchscript": ("in_model",),
    "out_onnx": ("in_model",),
    "out_tokens": ("in_model",),
    "out_difference": ("in_model", "in_public_encoder"),
    "out_model": ("in_difference", "in_public_encoder"),
    "out_recognizer": ("in_model", "in_graph", "in_feats", "in_weights"),
    "out_hlg": ("in_graph",),
    "out_k2": ("in_lattices",),
    "out_sherpa": ("in_recognizer",),
    "out_kaldi": ("in_nbest",),
    "out_ctm": ("in_nbest",),
    "out_trn": ("in_nbest",),
    "out_ref_trn": ("in_nbest",),
    "out_kaldi_lattices": ("in_lattices",),
    "out_words": ("in_lattices",),
    "out_kaldi_g": ("in_class_lm", "raw_words"),
    "out_kaldi_grammar": ("in_class_lm", "raw_words"),
}
#: What may be given for a recognizer besides, both or none.
_FOR_LISTS = ("in_lang", "in_lm")


def main() -> None:
    """Parse, load and export."""
    parser = cli.parser(__doc__)
    model = parser.add_argument_group("a model")
    cli.add_flags(
        model,
        in_model="[DIR] the model's folder",
        out_torchscript="[FILE] for example model.pt",
        out_onnx="[FILE] for example model.onnx; of filter banks as sherpa-onnx reads it",
        out_tokens="[FILE] tokens.txt, which goes with it",
    )
    difference = parser.add_argument_group("what was trained upon a public encoder")
    cli.add_flags(
        difference,
        in_public_encoder="[PATH] the encoder's folder or file",
        out_difference="[FILE] of --in-model, what differs from the public weights",
        in_difference="[FILE] of --out-difference",
        out_model="[DIR] a model's folder of both",
    )
    recognizer = parser.add_argument_group("a recognizer, with --in-model and the layers of decode")
    cli.add_flags(
        recognizer,
        in_graph="[DIR] the graph folder",
        in_feats="[DIR] the feature folder",
        in_weights="[FILE] weights.json, chosen on dev",
        in_lang="[DIR] the language folder of the graph, for lists of names of transcribe",
        in_lm="[FILE] its n-gram model",
        out_recognizer="[FILE] recognizer.yaml",
    )
    graph = parser.add_argument_group("a graph for icefall, of --in-graph")
    cli.add_flags(graph, out_hlg="[DIR] HLG.pt, tokens.txt, words.txt; of --in-lang L.pt")
    sherpa = parser.add_argument_group("a folder for sherpa-onnx, of a recognizer or --in-model")
    cli.add_flags(
        sherpa,
        in_recognizer="[FILE] recognizer.yaml",
        out_sherpa="[DIR]|--sherpa model.onnx, tokens.txt, of a recognizer HLG.fst and words.txt",
    )
    lists = parser.add_argument_group("N-best lists")
    cli.add_flags(
        lists,
        in_nbest="[DIR] nbest_<role>, with *.jsonl",
        in_scores="[FILE...] of lm_scores",
        out_kaldi="[DIR] words, ac_cost and lm_cost as text",
        out_ctm="[FILE] the best words with times",
        out_trn="[FILE] the best words",
        out_ref_trn="[FILE] the references",
    )
    lattices = parser.add_argument_group("lattices")
    cli.add_flags(
        lattices,
        in_lattices="[DIR] lattices_<role>, with *.safetensors",
        out_k2="[DIR] lattices.pt, utterances.txt and words.txt, for icefall's rescoring",
        out_kaldi_lattices="[FILE] Kaldi's lat.1.gz",
        out_words="[FILE] their words.txt",
    )
    graphs = parser.add_argument_group("G.fst for Kaldi")
    cli.add_flags(
        graphs,
        in_class_lm="[DIR] a class LM's folder",
        in_arpa="[FILE] an n-gram model",
        raw_words="[FILE] Kaldi's words.txt",
        out_kaldi_g="[FILE] G.fst",
        out_kaldi_grammar="[DIR] its parts",
    )
    args = cli.parse(parser)
    written = [name for name in _NEEDS if getattr(args, name) is not None]
    needs = _NEEDS if args.in_recognizer else {**_NEEDS, "out_sherpa": ("in_model",)}
    needed = {name for out in written for name in needs[out]}
    inputs = {name for names in _NEEDS.values() for name in names}
    given = {name for name in (*inputs, "in_arpa", *_FOR_LISTS) if getattr(args, name)}
    if args.in_arpa and written == ["out_kaldi_g"]:
        needed = {"in_arpa", "raw_words"}
    if args.out_recognizer and given.issuperset(_FOR_LISTS):
        needed.update(_FOR_LISTS)
    if args.out_hlg and args.in_lang:
        needed.add("in_lang")
    if args.out_sherpa and args.in_model and args.in_feats:
        needed.add("in_feats")
    if not written or given != needed:
        wanted = "; ".join(f"{_flags(needs[out])} for {_flags([out])}" for out in written)
        found, wanted = _flags(sorted(given)) or "none", wanted or "an --out flag"
        raise ConfigError("privasr export", wanted, found, "see --help")
    if args.out_torchscript or args.out_onnx or args.out_tokens:
        _model(args)
    if args.out_difference or args.out_model:
        _difference(args)
    if args.out_recognizer:
        _recognizer(args)
    if args.out_hlg:
        _graph(args)
    if args.out_sherpa:
        _sherpa(args)
    if args.in_nbest:
        _lists(args)
    if args.in_lattices:
        _lattices(args)
    if args.raw_words:
        _kaldi_g(args)


def _flags(names: Sequence[str]) -> str:
    return " ".join(f"--{name.replace('_', '-')}" for name in names)


def _model(args: argparse.Namespace) -> None:
    from privasr_k2.am.checkpoints import load_model
    from privasr_k2.am.exporting import to_onnx, to_torchscript
    from privasr_k2.am.files import TOKENS
    from privasr_k2.graph.lang import symbols_text

    model = load_model(args.in_model)
    if args.out_torchscript is not None:
        to_torchscript(model, args.out_torchscript)
    if args.out_onnx is not None:
        to_onnx(model, args.out_onnx)
    if args.out_tokens is not None:
        if model.tokens is None:
            place, way_out = args.in_model / TOKENS, "put the file there that it was trained with"
            raise DataError(place, "the model's tokens", "no such file", way_out)
        write_text(args.out_tokens, symbols_text(model.tokens))


def _difference(args: argparse.Namespace) -> None:
    from privasr_k2.am.difference import put_together, write_difference
    from privasr_k2.encoders.loading import load_encoder

    encoder = load_encoder(args.in_public_encoder)
    if args.out_difference is not None:
        write_difference(args.in_model, encoder, args.out_difference)
    if args.out_model is not None:
        put_together(args.in_difference, encoder, args.out_model)


def _recognizer(args: argparse.Namespace) -> None:
    from privasr_k2 import config
    from privasr_k2.decoding.jobs import DecodeConfig
    from privasr_k2.decoding.recognizer import RecognizerConfig, describe

    sources = None
    if args.in_lang is None:
        settings = cli.load(DecodeConfig, args)
    else:
        settings = cli.load(RecognizerConfig, args)
        sources = args.in_lang, args.in_lm, settings
    spec = describe(
        model=args.in_model,
        graph=args.in_graph,
        features=args.in_feats,
        weights=args.in_weights,
        search=settings.search(),
        beside=args.out_recognizer.parent,
        sources=sources,
    )
    config.save(spec, args.out_recognizer)


def _graph(args: argparse.Namespace) -> None:
    from privasr_k2.graph.hlg import load_graph
    from privasr_k2.graph.icefall_graph import export_hlg
    from privasr_k2.graph.lang import load_lang

    lang = load_lang(args.in_lang) if args.in_lang else None
    export_hlg(load_graph(args.in_graph), args.out_hlg, lang)


def _sherpa(args: argparse.Namespace) -> None:
    from privasr_k2.decoding.sherpa import of_model, of_recognizer, write_sherpa

    if args.in_recognizer:
        parts = of_recognizer(args.in_recognizer)
    else:
        parts = of_model(args.in_model, args.in_feats)
    write_sherpa(parts, args.out_sherpa)


def _lists(args: argparse.Namespace) -> None:
    from privasr_k2.decoding.lm_scores import read_lm_scores, with_lm_scores
    from privasr_k2.scoring.nbest_formats import write_ctm, write_kaldi, write_trn
    from privasr_k2.scoring.nbest_lists import read_nbest

    lists = read_nbest(args.in_nbest)
    lists = with_lm_scores(lists, read_lm_scores(args.in_scores, lists))
    if args.out_kaldi:
        write_kaldi(lists, args.out_kaldi)
    if args.out_ctm:
        write_ctm(lists, args.out_ctm)
    if args.out_trn:
        write_trn(lists, args.out_trn)
    if args.out_ref_trn:
        write_trn(lists, args.out_ref_trn, references=True)


def _lattices(args: argparse.Namespace) -> None:
    from privasr_k2.decoding.kaldi_archives import write_kaldi_lattices
    from privasr_k2.decoding.lattice_files import read_lattices
    from privasr_k2.graph.lang import symbols_text

    found = read_lattices(args.in_lattices)
    if args.out_k2:
        from privasr_k2.decoding.k2_lattices import export_k2

        export_k2(found, args.out_k2)
    if args.out_kaldi_lattices:
        write_kaldi_lattices(args.out_kaldi_lattices, found.lattices)
    if args.out_words:
        write_text(args.out_words, symbols_text(found.words))


def _kaldi_g(args: argparse.Namespace) -> None:
    from privasr_k2.graph import kaldi_grammar as kaldi
    from privasr_k2.graph.kaldi_files import read_table
    from privasr_k2.lm.arpa import read_arpa
    from privasr_k2.lm.class_files import load_class_lm
    from privasr_k2.lm.letter_case import arpa_in_case_of, class_lm_in_case_of

    words = kaldi.KaldiWords(args.raw_words, read_table(args.raw_words))
    if args.in_arpa:
        model = arpa_in_case_of([*words.word_ids], read_arpa(args.in_arpa), args.in_arpa)
        G = kaldi.plain_g(model, words, place=args.in_arpa)
        kaldi.write_g(args.out_kaldi_g, G)
        return
    found = load_class_lm(args.in_class_lm)
    lm = class_lm_in_case_of([*words.word_ids], found, args.in_class_lm)
    if args.out_kaldi_g:
        kaldi.write_g(args.out_kaldi_g, kaldi.whole_g(lm, words, place=args.in_class_lm))
    if args.out_kaldi_grammar:
        parts = kaldi.parts_of_g(lm, words, place=args.in_class_lm)
        with atomic_path(args.out_kaldi_grammar) as folder:
            for kind, G in parts.items():
                (folder / kind).mkdir(parents=True, exist_ok=True)
                kaldi.write_g(folder / kind / "G.fst", G)


if __name__ == "__main__":
    cli.run(main)
