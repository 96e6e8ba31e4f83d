"""Languages and graphs of :mod:`benchmarks.name_splice`: graphs with names, compiled as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2.fileio import write_text
from privasr_k2.graph.class_delimiters import ClassDelimiters
from privasr_k2.graph.class_pieces import Pieces, joined
from privasr_k2.graph.contacts import CLASS
from privasr_k2.graph.ctc_compose import compose_ctc
from privasr_k2.graph.epsilons import WordArcs, remove_epsilons
from privasr_k2.graph.folder import GraphFolder
from privasr_k2.graph.grammar import Grammar, empty_history, grammar
from privasr_k2.graph.hlg import (
    Graph,
    as_graph,
    compose_lexicon_and_grammar,
    composed,
    lexicon_openfst,
)
from privasr_k2.graph.hotwords import HotwordGraphConfig, with_words
from privasr_k2.graph.lang import Lang, lexicon_text, load_lang, symbols_text
from privasr_k2.graph.lexicon import (
    cmudict_path,
    spell_in_characters,
    spell_in_phones,
    spell_in_pieces,
    train_bpe,
)
from privasr_k2.graph.nonterminals import names_grammar, with_calls
from privasr_k2.graph.openfst import Fst
from privasr_k2.graph.tlg import silenced
from privasr_k2.lm.arpa import Arpa
from privasr_k2.lm.sub_lm import SubLm, make_sub_lm
from privasr_k2.text.hotwords import Hotwords

SYLLABLES = (
    "ka", "lo", "mir", "ten", "va", "shu", "bri", "ol", "dan", "pe", "ro", "quin", "za", "li", "mo",
    "har", "ges", "tu", "fen", "wy",
)  # fmt: skip


def make_lang(folder: Path, words: Sequence[str], units: str) -> Lang:
    """A language folder."""
    about = {"cmudict": "auto", "g2p": "espeak"}
    if units == "phone":
        sources = {"corpus_lexicon": None, "cmudict": cmudict_path("auto"), "g2p": "espeak"}
        made = spell_in_phones(words, (), **sources)
    elif units == "char":
        made = spell_in_characters(words, ())
    else:
        train_bpe([*words, *SYLLABLES], int(units.partition("_")[2]), folder / "bpe.model")
        made = spell_in_pieces(words, (), folder / "bpe.model")
    entries = [(word, tokens) for word, variants in made.variants.items() for tokens in variants]
    write_text(folder / "tokens.txt", symbols_text(["<blk>", *made.tokens]))
    write_text(folder / "words.txt", symbols_text(["<eps>", *made.variants, "#0"]))
    write_text(folder / "lexicon.txt", lexicon_text(entries))
    if units == "phone":
        write_text(folder / "lang.yaml", json.dumps(about))
    return load_lang(folder)


def composed_piece(lang: Lang, sub: SubLm, leave: int) -> Fst:
    """The names of a class composed with the lexicon, determinized and minimized.

    Args:
        leave: the number of the class's second delimiter.
    """
    import kaldifst

    text, num_symbols = lexicon_openfst(lang)
    # No silence before a name: the lines of state 1 are left out.
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("1 ")]
    if lang.silence is None:
        lines = [text]
    lines.append(f"0 0 {lang.num_tokens + num_symbols} {leave}\n")
    lexicon = kaldifst.compile("".join(lines))
    acceptor = kaldifst.compile(names_grammar(sub, CLASS, lang.word_ids, leave=leave).to_openfst())
    named = {"place": lang.folder, "again": "spell the names"}
    return Fst.from_kaldifst(composed(lexicon, acceptor, -1, **named))


def recompiled(
    lang: Lang,
    model: Arpa,
    names: Hotwords,
    settings: HotwordGraphConfig,
    log_prob: float,
    weights: Mapping[tuple[str, ...], float],
) -> tuple[WordArcs, tuple[str, ...]]:
    """The graph of contacts, all of it composed and determinized anew; and its words."""
    whole = with_words(lang, names)
    backoff, delimiters = len(whole.words) - 1, ClassDelimiters(len(whole.words), (CLASS,))
    G = grammar(model, whole.word_ids, backoff_label=backoff, place="the model")
    [empty] = empty_history(G, backoff)
    columns = ((G.sources, empty), (G.targets, empty), (G.labels, delimiters.first))
    costs = np.append(G.costs, -log_prob)
    called = Grammar(*(np.append(*column) for column in columns), costs, G.finals, G.num_words)
    called = with_calls(called, delimiters, backoff_label=backoff, cut_history=True)
    marks = {"symbols": delimiters.numbers}
    LG = compose_lexicon_and_grammar(whole, called, settings.max_states, **marks)
    sub = make_sub_lm(weights, "tree")
    piece = composed_piece(whole, sub, delimiters.first + 1)
    first = whole.num_tokens + lexicon_openfst(whole)[1]
    LG = joined(Pieces(Fst.from_kaldifst(LG), {CLASS: piece}, first))
    plain = remove_epsilons(silenced(LG, num_tokens=whole.num_tokens, backoff_word=backoff))
    HLG = compose_ctc(plain, whole.num_tokens, settings.ctc_topology)
    return HLG, (*whole.words, *delimiters.symbols)


def graph_of(lang: Lang, HLG: WordArcs, words: tuple[str, ...], classes: bool) -> Graph:
    """A graph for k2."""
    info: dict[str, Any] = {"classes": {"names": [CLASS]}} if classes else {}
    return as_graph(HLG, GraphFolder(lang.folder, lang.tokens, words, info))
