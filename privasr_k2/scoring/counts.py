"""Error counts that add up. Rates are derived from sums of counts and never averaged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields

from privasr_k2.scoring.align import Pair, align


@dataclass(frozen=True)
class ErrorCounts:
    """Counts of right and wrong words, which ``+`` and ``sum`` add up.

    Attributes:
        hits: reference words that were recognized.
        substitutions: reference words recognized as another word.
        insertions: recognized words that stand beside no reference word.
        deletions: reference words beside which nothing was recognized.

    >>> counts = ErrorCounts(hits=8, substitutions=1, insertions=1, deletions=1)
    >>> counts.errors, counts.ref_words, counts.rate
    (3, 10, 0.3)
    >>> (counts + ErrorCounts(hits=10)).rate
    0.15
    >>> print(ErrorCounts(insertions=2).rate)
    None
    """

    hits: int = 0
    substitutions: int = 0
    insertions: int = 0
    deletions: int = 0

    def __post_init__(self) -> None:
        if min(self.hits, self.substitutions, self.insertions, self.deletions) < 0:
            raise ValueError(f"counts must be 0 or more, got {self}")

    @property
    def errors(self) -> int:
        """Substitutions, insertions and deletions together."""
        return self.substitutions + self.insertions + self.deletions

    @property
    def ref_words(self) -> int:
        """Words of the reference."""
        return self.hits + self.substitutions + self.deletions

    @property
    def hyp_words(self) -> int:
        """Words of the hypothesis."""
        return self.hits + self.substitutions + self.insertions

    @property
    def rate(self) -> float | None:
        """Errors by reference word, 0 or more, maybe above 1; ``None`` without reference words."""
        return self.errors / self.ref_words if self.ref_words else None

    @property
    def percent(self) -> float | None:
        """:attr:`rate` in per cent."""
        return 100.0 * self.errors / self.ref_words if self.ref_words else None

    def __add__(self, other: ErrorCounts) -> ErrorCounts:
        if not isinstance(other, ErrorCounts):
            return NotImplemented
        return ErrorCounts(
            self.hits + other.hits,
            self.substitutions + other.substitutions,
            self.insertions + other.insertions,
            self.deletions + other.deletions,
        )

    def __radd__(self, other: int) -> ErrorCounts:
        # sum() begins with 0.
        return self if other == 0 else NotImplemented

    def to_dict(self) -> dict[str, int]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, int]) -> ErrorCounts:
        """Read the output of :meth:`to_dict`; other keys are ignored."""
        return cls(**{field.name: values[field.name] for field in fields(cls)})


def total(counts: Iterable[ErrorCounts]) -> ErrorCounts:
    """The sum of counts, which is all zeros for none.

    >>> total([ErrorCounts(hits=1), ErrorCounts(deletions=1)])
    ErrorCounts(hits=1, substitutions=0, insertions=0, deletions=1)
    """
    return sum(counts, ErrorCounts())


def count_pairs(pairs: Iterable[Pair]) -> ErrorCounts:
    """Count the errors of one alignment."""
    hits = substitutions = insertions = deletions = 0
    for ref, hyp in pairs:
        if ref is None:
            insertions += 1
        elif hyp is None:
            deletions += 1
        elif ref == hyp:
            hits += 1
        else:
            substitutions += 1
    return ErrorCounts(hits, substitutions, insertions, deletions)


def count_errors(ref: Sequence[str], hyp: Sequence[str]) -> ErrorCounts:
    """Align and count.

    >>> count_errors("the cat sat".split(), "a cat sat down".split())
    ErrorCounts(hits=2, substitutions=1, insertions=1, deletions=0)
    """
    return count_pairs(align(ref, hyp))
