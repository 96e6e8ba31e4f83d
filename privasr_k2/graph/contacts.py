"""A user's names in the graph of an n-gram model, put in and exchanged while a recognizer runs.

The model gets one class, called wherever the empty history is: its names follow each other word as
an unseen word would, with the probability ``exp(log_prob)`` of any name in place of the model's own
(the other words' is not reduced), and behind a name the history is empty. The graph is compiled
once without names (:class:`ContactGraph`); :mod:`privasr_k2.graph.splice` puts a list into it.
Names that the lexicon lacks are pronounced as its language folder was made.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2.constraints import Checked
from privasr_k2.errors import DataError, GraphError
from privasr_k2.fileio import atomic_path, disk_errors, file_hash
from privasr_k2.graph.class_delimiters import ClassDelimiters
from privasr_k2.graph.epsilons import WordArcs
from privasr_k2.graph.folder import GraphFolder
from privasr_k2.graph.grammar import Grammar, empty_history, grammar
from privasr_k2.graph.hlg import (
    Compiled,
    Graph,
    GraphConfig,
    Laps,
    as_graph,
    compose_lexicon_and_grammar,
    lexicon_openfst,
)
from privasr_k2.graph.hotwords import in_case
from privasr_k2.graph.lang import BACKOFF, Lang
from privasr_k2.graph.name_trees import name_arcs, spoken_words
from privasr_k2.graph.nonterminals import ClassGraphConfig, with_calls
from privasr_k2.graph.openfst import Fst
from privasr_k2.graph.spelled import pronunciations
from privasr_k2.graph.splice import OpenGraph, open_graph, splice_names
from privasr_k2.lm.arpa import Arpa
from privasr_k2.lm.sub_lm import SubLm, make_sub_lm
from privasr_k2.text.hotwords import Hotwords, LogProb

#: The class of a user's names, in what is recognized.
CLASS = "NAME"
_ARCS = ("sources", "targets", "labels", "scores", "words", "splits")


@dataclass(frozen=True)
class ContactConfig(Checked):
    """Settings of contacts; the default is in ``conf/common.yaml#contacts``.

    Args:
        contact_log_prob: ln P(any name of a list | the empty history).
    """

    contact_log_prob: LogProb


@dataclass(frozen=True)
class ContactGraphConfig(ClassGraphConfig, ContactConfig):
    """Settings of a graph with contacts: sections ``graph`` and ``contacts``."""


@dataclass(frozen=True, eq=False)
class ContactGraph:
    """A graph without names, and the language that pronounces them."""

    lang: Lang
    opened: OpenGraph

    @classmethod
    def compile(
        cls, lang: Lang, model: Arpa, config: GraphConfig, *, model_path: Path
    ) -> ContactGraph:
        """Compile it, which takes as long as the graph of the model.

        Raises:
            GraphError: as :func:`privasr_k2.graph.hlg.compile_graph`.
        """
        backoff, delimiters = len(lang.words) - 1, ClassDelimiters(len(lang.words), (CLASS,))
        G = grammar(model, lang.word_ids, backoff_label=backoff, place=model_path)
        [empty] = empty_history(G, backoff)
        named = Grammar(
            np.append(G.sources, empty),
            np.append(G.targets, empty),
            np.append(G.labels, delimiters.first),
            np.append(G.costs, 0.0),
            G.finals,
            G.num_words,
        )
        G = with_calls(named, delimiters, backoff_label=backoff, cut_history=True)
        LG = compose_lexicon_and_grammar(lang, G, config.max_states, symbols=delimiters.numbers)
        first = lang.num_tokens + lexicon_openfst(lang)[1]
        marks = {"marks": range(first, first + 2), "backoff_word": backoff}
        sizes = {"num_tokens": lang.num_tokens, "topology": config.ctc_topology}
        return cls(lang, open_graph(Fst.from_kaldifst(LG), **marks, **sizes))

    def save(self, path: Path, made_of: str) -> None:
        """Write the graph without names; ``made_of`` is a hash of what it was made of."""
        from safetensors.numpy import save_file

        parts = ("HLG", "LG", "marks")
        arrays = {f"{part}.{name}": getattr(getattr(self.opened, part), name)
                  for part in parts for name in _ARCS}  # fmt: skip
        about = {"topology": self.opened.topology, "made_of": made_of}
        with atomic_path(path) as temporary, disk_errors(path):
            save_file({**arrays, "keys": self.opened.keys}, temporary, metadata=about)

    @classmethod
    def load(cls, path: Path, lang: Lang, made_of: str) -> ContactGraph | None:
        """Read what :meth:`save` wrote; ``None`` where it is not there or of something else.

        Args:
            made_of: as it was saved; empty: whatever it was.

        Raises:
            GraphError: a damaged file.
        """
        from safetensors import SafetensorError, safe_open

        if not path.is_file():
            return None
        try:
            with safe_open(path, "np") as file:
                about = file.metadata() or {}
                if made_of and about.get("made_of") != made_of:
                    return None
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            way_out = "remove the file; it is made again"
            raise GraphError(path, "a whole safetensors file", str(error), way_out) from error
        parts = {part: WordArcs(*(arrays[f"{part}.{name}"] for name in _ARCS))
                 for part in ("HLG", "LG", "marks")}  # fmt: skip
        sizes = {"num_tokens": lang.num_tokens, "topology": about["topology"]}
        return cls(lang, OpenGraph(**parts, keys=arrays["keys"], **sizes))

    @cached_property
    def _spoken(self) -> dict[str, list[tuple[int, ...]]]:
        """Pronunciations in token numbers: of the lexicon, and of names asked for before."""
        spoken: dict[str, list[tuple[int, ...]]] = {}
        numbers = self.lang.token_ids
        for word, tokens in self.lang.pronunciations:
            spoken.setdefault(word, []).append(tuple(numbers[token] for token in tokens))
        return spoken

    def pronounce(self, words: Iterable[str]) -> None:
        """Find the pronunciations of words that the lexicon lacks; those found are kept."""
        numbers = self.lang.token_ids
        lacking = set(words) - self._spoken.keys()
        for word, said in pronunciations(self.lang, lacking).items():
            self._spoken[word] = [tuple(numbers[token] for token in tokens) for tokens in said]

    def pronounced(self, lists: Iterable[Hotwords]) -> list[Hotwords]:
        """Lists in the case of the language's words, all of which have pronunciations now.

        Raises:
            DataError: a name with a word that cannot be pronounced, with its line.
        """
        cased = [in_case(contacts, self.lang) for contacts in lists]
        entries = [entry for contacts in cased for entry in contacts.entries]
        self.pronounce({word for entry in entries for word in entry.words})
        for entry in entries:
            lacking = [word for word in entry.words if word not in self._spoken]
            if lacking:
                expected = f"words of the lexicon of {self.lang.folder}, or that it can pronounce"
                found = f"{lacking[0]!r} in {' '.join(entry.words)!r}"
                raise DataError(entry.place, expected, found, "write it as spoken, or remove it")
        return cased

    def spellings(self, words: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The entries of a lexicon for words that were pronounced."""
        for word in words:
            for said in self._spoken[word]:
                yield word, tuple(self.lang.tokens[token] for token in said)

    def with_names(
        self, contacts: Hotwords, *, log_prob: float
    ) -> tuple[WordArcs, tuple[str, ...]]:
        """HLG with a list of names, and its words by their numbers, the delimiters last.

        A name is as likely as each other one. One with the bonus b is exp(b) times as likely.

        Args:
            log_prob: ln P(a name of the list | the empty history).

        Raises:
            DataError: as :meth:`pronounced`.
        """
        [contacts] = self.pronounced([contacts])
        weights = {entry.words: float(np.exp(entry.bonus or 0.0)) for entry in contacts.entries}
        sub = make_sub_lm(weights, "tree", place=contacts.name)
        known = self.lang.word_ids
        new = tuple(word for word in sub.words if word not in known)
        old = self.lang.words[:-1]
        numbers = known | {word: len(old) + n for n, word in enumerate(new)}
        words = (*old, *new, BACKOFF)
        HLG = self._spliced(sub, numbers, len(new), log_prob)
        return HLG, (*words, *ClassDelimiters(len(words), (CLASS,)).symbols)

    def _spliced(
        self, sub: SubLm, numbers: dict[str, int], num_new: int, log_prob: float
    ) -> WordArcs:
        marks, lang = self.opened.marks, self.lang
        # The class's delimiters come behind the new words.
        shifted = np.where(marks.words >= len(lang.words), marks.words + num_new, marks.words)
        entering = marks.labels == lang.num_tokens
        scores = (marks.scores + np.where(entering, log_prob, 0.0)).astype(np.float32)
        marks = dataclasses.replace(marks, words=shifted, scores=scores)
        ids = np.array([numbers[word] for word in sub.words])
        silence = lang.silence
        pause = 0 if silence is None else lang.token_ids[silence.token]
        names = name_arcs(sub, spoken_words(sub.words, self._spoken), ids, silence, pause)
        opened = dataclasses.replace(self.opened, marks=marks)
        return splice_names(opened, {0: names}, max_states=names.num_states)

    def graph(self, contacts: Hotwords | None, *, log_prob: float, device: str = "cpu") -> Graph:
        """:meth:`with_names` for k2; without a list the graph of the model alone."""
        HLG, words = self.opened.HLG, self.lang.words
        info = {"ctc_topology": self.opened.topology, "num_tokens": self.lang.num_tokens}
        if contacts is not None:
            HLG, words = self.with_names(contacts, log_prob=log_prob)
            info["classes"] = {"names": [CLASS]}
            info["contacts"] = {"list": contacts.name, "entries": len(contacts.entries)}
        return as_graph(HLG, GraphFolder(self.lang.folder, self.lang.tokens, words, info), device)


