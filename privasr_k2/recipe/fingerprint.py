"""Dependencies of a task's outputs: its command and the content of its inputs.

Content hashes are cached by size, time of change and inode: a second look costs one ``stat`` a
file. What is written of them is keyed (:mod:`privasr_k2.recipe.seal`): they are plain in memory
alone. The source of a verb is not part of a fingerprint: a new log message starts no training.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from privasr_k2 import sections
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import atomic_path
from privasr_k2.recipe.corpus_files import Listing, listing
from privasr_k2.recipe.plan import NEUTRAL, Task, without
from privasr_k2.recipe.seal import KEY, PLAIN, Seal
from privasr_k2.recipe.wiring import Wiring

REPOSITORY = "{root}/"
"""What stands in fingerprints for the checkout's own path."""
_BLOCK = 1 << 20
_OF_EVENTS = ("value", "tag", "anchor", "implicit")
_SETTLED_NS = 1_000_000_000  # a younger file may change without a new time of change


class HashCache:
    """Content hashes of files and folders, remembered by (size, mtime_ns, inode).

    Args:
        file: where the hashes are kept between runs; may not exist.
        work_dir: relative paths start here.
        verify: hash again, whatever is remembered.
        seal: of the work folder, for digests and for ``file``; without a key both are plain.
    """

    def __init__(
        self, file: Path, work_dir: Path, *, verify: bool = False, seal: Seal = PLAIN
    ) -> None:
        self._file, self.work_dir, self.seal = file, work_dir, seal
        known, self.is_of_seal = _remembered(file, seal)
        self._known = {} if verify else known
        self._seen: set[str] = set()
        self._changed = not self.is_of_seal
        self._listings: dict[str, Listing] = {}

    def digest(self, path: str) -> str | None:
        """Keyed hash of a file, or of names and contents in a folder; None where there is nothing.

        Names that start with a dot, and ``log`` beside ``.stages``, do not count.
        """
        plain = self.plain(path)
        return None if plain is None else self.seal.digest(plain)

    def plain(self, path: str) -> str | None:
        """As :meth:`digest` without a key; nothing may write it."""
        full = os.path.join(self.work_dir, path)
        try:
            stat = os.stat(full)
        except (FileNotFoundError, NotADirectoryError, ValueError):  # the last: a name with a NUL
            return None
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            return None
        return self._folder(path, ()) if os.path.isdir(full) else self._file_digest(path, stat)

    def listing(self, path: str) -> Listing:
        """The files of a corpus, looked at once in a run."""
        if path not in self._listings:
            full, own = os.path.join(self.work_dir, path), os.path.realpath(self.work_dir)
            self._listings[path] = listing(full, self._file_digest, without=own)
        return self._listings[path]

    def save(self) -> None:
        """Write the cache, without the files that are gone."""
        if not self._changed:
            return
        kept = {
            path: entry
            for path, entry in self._known.items()
            if path in self._seen or os.path.exists(os.path.join(self.work_dir, path))
        }
        content: dict[str, Any] = dict(kept)
        if self.seal.key:
            masked = {p: [*e[:3], self.seal.masked(e[3], [p, *e[:3]])] for p, e in kept.items()}
            content = {KEY: self.seal.name, "files": masked}
        with atomic_path(self._file) as temporary:
            temporary.write_text(json.dumps(content))
        self._changed = False

    def _folder(self, path: str, above: tuple[tuple[int, int], ...]) -> str:
        full = os.path.join(self.work_dir, path)
        stat = os.stat(full)
        here = (stat.st_dev, stat.st_ino)
        inner: list[tuple[str, str]] = []
        if here not in above:  # a link to a folder above would never end
            with os.scandir(full) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
            has_stamps = any(entry.name == ".stages" for entry in entries)
            for entry in entries:
                if entry.name.startswith(".") or (has_stamps and entry.name == "log"):
                    continue
                child = f"{path}/{entry.name}"
                if entry.is_dir():
                    inner.append((entry.name, self._folder(child, (*above, here))))
                elif entry.is_file():
                    inner.append((entry.name, self._file_digest(child, entry.stat())))
                elif entry.is_symlink():
                    inner.append((entry.name, f"a link to nothing: {os.readlink(entry)}"))
        return hashlib.sha256(json.dumps(inner).encode()).hexdigest()

    def _file_digest(self, path: str, stat: os.stat_result) -> str:
        state = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
        self._seen.add(path)
        entry = self._known.get(path)
        if entry is not None and entry[:3] == state:
            return entry[3]
        digest = _hash_file(os.path.join(self.work_dir, path))
        if time.time_ns() - stat.st_mtime_ns > _SETTLED_NS:
            self._known[path] = [*state, digest]
            self._changed = True
        return digest


