"""Earnings-21: gold words of 38 earnings calls, and what recognizers made of them, with
confidences.

There is no audio, and nothing tells utterances: for recognizers' output each call is one list of
one hypothesis, and its own user. As a corpus (``CORPUS``) it is text only: sentences of one speaker
of a call, who is the user, with gold entities in the corpus's own labels (``bin.tag_entities --set
taggers=[gold]`` brings them to four classes). Calls are dealt to the roles ``train dev test`` by a
seed; ``adapt`` has some of train's.

M. Del Rio et al., Earnings-21: a practical benchmark for ASR in the wild, Interspeech 2021; CC
    BY-SA 4.0.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privasr_k2 import config as configs
from privasr_k2.constraints import Checked, Positive, ShareBelowOne
from privasr_k2.corpora.base import GENERAL_OPTIONS, Corpus, CorpusInput
from privasr_k2.corpora.spoken_numbers import spoken_words
from privasr_k2.corpora.utterances import Utterance, make_cuts
from privasr_k2.errors import DataError
from privasr_k2.fileio import read_lines
from privasr_k2.randomness import stream
from privasr_k2.scoring.nbest_formats import read_ctm
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList
from privasr_k2.text.tag_gold import read_earnings21

if TYPE_CHECKING:
    from lhotse import CutSet

ROLES = ("train", "dev", "test")
HESITATIONS = ("ah", "eh", "er", "hm", "hmm", "huh", "mhm", "mm", "uh", "um")
"""Left out on both sides when words are scored."""

_IN_FULL = {"gonna": "going to", "gotta": "got to", "wanna": "want to"}
_GOLD, _CTM, _RECOGNIZER = ".tsv.gz", ".ctm.gz", "ctm_"
_HEADER = ["idx", "token", "speaker", "punct", "entities"]
_LISTED = 3


@dataclass(frozen=True)
class Earnings21Config(Checked):
    """Split of calls into roles; defaults in ``conf/corpora.yaml#earnings21``.

    Args:
        train, dev: their shares of the calls; test has the rest.
        adapt: share of train's calls that are kept for adapting language models; recognizers'
            output has no such role, and they stay in train.
        seed: of the deal.
    """

    train: Positive
    dev: Positive
    adapt: ShareBelowOne
    seed: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.train + self.dev >= 1:
            raise ValueError(
                f"train and dev must leave something to test, got {self.train} and {self.dev}"
            )


def corpus_info() -> dict[str, object]:
    """The content of ``corpus.json``."""
    return {"name": CORPUS.name, "unit": CORPUS.unit, "scored_units": dict(CORPUS.scored_units)}


def deal(calls: list[str], config: Earnings21Config) -> dict[str, str]:
    """The role of each call.

    Raises:
        DataError: fewer than three calls.
    """
    if len(calls) < len(ROLES):
        raise DataError(
            "earnings21", "three calls or more", str(len(calls)), "give the whole corpus"
        )
    order = stream(config.seed, "earnings21").permutation(sorted(calls)).tolist()
    train = min(max(1, round(config.train * len(order))), len(order) - 2)
    dev = min(max(1, round(config.dev * len(order))), len(order) - train - 1)
    roles = [ROLES[0]] * train + [ROLES[1]] * dev + [ROLES[2]] * (len(order) - train - dev)
    return dict(zip(order, roles))


def adapting(roles: Mapping[str, str], config: Earnings21Config) -> dict[str, str]:
    """The roles of :func:`deal` with ``adapt`` for its share of train's calls; at least one stays
    in train.

    >>> dealt = dict.fromkeys("abcde", "train")
    >>> adapting(dealt, Earnings21Config(train=0.4, dev=0.2, adapt=0.4, seed=1))
    {'a': 'train', 'b': 'train', 'c': 'train', 'd': 'adapt', 'e': 'adapt'}
    """
    train = [call for call, role in roles.items() if role == ROLES[0]]
    number = min(round(config.adapt * len(train)), len(train) - 1)
    return {**roles, **dict.fromkeys(train[len(train) - number :], "adapt")}


def read(given: CorpusInput) -> dict[str, CutSet]:
    """The sentences of ``train``, ``adapt``, ``dev`` and ``test``: text only."""
    folder = given.folder()
    overrides = [
        f"{key}={value}" for key, value in given.options.items() if key not in GENERAL_OPTIONS
    ]
    config = configs.load(Earnings21Config, given.config_files, overrides)
    paths = _calls(folder / "gold", _GOLD)
    if not paths:
        raise DataError(folder, f"gold/*{_GOLD}", "no gold words", "correct --corpus-dir")
    sentences: dict[str, list[Utterance]] = {}
    for call, role in adapting(deal(list(paths), config), config).items():
        sentences.setdefault(role, []).extend(_sentences(paths[call], role))
    return {role: make_cuts(of_role) for role, of_role in sentences.items()}


def _sentences(path: Path, role: str) -> Iterator[Utterance]:
    for gold in read_earnings21(path):
        text = " ".join(gold.tokens)
        if not _words(text):
            continue  # a mark, or a sign that nobody says
        custom = {"entities": [list(entity) for entity in gold.entities], "document": gold.document}
        yield Utterance(gold.id, text, gold.user, role, custom=custom, place=f"{path} ({gold.id})")


def _words(text: str) -> str:
    return " ".join(spoken_words(text.split()))


def read_gold(path: Path) -> list[str]:
    """The words of one call, as :func:`privasr_k2.corpora.spoken_numbers.spoken_words` spells them
    out, and "gonna" and its like in full.

    Raises:
        DataError: with line: not the columns that the corpus has.
    """
    tokens = []
    for number, line in read_lines(path):
        fields = line.split("\t")
        if len(fields) != len(_HEADER) or (number == 1 and fields != _HEADER):
            raise DataError(
                f"{path}:{number}",
                f"the columns {' '.join(_HEADER)}",
                repr(line)[:60],
                "correct the line",
            )
        if number > 1:
            tokens.append(fields[1])
    return _spelled(tokens)


def read_recognized(path: Path, call: str) -> Hypothesis:
    """Return a recognizer's words of one call, normalized as the gold words.

    A line that becomes several words (``long-term``) gives each its confidence and an equal share
    of its time; one that becomes none (``<unk>``) is left out.

    Raises:
        DataError: what :func:`privasr_k2.scoring.nbest_formats.read_ctm` refuses; another call; a
            word without a confidence.
    """
    found = read_ctm([path])
    if set(found) != {call}:
        raise DataError(
            path, f"words of {call}", f"words of {' '.join(sorted(found)[:_LISTED])}", "rename it"
        )
    [hyp] = found[call]
    if hyp.confidences is None or hyp.times is None:
        raise DataError(path, "a confidence for each word", "none", "write six columns")
    words: list[str] = []
    times: list[tuple[float, float]] = []
    confidences: list[float] = []
    for word, (start, end), confidence in zip(hyp.words.split(), hyp.times, hyp.confidences):
        parts = _spelled([word])
        edges = np.linspace(start, end, len(parts) + 1).round(4).tolist()
        words += parts
        times += list(itertools.pairwise(edges))
        confidences += [confidence] * len(parts)
    return Hypothesis(1, " ".join(words), 0.0, {}, tuple(confidences), tuple(times))


def read_lists(corpus: Path, config: Earnings21Config) -> dict[str, dict[str, list[NbestList]]]:
    """The calls of each recognizer and role: recognizer -> role -> lists, sorted by call.

    Raises:
        DataError: no gold words, no recognizer, or a recognizer that lacks a call or has another.
    """
    gold = _calls(corpus / "gold", _GOLD)
    recognizers = sorted(p for p in corpus.glob(f"{_RECOGNIZER}*") if p.is_dir()) if gold else []
    if not recognizers:
        found = "no recognizer" if gold else "no gold words"
        raise DataError(
            corpus, f"gold/*{_GOLD} and {_RECOGNIZER}*/*{_CTM}", found, "correct --corpus-dir"
        )
    roles = deal(list(gold), config)
    refs = {call: " ".join(read_gold(path)) for call, path in gold.items()}
    lists: dict[str, dict[str, list[NbestList]]] = {}
    for folder in recognizers:
        calls = _calls(folder, _CTM)
        if different := sorted(set(calls) ^ set(gold)):
            found = " ".join(different[:_LISTED])
            raise DataError(
                folder, "the calls that have gold words", f"a difference in {found}", "complete it"
            )
        of_role: dict[str, list[NbestList]] = {role: [] for role in ROLES}
        for call, path in calls.items():
            hyps = (read_recognized(path, call),)
            of_role[roles[call]].append(NbestList(call, roles[call], call, refs[call], False, hyps))
        lists[folder.name.removeprefix(_RECOGNIZER)] = of_role
    return lists


def _spelled(tokens: list[str]) -> list[str]:
    return " ".join(_IN_FULL.get(word, word) for word in spoken_words(tokens)).split()


def _calls(folder: Path, ending: str) -> Mapping[str, Path]:
    return {path.name.removesuffix(ending): path for path in sorted(folder.glob(f"*{ending}"))}


# What is written in figures is longer when it is said than the duration that is estimated from it
# allows.
CORPUS = Corpus(
    name="earnings21",
    read=read,
    normalize=_words,
    scored_units=dict.fromkeys(HESITATIONS, ""),
    max_characters_per_second=1000.0,
)
