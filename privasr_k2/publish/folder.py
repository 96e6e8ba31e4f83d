"""From what a recipe has made to a folder that may leave the machine."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from privasr_k2.environment import code_version
from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.fileio import atomic_path, file_hash, read_json, read_yaml, write_text
from privasr_k2.privacy.keys import seal_of
from privasr_k2.privacy.ledger import Declaration, Entry, Ledger, entries_beside, lost_entries
from privasr_k2.privacy.lineage import Lineage, lineage, work_dir_of
from privasr_k2.privacy.safekeeping import Copies, lost
from privasr_k2.privacy.totals import are_related, ledger_totals, spent_of
from privasr_k2.publish.card import (
    PUBLIC_FACTS,
    bounds_of,
    guarantee_records,
    render,
    total_records,
)
from privasr_k2.publish.check import CARD, FORMAT, PRIVACY, PUBLISHED, sealed
from privasr_k2.publish.kinds import FEATURES, Kind, files_of, kind_of
from privasr_k2.publish.licenses import ENCODER, licenses_of
from privasr_k2.recipe.history import stamps_below, writers_of
from privasr_k2.recipe.plan import normal_path, values_of

NOT_PUBLISHED = "not published"
_NO_LICENSE = "Not stated. The licences of public data hold for what was made of them:"


@dataclass(frozen=True)
class Source:
    """What is to be published.

    Attributes:
        path: a folder or file below ``work_dir``.
        stamp: of the stage that wrote it; ``stamps``: of all.
        entries: all releases behind it, the oldest first.
    """

    path: Path
    work_dir: Path
    stamp: Mapping[str, Any]
    stamps: list[dict[str, Any]]
    kind: Kind
    lineage: Lineage
    entries: tuple[Entry, ...]


def publish(
    path: Path,
    out: Path,
    *,
    ledger: Path | None = None,
    second: Path | None = None,
    license: str = "",
) -> Source:
    """Copy what a guarantee covers, with its model card, entries and hashes.

    Args:
        path: what a recipe has made.
        out: a new folder.
        ledger, second: as of :class:`privasr_k2.privacy.safekeeping.Copies`; ``None``: those of the
            work folder.
        license: a sentence for the card.

    Raises:
        PrivacyError: no guarantee holds, or the ledger does not know all releases.
        DataError: no stage has written ``path``.
    """
    if out.exists() or out.is_symlink():
        raise PrivacyError(out, "no such folder yet", "one", "choose another name, or remove it")
    source = open_source(path)
    ledger = (ledger or source.work_dir / "privacy" / "ledger.json").resolve()
    book, declared = _read_ledger(ledger, source, second)
    card = _card(source, ledger, book, declared, license)
    for record in card["guarantees"]:
        record["units"] = None
    with atomic_path(out) as folder:
        folder.mkdir(parents=True)
        for name, file in _copied(source):
            (folder / name).parent.mkdir(exist_ok=True)
            if name == FEATURES:
                write_text(folder / name, _public_settings(file))
            else:
                shutil.copyfile(file, folder / name)
        Ledger(folder / PRIVACY).write(tuple(map(public_entry, source.entries)))
        document = {
            "format": FORMAT,
            "kind": source.kind.name,
            "code": code_version(),
            "card": card,
        }
        write_text(folder / CARD, render(document))
        hashes = {
            file.relative_to(folder).as_posix(): file_hash(file)
            for file in sorted(folder.rglob("*"))
            if file.is_file()
        }
        write_text(folder / PUBLISHED, sealed({**document, "files": hashes}))
        for file in folder.rglob("*"):
            os.chmod(file, 0o755 if file.is_dir() else 0o644)
        if out.exists():
            raise PrivacyError(out, "no such folder yet", "one", "choose another name")
    return source


def open_source(path: Path) -> Source:
    """Find the releases behind a path.

    Raises:
        PrivacyError: no guarantee holds for it, or it is nothing that is published.
        DataError: no stage has written it.
    """
    work_dir = work_dir_of(path)
    stamps = stamps_below(work_dir)
    _refuse_several(path, normal_path(str(path.absolute()), str(work_dir.absolute())), stamps)
    behind = lineage(path, work_dir, verify=True)
    if not behind.spent:
        spending = [stamp for stamp in stamps if values_of(stamp["command"], "--out-privacy")]
        made = [values_of(stamp["command"], "--out-")[0] for stamp in spending]
        there = f"in {work_dir}: {' '.join(made)}" if made else f"{work_dir} has none yet"
        way_out = f"publish what a private training or a release has made; {there}"
        raise PrivacyError(path, "a release behind it", "none: it has no guarantee", way_out)
    if not behind.is_covered:
        found = next(line for line in behind.lines() if line.startswith("NOT PROTECTED"))
        way_out = "make it of releases and public data alone; privasr ledger --in-path PATH"
        raise PrivacyError(path, "a guarantee", found, way_out)
    stamp = writers_of(normal_path(str(path.absolute()), str(work_dir.absolute())), stamps)[0]
    kind = kind_of(path, stamp["command"][0])
    entries = {
        entry.release: entry
        for copy in dict.fromkeys(behind.spent.values())
        for entry in entries_beside(work_dir / copy)
    }
    in_order = sorted(entries.values(), key=lambda entry: (entry.time, entry.release))
    return Source(path, work_dir, stamp, stamps, kind, behind, tuple(in_order))


def _refuse_several(path: Path, start: str, stamps: list[dict[str, Any]]) -> None:
    """A system's folder holds what several stages wrote, scores of the private data among it."""
    outputs = [output for stamp in stamps for output in stamp["outputs"]]
    inside = sorted({output for output in outputs if output.startswith(f"{start}/")})
    if inside and start not in outputs:
        names = ", ".join(output.removeprefix(f"{start}/") for output in inside)
        expected, found = "what one stage has written", f"a folder with {names}"
        raise PrivacyError(path, expected, found, "name the model or the file that is to leave")


