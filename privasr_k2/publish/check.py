"""Verify a published folder: its files, their hashes, the releases, and every epsilon."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privasr_k2.errors import DataError, PrivacyError
from privasr_k2.fileio import file_hash, parse_json
from privasr_k2.privacy.ledger import Entry, entries_beside
from privasr_k2.publish.card import check_records
from privasr_k2.publish.kinds import kind_named

FORMAT = "privasr_k2 published 1"
PUBLISHED, PRIVACY, CARD = "published.json", "privacy.json", "README.md"
_KEYS = {"format", "kind", "code", "card", "files", "digest"}
_CARD_KEYS = {"guarantees", "totals", "declared_lost", "does_not_cover", "public", "audits"}
_WAY_OUT = "take the folder from its source again"


def check_published(folder: Path) -> tuple[Entry, ...]:
    """Verify a folder of :func:`privasr_k2.publish.folder.publish`.

    Returns:
        the releases behind it.

    Raises:
        PrivacyError: a file is missing, changed or unknown, or a figure is not what its events say.
    """
    document = read_published(folder)
    at, kind = folder / PUBLISHED, kind_named(document["kind"])
    if kind is None:
        raise PrivacyError(at, "a kind that this version knows", document["kind"], "update privasr")
    _check_files(folder, document["files"])
    for name in document["files"]:
        if name not in (PRIVACY, CARD) and not kind.allows(name):
            raise PrivacyError(folder / name, f"files of {kind.name}", name, _WAY_OUT)
    for name in kind.needed:
        if name not in document["files"]:
            raise PrivacyError(folder / name, f"all files of {kind.name}", "none", _WAY_OUT)
    entries = entries_beside(folder / PRIVACY)
    check_records(document["card"], entries, at)
    return entries


def read_published(folder: Path) -> dict[str, Any]:
    """The content of ``published.json``.

    Raises:
        PrivacyError: none, or one that was changed.
    """
    path = folder / PUBLISHED
    expected = "what privasr publish has written"
    try:
        text = path.read_bytes().decode()
        document = parse_json(text, path)
    except (FileNotFoundError, NotADirectoryError):
        way_out = "name a folder of privasr publish"
        raise PrivacyError(path, expected, "no such file", way_out) from None
    except (UnicodeDecodeError, DataError) as error:
        raise PrivacyError(path, expected, "another file", _WAY_OUT) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise PrivacyError(path, f"the format {FORMAT!r}", "another", _WAY_OUT)
    body = {key: value for key, value in document.items() if key != "digest"}
    if set(document) != _KEYS or sealed(body) != text:
        raise PrivacyError(path, expected, "one that was changed", _WAY_OUT)
    if not set(document["card"]) >= _CARD_KEYS:
        raise PrivacyError(path, f"a card with {', '.join(sorted(_CARD_KEYS))}", "less", _WAY_OUT)
    return document


def sealed(body: Mapping[str, Any]) -> str:
    """The text of ``published.json``, with a digest of all else in it.

    >>> sealed({"kind": "labels"}) == sealed({"kind": "labels"}) != sealed({"kind": "marginals"})
    True
    """
    plain = json.dumps(body, sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(plain.encode()).hexdigest()
    return json.dumps({**body, "digest": digest}, indent=2, ensure_ascii=False) + "\n"


def _check_files(folder: Path, hashes: Mapping[str, str]) -> None:
    there = set()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise PrivacyError(path, "plain files", "a link or a device", _WAY_OUT)
        if path.is_dir():
            if not any(known.startswith(f"{name}/") for known in hashes):
                raise PrivacyError(path, "published files alone", "another folder", "remove it")
            continue
        there.add(name)
        if name != PUBLISHED and name not in hashes:
            raise PrivacyError(path, "published files alone", "another file", "remove it")
    for name, digest in hashes.items():
        if name not in there:
            raise PrivacyError(folder / name, "a published file", "no such file", _WAY_OUT)
        if file_hash(folder / name) != digest:
            raise PrivacyError(folder / name, "the file that was published", "another", _WAY_OUT)
