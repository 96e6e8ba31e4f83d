"""Character errors: how far off wrong words are, in a rate that depends less on where words are
parted.

The characters of an utterance are those of its words joined by one blank, and a blank counts as a
character: joining two words is one deletion. jiwer, ESPnet and NeMo count so for languages that are
written with blanks; icefall, which counts characters for Chinese, leaves blanks out, so that its
rates are not these. A character is a Unicode code point, in the normalization (NFKC) that texts
have anyway.

Where the recognized units are phones, their names have no characters to count: the counts of units
are then those of the phone error rate (PER).
"""

from __future__ import annotations

from collections.abc import Sequence

import kaldialign

from privasr_k2.scoring.counts import ErrorCounts


def count_character_errors(ref: Sequence[str], hyp: Sequence[str]) -> ErrorCounts:
    """Count the character errors of one utterance, by least edit distance with equal costs.

    Args:
        ref: the reference's words.
        hyp: the hypothesis's words.

    Returns:
        counts in characters: ``ref_words`` and ``hyp_words`` are numbers of characters. Of several
        best alignments kaldialign counts one; the number of errors is the same in all of them.

    >>> count_character_errors("a cat".split(), "a bat".split())
    ErrorCounts(hits=4, substitutions=1, insertions=0, deletions=0)
    >>> count_character_errors("all right".split(), "allright".split()).deletions
    1
    """
    # Lists, because kaldialign takes a string for its bytes.
    characters = list(" ".join(ref))
    distance = kaldialign.edit_distance(characters, list(" ".join(hyp)))
    hits = len(characters) - distance["sub"] - distance["del"]
    return ErrorCounts(hits, distance["sub"], distance["ins"], distance["del"])