@dataclass(frozen=True)
class Fingerprint:
    """Dependencies of a task's outputs; paths are shortened, so that a clone can be moved.

    Attributes:
        command: verb and flags without neutral ones and ``--config``.
        configs: the configuration files, or their sections, with plain hashes of keys and values.
        inputs: the paths that are read, with their plain hashes, and two entries of a corpus.
        seal: of the work folder.
    """

    command: tuple[str, ...]
    configs: tuple[tuple[str, str], ...]
    inputs: tuple[tuple[str, str], ...]
    seal: Seal = PLAIN

    @property
    def digest(self) -> str:
        """One keyed hash of all of it but the names of configuration files."""
        return str(self.record["fingerprint"])

    @functools.cached_property
    def record(self) -> dict[str, Any]:
        """What stands of it in a stamp, where all hashes are keyed."""
        parts = [self.command, [digest for _, digest in self.configs], self.inputs]
        return self.seal.record(
            {
                "fingerprint": hashlib.sha256(json.dumps(parts).encode()).hexdigest(),
                "command": list(self.command),
                "configs": [list(pair) for pair in self.configs],
                "inputs": [list(pair) for pair in self.inputs],
            }
        )


def fingerprint(
    task: Task, wiring: Wiring, cache: HashCache, shorten: dict[str, str]
) -> Fingerprint:
    """The fingerprint of a task whose inputs all exist.

    Args:
        shorten: beginnings of paths with their replacements, the longer ones first.

    Raises:
        DataError: an input is not there.
    """

    def short(word: str) -> str:
        for beginning, stands_for in shorten.items():
            word = word.replace(beginning, stands_for)
        return word

    def hashed(paths: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        return tuple((short(path), _existing(cache, path)) for path in paths)

    command = tuple(short(word) for word in without(task.argv, "--config", *NEUTRAL))
    files = [_existing(cache, sections.split(path)[0]) for path in task.configs]
    configs = tuple(
        (short(path), _yaml_digest(os.path.join(cache.work_dir, path), digest))
        for path, digest in zip(task.configs, files, strict=True)
    )
    inputs = hashed((*task.inputs, *wiring.hashed_raws(task)))
    for folder in wiring.listed_raws(task):
        inputs += cache.listing(folder).entries(short(folder))
    return Fingerprint(command, configs, inputs, cache.seal)


@functools.cache
def _yaml_digest(address: str, digest: str) -> str:
    """Hash of a YAML file or section without comments and spaces; ``digest`` if it is no YAML."""
    try:
        events = [
            [type(event).__name__, *(str(getattr(event, name, "")) for name in _OF_EVENTS)]
            for event in yaml.parse(sections.read(address), Loader=sections.LOADER)
        ]
    except (ConfigError, yaml.YAMLError, ValueError, RecursionError, OSError):
        return digest
    return hashlib.sha256(json.dumps(events).encode()).hexdigest()


def _existing(cache: HashCache, path: str) -> str:
    digest = cache.plain(path)
    if digest is None:
        check_role(cache.work_dir, path)
        way_out = "run the stage that writes it, or correct the path"
        raise DataError(path, "a file or a folder", "nothing", way_out)
    return digest


def check_role(work_dir: str | Path, *paths: str, role: str = "") -> None:
    """Refuse the cuts of a role that is missing in the only folder of manifests, or in all.

    Args:
        paths: the file of a role's cuts; with ``role`` folders, of manifests and others.

    Raises:
        DataError: the role, and those that the corpus has.
    """
    paths = tuple(f"{path}/cuts_{role}.jsonl.gz" for path in paths) if role else paths
    beside = {path: _roles_beside(os.path.join(work_dir, path)) for path in paths}
    path = next((path for path, roles in beside.items() if roles), "")
    if not path or any(os.path.exists(os.path.join(work_dir, path)) for path in paths):
        return
    roles = beside[path]
    expected, found = "cuts of a role that the corpus has", f"those of {' '.join(roles)}"
    way_out = "give the corpus this role: docs/new_corpus.md says how"
    if path.endswith("cuts_adapt.jsonl.gz"):
        some = "--corpus-options adapt_fraction=0.3"
        way_out = f"with data: or lhotse: take speakers of train, {some}; or {way_out}"
    raise DataError(path, expected, found, way_out)


def _roles_beside(path: str) -> list[str]:
    """The roles of a folder of manifests where one is missing; else none.

    As ``data.manifests.roles`` has them, which is of a higher layer.
    """
    missing = Path(path)
    if not missing.match("cuts_*.jsonl.gz"):
        return []
    names = (found.name for found in missing.parent.glob("cuts_*.jsonl.gz"))
    return sorted(name.removeprefix("cuts_").removesuffix(".jsonl.gz") for name in names)


def _remembered(file: Path, seal: Seal) -> tuple[dict[str, list[Any]], bool]:
    """The valid entries of a cache file, and whether it was written with this seal's key.

    The file may be absent or damaged. Earlier versions wrote entries without a key.
    """
    try:
        known = json.loads(file.read_text())
    except (OSError, ValueError, RecursionError):
        return {}, not seal.key
    entries = known if isinstance(known, dict) else {}
    name, keyed = entries.get(KEY), isinstance(entries.get(KEY), str)
    if keyed:
        files = entries.get("files")
        entries = files if name == seal.name and isinstance(files, dict) else {}
    found: dict[str, list[Any]] = {}
    for path, entry in entries.items():
        if isinstance(entry, list) and len(entry) == 4 and isinstance(entry[3], str):
            try:
                plain = seal.masked(entry[3], [path, *entry[:3]]) if keyed else entry[3]
            except ValueError:  # damaged
                continue
            found[path] = [*entry[:3], plain]
    return found, (name if keyed else "") == seal.name


def _hash_file(path: str) -> str:
    hasher = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            hasher.update(block)
    return hasher.hexdigest()
