"""Accounting for the replacement of names in a text. Nothing is replaced here.

Word-by-word replacement of the same class [adelani2020; turan2022, section 2.1]: each word of each
tagged mention is kept with probability p and else replaced by a draw from a *public* list of n
different names of its class, which may be the same word again. The relation is replacing a word by
any other, all else being equal:

    P(out = j | word i) = p [i = j] + (1 - p) / n

For two words i and i' on the list only the outcomes i and i' tell anything:

    epsilon = ln((p + (1 - p) / n) / ((1 - p) / n)) = ln(1 + n p / (1 - p))

**Words that are not on the list.** One that is kept betrays itself, since no other word can give
it: the ratio is infinite. So the guarantee holds only where such a word is *always replaced* by a
draw from the list. That gives it the uniform distribution, which is the mean of P(. | word i) over
i: no convex divergence (Rényi's, the hockey-stick) exceeds the largest between two words on the
list. With "kept" there is no guarantee, and none is made.

**Replacements that are not uniform.** With chances w_j in place of 1 / n, only the outcomes i and
i' have ratios beside 1. Any divergence of a convex function phi, phi(1) = 0, is, for b = (1 - p) w,

    b_i phi(1 + p / b_i) + (b_i' + p) phi(1 - p / (b_i' + p)),

up to terms that do not depend on i and i'. Both terms fall as b rises, since phi(x) - phi(1) is at
most phi'(x) (x - 1). So none exceeds that of two words which both have the smallest chance, w:
epsilon = ln(1 + p / ((1 - p) w)). The uniform list is the best one of n names. A word that is
always replaced has the mean of P(. | word i) with weights w_i, as above.

**Users.** All utterances of one user together are covered only where a public number of them may
keep words (``utterances_per_user``) and the words of all others are always replaced: so many times
the draws of an utterance.

**Consistent replacement** draws once for each different name of a document, and reveals which
mentions are of the same name.

[adelani2020] D. I. Adelani et al., Privacy guarantees for de-identifying text transformations,
Interspeech 2020.
[turan2022] M. A. T. Turan et al., Adapting language models when training on privacy-transformed
data, LREC 2022.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from privasr_k2.errors import PrivacyError
from privasr_k2.privacy import checks, events
from privasr_k2.privacy.accounting import Relation

OffList: TypeAlias = Literal["replaced", "kept"]
Consistency: TypeAlias = Literal["mention", "document"]


@dataclass(frozen=True, kw_only=True)
class ReplacementGuarantee:
    """Guarantee for the names of one list, and its limits.

    Attributes:
        epsilon_per_word: for one draw; 0 where no word is ever kept.
        epsilon_per_user: for all utterances of a user together; ``None``: nothing is claimed.
        words_per_mention: the most words (draws) of one mention.
        mentions: the most mentions of an utterance; with consistent replacement, the most different
            names of a document.
        utterances_per_user: the most utterances of a user that keep words; ``None``: any number.
        event: all draws of one unit; ``None`` where the output does not depend on the words.
        relation: ``REPLACE_ONE``: every mention of one unit takes another name of as many words.
        does_not_cover: sentences, to be shown wherever epsilon is.
    """

    epsilon_per_word: float
    epsilon_per_mention: float
    epsilon_per_utterance: float
    epsilon_per_user: float | None
    words_per_mention: int
    mentions: int
    utterances_per_user: int | None
    event: events.Event | None
    relation: Relation
    unit: Literal["utterance", "document", "user"]
    does_not_cover: tuple[str, ...]


def uniform_replacement(
    *,
    keep_probability: float,
    num_names: int,
    mentions: int,
    words_per_mention: int,
    off_list: OffList,
    consistency: Consistency,
    utterances_per_user: int | None = None,
) -> ReplacementGuarantee:
    """The guarantee where the replacement is drawn uniformly from the whole list.

    epsilon_per_word = ln(1 + num_names p / (1 - p)), as of randomized response over the list.

    Args:
        keep_probability: p, 0 or more and below 1.
        num_names: number of *different* words on the public list, 2 or more.
        mentions: the most tagged mentions of an utterance, or different names of a document.
        words_per_mention: the most words of a mention, 1 or more.
        consistency: whether every mention is drawn for itself, or every name of a document once.
        utterances_per_user: the most utterances of a user in which a word may be kept, a public
            number; ``None``: no claim for users. By mention only.

    Raises:
        PrivacyError: p = 1, kept words off the list, or numbers out of range.

    >>> options = {"words_per_mention": 1, "off_list": "replaced", "consistency": "mention"}
    >>> made = uniform_replacement(keep_probability=0.1, num_names=1000, mentions=3, **options)
    >>> round(made.epsilon_per_mention, 4), round(made.epsilon_per_utterance, 4)
    (4.7195, 14.1585)
    """
    num_names = checks.whole("num_names", num_names, at_least=2)
    epsilon = _epsilon(keep_probability, num_names)
    event = events.randomized_response(1 - keep_probability, num_names) if epsilon > 0 else None
    mentions = checks.whole("mentions", mentions, at_least=0)
    words_per_mention = checks.whole("words_per_mention", words_per_mention, at_least=1)
    if off_list != "replaced":
        way_out = "a word off the public list that is kept betrays itself: always replace it"
        raise PrivacyError("off_list", "replaced", repr(off_list), way_out)
    if consistency not in ("mention", "document"):
        expected = "mention or document"
        raise PrivacyError("consistency", expected, repr(consistency), "choose one of them")
    if utterances_per_user is not None:
        utterances_per_user = checks.whole("utterances_per_user", utterances_per_user, at_least=1)
        if consistency != "mention":
            expected, found = "consistency mention", repr(consistency)
            raise PrivacyError("utterances_per_user", expected, found, "set it to null")
    of_utterance = mentions * words_per_mention
    draws = of_utterance * (utterances_per_user or 1)
    by_document = consistency == "document"
    return ReplacementGuarantee(
        epsilon_per_word=epsilon,
        epsilon_per_mention=epsilon * words_per_mention,
        epsilon_per_utterance=epsilon * of_utterance,
        epsilon_per_user=None if utterances_per_user is None else epsilon * draws,
        words_per_mention=words_per_mention,
        mentions=mentions,
        utterances_per_user=utterances_per_user,
        event=None if event is None or draws == 0 else events.repeated(event, draws),
        relation=Relation.REPLACE_ONE,
        unit="document" if by_document else "utterance" if utterances_per_user is None else "user",
        does_not_cover=(*_NOT_COVERED, *_of_many(by_document, utterances_per_user, of_utterance)),
    )


def _of_many(
    by_document: bool, utterances_per_user: int | None, of_utterance: int
) -> tuple[str, ...]:
    """The limits for a name, or a user, in several units."""
    if utterances_per_user is not None:
        most = utterances_per_user * of_utterance
        return (
            (
                f"That a user has names in more than {utterances_per_user} utterances ({most}"
                " words); further ones are always replaced."
            ),
            "A name that several users mention: their epsilons add up for it.",
        )
    if not by_document:
        return (
            "A name that is mentioned in several utterances: their epsilons add up for it.",
            (
                f"A user: the epsilons of all utterances of a user add up, {of_utterance} words for"
                " each, and their number has no limit."
            ),
        )
    return (
        "Which mentions in a document are of the same name, and how often each is repeated.",
        "A name that occurs in several documents: their epsilons add up for it.",
        "A user with several documents: their epsilons add up, and their number has no limit.",
    )


def weighted_replacement(*, keep_probability: float, chances: ArrayLike) -> events.Event:
    """Event of one draw where replacements follow other chances, such as how often names occur.

    Args:
        keep_probability: p, 0 or more and below 1.
        chances: (n,) of the public list, n 2 or more, all above 0; their sum is 1. They must not
            be estimated from the private text.

    Raises:
        PrivacyError: numbers out of range, or chances that do not sum to 1.

    >>> weighted_replacement(keep_probability=0.1, chances=[0.5, 0.3, 0.2])
    WeightedResponseDpEvent(noise=0.9, least=0.2)
    """
    p = checks.number("keep_probability", keep_probability, at_least=0, below=1)
    shares = np.asarray(chances, dtype=np.float64)
    if shares.ndim != 1 or len(shares) < 2 or not math.isclose(math.fsum(shares), 1, abs_tol=1e-9):
        expected, found = "two or more numbers whose sum is 1", "others"
        raise PrivacyError("chances", expected, found, "divide them by their sum")
    return events.weighted_response(1 - p, float(shares.min()))


def _epsilon(keep_probability: float, num_names: int) -> float:
    """ln(1 + n p / (1 - p))."""
    p = checks.number("keep_probability", keep_probability, at_least=0, at_most=1)
    if p == 1:
        way_out = "replace some names: no guarantee where all are kept"
        raise PrivacyError("keep_probability", "a number below 1", "1", way_out)
    if p == 0:
        return 0.0
    return float(np.logaddexp(0.0, math.log(p) - math.log1p(-p) + math.log(num_names)))


_NOT_COVERED = (
    "Mentions that the tagger missed: they stay as they were spoken.",
    "That a name was mentioned, where, of which class and how many words long.",
    (
        "That there are more mentions, or longer ones, than the guarantee counts; further words are"
        " always replaced."
    ),
    "The possessive ('s) behind a name: it stays as it was said.",
    (
        "Which words are on the list: a list that was made from the private text is a release of"
        " its own."
    ),
    "Everything else in the sentence, which may name the person without a name.",
    "Who spoke: style and choice of words stay as they were.",
)
