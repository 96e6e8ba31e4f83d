"""Character errors: a rate that depends less on where words are parted.

The characters of an utterance are those of its words joined by one blank, which counts as a
character: joining two words is one deletion. jiwer, ESPnet and NeMo count so for languages with
blanks; icefall, which counts characters for Chinese, leaves blanks out. A character is a Unicode
code point, in the normalization (NFKC) that texts have anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

import kaldialign

from privasr_k2.scoring.align import align
from privasr_k2.scoring.counts import ErrorCounts, count_pairs

# Pairs of characters that kaldialign looks at in a second or so; a call of an hour has 2,500 M.
_MOST_PAIRS = 100_000_000


def count_character_errors(ref: Sequence[str], hyp: Sequence[str]) -> ErrorCounts:
    """Count the character errors of one utterance, by least edit distance with equal costs.

    Returns:
        counts in characters: ``ref_words`` and ``hyp_words`` are numbers of characters. Of several
        best alignments kaldialign counts one.

    >>> count_character_errors("a cat".split(), "a bat".split())
    ErrorCounts(hits=4, substitutions=1, insertions=0, deletions=0)
    >>> count_character_errors("all right".split(), "allright".split()).deletions
    1
    """
    # Lists, because kaldialign takes a string for its bytes.
    characters, written = list(" ".join(ref)), list(" ".join(hyp))
    if len(characters) * len(written) > _MOST_PAIRS:
        return count_pairs(align(characters, written))
    distance = kaldialign.edit_distance(characters, written)
    hits = len(characters) - distance["sub"] - distance["del"]
    return ErrorCounts(hits, distance["sub"], distance["ins"], distance["del"])
