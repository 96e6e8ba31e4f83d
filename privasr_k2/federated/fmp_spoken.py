"""First-pass hypotheses as arrays: clients, users, times, and words as public numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.lm.arpa import BOS, EOS, UNK, Arpa
from privasr_k2.lm.neural.vocabulary import BOUNDARY, UNKNOWN, Vocabulary
from privasr_k2.scoring.nbest_lists import NbestLists

_SHOWN = 3


@dataclass(frozen=True)
class WordNumbers:
    """The fixed, public numbering of V symbols that all marginals of a run share.

    Attributes:
        ids: the number of each word that can be spoken.
        size: V.
        end: the number of the sentence end.
        unspoken: numbers of boundaries, which have no marginal.
        unknown: the number of other words; None: they are an error.
    """

    ids: Mapping[str, int]
    size: int
    end: int
    unspoken: tuple[int, ...]
    unknown: int | None

    @cached_property
    def is_word(self) -> np.ndarray:
        """(V,) true for what has a marginal."""
        is_word = np.ones(self.size, dtype=bool)
        is_word[list(self.unspoken)] = False
        return is_word

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the numbering."""
        ids = sorted(self.ids.items(), key=lambda item: item[1])
        content = json.dumps([self.size, self.end, self.unspoken, ids])
        return hashlib.sha256(content.encode()).hexdigest()

    def of(self, words: Sequence[str], place: str) -> list[int]:
        """The numbers of ``words``.

        Raises:
            DataError: a word outside the vocabulary where :attr:`unknown` is None.
        """
        numbers = [self.ids.get(word, self.unknown) for word in words]
        if None in numbers:
            lost = sorted({word for word, number in zip(words, numbers) if number is None})
            found = f"{len(lost)} others: {' '.join(lost[:_SHOWN])}"
            raise DataError(place, "words of the vocabulary", found, "normalize as its text")
        return numbers  # type: ignore[return-value]


def numbers_of_vocabulary(vocabulary: Vocabulary, *, unknown: bool) -> WordNumbers:
    """The numbering of a neural model; ``unknown``: other words count as ``<unk>``.

    >>> numbers = numbers_of_vocabulary(Vocabulary(("</s>", "<unk>", "a")), unknown=False)
    >>> numbers.of(["a"], "here"), numbers.is_word.tolist()
    ([2], [False, True, True])
    """
    return WordNumbers(
        vocabulary.ids, len(vocabulary), BOUNDARY, (BOUNDARY,), UNKNOWN if unknown else None
    )


def numbers_of_arpa(model: Arpa, *, unknown: bool) -> WordNumbers:
    """The numbering of an n-gram model; ``unknown``: other words count as its ``<unk>``, if any."""
    boundaries = tuple(model.word_ids[word] for word in (BOS, EOS))
    ids = {word: number for word, number in model.word_ids.items() if number not in boundaries}
    return WordNumbers(
        ids, len(model.words), boundaries[1], boundaries, ids.get(UNK) if unknown else None
    )


#: What a client is in a timeline -> what a guarantee calls it. A speaker in a meeting has none: it
#: lies within two other units, neither of which is within the other.
CLIENT_UNITS: dict[str, str | None] = {
    "speaker": "speaker",
    "recording": "call",
    "document": "document",
    "part": "part",
    "prefix": "meeting",
    "meeting_speaker": None,
}


@dataclass(frozen=True)
class Turn:
    """One utterance of a timeline.

    Attributes:
        client: its device.
        user: who spoke; empty: not known.
        kind: what a client is, a key of :data:`CLIENT_UNITS`.
    """

    id: str
    client: str
    user: str
    kind: str


