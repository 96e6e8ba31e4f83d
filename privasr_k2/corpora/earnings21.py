"""Earnings-21 [Del Rio et al., Interspeech 2021; CC BY-SA 4.0]: 38 earnings calls without audio.

For recognizers' output each call is one list of one hypothesis, and its own user. ``CORPUS`` is
text only: sentences with gold entities in the corpus's own labels, whose user is the speaker.
Calls are dealt to ``train dev test`` by a seed; ``adapt`` has some of train's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privasr_k2.constraints import Checked, Positive, ShareBelowOne
from privasr_k2.corpora.base import Corpus, CorpusInput
from privasr_k2.corpora.spoken_numbers import spoken, spoken_by_token, spoken_words
from privasr_k2.corpora.utterances import CHARACTERS_PER_SECOND, Utterance, make_cuts
from privasr_k2.errors import DataError
from privasr_k2.randomness import stream
from privasr_k2.scoring.nbest_formats import read_ctm
from privasr_k2.scoring.nbest_lists import Hypothesis, NbestList
from privasr_k2.text.tag_gold import earnings21_rows, read_earnings21

if TYPE_CHECKING:
    from lhotse import CutSet

ROLES = ("train", "dev", "test")
HESITATIONS = ("ah", "eh", "er", "hm", "hmm", "huh", "mhm", "mm", "uh", "um")
"""Left out on both sides when words are scored."""

_IN_FULL = {"gonna": "going to", "gotta": "got to", "wanna": "want to"}
_GOLD, _CTM, _RECOGNIZER = ".tsv.gz", ".ctm.gz", "ctm_"
_LISTED = 3


@dataclass(frozen=True)
class Earnings21Config(Checked):
    """Split of calls into roles; defaults in ``conf/corpora.yaml#earnings21``.

    Args:
        train, dev: their shares of the calls; test has the rest.
        adapt: share of train's calls for adapting language models; not for recognizers' output.
    """

    train: Positive
    dev: Positive
    adapt: ShareBelowOne
    seed: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.train + self.dev >= 1:
            found = f"{self.train} and {self.dev}"
            raise ValueError(f"train and dev must leave something to test, got {found}")


def corpus_info() -> dict[str, object]:
    """The content of ``corpus.json``."""
    return {"name": CORPUS.name, "unit": CORPUS.unit, "scored_units": dict(CORPUS.scored_units)}


def deal(calls: list[str], config: Earnings21Config) -> dict[str, str]:
    """The role of each call.

    Raises:
        DataError: fewer than three calls.
    """
    if len(calls) < len(ROLES):
        found = str(len(calls))
        raise DataError("earnings21", "three calls or more", found, "give the whole corpus")
    order = stream(config.seed, "earnings21").permutation(sorted(calls)).tolist()
    train = min(max(1, round(config.train * len(order))), len(order) - 2)
    dev = min(max(1, round(config.dev * len(order))), len(order) - train - 1)
    roles = [ROLES[0]] * train + [ROLES[1]] * dev + [ROLES[2]] * (len(order) - train - dev)
    return dict(zip(order, roles))


def adapting(roles: Mapping[str, str], config: Earnings21Config) -> dict[str, str]:
    """The roles of :func:`deal` with ``adapt`` for its share of train, which keeps a call.

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
    config = given.settings(Earnings21Config)
    paths = gold_files(folder)
    if not paths:
        raise DataError(folder, f"gold/*{_GOLD}", "no gold words", "correct --corpus-dir")
    sentences: dict[str, list[Utterance]] = {}
    for call, role in adapting(deal(list(paths), config), config).items():
        sentences.setdefault(role, []).extend(_sentences(paths[call], role))
    return {role: make_cuts(of_role) for role, of_role in sentences.items()}


def _sentences(path: Path, role: str) -> Iterator[Utterance]:
    for gold in read_earnings21(path):
        text = " ".join(gold.tokens)
        if not spoken(text):
            continue  # a mark, or a sign that nobody says
        custom = {"entities": [list(entity) for entity in gold.entities], "document": gold.document}
        yield Utterance(gold.id, text, gold.user, role, custom=custom, place=f"{path} ({gold.id})")


def read_gold(path: Path) -> list[str]:
    """The words of one call, spelled out by :func:`spoken_words`, with "gonna" in full.

    Raises:
        DataError: with line: other columns than the corpus's.
    """
    return _spelled([token for _, (_, token, *_) in earnings21_rows(path)])


