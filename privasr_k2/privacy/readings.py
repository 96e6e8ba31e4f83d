"""Whose data a stage reads: the parts (roles) that its verb takes, and the persons of records.

A manifests or features folder holds ``cuts_<role>.jsonl.gz``; roles have no speaker in common. Most
verbs read one or two of them, so that a model of train tells nothing of the speakers of test.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import privasr_k2
from privasr_k2 import sections
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import read_jsonl
from privasr_k2.recipe.fingerprint import REPOSITORY
from privasr_k2.recipe.plan import values_of
from privasr_k2.recipe.renames import canonical

Roles = tuple[str, ...] | None
"""Roles that are read of a folder of cuts; ``None``: all that is there."""

_CUTS = re.compile(r"cuts_(.+)\.jsonl(\.gz)?")
_FOLDERS = ("--in-manifests", "--in-public-manifests", "--in-feats", "--in-public-feats")
_FIXED: dict[str, tuple[str, ...]] = {
    "--in-public-dev": ("dev",),
    **dict.fromkeys(
        ("--in-private-feats", "--in-private-manifests", "--in-shards", "--in-private-shards"),
        ("train",),
    ),
}
#: Verbs whose records are each of one person, with the flags that the records come from.
SORTING: dict[str, tuple[str, ...]] = {
    "prepare_corpus": ("--raw-train", "--raw-adapt", "--raw-dev", "--raw-test", "--raw-pool"),
    "prepare_earnings21": (),
    "compute_features": ("--in-manifests",),
    **dict.fromkeys(
        ("split_corpus", "split_speech", "split_text"),
        ("--in-feats", "--in-public-train", "--in-manifests", "--in-text", "--in-spoken"),
    ),
    "tag_entities": ("--in-manifests", "--in-text"),
    "make_shards": ("--in-private-feats", "--in-public-dev"),
    "make_clients": ("--in-cuts",),
    "prepare_fmp": ("--in-manifests", "--in-text"),
}
#: Those that write the roles that they read.
KEEPING_ROLES = ("compute_features", "tag_entities")
#: Verbs that read of a folder of cuts what belongs to the utterances of their other inputs.
_BY_OTHERS = ("tune_weights", "select_nbest", "train_confidence", "personalize", "wer")
_OF_TEXT = ("train_lm", "train_ngram", "prepare_fmp")


@dataclass(frozen=True)
class Stage:
    """A command with its configuration: of a stamp, or the verb that runs now.

    Attributes:
        label: for messages.
        command: verb and flags by the names of now, without ``--config``.
        configs: addresses of YAML layers, the last one winning.
        work_dir: its relative paths start here.
    """

    label: str
    command: tuple[str, ...]
    configs: tuple[str, ...]
    work_dir: Path

    @classmethod
    def of_stamp(cls, stamp: Mapping[str, Any], work_dir: Path) -> Stage:
        """The stage that has left a stamp."""
        root = f"{Path(privasr_k2.__file__).resolve().parents[1]}/"
        configs = (address.replace(REPOSITORY, root) for address, _ in stamp["configs"])
        label = f"stage {stamp['number']} ({stamp['title']})"
        return cls(label, tuple(canonical(stamp["command"])), tuple(configs), work_dir)

    @property
    def verb(self) -> str:
        """Its name of now."""
        return self.command[0]

    def values(self, *prefixes: str) -> list[str]:
        """The values of flags, as :func:`privasr_k2.recipe.plan.values_of`."""
        return values_of(self.command, *prefixes)

    def setting(self, key: str) -> Any:
        """The value of a key of ``--set`` or of the configuration; ``None``: none is known."""
        value = None
        for address in self.configs:
            try:
                layer = yaml.safe_load(sections.read(self.work_dir / address))
            except (ConfigError, OSError, yaml.YAMLError):
                continue  # gone since: what is not known counts as read
            value = layer.get(key, value) if isinstance(layer, dict) else value
        for word in self.values("--set"):
            name, _, text = word.partition("=")
            value = yaml.safe_load(text) if name == key else value
        return value

    def roles(self, flag: str) -> Roles:
        """The roles that it reads of the folders of cuts that ``flag`` names."""
        if flag in _FIXED:
            return _FIXED[flag]
        if flag not in _FOLDERS:
            return None
        if self.verb in _BY_OTHERS:
            return ()
        if self.verb in _OF_TEXT:
            return self._roles_of_text()
        if self.verb == "prepare_lang":
            return ("train",) if self._has_words_of_train() else ()
        if self.verb in ("train_am", "train_student"):
            return ("train", "dev")
        role = self.setting("role")
        return (str(role),) if role else None

    def _roles_of_text(self) -> tuple[str, ...]:
        dev = (
            ()
            if self.values("--in-dev", "--in-public-dev-text") or self.verb == "prepare_fmp"
            else ("dev",)
        )
        if self.values("--in-text", "--raw-arpa", "--raw-public-arpa"):
            return dev
        other = bool(self.values("--raw-text")) and self.setting("text") in ("auto", "lm_text")
        return dev if other else ("train", *dev)  # lm_text.txt.gz may be of the people of train

    def _has_words_of_train(self) -> bool:
        pieces = str(self.setting("units")).startswith("bpe")
        if pieces and not self.values("--in-tokens", "--raw-tokens"):
            return True  # a SentencePiece model of the training text
        if self.setting("corpus_words") is False:
            return False
        return self.setting("train_words") is not False or not self.values("--raw-lm-text")


@dataclass(frozen=True)
class Persons:
    """Persons of the records of a file or folder.

    Attributes:
        complete: there are records, and every one names somebody.
    """

    names: frozenset[str]
    complete: bool


def persons_in(path: Path, roles: Roles) -> Persons:
    """The persons whose records stand in JSON Lines: cuts, tagged text, N-best lists, clients.

    Args:
        roles: of a folder of cuts.
    """
    names: set[str] = set()
    complete = True
    files = list(_files(path, roles))
    for file in files:
        try:
            for record in read_jsonl(file):
                person = _person_of(record)
                complete = complete and bool(person)
                names |= {person} - {""}
        except DataError:
            complete = False
    return Persons(frozenset(names), complete and bool(names))


def in_role(path: str, roles: Roles) -> tuple[str, Roles]:
    """A file of cuts as its folder and role; other paths as they are.

    >>> in_role("data/m/cuts_dev.jsonl.gz", None), in_role("data/m", ("train",))
    (('data/m', ('dev',)), ('data/m', ('train',)))
    """
    match = _CUTS.fullmatch(os.path.basename(path))
    return (os.path.dirname(path), (match[1],)) if match else (path, roles)


def _files(path: Path, roles: Roles) -> Iterator[Path]:
    if path.is_file():
        yield from [path] if ".jsonl" in path.suffixes else []
        return
    for file in sorted(path.glob("cuts_*.jsonl*")) or sorted(path.rglob("*.jsonl*")):
        cuts = _CUTS.fullmatch(file.name)
        is_read = roles is None or (cuts is not None and cuts[1] in roles)
        if is_read and file.is_file() and not _is_hidden(file, path):
            yield file


def _is_hidden(file: Path, folder: Path) -> bool:
    parts: Sequence[str] = file.relative_to(folder).parts
    return any(part.startswith(".") or part == "log" for part in parts)


def _person_of(record: Mapping[str, Any]) -> str:
    supervisions = record.get("supervisions")
    if isinstance(supervisions, list) and supervisions and isinstance(supervisions[0], dict):
        return str(supervisions[0].get("speaker") or "")
    return str(record.get("speaker") or record.get("user") or "")
