"""Facts of a corpus for scoring, from the ``corpus.json`` of its manifests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from privasr_k2.errors import DataError
from privasr_k2.fileio import read_json, read_lines

CORPUS_FILE = "corpus.json"
WORD, PHONE = "word", "phone"
"""Units of recognition; the error rate is then the WER or the PER."""


@dataclass(frozen=True)
class CorpusInfo:
    """The part of ``corpus.json`` that scoring and tables use.

    Attributes:
        name: of the corpus; empty where it is not known.
        synthetic: whether the speech was made by a machine.
        scored_units: as in :func:`privasr_k2.scoring.align.to_scored_units`.
        unit: what the recognized units are: :data:`WORD` or :data:`PHONE`.
        public_roles: the roles that are not private.
        entities: the tagger of the references; empty: the corpus's own annotation, or none.
        groups, train_groups: as in :class:`privasr_k2.corpora.base.Corpus`.
        language: the same; empty where it is not stated: English.
    """

    name: str
    synthetic: bool
    scored_units: Mapping[str, str]
    unit: str = WORD
    public_roles: tuple[str, ...] = ()
    entities: str = ""
    groups: tuple[str, ...] = ()
    train_groups: tuple[str, ...] = ()
    language: str = ""

    @property
    def all_groups(self) -> tuple[str, ...]:
        """Groups whose errors are counted."""
        return (*self.groups, *self.train_groups)

    @property
    def heading(self) -> list[str]:
        """The note above a report's figures: a paragraph for corpora of synthetic speech."""
        if not self.synthetic:
            return []
        return [
            f"**Synthetic speech.** The speech of `{self.name}` is made by a program: these figures"
            " show that the recipe works, not how well it recognizes people.\n"
        ]


UNKNOWN = CorpusInfo(name="", synthetic=False, scored_units={})


def read_corpus_info(manifests: Path | None) -> CorpusInfo:
    """Read ``corpus.json``; :data:`UNKNOWN` where no folder of manifests is given.

    Raises:
        DataError: the file is not what ``prepare_corpus`` writes.
    """
    if manifests is None:
        return UNKNOWN
    path = manifests / CORPUS_FILE
    content = read_json(path)
    units = content.get("scored_units", {}) if isinstance(content, dict) else None
    known = isinstance(units, dict) and all(isinstance(scored, str) for scored in units.values())
    if not known or "name" not in content:
        expected = "name and scored_units of the corpus"
        raise DataError(path, expected, "something else", "prepare the corpus again")
    unit, public_roles = content.get("unit", WORD), content.get("public_roles", [])
    if unit not in (WORD, PHONE) or not isinstance(public_roles, list):
        found = f"unit {unit!r}, public_roles {public_roles!r}"
        way_out = "prepare the corpus again"
        raise DataError(path, f"unit {WORD} or {PHONE}, and a list", found, way_out)
    groups = {name: content.get(name, []) for name in ("groups", "train_groups")}
    if not all(isinstance(names, list) for names in groups.values()):
        raise DataError(path, "lists of groups", repr(groups), "prepare the corpus again")
    return CorpusInfo(
        name=str(content["name"]),
        synthetic=bool(content.get("synthetic", False)),
        scored_units=units or {},
        unit=str(unit),
        public_roles=tuple(map(str, public_roles)),
        entities=str(content.get("entities", "")),
        language=str(content.get("language", "")),
        **{key: tuple(map(str, names)) for key, names in groups.items()},
    )


def read_vocabulary(lang_dir: Path) -> frozenset[str]:
    """The words of ``words.txt`` that can be recognized: without ``<eps>`` and ``#0``.

    Raises:
        DataError: a line is not a word and its number.
    """
    path = lang_dir / "words.txt"
    words = set()
    for number, line in read_lines(path):
        fields = line.split()
        if len(fields) != 2 or not fields[1].isdigit():
            way_out = "prepare the lang folder again"
            raise DataError(f"{path}:{number}", "a word and its number", repr(line), way_out)
        words.add(fields[0])
    return frozenset(words - {"<eps>", "#0"})
