"""Hypotheses that teachers vote for: fixed by a public model before private data are seen.

If a list came from a model of private data, releasing which hypothesis won would release the hypotheses
themselves, which nothing covers. What can be checked is checked: how the list was made, as far as the stage
runner has made it.
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
from privasr_k2.scoring.nbest_lists import NbestLists

log = logging.getLogger(__name__)

_PRIVATE, _PUBLIC = ("--in-private-", "--raw-private-"), ("--in-public-", "--raw-public-")
_TRAINING = "train_"


@dataclass(frozen=True)
class Proposals:
    """What is voted for in every utterance that has something to vote about.

    Attributes:
        words: utterance -> its hypotheses, the public model's best first; two at least.
        tokens: the same in token numbers.
        margins: by how much the public model prefers its best hypothesis to the second, natural log.
        alone: utterances with fewer hypotheses, whose answer would tell nothing of the teachers.
    """

    words: dict[str, tuple[str, ...]]
    tokens: dict[str, tuple[tuple[int, ...], ...]]
    margins: dict[str, float]
    alone: tuple[str, ...]

    def digest(self, ids: Iterable[str]) -> str:
        """Of the hypotheses of some utterances: what counts of votes are worth something for."""
        told = [[name, *self.words[name]] for name in sorted(ids)]
        return hashlib.sha256(json.dumps(told, ensure_ascii=False).encode()).hexdigest()


def proposals_of(lists: NbestLists, lang: Lang, max_hyps: int) -> Proposals:
    """The hypotheses of public N-best lists, ``max_hyps`` of an utterance at most.

    Hypotheses with words that tokens cannot spell are left out, as nobody could learn them.
    """
    said = {word for one in lists.lists for hyp in one.hyps for word in hyp.words.split()}
    spelled = spellings(lang, said)
    found, tokens, margins, alone = {}, {}, {}, []
    for one in lists.lists:
        kept = [hyp for hyp in one.hyps if all(word in spelled for word in hyp.words.split())][:max_hyps]
        if len(kept) < 2:
            alone.append(one.id)
            continue
        found[one.id] = tuple(hyp.words for hyp in kept)
        tokens[one.id] = tuple(
            tuple(token for word in hyp.words.split() for token in spelled[word]) for hyp in kept
        )
        margins[one.id] = kept[0].am_score - kept[1].am_score
    if not found:
        raise DataError(
            lists.place, "utterances with two hypotheses or more", "none", "search for more: num_paths, beam"
        )
    return Proposals(found, tokens, margins, tuple(alone))


def check_public(path: Path) -> bool:
    """Refuse lists, and models, that were made with private data; what a release covers is public.

    Each stage on the way back must have a release (``--out-privacy``), or read nothing that it calls private
    itself (``--in-private-*``), nor be a training on data that another stage calls private, or that these
    were taken from.

    Returns:
        whether it could be checked: lists from elsewhere are taken at their word, and the log says so.

    Raises:
        DataError: a private stage on the way, with its name.
    """
    try:
        work_dir = work_dir_of(path)
    except DataError:
        log.warning("%s: not made by a recipe; whether a public model proposed it, nobody has checked", path)
        return False
    stamps = stamps_below(work_dir)
    private = {p for stamp in stamps for p in values_of(stamp["command"], *_PRIVATE)}
    private |= _sources(stamps)
    todo = [normal_path(str(path.absolute()), str(work_dir.absolute()))]
    seen: set[str] = set()
    found = False
    while todo:
        here = todo.pop()
        for stamp in writers_of(here, stamps):
            key = "\0".join(stamp["outputs"])
            if key in seen:
                continue
            seen.add(key)
            found = True
            todo += _behind(path, stamp, private)
    if not found:
        log.warning(
            "%s: no stage has written it; whether a public model proposed it, nobody has checked", path
        )
    return found


def _sources(stamps: list[dict[str, Any]]) -> set[str]:
    """What private features were made from: the features of a whole corpus hold its private side."""
    found: set[str] = set()
    todo = [p for stamp in stamps for p in values_of(stamp["command"], "--in-private-feats")]
    while todo:
        for stamp in writers_of(todo.pop(), stamps):
            read = values_of(stamp["command"], "--in-")
            new = {p for p in read if p not in values_of(stamp["command"], *_PUBLIC)} - found
            found |= new
            todo += new
    return found


def _behind(path: Path, stamp: dict[str, Any], private: Collection[str]) -> list[str]:
    """What a stage reads that is not covered by its release, nor declared public."""
    command: list[str] = stamp["command"]
    own = values_of(command, *_PRIVATE)
    inputs = [p for p in values_of(command, "--in-") if p not in values_of(command, *_PUBLIC)]
    if values_of(command, "--out-privacy"):
        inputs = [p for p in inputs if p not in own]
        own = []
    trained_on = [
        p for p in values_of(command, "--in-feats") if command[0].startswith(_TRAINING) and p in private
    ]
    if own or trained_on:
        raise DataError(
            path,
            "a public model, or what one proposed",
            f"stage {stamp['number']} ({stamp['title']}) behind it, which reads private data without a "
            f"release: {(own or trained_on)[0]}",
            "take a public model, or a student of released labels",
        )
    return inputs
