"""Corpus ``sgd`` where some names are held out: no text of train has them, and test is about them.

For recipe ``classlm``. A share of the different names is drawn, and users of train who say one of
them are test's. Synthetic voices say the utterances of dev and test that have a name which the text
of train lacks, and all of some users of train. No user is in two roles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from privasr_k2.constraints import Checked, Natural, Positive, ShareBelowOne, one_of
from privasr_k2.corpora import sgd, voices
from privasr_k2.corpora.base import CorpusInput
from privasr_k2.corpora.spoken_part import SpokenPart
from privasr_k2.corpora.utterances import Utterance, make_cuts
from privasr_k2.errors import DataError
from privasr_k2.randomness import stream
from privasr_k2.text.name_lists import split_suffix

if TYPE_CHECKING:
    from lhotse import CutSet

Words = tuple[str, ...]
_AS_NAMES = 0.9
"""Of the times that a text has the words of a name, they must be annotated in such a share."""
_LONGEST = 8


@dataclass(frozen=True)
class SgdNamesConfig(Checked):
    """Settings of ``conf/corpora.yaml#sgd_names``; hours limit synthetic speech only."""

    speech: Annotated[str, one_of("none", "synthetic")]
    held_out_names: ShareBelowOne
    most_users: Natural
    seed: int
    max_hours_train: Positive
    max_hours_dev: Positive
    max_hours_test: Positive
    conditions: voices.Ranges


@dataclass(frozen=True)
class Said:
    """The words of an utterance, without possessives, and those of its names."""

    words: Words
    names: tuple[Words, ...]

    def phrases(self, of: Collection[Words]) -> Iterator[Words]:
        """Each place of the text that has one of some phrases."""
        for first in range(len(self.words)):
            for end in range(first + 1, min(first + _LONGEST, len(self.words)) + 1):
                if self.words[first:end] in of:
                    yield self.words[first:end]


def read(given: CorpusInput) -> dict[str, CutSet]:
    """The cuts of ``train``, ``dev`` and ``test``; with speech those that are spoken."""
    from lhotse import CutSet

    options = given.settings(SgdNamesConfig)
    roles = {role: [*of] for role, of in sgd.utterances(given, options.most_users).items()}
    said = {utterance.id: _said(utterance) for of in roles.values() for utterance in of}
    roles = deal(roles, said, options.held_out_names, options.seed)
    if options.speech == "none":
        return {role: make_cuts(of_role) for role, of_role in roles.items()}
    for role in ("dev", "test"):
        roles[role] = with_new_names(roles[role], roles["train"], said)
        if not roles[role]:
            way_out = "hold out more names (held_out_names)"
            raise DataError(given.folder(), f"names in {role} that train lacks", "none", way_out)
    hours = {role: getattr(options, f"max_hours_{role}") for role in sgd.ROLES}
    part = SpokenPart("sgd", hours, options.conditions, options.seed, whole_speakers=True)
    by_role = {role: [*make_cuts(of_role)] for role, of_role in roles.items()}
    spoken = part.speak(by_role, given.out_dir / "audio", given.num_jobs)
    return {role: CutSet.from_cuts(of_role) for role, of_role in spoken.items()}


def deal(
    roles: Mapping[str, Sequence[Utterance]], said: Mapping[str, Said], share: float, seed: int
) -> dict[str, list[Utterance]]:
    """The same utterances; users of train whose text has a held-out name are test's.

    Names whose words mostly stand in text as other words (the film "It") are not held out.

    Args:
        said: of every id.
        share: of the different names of all roles, 0 to below 1.
    """
    named = Counter(name for of in said.values() for name in of.names)
    found = Counter(phrase for of in said.values() for phrase in of.phrases(named))
    names = sorted(name for name in named if named[name] >= _AS_NAMES * found[name])
    order = stream(seed, "held-out names").permutation(len(names))
    held = {names[index] for index in order[: round(share * len(names))]}
    moved = {u.speaker for u in roles["train"] if any(True for _ in said[u.id].phrases(held))}
    of_test = [replace(u, part="test") for u in roles["train"] if u.speaker in moved]
    stay = [u for u in roles["train"] if u.speaker not in moved]
    return {**{role: [*of] for role, of in roles.items()}, "train": stay,
            "test": [*roles["test"], *of_test]}  # fmt: skip


def with_new_names(
    utterances: Sequence[Utterance], train: Sequence[Utterance], said: Mapping[str, Said]
) -> list[Utterance]:
    """Those with a name whose words the text of train has nowhere in a row."""
    names = {name for utterance in utterances for name in said[utterance.id].names}
    known = {phrase for utterance in train for phrase in said[utterance.id].phrases(names)}
    return [u for u in utterances if not known.issuperset(said[u.id].names)]


def _said(utterance: Utterance) -> Said:
    tokens = utterance.text.split()
    names = (tokens[first:end] for first, end, _ in utterance.custom["entities"])
    read = (_words(" ".join(name))[:_LONGEST] for name in names)
    return Said(_words(utterance.text), tuple(name for name in read if name))


def _words(text: str) -> Words:
    return tuple(split_suffix(word)[0] for word in sgd.CORPUS.normalize(text).split())


CORPUS = replace(sgd.CORPUS, read=read)
