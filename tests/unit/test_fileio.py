"""Outputs are whole or not there; text errors name file and line."""

from __future__ import annotations

import gzip
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privasr_k2 import fileio
from privasr_k2.errors import DataError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_atomic_path_replaces_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with fileio.atomic_path(tmp_path / "a") as temporary:
        temporary.write_text("new")
        assert (tmp_path / "a").read_text() == "old"
        assert temporary.parent == tmp_path
    assert (tmp_path / "a").read_text() == "new"
    assert names(tmp_path) == ["a"]


def test_atomic_path_keeps_the_suffix(tmp_path: Path) -> None:
    with fileio.atomic_path(tmp_path / "cuts.jsonl.gz") as temporary:
        assert temporary.name.endswith(".jsonl.gz")
        temporary.write_bytes(b"")


def test_atomic_path_replaces_a_folder_and_what_was_in_it(tmp_path: Path) -> None:
    (tmp_path / "lang").mkdir()
    (tmp_path / "lang" / "stale.txt").write_text("old")
    with fileio.atomic_path(tmp_path / "lang") as temporary:
        temporary.mkdir()
        (temporary / "tokens.txt").write_text("<blk> 0\n")
    assert names(tmp_path / "lang") == ["tokens.txt"]
    assert names(tmp_path) == ["lang"]


@pytest.mark.parametrize("folder", [False, True])
def test_atomic_path_leaves_the_old_when_the_block_raises(tmp_path: Path, folder: bool) -> None:
    out = tmp_path / "out"
    if folder:
        out.mkdir()
        (out / "x").write_text("old")
    else:
        out.write_text("old")
    with pytest.raises(RuntimeError, match="half way"), fileio.atomic_path(out) as temporary:
        if folder:
            temporary.mkdir()
            (temporary / "x").write_text("half")
        else:
            temporary.write_text("half")
        raise RuntimeError("half way")
    assert (out / "x" if folder else out).read_text() == "old"
    assert names(tmp_path) == ["out"]


def test_atomic_path_where_nothing_was_written(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(FileNotFoundError), fileio.atomic_path(tmp_path / "a"):
        pass
    assert (tmp_path / "a").read_text() == "old"


def test_atomic_path_makes_the_folders_above(tmp_path: Path) -> None:
    fileio.write_text(tmp_path / "a" / "b" / "c.txt", "x")
    assert (tmp_path / "a" / "b" / "c.txt").read_text() == "x"


def test_atomic_path_of_a_killed_writer(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    code = """
import os, signal, sys
from privasr_k2.fileio import atomic_path
with atomic_path(sys.argv[1]) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "a").read_text() == "old"


def test_a_disk_that_is_full_before_the_last_bytes_of_a_gzip(tmp_path: Path) -> None:
    fileio.write_text(tmp_path / "a.gz", "old\n" * 100)
    old = (tmp_path / "a.gz").read_bytes()
    fileio.write_text(tmp_path / "b.gz", "new\n" * 100)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "b.gz").stat().st_size - 4, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            fileio.write_text(tmp_path / "a.gz", "new\n" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "a.gz").read_bytes() == old
    assert names(tmp_path) == ["a.gz", "b.gz"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        fileio.write_text(tmp_path / "a", "x")


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_lines_are_numbered_and_stripped(tmp_path: Path, name: str) -> None:
    fileio.write_text(tmp_path / name, "one\ntwo é\n\nlast")
    expected = [(1, "one"), (2, "two é"), (3, ""), (4, "last")]
    assert list(fileio.read_lines(tmp_path / name)) == expected


def test_windows_line_ends(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    assert [line for _, line in fileio.read_lines(tmp_path / "a.txt")] == ["one", "two"]


def test_the_same_text_makes_the_same_gzip(tmp_path: Path) -> None:
    fileio.write_text(tmp_path / "a.gz", "text\n")
    os.utime(tmp_path / "a.gz", (0, 0))
    fileio.write_text(tmp_path / "b.gz", "text\n")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"text\n"


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_not_utf8_names_line_byte_and_column(tmp_path: Path, name: str) -> None:
    data = b"fine\nna\xefve\n"
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    with pytest.raises(DataError, match=rf"{name}:2: expected UTF-8 .* byte 0xef at column 3"):
        list(fileio.read_lines(tmp_path / name))


@pytest.mark.parametrize("damage", ["cut", "plain", "bits"])
def test_a_broken_gzip_is_named(tmp_path: Path, damage: str) -> None:
    whole = gzip.compress(os.urandom(2000).hex().encode())
    broken = {
        "cut": whole[:-20],
        "plain": b"not gzip at all",
        "bits": whole[:200] + bytes([whole[200] ^ 0xFF]) * 60 + whole[260:],
    }
    (tmp_path / "a.gz").write_bytes(broken[damage])
    with pytest.raises(DataError, match="a whole gzip file"):
        list(fileio.read_lines(tmp_path / "a.gz"))


def test_json_errors_name_the_line(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": 1,\n "b": }\n')
    with pytest.raises(DataError, match=r"a\.json:2: expected JSON"):
        fileio.read_json(tmp_path / "a.json")
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n\n{"b"\n')
    with pytest.raises(DataError, match=r"a\.jsonl:3: expected one JSON object"):
        list(fileio.read_jsonl(tmp_path / "a.jsonl"))


def test_a_json_line_that_is_no_object(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n[1, 2]\n')
    with pytest.raises(DataError, match=r"a\.jsonl:2: expected one JSON object, found a list"):
        list(fileio.read_jsonl(tmp_path / "a.jsonl"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=30)
@given(st.lists(st.dictionaries(st.text(), json_values, max_size=3), max_size=5))
def test_jsonl_round_trip(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, object]]
) -> None:
    path = tmp_path_factory.mktemp("jsonl") / "a.jsonl.gz"
    fileio.write_jsonl(path, records)
    assert list(fileio.read_jsonl(path)) == records
    fileio.write_json(path.with_name("a.json"), records)
    assert fileio.read_json(path.with_name("a.json")) == records


def test_a_writer_that_fails_half_way_leaves_the_old(tmp_path: Path) -> None:
    def records() -> object:
        yield {"a": 1}
        raise ValueError("no more")

    fileio.write_jsonl(tmp_path / "a.jsonl", [{"old": 1}])
    with pytest.raises(ValueError, match="no more"):
        fileio.write_jsonl(tmp_path / "a.jsonl", records())  # type: ignore[arg-type]
    assert list(fileio.read_jsonl(tmp_path / "a.jsonl")) == [{"old": 1}]


def test_remove_tree_leaves_what_a_link_points_to(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "x").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    fileio.remove_tree(tmp_path / "link")
    fileio.remove_tree(tmp_path / "not there")
    assert names(tmp_path) == ["kept"]
    assert names(tmp_path / "kept") == ["x"]


@pytest.mark.parametrize(
    ("text", "found"), [("a: [1\n", "YAML"), ("- 1\n", "names and values"), ("", "None")]
)
def test_yaml_holds_names_and_values(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(DataError, match=found) as caught:
        fileio.read_yaml(path)
    assert "a.yaml" in str(caught.value)
    path.write_text("a: {b: 1}\n")
    assert fileio.read_yaml(path) == {"a": {"b": 1}}
