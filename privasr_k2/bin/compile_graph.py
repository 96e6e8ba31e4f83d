r"""Compile decoding graphs from a language folder and an LM: HLG for k2, TLG for Kaldi's decoders.

    privasr verb compile_graph --in-lang data/lang_phone --in-lm data/lm/phone.arpa.gz \
        --out-dir data/graph_phone --config conf/common.yaml#graph

The LM is an ARPA file, icefall's G_3_gram.fst.txt, or the folder of a class LM. With a class LM
names are marked in what is recognized, and replace_names puts other names into the graph.

With --in-hotwords, a word or a phrase a line, maybe with a tab and its bonus, the graph of an ARPA
model has all words of the list and prefers them. Section hotwords has the bonus of other lines:

    privasr verb compile_graph --in-lang data/lang_phone --in-lm data/lm/phone.arpa.gz \
        --in-hotwords contacts.txt --out-dir data/graph_phone_contacts \
        --config conf/common.yaml#graph conf/common.yaml#hotwords

With --in-contacts such a list is a class of the model, called where the history is empty, and a
number behind a tab makes a name so much likelier. Names are not marked in what is recognized.
Section contacts has their probability. There is no graph for Kaldi's decoders.

--out-contact-graph writes the graph of an ARPA model that takes such lists later, one for each
speaker (decode --in-contacts).

With --raw-kaldi-lang, a language folder of Kaldi, the graph is L_disambig.fst o G.fst of it, or
with --in-lm of that ARPA model. It is for a CTC model of the folder's phones: tokens.txt has the
blank and then the phones without disambiguation symbols.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from privasr_k2.bin import cli
from privasr_k2.errors import ConfigError
from privasr_k2.fileio import file_hash
from privasr_k2.graph.class_pieces import compile_class_graph
from privasr_k2.graph.contacts import (
    ContactGraph,
    ContactGraphConfig,
    compile_contact_graph,
    hash_of,
)
from privasr_k2.graph.grammar_file import SUFFIX, read_grammar
from privasr_k2.graph.hlg import Compiled, Laps, compile_grammar, compile_graph, save_graph
from privasr_k2.graph.hotwords import HotwordGraphConfig, compile_hotword_graph
from privasr_k2.graph.lang import Lang, load_lang
from privasr_k2.graph.nonterminals import ClassGraphConfig
from privasr_k2.lm.arpa import read_arpa
from privasr_k2.lm.class_files import load_class_lm
from privasr_k2.text.hotwords import read_hotwords

log = logging.getLogger(__name__)


def main() -> None:
    """Parse, compile, write."""
    parser = cli.parser(
        __doc__,
        in_lang="[PATH] the language folder",
        raw_kaldi_lang="[DIR] a language folder of Kaldi in its place",
        in_lm="[PATH] the n-gram model, ARPA or *.fst.txt, or a class LM",
        in_hotwords="[FILE] words and phrases that are likely to be said",
        in_contacts="[FILE] names that a user may say, as a class of an ARPA model",
    )
    out = parser.add_mutually_exclusive_group(required=True)
    cli.add_flags(
        out,
        out_dir="[PATH] the graph folder",
        out_contact_graph="[FILE] *.safetensors; the graph of an ARPA model that takes contacts",
    )
    args = cli.parse(parser)
    if args.raw_kaldi_lang is None and not (args.in_lang and args.in_lm):
        wanted = "--in-lang and --in-lm, or --raw-kaldi-lang"
        raise ConfigError("the command line", wanted, "something else", "see --help")
    if args.raw_kaldi_lang is not None:
        _of_kaldi(args)
    else:
        _of_lang(args)


def _of_kaldi(args: argparse.Namespace) -> None:
    from privasr_k2.graph.kaldi_lang import compile_kaldi_graph, read_kaldi_lang

    listed = args.in_hotwords or args.in_contacts or args.out_contact_graph
    if args.in_lang or listed or (args.in_lm and args.in_lm.is_dir()):
        expected = "an ARPA model beside it, or nothing"
        way_out = "a class LM: export --out-kaldi-g writes its G.fst"
        raise ConfigError("--raw-kaldi-lang", expected, "something else", way_out)
    folder, place = args.raw_kaldi_lang, args.in_lm or args.raw_kaldi_lang
    config, kaldi = cli.load(ClassGraphConfig, args), read_kaldi_lang(folder)
    model = None if args.in_lm is None else read_arpa(args.in_lm)
    graphs, info = compile_kaldi_graph(kaldi, model, config, place=place)
    sources = [folder / name for name in ("words.txt", "phones.txt", "L_disambig.fst")]
    sources.append(args.in_lm or folder / "G.fst")
    _save(graphs, kaldi.lang, info, sources, args.out_dir)


def _of_lang(args: argparse.Namespace) -> None:
    if args.in_hotwords or args.in_contacts or args.out_contact_graph:
        _of_list(args)
        return
    config, lang = cli.load(ClassGraphConfig, args), load_lang(args.in_lang)
    parts = sorted(path for path in args.in_lm.rglob("*") if path.is_file()) or [args.in_lm]
    if args.in_lm.is_dir():
        class_lm = load_class_lm(args.in_lm)
        graphs, info = compile_class_graph(lang, class_lm, config, place=args.in_lm)
    elif args.in_lm.name.endswith(SUFFIX):
        G = read_grammar(args.in_lm, len(lang.words))
        graphs, info = compile_grammar(lang, G, None, config, Laps(), place=args.in_lm)
    else:
        graphs, info = compile_graph(lang, read_arpa(args.in_lm), config, model_path=args.in_lm)
    sources = (lang.folder / "lexicon.txt", lang.folder / "tokens.txt", *parts)
    _save(graphs, lang, info, sources, args.out_dir)


def _of_list(args: argparse.Namespace) -> None:
    flags = ("in_hotwords", "in_contacts", "out_contact_graph")
    given = [f"--{flag.replace('_', '-')}" for flag in flags if getattr(args, flag) is not None]
    if len(given) > 1:
        raise ConfigError(given[1], "one list", f"{given[0]}, too", "give one of them")
    [flag] = given
    if args.in_lm.is_dir():
        expected, way_out = "an ARPA model", "put the names into its classes: replace_names"
        raise ConfigError(flag, expected, f"the class LM {args.in_lm}", way_out)
    if args.in_lm.name.endswith(SUFFIX):
        expected, found = f"an ARPA model for {flag}", args.in_lm.name
        raise ConfigError("--in-lm", expected, found, "give the ARPA file that G was made of")
    config_class = HotwordGraphConfig if args.in_hotwords else ContactGraphConfig
    config = cli.load(ClassGraphConfig if args.out_contact_graph else config_class, args)
    lang, place = load_lang(args.in_lang), {"model_path": args.in_lm}
    sources = (lang.folder / "lexicon.txt", lang.folder / "tokens.txt", args.in_lm)
    if args.out_contact_graph:
        opened = ContactGraph.compile(lang, read_arpa(args.in_lm), config, **place)
        opened.save(args.out_contact_graph, hash_of(sources, config))
        return
    listed, model = read_hotwords(args.in_hotwords or args.in_contacts), read_arpa(args.in_lm)
    compile_list = compile_hotword_graph if args.in_hotwords else compile_contact_graph
    whole, graphs, info = compile_list(lang, model, config, listed, **place)
    _save(graphs, whole, info, sources, args.out_dir)


def _save(
    graphs: Compiled, lang: Lang, info: dict[str, Any], sources: Iterable[Path], folder: Path
) -> None:
    hashes = {path.name: file_hash(path) for path in sources}
    save_graph(graphs, lang, {**info, "sha256": hashes}, folder)
    for name in ("HLG", "TLG")[: 1 if graphs.TLG is None else 2]:
        log.info("%s: %d states, %d arcs", name, info["num_states"][name], info["num_arcs"][name])


if __name__ == "__main__":
    cli.run(main)
