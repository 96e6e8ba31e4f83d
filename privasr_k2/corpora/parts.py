"""Parts of a corpus by the names of their manifests, as lhotse and icefall write them.

``librispeech_cuts_train-clean-100.jsonl.gz`` holds the cuts of the part ``train-clean-100``;
``recordings`` and ``supervisions`` of one part belong together.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from privasr_k2.corpora.base import ROLES
from privasr_k2.errors import DataError

log = logging.getLogger(__name__)

_NAME = re.compile(r"(?:.+_)?(cuts|recordings|supervisions)_(.+)\.jsonl(?:\.gz)?")
_PLACES = ("", "data/fbank", "fbank", "data/manifests", "manifests")
"""Below a given folder: where icefall's recipes keep manifests."""
_BEGINNINGS = {"valid": "dev", "eval": "test", **{role: role for role in ROLES}}
_ALL = re.compile(r"train[-_]all\b|train[-_]all[-_]", re.IGNORECASE)
WAY_OUT = "name the files of each role: --train FILE --dev FILE --test FILE"


@dataclass(frozen=True)
class Part:
    """A part of a corpus.

    Attributes:
        name: for tables.
        files: one Kaldi data directory, or lhotse's manifests that belong together.
    """

    name: str
    files: tuple[Path, ...]


def role_of(part: str) -> str | None:
    """The role of a part, by the beginning of its name; None where that tells none.

    >>> [role_of(part) for part in ("train-clean-100", "DEV", "valid", "eval2000", "XL")]
    ['train', 'dev', 'dev', 'test', None]
    """
    begin = (role for start, role in _BEGINNINGS.items() if part.lower().startswith(start))
    return next(begin, None)


def by_role(names: Iterable[str]) -> dict[str, list[str]]:
    """Role -> names of parts; ``train-all...`` is left out where its pieces are there, too."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        if (role := role_of(name)) is not None:
            found[role].append(name)
    pieces = [name for name in found["train"] if not _ALL.match(name)]
    if pieces and len(pieces) < len(found["train"]):
        left_out = " ".join(sorted(set(found["train"]) - set(pieces)))
        log.info("%s: left out, as it repeats %s", left_out, " ".join(pieces))
        found["train"] = pieces
    return {role: found[role] for role in ROLES if found[role]}


def named_parts(folder: Path) -> dict[str, list[Part]]:
    """Role -> its parts: lhotse's manifests in a folder, or where icefall keeps them below it.

    Raises:
        DataError: names of parts that tell no role of train or test, or two files for one part.
    """
    for place in _PLACES:
        parts = _manifests(folder / place) if (folder / place).is_dir() else {}
        if parts:
            return _roles(folder / place, parts)
    return {}


def _roles(folder: Path, parts: Mapping[str, tuple[Path, ...]]) -> dict[str, list[Part]]:
    names = by_role(parts)
    unknown = [name for name in parts if role_of(name) is None]
    if unknown and ("train" not in names or "test" not in names):
        expected = "parts whose names begin with train, dev (valid) and test (eval)"
        raise DataError(folder, expected, " ".join(sorted(parts)), WAY_OUT)
    if unknown:
        log.warning("%s: parts of no role are left out: %s", folder, " ".join(sorted(unknown)))
    return {role: [Part(n, parts[n]) for n in of_role] for role, of_role in names.items()}


def _manifests(folder: Path) -> dict[str, tuple[Path, ...]]:
    """Part -> its cuts, or its recordings and supervisions."""
    kinds: dict[str, dict[str, Path]] = defaultdict(dict)
    for path in sorted(folder.glob("*.jsonl*")):
        if (match := _NAME.fullmatch(path.name)) is None:
            continue
        kind, part = match.groups()
        there = kinds[part].setdefault(kind, path)
        if there.name.split(".jsonl")[0] != path.name.split(".jsonl")[0]:
            found = f"{there.name} and {path.name}"
            raise DataError(folder, f"one file with the {kind} of {part}", found, WAY_OUT)
    parts = {}
    for part, files in sorted(kinds.items()):
        if "cuts" in files:
            parts[part] = (files["cuts"],)
        elif len(files) == 2:  # recordings alone are music and noise
            parts[part] = (files["recordings"], files["supervisions"])
    return parts


def given_parts(files: Iterable[Path], role: str) -> list[Part]:
    """The parts of one role that a user names: recordings find their supervisions by the name.

    Where names do not tell, all recordings and supervisions of a role belong together.
    """
    groups: dict[str, list[Path]] = defaultdict(list)
    parts: list[Part] = []
    for path in files:
        match = _NAME.fullmatch(path.name)
        if path.is_dir() or (match is not None and match[1] == "cuts"):
            parts.append(Part(match[2] if match is not None else path.name, (path,)))
        else:
            groups[match[2] if match is not None else role].append(path)
    return [*parts, *(Part(name, tuple(of_part)) for name, of_part in groups.items())]