def read_references(corpus: Path, config: Earnings21Config) -> dict[str, list[dict[str, Any]]]:
    """Role -> a text-only cut for each call, with the words of :func:`read_gold` and gold entities.

    Raises:
        DataError: bad gold words.
    """
    gold = gold_files(corpus)
    cuts: dict[str, list[dict[str, Any]]] = {role: [] for role in ROLES}
    for call, role in deal(list(gold), config).items():
        words, entities = _gold_entities(gold[call])
        text = " ".join(words)
        span = {"start": 0.0, "duration": round(len(text) / CHARACTERS_PER_SECOND, 2), "channel": 0}
        custom = {"entities": entities, "document": call}
        said = {"id": call, "recording_id": call, **span, "text": text, "speaker": call}
        about = {"part": role, "text_only": True}
        cut = {"id": call, **span, "supervisions": [{**said, "custom": custom}], "custom": about}
        cuts[role].append({**cut, "type": "MonoCut"})
    return {role: sorted(of_role, key=lambda cut: str(cut["id"])) for role, of_role in cuts.items()}


def _gold_entities(path: Path) -> tuple[list[str], list[list[Any]]]:
    """The words of a call, and its entities in the corpus's own labels as spans of them."""
    tokens = [token for _, (_, token, *_) in earnings21_rows(path)]
    words: list[str] = []
    begins = [0]  # of each token in the words, and the end
    for of_token in spoken_by_token(tokens):
        words += " ".join(_IN_FULL.get(word, word) for word in of_token).split()
        begins.append(len(words))
    entities = [
        [begins[text.first + first], begins[text.first + end], label]
        for text in read_earnings21(path)
        for first, end, label in text.entities
    ]
    return words, [span for span in entities if span[0] < span[1]]


def read_recognized(path: Path, call: str) -> Hypothesis:
    """A recognizer's words of one call, normalized as the gold words.

    A line that becomes several words gives each its confidence and an equal share of its time; one
    that becomes none (``<unk>``) is left out.

    Raises:
        DataError: a bad CTM, another call, or a word without a confidence.
    """
    hyps = read_ctm([path])
    if set(hyps) != {call}:
        found = f"words of {' '.join(sorted(hyps)[:_LISTED])}"
        raise DataError(path, f"words of {call}", found, "rename it")
    [hyp] = hyps[call]
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
        DataError: no gold words, no recognizer, or a recognizer with other calls.
    """
    gold = gold_files(corpus)
    recognizers = sorted(p for p in corpus.glob(f"{_RECOGNIZER}*") if p.is_dir()) if gold else []
    if not recognizers:
        found = "no recognizer" if gold else "no gold words"
        expected = f"gold/*{_GOLD} and {_RECOGNIZER}*/*{_CTM}"
        raise DataError(corpus, expected, found, "correct --corpus-dir")
    roles = deal(list(gold), config)
    refs = {call: " ".join(read_gold(path)) for call, path in gold.items()}
    lists: dict[str, dict[str, list[NbestList]]] = {}
    for folder in recognizers:
        calls = _calls(folder, _CTM)
        if different := sorted(set(calls) ^ set(gold)):
            found = f"a difference in {' '.join(different[:_LISTED])}"
            raise DataError(folder, "the calls that have gold words", found, "complete it")
        of_role: dict[str, list[NbestList]] = {role: [] for role in ROLES}
        for call, path in calls.items():
            hyps = (read_recognized(path, call),)
            of_role[roles[call]].append(NbestList(call, roles[call], call, refs[call], False, hyps))
        lists[folder.name.removeprefix(_RECOGNIZER)] = of_role
    return lists


def gold_files(corpus: Path) -> Mapping[str, Path]:
    """Call -> its gold words."""
    return _calls(corpus / "gold", _GOLD)


def _spelled(tokens: list[str]) -> list[str]:
    return " ".join(_IN_FULL.get(word, word) for word in spoken_words(tokens)).split()


def _calls(folder: Path, ending: str) -> Mapping[str, Path]:
    return {path.name.removesuffix(ending): path for path in sorted(folder.glob(f"*{ending}"))}


# Spoken figures are longer than their estimated duration allows.
CORPUS = Corpus(
    name="earnings21",
    read=read,
    normalize=spoken,
    scored_units=dict.fromkeys(HESITATIONS, ""),
    max_characters_per_second=1000.0,
    license="CC BY-SA 4.0",
)
