"""Groups of utterances, such as those of children and of adults: who is in them, and their errors.

A corpus names its groups: attributes of a supervision (``gender``) or keys of its ``custom``
(``age_group``). Each value of a group has error counts of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_jsonl
from privasr_k2.scoring.speaker_counts import SpeakerCounts, read_speakers

NOT_KNOWN = "not known"
"""Value of a group for utterances of which it is not known, beside others of which it is."""


@dataclass(frozen=True)
class GroupScore(SpeakerCounts):
    """The word errors of the utterances that share a value of a group.

    Attributes:
        utterances: how many there are.
    """

    utterances: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values for ``wer.json``."""
        rate = self.counts.percent
        return {"wer_percent": rate, "utterances": self.utterances, **self.plain()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GroupScore:
        """Read the output of :meth:`to_dict`."""
        return cls(**read_speakers(values), utterances=values["utterances"])


def read_groups(manifests: Path, role: str, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """The groups of the utterances of one role.

    Args:
        manifests: the folder with ``cuts_<role>.jsonl.gz``.
        role: whose utterances.
        names: of groups.

    Returns:
        id -> group -> value, groups in the order of ``names``. Where no utterance of the role has a
        value of a group, the group is absent. :data:`NOT_KNOWN` stands for single missing values.

    Raises:
        DataError: a value that is neither a word, a whole number, nor true or false.
    """
    if not names:
        return {}
    path = manifests / f"cuts_{role}.jsonl.gz"
    found: dict[str, dict[str, str]] = {}
    for number, cut in enumerate(read_jsonl(path), start=1):
        supervision = (cut.get("supervisions") or [{}])[0]
        place = f"{path}:{number} ({cut.get('id')})"
        values = {name: _value(supervision, name, place) for name in names}
        found[str(cut.get("id"))] = {name: value for name, value in values.items() if value}
    known = [name for name in names if any(name in values for values in found.values())]
    return {
        id: {name: values.get(name, NOT_KNOWN) for name in known} for id, values in found.items()
    }


def _value(supervision: Mapping[str, Any], name: str, place: str) -> str:
    value = supervision.get(name)
    if value is None:
        value = (supervision.get("custom") or {}).get(name)
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, (str, int)):
        expected = f"{name} as a word, a whole number, or true or false"
        raise DataError(place, expected, repr(value), "correct the corpus's groups")
    return str(value)
