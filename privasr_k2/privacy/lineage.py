"""Lineage of a file: the stages that spent, and the stages that processed releases.

Read from the stamps that the stage runner leaves. A stage's own release covers ``--in-private-*``
and ``--raw-private-*``; ``--in-public-*`` and ``--raw-public-*`` are public; any other ``--in-*``
is followed to where it was made. No guarantee holds where a way leads to the corpus without a
release, to a file of unknown origin, or to one that was changed after its stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError
from privasr_k2.recipe.fingerprint import HashCache
from privasr_k2.recipe.history import stages_behind, stamps_below, writers_of
from privasr_k2.recipe.plan import normal_path, values_of
from privasr_k2.recipe.seal import Seal


@dataclass
class Lineage:
    """The stages behind a file, each as its label, the nearest first.

    Attributes:
        spent: stages with a release, with its ``privacy.json``.
        covered: inputs whose units these releases protect, as (stage, path); not followed further.
        post_processing: stages between the file and those releases.
        public: inputs that a stage declares public, as (stage, path).
        unprotected: stages that read the corpus, with no release between them and the file.
        unknown: inputs that no stage has written, as (stage, path).
        changed: outputs that are not as their stage has left them, as (stage, path).
    """

    spent: dict[str, str] = field(default_factory=dict)
    covered: list[tuple[str, str]] = field(default_factory=list)
    post_processing: list[str] = field(default_factory=list)
    public: list[tuple[str, str]] = field(default_factory=list)
    unprotected: list[str] = field(default_factory=list)
    unknown: list[tuple[str, str]] = field(default_factory=list)
    changed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_covered(self) -> bool:
        """Whether all ways back end in a release or in what is declared public."""
        return not (self.unprotected or self.unknown or self.changed)

    def lines(self) -> Iterator[str]:
        """For people."""
        for label, privacy in self.spent.items():
            yield f"spent: {label}, {privacy}"
        for label, path in self.covered:
            yield (
                f"covered by {label}: {path}, for the units of that release; whose speech or text"
                " made the models behind it, such as a recognizer's, is not looked at"
            )
        # Only what is made of releases alone is post-processing.
        if self.spent:
            how = "post-processing" if self.is_covered else "also made by"
            yield from (f"{how}: {label}" for label in self.post_processing)
        for label, path in self.public:
            yield f"declared public by {label}: {path} (the guarantee stands and falls with that)"
        for label, path in self.unknown:
            yield f"NOT PROTECTED: {path}, read by {label}, is of unknown origin"
        for label, path in self.changed:
            yield f"NOT PROTECTED: {path} was changed after {label} had written it"
        for label in self.unprotected:
            yield (
                f"NOT PROTECTED: {label} reads the corpus, with no release between it and this file"
            )


def work_dir_of(path: Path) -> Path:
    """The folder of the run that made ``path``: the nearest above it with the stage runner's lock.

    Raises:
        DataError: there is none.
    """
    absolute = path.absolute()
    for folder in (absolute, *absolute.parents):
        if (folder / ".stages" / "lock").exists():
            return folder
    expected, found = "a file that a recipe has made", "no .stages/lock above it"
    by_hand = "what verbs made by hand has no records: docs/plugin.md#publish"
    way_out = f"name a file below data/ or exp/ of a recipe; {by_hand}"
    raise DataError(path, expected, found, way_out)


def lineage(path: Path, work_dir: Path, *, verify: bool = False) -> Lineage:
    """Follow ``path`` back through the stamps of a work folder.

    Args:
        verify: hash outputs again, whatever is remembered of them.

    Raises:
        DataError: no stage has written it.
    """
    stamps = stamps_below(work_dir)
    start = normal_path(str(path.absolute()), str(work_dir.absolute()))
    behind, seen = Lineage(), set[str]()
    todo = writers_of(start, stamps)
    if not todo:
        way_out = "name what a recipe has made"
        raise DataError(path, "an output of a stage", "one without a stamp", way_out)
    hashes = work_dir / ".stages" / "hashes.json"
    cache = HashCache(hashes, work_dir, verify=verify, seal=Seal.of(work_dir))
    while todo:
        stamp = todo.pop(0)
        label = f"stage {stamp['number']} ({stamp['title']})"
        key = "\0".join(stamp["outputs"])
        if key in seen:
            continue
        seen.add(key)
        for output, digest in stamp["outputs"].items():
            if cache.digest(output) != digest:
                _add(behind.changed, (label, output))
        todo += _follow(stamp, label, stamps, behind)
    return behind


def _follow(
    stamp: dict[str, Any], label: str, stamps: list[dict[str, Any]], found: Lineage
) -> list[dict[str, Any]]:
    command: list[str] = stamp["command"]
    privacy = values_of(command, "--out-privacy")
    covered = {*values_of(command, "--in-private-", "--raw-private-")} if privacy else set[str]()
    public = {*values_of(command, "--in-public-", "--raw-public-")}
    raw = [path for path in values_of(command, "--raw-") if path not in covered | public]
    if privacy:
        _spent(found, label, privacy[0])
    if raw:
        _add(found.unprotected, label)
    elif not privacy:
        _add(found.post_processing, label)
    for path in sorted(covered):
        _add(found.covered, (label, path))
    for path in sorted(public):
        _add(found.public, (label, path))
        for behind, beside in _releases_behind(path, stamps):
            _spent(found, behind, beside)
    next_stamps = []
    for path in dict.fromkeys(values_of(command, "--in-")):
        if path not in public and path not in covered:
            writers = writers_of(path, stamps)
            if not writers:
                _add(found.unknown, (label, path))
            next_stamps += writers
    return next_stamps


def _spent(found: Lineage, label: str, privacy: str) -> None:
    """Stages of two recipes may have one label."""
    other = found.spent.get(label, privacy) != privacy
    found.spent[f"{label}, {privacy}" if other else label] = privacy


def _releases_behind(path: str, stamps: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The releases that a public input was made of: whoever gets what is made of it gets them.

    Each as its stage's label and its ``privacy.json``.
    """

    def inputs(stamp: dict[str, Any]) -> list[str]:
        command = stamp["command"]
        covered = values_of(command, "--in-private-") if values_of(command, "--out-privacy") else []
        return [path for path in values_of(command, "--in-") if path not in covered]

    return [
        (f"stage {stamp['number']} ({stamp['title']})", privacy)
        for stamp in stages_behind([path], stamps, inputs)
        for privacy in values_of(stamp["command"], "--out-privacy")
    ]


def _add(items: list[Any], item: object) -> None:
    if item not in items:  # an array has a stamp for each of its jobs
        items.append(item)