def compile_contact_graph(
    lang: Lang, model: Arpa, config: ContactGraphConfig, contacts: Hotwords, *, model_path: Path
) -> tuple[Lang, Compiled, dict[str, Any]]:
    """The language with the list's words, the graph, and the content of ``graph.yaml``.

    Names have no delimiters in it, so that it takes the place of a graph with hotwords. There is
    none for Kaldi's decoders.

    Raises:
        DataError, GraphError: as :meth:`ContactGraph.with_names` and :meth:`ContactGraph.compile`.
    """
    laps = Laps()
    opened = ContactGraph.compile(lang, model, config, model_path=model_path)
    laps.lap("graph without names")
    HLG, symbols = opened.with_names(contacts, log_prob=config.contact_log_prob)
    words = symbols[:-2]
    plain, splits = ClassDelimiters(len(words), (CLASS,)).words_only(HLG.words, HLG.splits)
    HLG = dataclasses.replace(HLG, words=plain, splits=splits)
    laps.lap("names spliced")
    new = words[len(lang.words) - 1 : -1]
    said = (*lang.pronunciations, *opened.spellings(new))
    whole = dataclasses.replace(lang, words=words, pronunciations=said)
    info = {
        "ctc_topology": config.ctc_topology,
        "num_tokens": lang.num_tokens,
        "lm_order": model.order,
        "num_ngrams": list(model.counts),
        "num_states": {"HLG": HLG.num_states},
        "num_arcs": {"HLG": HLG.num_arcs},
        "contacts": {
            "list": contacts.name,
            "entries": len(contacts.entries),
            "new_words": len(new),
            "contact_log_prob": config.contact_log_prob,
        },
        "seconds": laps.seconds,
    }
    return whole, Compiled(HLG, None, words, {}), info


def hash_of(files: Sequence[Path], config: GraphConfig) -> str:
    """A hash of the files and settings that a :class:`ContactGraph` is made of."""
    about = [*map(file_hash, files), config.ctc_topology, str(config.max_states)]
    return hashlib.sha256("\n".join(about).encode()).hexdigest()
