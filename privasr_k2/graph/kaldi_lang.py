"""Graphs of Kaldi's language folder: ``L_disambig.fst`` o ``G.fst`` for a CTC model of its phones.

Read are ``words.txt phones.txt phones/disambig.int L_disambig.fst`` and ``G.fst``, or in its place
an ARPA file. Tokens are the phones without disambiguation symbols, in their order, behind the
blank. Optional silence, pronunciation probabilities and word positions stay as ``L_disambig.fst``
has them.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2.errors import DataError, GraphError
from privasr_k2.fileio import read_lines
from privasr_k2.graph.hlg import Compiled, GraphConfig, Laps, composed, finished
from privasr_k2.graph.kaldi_files import read_fst, read_table
from privasr_k2.graph.kaldi_grammar import KaldiWords, plain_g
from privasr_k2.graph.lang import BACKOFF, BLANK, EPSILON, Lang
from privasr_k2.graph.openfst import Fst
from privasr_k2.lm.arpa import UNK, Arpa

_AGAIN = "make it again with prepare_lang.sh"


@dataclass(frozen=True, eq=False)
class KaldiLang:
    """A language folder of Kaldi with our numbers.

    Args:
        lang: its tokens and words; it has no pronunciations.
        words: Kaldi's.
        L: from tokens to Kaldi's words; disambiguation symbols have the labels C, C + 1, ...
    """

    lang: Lang
    words: KaldiWords
    L: Fst


def read_kaldi_lang(folder: Path) -> KaldiLang:
    """Read and check a folder of ``prepare_lang.sh``.

    Raises:
        DataError: a symbol table, or ``phones/disambig.int``, that is missing or malformed.
        GraphError: an ``L_disambig.fst`` of other tables, or one without disambiguation symbols.
    """
    for name in ("words.txt", "phones.txt", "phones/disambig.int"):
        if not (folder / name).is_file():
            raise DataError(folder / name, "a file of a Kaldi language folder", "nothing", _AGAIN)
    words, phones = (read_table(folder / name) for name in ("words.txt", "phones.txt"))
    table, marks = KaldiWords(folder / "words.txt", words), _disambiguation(folder, phones)
    spoken = [
        number
        for number, phone in enumerate(phones)
        if number and phone and number not in marks and not phone.startswith("#")
    ]
    tokens = (BLANK, *(phones[number] for number in spoken))
    if BLANK in tokens[1:]:
        raise GraphError(folder / "phones.txt", f"no phone {BLANK}", "one", "rename it")
    token_of = np.full(len(phones), -1)
    token_of[[0, *spoken]] = np.arange(len(tokens))
    token_of[sorted(marks)] = len(tokens) + np.arange(len(marks))
    path = folder / "L_disambig.fst"
    L = Fst.from_kaldifst(read_fst(path))
    _check_labels(path, L.ilabels, len(phones), "phones.txt")
    _check_labels(path, L.olabels, len(words), "words.txt")
    if not (L.olabels == table.backoff).any() or not np.isin(L.ilabels, sorted(marks)).any():
        found = "none: it is L.fst, or one of another table"
        raise GraphError(path, f"disambiguation symbols and {BACKOFF} of words.txt", found, _AGAIN)
    if (token_of[L.ilabels] < 0).any():
        lone = int(L.ilabels[token_of[L.ilabels] < 0][0])
        raise GraphError(path, "phones of phones.txt", phones[lone] or str(lone), _AGAIN)
    L = dataclasses.replace(L, ilabels=token_of[L.ilabels].astype(np.int32))
    return KaldiLang(Lang(folder, tokens, (EPSILON, *table.word_ids, BACKOFF), ()), table, L)


def lang_of_words(path: Path) -> Lang:
    """The words of Kaldi's ``words.txt``, for language models; without tokens.

    ``<eps>``, ``<s>``, ``</s>`` and symbols that begin with ``#`` are no words; nor is ``<unk>``,
    which n-gram models have of their own.

    Raises:
        DataError: no such file, a malformed one, or one without words.
    """
    if not path.is_file():
        raise DataError(path, "Kaldi's words.txt", "no such file", "correct the name")
    words = [word for word in KaldiWords(path, read_table(path)).word_ids if word != UNK]
    if not words:
        raise DataError(path, "words", "none", _AGAIN)
    return Lang(path.parent, (BLANK,), (EPSILON, *words, BACKOFF), ())


def compile_kaldi_graph(
    folder: KaldiLang, model: Arpa | None, config: GraphConfig, *, place: Path
) -> tuple[Compiled, dict[str, Any]]:
    """The graphs, and the content of ``graph.yaml``.

    Args:
        model: ``None``: the folder's ``G.fst``.
        place: of the model, or the folder.

    Raises:
        GraphError: a ``G.fst`` that is missing or of another table, or a graph beyond
            ``max_states``.
    """
    laps = Laps()
    G = _own_g(folder) if model is None else plain_g(model, folder.words, place=place)
    laps.lap("G")
    LG = _determinized(folder.L, G, config.max_states, place)
    lang, own = folder.lang, np.zeros(len(folder.words.symbols), dtype=np.int32)
    own[list(folder.words.word_ids.values())] = np.arange(1, len(lang.words) - 1)
    LG = dataclasses.replace(LG, olabels=own[LG.olabels])
    laps.lap("LG")
    graphs, more = finished(LG, lang, config.ctc_topology, laps, place=place)
    more["num_states"] = {"G": G.num_states, **more["num_states"]}
    more["num_arcs"] = {"G": G.num_arcs, **more["num_arcs"]}
    used = np.setdiff1d(G.olabels, [0])
    info = {"ctc_topology": config.ctc_topology, "num_tokens": lang.num_tokens}
    info |= {"num_words": len(used), "words_without_ngram": len(lang.word_ids) - len(used)}
    return graphs, {**info, **more}


def _disambiguation(folder: Path, phones: tuple[str, ...]) -> set[int]:
    """The numbers of ``phones/disambig.int``."""
    path, found = folder / "phones/disambig.int", set()
    for number, line in read_lines(path):
        text = line.strip()
        if not text:
            continue
        place = f"{path}:{number}"
        if not text.isdecimal() or not 0 < int(text) < len(phones):
            raise DataError(place, "the number of a phone of phones.txt", repr(text)[:40], _AGAIN)
        if not phones[int(text)].startswith("#"):
            name = phones[int(text)]
            raise DataError(place, "a disambiguation symbol, #0, #1, ...", repr(name), _AGAIN)
        found.add(int(text))
    if not found:
        raise DataError(path, "disambiguation symbols", "none", _AGAIN)
    return found


def _check_labels(path: Path, labels: np.ndarray, size: int, table: str) -> None:
    largest = int(labels.max(initial=0))
    if largest >= size or int(labels.min(initial=0)) < 0:
        found = f"the label {largest}"
        raise GraphError(path, f"labels of {table}, below {size}", found, _AGAIN)


def _own_g(folder: KaldiLang) -> Fst:
    path = folder.words.place.parent / "G.fst"
    G = Fst.from_kaldifst(read_fst(path))
    for labels in (G.ilabels, G.olabels):
        _check_labels(path, labels, len(folder.words.symbols), "words.txt")
    known = {0, folder.words.backoff, *folder.words.word_ids.values()}
    if lone := sorted(set(G.ilabels.tolist()) - known):
        name = folder.words.symbols[lone[0]] or str(lone[0])
        way_out = "give a G.fst with back-off #0 and without nonterminals"
        raise GraphError(path, "words and #0 as input labels", name, way_out)
    spoken = np.isin(G.olabels, list(folder.words.word_ids.values()))
    return dataclasses.replace(G, olabels=np.where(spoken, G.olabels, 0).astype(np.int32))


def _determinized(L: Fst, G: Fst, max_states: int, place: Path) -> Fst:
    import kaldifst

    parts = (kaldifst.StdVectorFst(fst.to_kaldifst()) for fst in (L, G))
    return Fst.from_kaldifst(composed(*parts, max_states, place=place, again=_AGAIN))
