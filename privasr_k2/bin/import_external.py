r"""Import an acoustic model, or a recognizer's output as N-best lists.

    privasr import --raw-model /their/model.pt --raw-tokens /their/tokens.txt \
        --out-dir exp/theirs/am
    privasr import --in-public-whisper models/base --in-lang data/lang_tokenizer \
        --out-dir exp/whisper/am
    privasr import --raw-kaldi /their/nbest --in-cuts data/manifests/cuts_test.jsonl.gz \
        --out-nbest exp/theirs/nbest_test/1.jsonl
    privasr import --raw-lattices exp/chain/decode_dev/lat.*.gz --raw-words graph/words.txt \
        --in-cuts data/manifests/cuts_dev.jsonl.gz --out-nbest exp/chain/nbest_dev/1.jsonl \
        --config conf/common.yaml#kaldi_lattices

The model is CTC, exported as TorchScript or ONNX, for example by icefall. It maps (features (N, T,
F), lengths (N,)) to (log_probs (N, T', C), lengths (N,)). Its features must be those of
compute_features. A TorchScript file is a program that will be run: import only files that you
trust.

--in-public-whisper is a public Whisper model; its decoder becomes a model of kind whisper, to be
trained further on its encoder's outputs (compute_features with kind=encoder). --in-lang spells
words in its tokens (prepare_lang with units=tokenizer).

--in-cuts gives references and users. Its utterances that the output lacks become utterances without
a path. --raw-data gives them, too: a Kaldi data directory with text and utt2spk. Without either the
lists have no references. CTM and trn become lists of one hypothesis without
scores. Lattices of Kaldi, binary or text, become lists, or with --out-lattices what
rescore_lattices reads.
"""

from __future__ import annotations

import argparse
import logging
from typing import TYPE_CHECKING

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError

if TYPE_CHECKING:
    from privasr_k2.scoring.nbest_formats import Reference


def main() -> None:
    """Parse, read, check, write."""
    parser = cli.parser(__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    cli.add_flags(
        source,
        raw_model="[FILE] model.pt or model.onnx",
        in_public_whisper="[DIR] a Whisper model with tokenizer.json",
        raw_kaldi="[DIR] words, ac_cost and lm_cost as text",
    )
    cli.add_flags(source, raw_ctm="[FILE+] words with times")
    cli.add_flags(source, raw_trn="[FILE] words (utterance)")
    cli.add_flags(source, raw_lattices="[FILE+] Kaldi's lat.*.gz")
    cli.add_flags(
        parser,
        raw_tokens="[FILE] the model's tokens.txt",
        in_lang="[DIR] the language folder of --in-public-whisper",
        in_cuts="[FILE] cuts_<role>.jsonl.gz with the references",
        raw_data="[DIR] Kaldi data directory with the references",
        out_dir="[DIR] the model's folder",
        raw_words="[FILE] words.txt of --raw-lattices",
        out_nbest="[FILE] the lists, JSON Lines",
        out_lattices="[FILE] the lattices, *.safetensors",
    )
    args = cli.parse(parser)
    sources = [args.in_cuts, args.raw_data]
    lists, about = [args.out_nbest, *sources], [args.raw_tokens, args.in_lang, args.out_dir]
    needed, others = [args.out_nbest], [*about, args.raw_words, args.out_lattices]
    if None not in sources:
        raise ConfigError("privasr import", "--in-cuts or --raw-data", "both", "leave one out")
    lists += [args.raw_words, args.out_lattices]
    if args.raw_model:
        needed, others = [args.raw_tokens, args.out_dir], [*lists, args.in_lang]
    elif args.in_public_whisper:
        needed, others = [args.in_lang, args.out_dir], [*lists, args.raw_tokens]
    elif args.raw_lattices:
        out = args.out_nbest or args.out_lattices
        both = args.out_lattices if args.out_nbest else None
        needed, others = [args.raw_words, out], [*about, both]
    if None in needed or any(others):
        wanted = "--raw-model --raw-tokens --out-dir; --in-public-whisper --in-lang --out-dir;"
        wanted += " --raw-lattices --raw-words and --out-nbest or --out-lattices;"
        wanted += " or lists and --out-nbest; the last two maybe with --in-cuts or --raw-data"
        raise ConfigError("privasr import", wanted, "something else", "see --help")
    if args.raw_model:
        _model(args)
    elif args.in_public_whisper:
        _whisper(args)
    elif args.raw_lattices:
        _lattices(args)
    else:
        _lists(args)


def _model(args: argparse.Namespace) -> None:
    from privasr_k2.am.exported import import_exported

    spec = import_exported(args.raw_model, args.raw_tokens, args.out_dir)
    logging.getLogger(__name__).info("%s", spec)


def _whisper(args: argparse.Namespace) -> None:
    from privasr_k2.am.whisper_files import import_whisper
    from privasr_k2.graph.lang import load_lang

    spec = import_whisper(args.in_public_whisper, load_lang(args.in_lang), args.out_dir)
    logging.getLogger(__name__).info("%s", spec)


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
    from privasr_k2.confidence.nbest_posteriors import with_posteriors
    from privasr_k2.decoding.kaldi_lattices import (
        KaldiLatticeConfig,
        WordTable,
        imported_lattices,
        imported_lists,
        read_all,
    )
    from privasr_k2.decoding.lattice_files import write_lattices
    from privasr_k2.graph.lang import read_symbols
    from privasr_k2.scoring.nbest_lists import write_nbest

    config = cli.load(KaldiLatticeConfig, args)
    table = WordTable.of(args.raw_words, read_symbols(args.raw_words), config)
    references = _references(args)
    if args.raw_data and references:
        references = {name: config.reference(told) for name, told in references.items()}
    found = read_all(args.raw_lattices, table), table, references, config
    if args.out_lattices:
        write_lattices(args.out_lattices, imported_lattices(*found), table.words, config.weights)
    else:
        scale, weights = config.posterior_scale, config.weights
        lists = (with_posteriors(one, scale, weights) for one in imported_lists(*found))
        write_nbest(args.out_nbest, lists)


if __name__ == "__main__":
    cli.run(main)
