"""The graph of an n-gram model with a user's hotwords: pronunciations, n-grams, and bonuses.

Words that the lexicon lacks are pronounced as its language folder was made, and words that the
model lacks follow the empty history with one fixed probability, which is not taken from the others.
:mod:`privasr_k2.graph.context` adds the bonuses of phrases. They are in natural log and stand
beside the model's log-probabilities, so that decoding weighs both by its LM weight.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2.constraints import Checked
from privasr_k2.errors import DataError
from privasr_k2.graph.context import make_context, with_bonuses
from privasr_k2.graph.grammar import Grammar, empty_history, grammar
from privasr_k2.graph.hlg import Compiled, Laps, compile_grammar
from privasr_k2.graph.lang import BACKOFF, Lang
from privasr_k2.graph.nonterminals import ClassGraphConfig
from privasr_k2.graph.spelled import pronunciations
from privasr_k2.lm.arpa import Arpa
from privasr_k2.text.hotwords import Bonus, Hotwords, LogProb


@dataclass(frozen=True)
class HotwordConfig(Checked):
    """Settings of hotwords; defaults in ``conf/common.yaml#hotwords``.

    Args:
        hotword_bonus: of each word of a phrase, natural log, where the list has none of its own.
        hotword_log_prob: ln P of a word that the language model lacks.
    """

    hotword_bonus: Bonus
    hotword_log_prob: LogProb


@dataclass(frozen=True)
class HotwordGraphConfig(ClassGraphConfig, HotwordConfig):
    """Settings of a graph with hotwords: sections ``graph`` and ``hotwords``."""


def compile_hotword_graph(
    lang: Lang, model: Arpa, config: HotwordGraphConfig, hotwords: Hotwords, *, model_path: Path
) -> tuple[Lang, Compiled, dict[str, Any]]:
    """The language with the list's words, the graphs, and the content of ``graph.yaml``.

    Raises:
        DataError: a phrase with a word without pronunciation, with its line.
        GraphError: as :func:`privasr_k2.graph.hlg.compile_graph`.
    """
    laps, hotwords = Laps(), in_case(hotwords, lang)
    whole = with_words(lang, hotwords)
    laps.lap("pronunciations")
    ids, backoff = whole.word_ids, len(whole.words) - 1
    symbols = range(len(whole.words), len(whole.words) + 1)
    phrases = {
        tuple(ids[word] for word in entry.words): len(entry.words)
        * (config.hotword_bonus if entry.bonus is None else entry.bonus)
        for entry in hotwords.entries
    }
    G = grammar(model, ids, backoff_label=backoff, place=model_path)
    words = {word for phrase in phrases for word in phrase}
    G, num_added = with_unigrams(G, words, log_prob=config.hotword_log_prob, backoff_label=backoff)
    context = make_context(phrases)
    G = with_bonuses(G, context, backoff_label=backoff, return_label=symbols.start)
    rest = {"place": model_path, "symbols": symbols}
    graphs, info = compile_grammar(whole, G, model, config, laps, **rest)
    info["hotwords"] = {
        "list": hotwords.name,
        "entries": len(hotwords.entries),
        "new_words": len(whole.words) - len(lang.words),
        "words_without_ngram": num_added,
        "context_states": len(context.arcs),
        **{field.name: getattr(config, field.name) for field in dataclasses.fields(HotwordConfig)},
    }
    return whole, graphs, info


def in_case(hotwords: Hotwords, lang: Lang) -> Hotwords:
    """The list in the case of the language's words."""
    entries = (
        dataclasses.replace(entry, words=tuple(map(lang.normalize, entry.words)))
        for entry in hotwords.entries
    )
    return dataclasses.replace(hotwords, entries=tuple(entries))


def with_words(lang: Lang, hotwords: Hotwords) -> Lang:
    """The language with all words of a list; its new words follow the others.

    Raises:
        DataError: a phrase with a word that cannot be pronounced, with its line.
    """
    words = {word for entry in hotwords.entries for word in entry.words}
    new = pronunciations(lang, words - lang.word_ids.keys())
    for entry in hotwords.entries:
        lacking = [word for word in entry.words if word not in lang.word_ids and word not in new]
        if lacking:
            expected = f"words of the lexicon of {lang.folder}, or that its tokens can write"
            found = f"{lacking[0]!r} in {' '.join(entry.words)!r}"
            way_out = "write it as it is spoken, add it to the corpus's lexicon, or remove the line"
            raise DataError(entry.place, expected, found, way_out)
    entries = ((word, tokens) for word in sorted(new) for tokens in new[word])
    return dataclasses.replace(
        lang,
        words=(*lang.words[:-1], *sorted(new), BACKOFF),
        pronunciations=(*lang.pronunciations, *entries),
    )


def with_unigrams(
    G: Grammar, words: Collection[int], *, log_prob: float, backoff_label: int
) -> tuple[Grammar, int]:
    """G with an arc from the empty history to itself for each of ``words`` that has none there.

    The number of these words comes with it.
    """
    [empty] = empty_history(G, backoff_label)
    lacking = np.setdiff1d(sorted(words), G.labels[G.sources == empty])
    loops = np.full(len(lacking), empty)
    made = Grammar(
        np.concatenate([G.sources, loops]),
        np.concatenate([G.targets, loops]),
        np.concatenate([G.labels, lacking]),
        np.concatenate([G.costs, np.full(len(lacking), -log_prob)]),
        G.finals,
        G.num_words + len(lacking),
    )
    return made, len(lacking)
