r"""Import an acoustic model, or a recognizer's output as N-best lists.

    privasr import --raw-model /their/model.pt --raw-tokens /their/tokens.txt \
        --out-dir exp/theirs/am
    privasr import --in-public-whisper models/base --in-lang data/lang_tokenizer \
        --out-dir exp/whisper/am
    privasr import --raw-kaldi /their/nbest --in-cuts data/manifests/cuts_test.jsonl.gz \
        --out-nbest exp/theirs/nbest_test/1.jsonl

The model is CTC, exported as TorchScript or ONNX, for example by icefall. It maps (features (N, T,
F), lengths (N,)) to (log_probs (N, T', C), lengths (N,)). Its features must be those of
compute_features. A TorchScript file is a program that will be run: import only files that you
trust.

--in-public-whisper is a public Whisper model; its decoder becomes a model of kind whisper, to be
trained further on its encoder's outputs (compute_features with kind=encoder). --in-lang spells
words in its tokens (prepare_lang with units=tokenizer).

--in-cuts gives references and users. Its utterances that the output lacks become utterances without
a path. Without it the lists have no references. CTM and trn become lists of one hypothesis without
scores.
"""

from __future__ import annotations

import argparse
import logging

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError


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
    cli.add_flags(
        parser,
        raw_tokens="[FILE] the model's tokens.txt",
        in_lang="[DIR] the language folder of --in-public-whisper",
        in_cuts="[FILE] cuts_<role>.jsonl.gz with the references",
        out_dir="[DIR] the model's folder",
        out_nbest="[FILE] the lists, JSON Lines",
    )
    args = cli.parse(parser, config=False)
    lists, about = [args.out_nbest, args.in_cuts], [args.raw_tokens, args.in_lang, args.out_dir]
    needed, others = [args.out_nbest], about
    if args.raw_model:
        needed, others = [args.raw_tokens, args.out_dir], [*lists, args.in_lang]
    elif args.in_public_whisper:
        needed, others = [args.in_lang, args.out_dir], [*lists, args.raw_tokens]
    if None in needed or any(others):
        wanted = "--raw-model --raw-tokens --out-dir; --in-public-whisper --in-lang --out-dir;"
        wanted += " or lists and --out-nbest, maybe --in-cuts"
        raise ConfigError("privasr import", wanted, "something else", "see --help")
    if args.raw_model:
        _model(args)
    elif args.in_public_whisper:
        _whisper(args)
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
    from privasr_k2.scoring.nbest_formats import (
        read_ctm,
        read_kaldi,
        read_references,
        read_trn,
        with_references,
    )
    from privasr_k2.scoring.nbest_lists import write_nbest

    if args.raw_kaldi:
        ranked, place = read_kaldi(args.raw_kaldi), args.raw_kaldi
    elif args.raw_ctm:
        ranked, place = read_ctm(args.raw_ctm), args.raw_ctm[0]
    else:
        ranked, place = read_trn(args.raw_trn), args.raw_trn
    references = read_references(args.in_cuts) if args.in_cuts else None
    write_nbest(args.out_nbest, with_references(ranked, references, place))


if __name__ == "__main__":
    cli.run(main)
