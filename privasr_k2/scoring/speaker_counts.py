"""Errors of every speaker, and the interval of the error rate over speakers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from privasr_k2.scoring.bootstrap import Interval
from privasr_k2.scoring.counts import ErrorCounts, total


@dataclass(frozen=True)
class SpeakerCounts:
    """What was counted, by speaker.

    Attributes:
        speakers: counts of each speaker, sorted by name.
        interval: of the error rate over speakers; ``None`` with fewer than
            :data:`~privasr_k2.scoring.bootstrap.MIN_CLUSTERS` speakers with reference words.
    """

    speakers: Mapping[str, ErrorCounts]
    interval: Interval | None

    @property
    def counts(self) -> ErrorCounts:
        """All speakers together."""
        return total(self.speakers.values())

    def plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "interval": None if self.interval is None else asdict(self.interval),
            "counts": self.counts.to_dict(),
            "speakers": {name: counts.to_dict() for name, counts in self.speakers.items()},
        }


def read_speakers(values: Mapping[str, Any]) -> dict[str, Any]:
    """``speakers`` and ``interval`` of :meth:`SpeakerCounts.plain`, as arguments of a class."""
    interval = values["interval"]
    return {
        "speakers": {name: ErrorCounts.from_dict(c) for name, c in values["speakers"].items()},
        "interval": None if interval is None else Interval(**interval),
    }
