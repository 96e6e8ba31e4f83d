"""Content hashes and their cache."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from privasr_k2.errors import DataError
from privasr_k2.recipe import fingerprint
from privasr_k2.recipe.fingerprint import HashCache


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were read, as they are."""
    names: list[str] = []
    real = fingerprint._hash_file

    def note(path: str) -> str:
        names.append(Path(path).name)
        return real(path)

    monkeypatch.setattr(fingerprint, "_hash_file", note)
    return names


def write(path: Path, text: str, age: float = 10.0) -> None:
    """Write a file that seems ``age`` seconds old."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    then = path.stat().st_mtime_ns - int(age * 1e9)
    os.utime(path, ns=(then, then))


def test_remembered_until_size_time_or_inode_change(tmp_path: Path, hashed: list[str]) -> None:
    write(tmp_path / "a", "one")
    first = HashCache(tmp_path / "cache.json", tmp_path)
    digest = first.digest("a")
    first.save()
    assert HashCache(tmp_path / "cache.json", tmp_path).digest("a") == digest
    assert hashed == ["a"]
    assert HashCache(tmp_path / "cache.json", tmp_path, verify=True).digest("a") == digest
    assert hashed == ["a", "a"]
    write(tmp_path / "a", "two", age=5.0)
    assert HashCache(tmp_path / "cache.json", tmp_path).digest("a") != digest
    stat = (tmp_path / "a").stat()
    write(tmp_path / "b", "six")
    os.utime(tmp_path / "b", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    second = HashCache(tmp_path / "cache.json", tmp_path)
    before = second.digest("a")
    (tmp_path / "b").replace(tmp_path / "a")  # the same size and time, another inode
    assert second.digest("a") != before


def test_a_file_written_a_moment_ago_is_not_remembered(tmp_path: Path, hashed: list[str]) -> None:
    write(tmp_path / "a", "one", age=0.0)
    cache = HashCache(tmp_path / "cache.json", tmp_path)
    cache.digest("a")
    cache.digest("a")
    assert hashed == ["a", "a"]


def test_folders_by_names_and_contents(tmp_path: Path) -> None:
    write(tmp_path / "d/x/one", "1")
    write(tmp_path / "d/two", "2")

    def digest() -> str | None:
        return HashCache(tmp_path / "none.json", tmp_path).digest("d")

    first = digest()
    os.utime(tmp_path / "d/two", (1, 1))
    write(tmp_path / "d/.hidden", "h")
    write(tmp_path / "d/.stages/s.json", "{}")
    write(tmp_path / "d/log/s.log", "l")  # beside .stages
    assert digest() == first
    (tmp_path / "d/two").rename(tmp_path / "d/three")
    second = digest()
    assert second != first
    write(tmp_path / "d/x/log/own", "an output called log")
    assert digest() not in (first, second)


def test_links(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere/f", "1")
    (tmp_path / "d").mkdir()
    (tmp_path / "d/link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "d/loop").symlink_to(tmp_path / "d")
    (tmp_path / "d/broken").symlink_to(tmp_path / "nothing")
    first = HashCache(tmp_path / "none.json", tmp_path).digest("d")
    write(tmp_path / "elsewhere/f", "2")
    assert HashCache(tmp_path / "none.json", tmp_path).digest("d") != first


def test_nothing_there_and_a_damaged_cache(tmp_path: Path) -> None:
    (tmp_path / "cache.json").write_text("{ damaged")
    assert HashCache(tmp_path / "cache.json", tmp_path).digest("a") is None


def test_files_that_are_gone_leave_the_cache(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / name, name)
    cache = HashCache(tmp_path / "cache.json", tmp_path)
    for name in "ab":
        cache.digest(name)
    cache.save()
    (tmp_path / "a").unlink()
    write(tmp_path / "c", "c")
    cache = HashCache(tmp_path / "cache.json", tmp_path)
    cache.digest("c")
    cache.save()
    assert json.loads((tmp_path / "cache.json").read_text()).keys() == {"b", "c"}


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("# why\nlr: 0.1   # how fast\n\nunits: [a,  b]\n", True),
        ("lr: 0.2\nunits: [a, b]\n", False),
        ("lr: '0.1'\nunits: [a, b]\n", False),
        ("lr: 0.1\nunits: [a, b]\nmore: 1\n", False),
        ("lr: 0.1\nunits: [a, '# b']\n", False),
        ("lr: 0.1\nunits: [a, b]\n---\nlr: 0.1\n", False),
        ("lr: 0.1\nunits: [a, b\n", False),
    ],
)
def test_of_yaml_keys_and_values_count(tmp_path: Path, text: str, same: bool) -> None:
    write(tmp_path / "a", "lr: 0.1\nunits: [a, b]\n")
    write(tmp_path / "b", text)
    digests = [fingerprint._yaml_digest(str(tmp_path / name), name) for name in "ab"]
    assert (digests[0] == digests[1]) == same


def test_of_what_is_no_yaml_the_bytes_count(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"lr: [\xff")
    assert fingerprint._yaml_digest(str(tmp_path / "a"), "its hash") == "its hash"


def test_a_role_that_the_corpus_lacks_is_told_from_a_path_that_is_wrong(tmp_path: Path) -> None:
    for role in ("dev", "train"):
        write(tmp_path / f"manifests/cuts_{role}.jsonl.gz", role)
    cache = HashCache(tmp_path / "cache.json", tmp_path)
    with pytest.raises(DataError, match="found those of dev train"):
        fingerprint._existing(cache, "manifests/cuts_adapt.jsonl.gz")
    for path in ("manifests/corpus.json", "elsewhere/cuts_adapt.jsonl.gz"):
        with pytest.raises(DataError, match="found nothing"):
            fingerprint._existing(cache, path)
