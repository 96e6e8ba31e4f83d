r"""Import a model, a lang folder or graph of icefall, or what a recognizer made.

    privasr import --raw-model /their/model.pt --raw-tokens /their/tokens.txt \
        --out-dir exp/theirs/am
    privasr import --raw-model /their/pretrained.pt --raw-model-code /their/zipformer \
        --raw-tokens /their/tokens.txt --out-dir exp/theirs/am \
        --config conf/common.yaml#icefall_code --set model_args='--use-ctc 1'
    privasr import --in-public-whisper models/base --in-lang data/lang_tokenizer \
        --out-dir exp/whisper/am
    privasr import --raw-icefall-lang /their/data/lang_bpe_500 --out-lang data/lang_bpe_500
    privasr import --raw-hlg /their/data/lang_bpe_500/HLG.pt --in-lang data/lang_bpe_500 \
        --out-graph data/graph_bpe_500
    privasr import --raw-kaldi /their/nbest --in-cuts data/manifests/cuts_test.jsonl.gz \
        --out-nbest exp/theirs/nbest_test/1.jsonl
    privasr import --raw-lattices exp/chain/decode_dev/lat.*.gz --raw-words graph/words.txt \
        --raw-data data/dev --out-nbest exp/chain/nbest_dev/1.jsonl \
        --config conf/common.yaml#kaldi_lattices
    privasr import --raw-scores exp/chain/scores_dev/*.ark --raw-graph graph/HCLG.fst \
        --raw-words graph/words.txt --raw-transitions exp/chain/final.mdl --raw-data data/dev \
        --out-lattices exp/chain/lattices_dev/1.safetensors \
        --config conf/common.yaml#kaldi_lattices conf/common.yaml#kaldi_scores

The model is CTC, exported as TorchScript or ONNX, for example by icefall. It maps (features (N, T,
F), lengths (N,)) to (log_probs (N, T', C), lengths (N,)). Its features must be those of
compute_features. A TorchScript file is a program that will be run: import only files that you
trust. With --raw-model-code it is a state dict of icefall: train.py of that folder builds the
model, which is kept as TorchScript. That code is run: name only a folder that you trust.

--in-public-whisper is a public Whisper model; its decoder becomes a model of kind whisper, to be
trained further on its encoder's outputs (compute_features with kind=encoder). --in-lang spells
words in its tokens (prepare_lang with units=tokenizer).

An icefall lang folder keeps its tokens, words and numbers, and SIL between words. HLG.pt becomes a
graph folder of the same arcs. Their pickles are read without running what they may call.

--in-cuts gives references and users. Its utterances that the output lacks become utterances without
a path. --raw-data gives them, too: a Kaldi data directory with text and utt2spk, or with utt2spk
alone, which gives users. Without either the lists have no references. CTM and trn become lists of
one hypothesis without scores.

Lattices of Kaldi, binary or text, become lists, or with --out-lattices what rescore_lattices reads.
--raw-scores are log-likelihoods (nnet3-compute) to be decoded by Kaldi's simple lattice decoder.
--raw-transitions says which column each transition id of HCLG.fst stands for; without it the input
labels of --raw-graph are numbers of columns, from 1. For --in-graph, a graph of compile_graph,
columns are the tokens of its tokens.txt, the blank first.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError

if TYPE_CHECKING:
    from privasr_k2.decoding.kaldi_archives import KaldiLattice
    from privasr_k2.decoding.kaldi_lattices import KaldiLatticeConfig, WordTable
    from privasr_k2.scoring.nbest_formats import Reference

_REFERENCES = ("in_cuts", "raw_data")
#: What each source needs, one of several ways, and what it may have besides.
_NEEDS: dict[str, tuple[tuple[set[str], ...], set[str]]] = {
    "raw_model": (
        ({"raw_tokens", "out_dir"}, {"raw_tokens", "out_dir", "raw_model_code"}),
        set(),
    ),
    "in_public_whisper": (({"in_lang", "out_dir"},), set()),
    "raw_icefall_lang": (({"out_lang"},), set()),
    "raw_hlg": (({"in_lang", "out_graph"},), set()),
    **dict.fromkeys(("raw_kaldi", "raw_ctm", "raw_trn"), (({"out_nbest"},), {*_REFERENCES})),
    "raw_lattices": (
        ({"raw_words", "out_nbest"}, {"raw_words", "out_lattices"}),
        {*_REFERENCES},
    ),
    "raw_scores": (
        tuple(
            {*graph, out}
            for graph in (("in_graph",), ("raw_graph", "raw_words", "raw_transitions"),
                          ("raw_graph", "raw_words"))
            for out in ("out_nbest", "out_lattices")
        ),
        {*_REFERENCES},
    ),
}  # fmt: skip


def main() -> None:
    """Parse, read, check, write."""
    parser = cli.parser(__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    cli.add_flags(
        source,
        raw_model="[FILE] model.pt or model.onnx",
        in_public_whisper="[DIR] a Whisper model with tokenizer.json",
        raw_icefall_lang="[DIR] tokens.txt, words.txt, lexicon.txt or L.pt, maybe bpe.model",
        raw_hlg="[FILE] HLG.pt",
        raw_kaldi="[DIR] words, ac_cost and lm_cost as text",
    )
    cli.add_flags(source, raw_ctm="[FILE+] words with times")
    cli.add_flags(source, raw_trn="[FILE] words (utterance)")
    cli.add_flags(source, raw_lattices="[FILE+] Kaldi's lat.*.gz")
    cli.add_flags(source, raw_scores="[FILE+] *.ark or *.scp of (T, P) log-likelihoods")
    cli.add_flags(
        parser,
        raw_tokens="[FILE] the model's tokens.txt",
        raw_model_code="[DIR] icefall's folder of --raw-model, with train.py, which is run",
        in_lang="[DIR] the language folder of --in-public-whisper or --raw-hlg",
        raw_words="[FILE] words.txt of --raw-lattices, --raw-graph",
        raw_graph="[FILE] HCLG.fst of --raw-scores",
        raw_transitions="[FILE] final.mdl of --raw-graph",
        in_graph="[DIR] a graph folder for --raw-scores",
        in_cuts="[FILE] cuts_<role>.jsonl.gz with the references",
        raw_data="[DIR] Kaldi data directory with the references",
        out_dir="[DIR] the model's folder",
        out_lang="[DIR] the language folder",
        out_graph="[DIR] the graph folder",
        out_nbest="[FILE] the lists, JSON Lines",
        out_lattices="[FILE] the lattices, *.safetensors",
    )
    args = cli.parse(parser)
    [kind] = (name for name in _NEEDS if getattr(args, name))
    _check(args, kind)
    _READERS.get(kind, _lists)(args)


def _lang(args: argparse.Namespace) -> None:
    from privasr_k2.graph.icefall_lang import import_icefall_lang

    _tell(import_icefall_lang(args.raw_icefall_lang, args.out_lang))


def _hlg(args: argparse.Namespace) -> None:
    from privasr_k2.graph.icefall_graph import import_hlg
    from privasr_k2.graph.lang import load_lang

    _tell(import_hlg(args.raw_hlg, load_lang(args.in_lang), args.out_graph))


def _tell(about: object) -> None:
    logging.getLogger(__name__).info("%s", about)


def _check(args: argparse.Namespace, kind: str) -> None:
    """Refuse flags that do not belong to the source, and missing ones."""
    ways, optional = _NEEDS[kind]
    known = set().union(*(set().union(*ways) | more for ways, more in _NEEDS.values()))
    given = {name for name in known if getattr(args, name) is not None}
    if given - optional not in ways or given.issuperset(_REFERENCES):
        wanted = "; or ".join(_flags(way) for way in ways)
        wanted += f"; maybe {' or '.join(map(_flag, _REFERENCES))}" if optional else ""
        found = _flags(given) or "nothing else"
        raise ConfigError(f"privasr import {_flag(kind)}", wanted, found, "see --help")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _flags(names: Iterable[str]) -> str:
    return " ".join(sorted(map(_flag, names), reverse=True))


def _model(args: argparse.Namespace) -> None:
    from privasr_k2.am.exported import import_exported

    if args.raw_model_code:
        from privasr_k2.am.icefall_code import IcefallCodeConfig, import_weights

        files = (args.raw_model, args.raw_model_code, args.raw_tokens, args.out_dir)
        _tell(import_weights(*files, cli.load(IcefallCodeConfig, args)))
        return
    _tell(import_exported(args.raw_model, args.raw_tokens, args.out_dir))


def _whisper(args: argparse.Namespace) -> None:
    from privasr_k2.am.whisper_files import import_whisper
    from privasr_k2.graph.lang import load_lang

    _tell(import_whisper(args.in_public_whisper, load_lang(args.in_lang), args.out_dir))


def _lists(args: argparse.Namespace) -> None:
    from privasr_k2.scoring.nbest_formats import read_ctm, read_kaldi, read_trn, with_references
    from privasr_k2.scoring.nbest_lists import write_nbest

    if args.raw_kaldi:
        ranked, place = read_kaldi(args.raw_kaldi), args.raw_kaldi
    elif args.raw_ctm:
        ranked, place = read_ctm(args.raw_ctm), args.raw_ctm[0]
    else:
        ranked, place = read_trn(args.raw_trn), args.raw_trn
    write_nbest(args.out_nbest, with_references(ranked, _references(args), place))


def _references(args: argparse.Namespace) -> dict[str, Reference] | None:
    from privasr_k2.scoring.nbest_formats import read_kaldi_references, read_references

    if args.raw_data:
        return read_kaldi_references(args.raw_data)
    return read_references(args.in_cuts) if args.in_cuts else None


def _lattices(args: argparse.Namespace) -> None:
    from privasr_k2.decoding.kaldi_lattices import KaldiLatticeConfig, WordTable, read_all
    from privasr_k2.graph.kaldi_files import read_table

    config = cli.load(KaldiLatticeConfig, args)
    table = WordTable.of(args.raw_words, read_table(args.raw_words), config)
    _write(args, read_all(args.raw_lattices, table), table, config)


def _scores(args: argparse.Namespace) -> None:
    from privasr_k2.decoding.kaldi_scores import (
        ScoresConfig,
        ScoreSearch,
        foreign_graph,
        own_graph,
        read_scores,
    )

    config = cli.load(ScoresConfig, args)
    if args.in_graph:
        graph, table = own_graph(args.in_graph, config)
    else:
        graph, table = foreign_graph(args.raw_graph, args.raw_words, args.raw_transitions, config)
    lattices = ScoreSearch(graph, config, table.place).lattices(read_scores(args.raw_scores))
    _write(args, lattices, table, config.searched())


def _write(
    args: argparse.Namespace,
    lattices: Iterable[KaldiLattice],
    table: WordTable,
    config: KaldiLatticeConfig,
) -> None:
    from privasr_k2.confidence.nbest_posteriors import with_posteriors
    from privasr_k2.decoding.kaldi_lattices import imported_lattices, imported_lists
    from privasr_k2.decoding.lattice_files import write_lattices
    from privasr_k2.scoring.nbest_lists import write_nbest

    references = _references(args)
    if args.raw_data and references:
        references = {name: config.reference(told) for name, told in references.items()}
    found, weights = (lattices, table, references, config), config.weights
    if args.out_lattices:
        write_lattices(args.out_lattices, imported_lattices(*found), table.words, weights)
    else:
        scale = config.posterior_scale
        lists = (with_posteriors(one, scale, weights) for one in imported_lists(*found))
        write_nbest(args.out_nbest, lists)


_READERS = {
    "raw_model": _model,
    "in_public_whisper": _whisper,
    "raw_icefall_lang": _lang,
    "raw_hlg": _hlg,
    "raw_lattices": _lattices,
    "raw_scores": _scores,
}

if __name__ == "__main__":
    cli.run(main)
