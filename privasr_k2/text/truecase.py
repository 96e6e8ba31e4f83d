"""A statistical truecaser [lita2003] for taggers that look at capitals.

A word gets its most frequent form after the previous word if the pair is frequent enough, else its
most frequent form outside of sentence starts (bigrams, without a search). Training text must be
public: forms of rare words reveal it.

[lita2003] L. V. Lita, A. Ittycheriah, S. Roukos, N. Kambhatla, tRuEcasIng, ACL 2003.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

_LEAST_PAIRS = 2
_MOST_UPPER = 0.5
_LEAST_CASED = 0.001
_APOSTROPHES = ("'", "\u2019")
_SENTENCE_ENDS = re.compile(r"[.!?:][)\"]*$")


def has_case(texts: Iterable[Sequence[str]]) -> bool:
    """Whether capitals are informative: some words have one, and most letters are small.

    >>> has_case([["Hello", "Ann"]]), has_case([["HELLO", "ANN"]]), has_case([["hello", "ann"]])
    (True, False, False)
    """
    words = capitalized = letters = upper = 0
    for text in texts:
        for token in text:
            words += 1
            capitalized += token[:1].isupper()
            letters += len(token)
            upper += sum(map(str.isupper, token))
    return capitalized > _LEAST_CASED * words and upper < _MOST_UPPER * letters


def begins_sentence(tokens: Sequence[str], place: int) -> bool:
    """Whether a token begins a sentence, where marks end sentences.

    >>> [begins_sentence("Right . We go , Ann .".split(), place) for place in (0, 2, 5)]
    [True, True, False]
    """
    return place == 0 or _SENTENCE_ENDS.search(tokens[place - 1]) is not None


def is_clipped(token: str) -> bool:
    """Whether the beginning of a word is left out, as in "'kay"."""
    return token[:1] in _APOSTROPHES and token[-1:] not in _APOSTROPHES


class Truecaser:
    """Learns the forms of words from cased sentences.

    Args:
        sentences: tokens of *public* text; those without capitals or small letters are skipped.
        names: further cased words, for words that the sentences lack.
        capital_unknown: whether words that both lack get a capital: higher recall of names, lower
            precision.

    Attributes:
        small: lower-case word -> share of its occurrences that is written small.

    >>> sentences = ["Then New York was new to me".split(), "I saw a new day".split()]
    >>> " ".join(Truecaser(sentences, capital_unknown=True).restore("i saw new york in".split()))
    'I saw new York In'
    """

    def __init__(
        self,
        sentences: Iterable[Sequence[str]],
        names: Iterable[str] = (),
        *,
        capital_unknown: bool,
    ) -> None:
        alone: defaultdict[str, Counter[str]] = defaultdict(Counter)
        pairs: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for tokens in sentences:
            text = "".join(tokens)
            if text.islower() or text.isupper():
                continue
            for position, (before, token) in enumerate(itertools.pairwise(tokens), start=1):
                if not begins_sentence(tokens, position):
                    alone[token.lower()][token] += 1
                    pairs[before.lower(), token.lower()][token] += 1
        self._forms = {word: forms.most_common(1)[0][0] for word, forms in alone.items()}
        self._after = {
            pair: forms.most_common(1)[0][0]
            for pair, forms in pairs.items()
            if forms.total() >= _LEAST_PAIRS and forms.most_common(1)[0][0] != self._forms[pair[1]]
        }
        self.small = {word: forms[word] / forms.total() for word, forms in alone.items()}
        for name in names:
            for word in name.split():
                self._forms.setdefault(word.lower(), word)
        self._unknown = str.capitalize if capital_unknown else str.lower
        self._forms |= {"i": "I", "i'm": "I'm", "i've": "I've", "i'll": "I'll", "i'd": "I'd"}

    def restore(self, tokens: Sequence[str]) -> list[str]:
        """The tokens with capitals; the first one always has one."""
        small = [token.lower() for token in tokens]
        forms = [
            self._after.get((before, word)) or self._forms.get(word) or self._unknown(word)
            for before, word in zip(["", *small], small)
        ]
        return [forms[0][:1].upper() + forms[0][1:], *forms[1:]] if forms else []