@dataclass(frozen=True, eq=False)
class Spoken:
    """The first-pass hypotheses of N utterances as arrays, in the order of their N-best lists.

    Attributes:
        ids: (N,) utterances.
        client_names, user_names: of the C clients and of the users, sorted.
        clients, users: (N,) numbers of these.
        places: (N,) 0, 1, ...: the utterance's place in its client's timeline.
        num_hyps: (N,) hypotheses, 0 where there was no path.
        ranks: (H,) of all hypotheses, from 1.
        lengths: (H,) words of each, the sentence end included.
        tokens: (W,) word numbers with sentence ends, in the order of LM scores.
        numbers: of the words.
        kind: what a client is, a key of :data:`CLIENT_UNITS`.
    """

    ids: tuple[str, ...]
    client_names: tuple[str, ...]
    user_names: tuple[str, ...]
    clients: np.ndarray
    users: np.ndarray
    places: np.ndarray
    num_hyps: np.ndarray
    ranks: np.ndarray
    lengths: np.ndarray
    tokens: np.ndarray
    numbers: WordNumbers
    kind: str

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def hyp_utterances(self) -> np.ndarray:
        """(H,) the utterance of each hypothesis."""
        return np.repeat(np.arange(len(self)), self.num_hyps)

    @cached_property
    def token_hyps(self) -> np.ndarray:
        """(W,) the hypothesis of each token."""
        return np.repeat(np.arange(len(self.ranks)), self.lengths)

    @cached_property
    def token_utterances(self) -> np.ndarray:
        """(W,) the utterance of each token."""
        return self.hyp_utterances[self.token_hyps]

    @cached_property
    def hyp_counts(self) -> csr_array:
        """(H, V) c_s(w), without sentence ends."""
        inside = self.numbers.is_word[self.tokens]
        where = (self.token_hyps[inside], self.tokens[inside])
        shape = (len(self.ranks), self.numbers.size)
        return csr_array((np.ones(int(inside.sum())), where), shape=shape)


def unit_name(spoken: Spoken, unit: str) -> str:
    """What a guarantee calls a unit: of ``client``, what a client is.

    Raises:
        PrivacyError: such clients have no guarantee.
    """
    name = CLIENT_UNITS[spoken.kind] if unit == "client" else unit
    if name is None:
        raise PrivacyError("unit", f"utterance or user where a client is a {spoken.kind}", unit,
                           "set one of them")  # fmt: skip
    return name


def kind_of(timeline: Sequence[Turn], place: str) -> str:
    """What a client of a timeline is.

    Raises:
        DataError: several kinds, one that is not known, or speakers who are not their own clients.
    """
    kinds = sorted({turn.kind for turn in timeline})
    if len(kinds) != 1 or kinds[0] not in CLIENT_UNITS:
        expected = f"one kind of client, of {', '.join(CLIENT_UNITS)}"
        raise DataError(place, expected, ", ".join(kinds) or "none", "make it with prepare_fmp")
    others = [t.id for t in timeline if kinds == ["speaker"] and t.client != t.user]
    if others:
        expected = "the speaker as the client, as the kind is speaker"
        raise DataError(place, expected, f"another for {others[0]}", "make it with prepare_fmp")
    return kinds[0]


def spoken_of(lists: NbestLists, timeline: Sequence[Turn], numbers: WordNumbers) -> Spoken:
    """N-best lists as arrays.

    Args:
        timeline: every utterance of the lists once, each client's in the order of time.

    Raises:
        DataError: with its line: an utterance missing or twice in the timeline, one without a list,
            a word outside the vocabulary, hypotheses not ranked 1, 2, ...
    """
    place_of: dict[str, tuple[Turn, int]] = {}
    so_far: dict[str, int] = {}
    for turn in timeline:
        if turn.id in place_of:
            raise DataError("the timeline", "every utterance once", f"{turn.id} twice", "make anew")
        place_of[turn.id] = (turn, so_far.setdefault(turn.client, 0))
        so_far[turn.client] += 1
    ids = tuple(nbest.id for nbest in lists.lists)
    if differing := set(ids) ^ set(place_of):
        found = f"{len(differing)} in one of them only: {' '.join(sorted(differing)[:_SHOWN])}"
        raise DataError(lists.place, "the utterances of the timeline", found, "use the same cuts")
    turns = [place_of[name][0] for name in ids]
    ranks: list[int] = []
    lengths: list[int] = []
    tokens: list[int] = []
    for nbest in lists.lists:
        place = f"{lists.lines.get(nbest.id, lists.place)} ({nbest.id})"
        own = [hyp.rank for hyp in nbest.hyps]
        if own != list(range(1, len(own) + 1)):
            raise DataError(place, "hypotheses ranked 1, 2, ...", str(own)[:60], "rank by scores")
        for hyp in nbest.hyps:
            words = hyp.words.split()
            tokens += [*numbers.of(words, place), numbers.end]
            lengths.append(len(words) + 1)
        ranks += own
    client_names, clients = np.unique([turn.client for turn in turns], return_inverse=True)
    user_names, users = np.unique([turn.user for turn in turns], return_inverse=True)
    return Spoken(
        ids,
        tuple(client_names.tolist()),
        tuple(user_names.tolist()),
        clients,
        users,
        np.array([place_of[name][1] for name in ids]),
        np.array([len(nbest.hyps) for nbest in lists.lists]),
        np.array(ranks, dtype=np.int64),
        np.array(lengths, dtype=np.int64),
        np.array(tokens, dtype=np.int64),
        numbers,
        kind_of(timeline, "the timeline"),
    )