def _read_ledger(
    ledger: Path, source: Source, second: Path | None
) -> tuple[tuple[Entry, ...], tuple[Declaration, ...]]:
    """The whole ledger, which has to know every release of its copies."""
    copies = Copies.of(ledger, source.path, second)
    seal = seal_of(ledger)
    if seal is None:
        found = "none" if not ledger.exists() else "a copy without its key"
        way_out = "name the ledger of the releases: --ledger FILE; or privasr ledger restore"
        raise PrivacyError(ledger, "the ledger of the private data", found, way_out)
    book, declared = Ledger(ledger, seal).read()
    gone = [(source.path, entry) for entry in lost_entries(book, source.entries)]
    if gone := gone or copies.missing(book, declared):
        raise lost(ledger, gone)
    return book, declared


def _card(
    source: Source,
    ledger: Path,
    book: tuple[Entry, ...],
    declared: tuple[Declaration, ...],
    license: str,
) -> dict[str, Any]:
    promised = guarantee_records(source.entries)
    for record in promised:
        if record["epsilon"] == "infinite":
            found = f"an infinite epsilon for each {record['unit']} of {record['data']}"
            raise PrivacyError(source.path, "a guarantee", found, "publish a protected release")
    spent = dict(zip((entry.release for entry in book), spent_of(ledger, book), strict=True))
    own = [spent[entry.release] for entry in source.entries]
    concerned = [s for s in spent.values() if any(are_related(s, of) for of in own)]
    sentences = [sentence for record in promised for sentence in record["does_not_cover"]]
    return {
        "guarantees": promised,
        "totals": total_records(ledger_totals(concerned)),
        "declared_lost": sum(len(declaration.releases) for declaration in declared),
        "does_not_cover": list(dict.fromkeys([*sentences, *PUBLIC_FACTS])),
        "public": list(
            dict.fromkeys(_public(label, name) for label, name in source.lineage.public)
        ),
        "audits": [*_audits(source)],
        "license": license or _NO_LICENSE,
        "licenses": licenses_of(
            (path for _, path in source.lineage.public), source.work_dir, source.stamps
        ),
    }


def public_entry(entry: Entry) -> Entry:
    """An entry without what tells two data sets apart, whoever they are of.

    Fingerprint and people are digests under the ledger's key: equal ones in two published folders
    say that nothing in the private inputs, or nobody, has changed. The number of units says whether
    everybody has data.
    """
    spending = replace(entry.spending, units=None)
    return replace(entry, fingerprint=NOT_PUBLISHED, people=None, spending=spending)


def _public(label: str, path: str) -> str:
    """A public input, without folders outside of the work folder."""
    return f"{Path(path).name if os.path.isabs(path) else path}, by {label}"


def _audits(source: Source) -> list[dict[str, Any]]:
    """Audits beside the releases: their bounds only where no private data went in."""
    audits = []
    for privacy in dict.fromkeys(source.lineage.spent.values()):
        path = Path(privacy)
        audit = source.work_dir / path.with_name(path.name.replace("privacy", "audit"))
        if not audit.is_file():
            continue
        bounds = [*bounds_of(read_json(audit))]
        for bound in bounds:
            lower, claimed = bound["epsilon_lower"]["sound"], bound["claimed_epsilon"]
            if not math.isfinite(lower) or lower > claimed:
                expected = f"an audit whose bound is at most the claim, {claimed:.4g}"
                way_out = "find the error in the mechanism: the guarantee does not hold"
                raise PrivacyError(audit, expected, f"{lower:.4g} ({bound['attack']})", way_out)
        audits.append({"bounds": bounds if _is_covered(audit, source.work_dir) else []})
    return audits


def _is_covered(path: Path, work_dir: Path) -> bool:
    try:
        behind = lineage(path, work_dir)
    except DataError:
        return False
    return bool(behind.spent) and behind.is_covered


def _copied(source: Source) -> list[tuple[str, Path]]:
    """The files that leave, with the settings of the features that an acoustic model reads."""
    files = [*files_of(source.kind, source.path)]
    names = {name for name, _ in files}
    if source.kind.allows(FEATURES) and FEATURES not in names:
        places = (source.work_dir / value for value in values_of(source.stamp["command"], "--in-"))
        settings = next((p / FEATURES for p in places if (p / FEATURES).is_file()), None)
        if settings is not None:
            files.append((FEATURES, settings))
    return files


def _public_settings(file: Path) -> str:
    """How features are computed: single values, and a public encoder without its folder here."""
    settings = read_yaml(file)
    public = {
        name: value for name, value in settings.items() if isinstance(value, str | int | float)
    }
    if ENCODER in settings:
        of_encoder = {name: value for name, value in settings[ENCODER].items() if name != "folder"}
        public |= {"encoder": settings["encoder"], ENCODER: of_encoder}
    return yaml.safe_dump(public, sort_keys=False)
