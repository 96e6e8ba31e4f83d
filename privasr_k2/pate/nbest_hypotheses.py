"""The N-best hypotheses that teachers vote on: those of a public model.

Lists of a model of private data would release that data outside of any guarantee. So the stages
behind the lists are checked, where the stage runner recorded them.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError
from privasr_k2.graph.lang import Lang
from privasr_k2.graph.spelled import spellings
from privasr_k2.privacy.lineage import work_dir_of
from privasr_k2.recipe.history import stamps_below, writers_of
from privasr_k2.recipe.plan import normal_path, values_of
from privasr_k2.scoring.hypotheses import Weights
from privasr_k2.scoring.nbest_lists import GRAPH, Hypothesis, NbestLists

log = logging.getLogger(__name__)

_PRIVATE, _PUBLIC = ("--in-private-", "--raw-private-"), ("--in-public-", "--raw-public-")
_TRAINING = "train_"


@dataclass(frozen=True)
class NbestHypotheses:
    """The hypotheses of each utterance that has two or more.

    Attributes:
        words: utterance to its hypotheses, the public model's best first; two at least.
        tokens: the same in token numbers.
        lm_scores: weighted score of each hypothesis by the public LM of the graph; 0 without one.
        margins: log-probability of the best hypothesis less that of the second, in nats.
        single: utterances with fewer than two hypotheses, which are not voted on.
    """

    words: dict[str, tuple[str, ...]]
    tokens: dict[str, tuple[tuple[int, ...], ...]]
    lm_scores: dict[str, tuple[float, ...]]
    margins: dict[str, float]
    single: tuple[str, ...]

    def digest(self, ids: Iterable[str]) -> str:
        """A hash of the hypotheses of some utterances: counts of votes are valid for these only."""
        rows = [[name, *self.words[name]] for name in sorted(ids)]
        return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()


def nbest_hypotheses(
    lists: NbestLists, lang: Lang, max_hyps: int, weights: Weights | None = None
) -> NbestHypotheses:
    """The hypotheses of public N-best lists that tokens can spell, at most ``max_hyps`` each.

    Args:
        weights: of the graph's LM and of a word, which dev chose for the public model; None: lists
            of end-to-end search.

    Raises:
        DataError: no utterance has two hypotheses.
    """
    vocabulary = {word for nbest in lists.lists for hyp in nbest.hyps for word in hyp.words.split()}
    spelled = spellings(lang, vocabulary)
    words, tokens, lm_scores, margins, single = {}, {}, {}, {}, []

    def spoken(text: str) -> tuple[int, ...]:
        return tuple(token for word in text.split() for token in spelled[word])

    for nbest in lists.lists:
        fits = [hyp for hyp in nbest.hyps if all(word in spelled for word in hyp.words.split())]
        kept = fits[:max_hyps]
        if len(kept) < 2:
            single.append(nbest.id)
            continue
        words[nbest.id] = tuple(hyp.words for hyp in kept)
        tokens[nbest.id] = tuple(spoken(hyp.words) for hyp in kept)
        lm_scores[nbest.id] = tuple(_lm_score(hyp, weights) for hyp in kept)
        first, second = (hyp.am_score + _lm_score(hyp, weights) for hyp in kept[:2])
        margins[nbest.id] = first - second
    if not words:
        expected, way_out = (
            "utterances with two or more hypotheses",
            "search for more: num_paths, beam",
        )
        raise DataError(lists.place, expected, "none", way_out)
    return NbestHypotheses(words, tokens, lm_scores, margins, tuple(single))


def _lm_score(hyp: Hypothesis, weights: Weights | None) -> float:
    """What the first pass adds to a hypothesis's acoustic score, in nats."""
    if weights is None:
        return 0.0
    penalty = weights.insertion_penalty * len(hyp.words.split())
    return weights.lm_weight * hyp.lm_scores.get(GRAPH, 0.0) - penalty


def check_public(path: Path) -> bool:
    """Refuse lists and models that depend on private data without a release.

    Each stage behind ``path`` has a release (``--out-privacy``), or reads nothing private: no
    ``--in-private-*``, and in a training no data, or sources of data, that another stage reads as
    private.

    Returns:
        whether the stages are known. Files from elsewhere are accepted, with a warning.

    Raises:
        DataError: a private stage behind ``path``.
    """
    try:
        work_dir = work_dir_of(path)
    except DataError:
        log.warning("%s: made by no recipe, so it is unknown whether a public model made it", path)
        return False
    stamps = stamps_below(work_dir)
    private = {p for stamp in stamps for p in values_of(stamp["command"], *_PRIVATE)}
    private |= _sources(stamps)
    todo = [normal_path(str(path.absolute()), str(work_dir.absolute()))]
    seen: set[str] = set()
    while todo:
        for stamp in writers_of(todo.pop(), stamps):
            key = "\0".join(stamp["outputs"])
            if key not in seen:
                seen.add(key)
                todo += _behind(path, stamp, private)
    if not seen:
        log.warning("%s: no stage wrote it, so it is unknown whether a public model made it", path)
    return bool(seen)


def _sources(stamps: list[dict[str, Any]]) -> set[str]:
    """The inputs that private features were made from, such as the features of the whole corpus."""
    sources: set[str] = set()
    todo = [p for stamp in stamps for p in values_of(stamp["command"], "--in-private-feats")]
    while todo:
        for stamp in writers_of(todo.pop(), stamps):
            read = values_of(stamp["command"], "--in-")
            new = {p for p in read if p not in values_of(stamp["command"], *_PUBLIC)} - sources
            sources |= new
            todo += new
    return sources


def _behind(path: Path, stamp: dict[str, Any], private: Collection[str]) -> list[str]:
    """Inputs of a stage that neither its release covers nor its flags declare public."""
    command: list[str] = stamp["command"]
    own = values_of(command, *_PRIVATE)
    inputs = [p for p in values_of(command, "--in-") if p not in values_of(command, *_PUBLIC)]
    if values_of(command, "--out-privacy"):
        inputs = [p for p in inputs if p not in own]
        own = []
    trains = command[0].startswith(_TRAINING)
    trained_on = [p for p in values_of(command, "--in-feats") if trains and p in private]
    if own or trained_on:
        stage = f"stage {stamp['number']} ({stamp['title']}) behind it, which reads private data"
        stage += f" without a release: {(own or trained_on)[0]}"
        way_out = "take a public model, or a student of released labels"
        raise DataError(path, "a public model, or lists of one", stage, way_out)
    return inputs
