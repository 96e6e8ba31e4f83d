"""What a released folder tells without its noisy values: names, forms, times; for neighbours."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from safetensors import safe_open

from privasr_k2.fileio import read_json, read_jsonl

#: Whole numbers that noise decides: the round that reads public text best.
_NOISY = ("round", "kept_round")


def shape_of(folder: Path, began: str) -> dict[str, Any]:
    """All that lies below: its times after ``began``, and contents without numbers of noise."""
    zero = datetime.fromisoformat(began).timestamp()
    names = sorted(path for path in folder.rglob("*"))
    told: dict[str, Any] = {".": folder.stat().st_mtime - zero}
    for path in names:
        seen = path.stat().st_mtime - zero
        told[str(path.relative_to(folder))] = seen, None if path.is_dir() else _content(path)
    return told


def _content(path: Path) -> Any:
    if path.suffix == ".safetensors":
        with safe_open(path, "np") as file:
            about = {key: _form(json.loads(value)) for key, value in file.metadata().items()}
            return about, {name: file.get_slice(name).get_shape() for name in sorted(file.keys())}
    if path.suffix == ".jsonl":
        return [_form(record) for record in read_jsonl(path)]
    if path.suffix == ".json":
        return _form(read_json(path))
    return path.read_bytes()


def _form(value: Any) -> Any:
    """A value without floats, which noise changes, and names of releases, drawn at random."""
    if isinstance(value, dict):
        return {key: "noisy" if key in _NOISY else _form(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_form(item) for item in value]
    is_drawn = isinstance(value, float) or (isinstance(value, str) and len(value) == 32)
    return type(value).__name__ if is_drawn else value


def plain_digests(paths: list[Path]) -> Iterator[bytes]:
    """SHA-256 of files as text and as bytes: who has a file can look for them."""
    for path in paths:
        digest = hashlib.sha256(path.read_bytes())
        yield digest.hexdigest().encode()
        yield digest.digest()
