"""Word alignments of least edit distance, the ones that icefall shows in ``errs-*`` files.

Substitutions, insertions and deletions cost 1 each. kaldialign chooses among the best alignments,
and every count of this package is taken from its alignment. It keeps a table of 4 bytes for each
pair of words: for very long texts another alignment of the same distance takes its place, in linear
memory [hyyro2003].

[hyyro2003] H. Hyyrö, A bit-vector algorithm for computing Levenshtein and Damerau edit distances,
Nordic Journal of Computing 10, 2003.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import kaldialign

Pair = tuple["str | None", "str | None"]
"""A reference word and the hypothesis word: ``(word, None)`` deleted, ``(None, word)`` inserted."""

# Words come from splitting text at blanks, so that none of them is empty.
_GAP = ""
# Recordings of an hour would take a gigabyte.
_LARGEST_TABLE = 4_000_000


def align(ref: Sequence[str], hyp: Sequence[str]) -> tuple[Pair, ...]:
    """Align the words of a hypothesis to those of its reference.

    Returns:
        pairs in order; ``None`` stands where a word has no partner. No word may be empty.

    >>> align("the cat sat".split(), "a cat sat down".split())
    (('the', 'a'), ('cat', 'cat'), ('sat', 'sat'), (None, 'down'))
    >>> align("a b".split(), [])
    (('a', None), ('b', None))
    """
    if len(ref) * len(hyp) > _LARGEST_TABLE:
        return _align_long(ref, hyp)
    pairs = kaldialign.align(ref, hyp, _GAP)
    return tuple((r or None, h or None) for r, h in pairs)


def _align_long(ref: Sequence[str], hyp: Sequence[str]) -> tuple[Pair, ...]:
    from rapidfuzz.distance import Levenshtein

    pairs: list[Pair] = []
    for block in Levenshtein.opcodes(list(ref), list(hyp)):  # replaced blocks are of equal length
        refs, hyps = ref[block.src_start : block.src_end], hyp[block.dest_start : block.dest_end]
        pairs += itertools.zip_longest(refs, hyps)
    return tuple(pairs)


def to_scored_units(words: Iterable[str], scored_units: Mapping[str, str]) -> tuple[str, ...]:
    """Replace units that count as one when scoring, such as TIMIT's 48 phones by 39.

    Args:
        words: recognized units; those that ``scored_units`` does not name stay as they are.
        scored_units: recognized unit -> scored unit; a unit that maps to ``""`` is left out.

    >>> to_scored_units("sil ao l q".split(), {"ao": "aa", "q": ""})
    ('sil', 'aa', 'l')
    """
    mapped = (scored_units.get(word, word) for word in words)
    return tuple(word for word in mapped if word)
