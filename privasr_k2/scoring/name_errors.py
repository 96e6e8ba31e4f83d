"""Word errors inside and outside names, from the alignment that gives the word error rate.

A substituted or deleted word counts where it lies. An inserted word counts inside where both words
beside it lie inside, or where one that lies inside is wrong: ``may ers`` for ``mayers`` is two
errors of a name, whichever of them the alignment calls the insertion. All else counts outside, so
that both kinds of errors add up to all errors. A class counts in the same way, as if all other
words were outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from privasr_k2.scoring.align import Pair

Span = tuple[int, int, str]
"""First word, last word + 1, and the class: of scored words of a reference."""


def inside_slots(pairs: Iterable[Pair], inside: Sequence[bool]) -> list[bool]:
    """Whether the errors at each slot of an utterance are those of names.

    Args:
        pairs: the alignment, of U reference words.
        inside: (U,) whether each of them lies inside a name.

    Returns:
        (2U + 1,), as for :func:`privasr_k2.scoring.matched_pairs.errors_by_slot`.

    Raises:
        ValueError: not U words.

    >>> inside_slots([("ask", "ask"), ("mayers", "may"), (None, "ers")], [False, True])
    [False, False, True, True, True]
    >>> inside_slots([("ask", "ask"), (None, "uh"), ("mayers", "mayers")], [False, True])
    [False, False, False, True, False]
    """
    wrong = [ref != hyp for ref, hyp in pairs if ref is not None]
    if len(wrong) != len(inside):
        raise ValueError(f"{len(inside)} words inside or outside names, but {len(wrong)} words")
    attracts = [lies and lost for lies, lost in zip(inside, wrong)]
    slots = [any(attracts[:1])]
    for position, lies in enumerate(inside):
        both = lies and any(inside[position + 1 : position + 2])
        slots += [lies, both or any(attracts[position : position + 2])]
    return slots


def divide(
    pairs: Sequence[Pair], inside: Sequence[bool]
) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """The pairs inside and outside names, each in order.

    >>> divide([("ask", "ask"), ("mayers", "may"), (None, "ers")], [False, True])
    ((('mayers', 'may'), (None, 'ers')), (('ask', 'ask'),))
    """
    slots = inside_slots(pairs, inside)
    divided: tuple[list[Pair], list[Pair]] = ([], [])
    position = 0
    for pair in pairs:
        at_word = pair[0] is not None
        divided[not slots[2 * position + at_word]].append(pair)
        position += at_word
    return tuple(divided[0]), tuple(divided[1])


def spans_of(classes: Sequence[Iterable[str]]) -> list[Span]:
    """Runs of words of one class, sorted; neighbours of one class are one run.

    >>> spans_of([{"PER"}, {"PER", "ORG"}, set(), {"PER"}])
    [(0, 2, 'PER'), (1, 2, 'ORG'), (3, 4, 'PER')]
    """
    spans: list[Span] = []
    for name in sorted({name for of_word in classes for name in of_word}):
        start = None
        for position, of_word in enumerate([*classes, ()]):
            if name in of_word and start is None:
                start = position
            elif name not in of_word and start is not None:
                spans.append((start, position, name))
                start = None
    return sorted(spans)


def words_inside(spans: Iterable[Span], num_words: int) -> list[bool]:
    """Whether each word lies in any span.

    >>> words_inside([(0, 2, "PER"), (1, 2, "ORG")], 3)
    [True, True, False]
    """
    inside = [False] * num_words
    for first, end, _ in spans:
        inside[first:end] = [True] * (end - first)
    return inside
