"""A work folder with releases and their stamps, of which something is published."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from privasr_k2.fileio import write_json, write_text
from privasr_k2.privacy import release
from privasr_k2.privacy.people import People
from privasr_k2.privacy.spending import Spending
from privasr_k2.recipe.fingerprint import HashCache
from tests.support.made_spending import COUNTS

PEOPLE = People.of([("anna", "anna"), ("bob", "bob")], source="clients")


@dataclass(frozen=True)
class Work:
    """A work folder."""

    path: Path

    @classmethod
    def new(cls, path: Path) -> Work:
        """An empty one."""
        write_text(path / ".stages/lock", "")
        return cls(path)

    @property
    def ledger(self) -> Path:
        """Where recipes keep it."""
        return self.path / "privacy/ledger.json"

    def write(self, files: Mapping[str, str]) -> None:
        """Write files, by their names in the work folder."""
        for name, text in files.items():
            write_text(self.path / name, text)

    def stamp(self, command: str, *outputs: str) -> None:
        """What the stage runner leaves when a stage has ended well."""
        cache = HashCache(Path(os.devnull), self.path)
        digests = {name: cache.digest(name) for name in outputs}
        first = self.path / outputs[0]
        record = {"fingerprint": "0" * 64, "command": command.split(), "outputs": digests}
        record |= {"title": command.split()[0], "number": 1, "configs": [], "inputs": []}
        write_json(first.parent / ".stages" / f"{first.name}.json", record)

    def enter(
        self, privacy: str, spending: Spending = COUNTS, people: People | None = PEOPLE
    ) -> None:
        """A finished release."""
        with release.begin(
            self.ledger,
            beside=self.path / privacy,
            spending=spending,
            fingerprint=privacy,
            max_epsilon=None,
            people=people,
        ) as begun:
            begun.finish()

    def release(
        self, out: str, files: Mapping[str, str], verb: str = "train_fedlm", more: str = ""
    ) -> Path:
        """A stage with a release: its files, its stamp, and its entry."""
        privacy = f"{out}_privacy.json"
        self.write(files)
        self.enter(privacy)
        flags = f"--in-private-clients exp/clients --out-dir {out} --out-privacy {privacy}"
        self.stamp(f"{verb} {flags} {more}", out, privacy)
        return self.path / out


def model(folder: str) -> dict[str, str]:
    """The files of a language model and of its training."""
    names = "model.safetensors model.yaml words.txt config.yaml"
    never = "federated.json train_log.jsonl tensorboard/events checkpoints/latest.safetensors"
    texts = {f"{folder}/{name}": f"{name}\n" for name in names.split()}
    return texts | {f"{folder}/{name}": "anna-0001\n" for name in never.split()}
