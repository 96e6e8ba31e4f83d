"""Reading text with line numbers in errors, and writing files atomically."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from privasr_k2.errors import DataError

_REMAKE = "repair or remake the file"


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A temporary name beside ``path`` that replaces it when the block ends without an error.

    Works for a file and for a directory (make it inside the block). If the block raises, or writes
    nothing, ``path`` stays as it was and the temporary is removed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as d:
    ...     with atomic_path(Path(d) / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     (Path(d) / "a.txt").read_text()
    'whole'
    """
    final = Path(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    # The suffix stays last: writers such as gzip and lhotse choose the format by it.
    temporary = final.with_name(f".{uuid.uuid4().hex[:8]}.tmp.{final.name}")
    try:
        yield temporary
        if temporary.is_dir():
            _replace_directory(temporary, final)
        else:
            _flush_to_disk(temporary)
            temporary.replace(final)
    finally:
        remove_tree(temporary)


@contextmanager
def disk_errors(path: str | Path) -> Iterator[None]:
    """Turn the I/O errors that safetensors reports as text into ``OSError``.

    >>> from safetensors import SafetensorError
    >>> with disk_errors("model.safetensors"):
    ...     raise SafetensorError("I/O error: File too large (os error 27)")
    Traceback (most recent call last):
    OSError: [Errno 27] File too large: 'model.safetensors'
    """
    from safetensors import SafetensorError

    try:
        yield
    except SafetensorError as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        code = int(number[1])
        raise OSError(code, os.strerror(code), str(path)) from error


def read_arrays(
    path: str | Path, names: Iterable[str] | None = None, *, expected: str, way_out: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON object under ``json`` in a safetensors header (or ``{}``), and arrays.

    Args:
        names: of the arrays to read, which must be there; ``None``: all.
        expected: what the file should be, for the error.

    Raises:
        DataError: no such file, or another kind of file; an array is missing.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), "np") as file:
            text = (file.metadata() or {}).get("json", "{}")
            wanted = file.keys() if names is None else names
            arrays = {name: file.get_tensor(name) for name in wanted}
    except (OSError, SafetensorError, TypeError, ValueError, AttributeError) as error:
        # The last three: a type of numbers that numpy lacks, depending on the version.
        raise DataError(path, expected, str(error) or type(error).__name__, way_out) from error
    return parse_record(text, f"{path} (header)", way_out=way_out), arrays


def remove_tree(path: Path) -> None:
    """Remove a file or a directory; nothing happens where there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _flush_to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _replace_directory(temporary: Path, final: Path) -> None:
    old = final.with_name(f".{uuid.uuid4().hex[:8]}.old.{final.name}")
    if final.exists():
        final.replace(old)
    try:
        temporary.replace(final)
    except OSError:
        if old.exists():
            old.replace(final)
        raise
    remove_tree(old)


def file_hash(path: str | Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_text(path: str | Path, mode: str = "r") -> io.TextIOBase:
    """Open UTF-8 text for reading (``r``) or writing (``w``), gzipped if named ``.gz``."""
    path = Path(path)
    if path.suffix == ".gz":
        # A fixed time and no name in the header: the same text gives the same bytes.
        if mode == "w":
            return io.TextIOWrapper(_GzipWriter(path.open("wb")), encoding="utf-8", newline="\n")
        return gzip.open(path, mode + "t", encoding="utf-8")  # type: ignore[return-value]
    return path.open(mode, encoding="utf-8", newline="\n" if mode == "w" else None)  # type: ignore[return-value]


class _GzipWriter(gzip.GzipFile):
    """Closes its file too; the garbage collector would lose an error with the last bytes."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        super().__init__(filename="", mode="wb", fileobj=raw, mtime=0)

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._raw.close()


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """The lines of a text file without their line ends, numbered from 1.

    Raises:
        DataError: a line is not UTF-8 or the gzip stream is broken, with its number.
    """
    path, number = Path(path), 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield number, line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        found = f"byte 0x{error.object[error.start]:02x} at column {error.start + 1}"
        way_out = f"convert it, for example: iconv -f latin1 -t utf-8 {path}"
        raise DataError(f"{path}:{number}", "UTF-8 text", found, way_out) from error
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(
            f"{path}:{number + 1}", "a whole gzip file", str(error), "make or copy it again"
        ) from error


def write_text(path: str | Path, text: str) -> None:
    """Write ``text`` atomically."""
    with atomic_path(path) as temporary, open_text(temporary, "w") as file:
        file.write(text)


def parse_json(
    text: str, place: str | Path, *, expected: str = "JSON", way_out: str = _REMAKE
) -> Any:
    """The value of a JSON text.

    Raises:
        DataError: no JSON, too deep, numbers too long for Python, or half a surrogate pair.
    """
    try:
        value = json.loads(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        line = f":{error.lineno}" if "\n" in text else ""
        raise DataError(f"{place}{line}", expected, error.msg, way_out) from error
    except UnicodeEncodeError as error:
        raise DataError(place, expected, "half a surrogate pair, \\ud...", way_out) from error
    except (ValueError, RecursionError) as error:
        raise DataError(place, expected, str(error), way_out) from error
    return value


def read_json(path: str | Path) -> Any:
    """A JSON file's value."""
    return parse_json("\n".join(line for _, line in read_lines(path)), path)


def write_json(path: str | Path, value: Any) -> None:
    """Write a value as indented JSON, atomically."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping that a YAML file holds."""
    import yaml

    try:
        found = yaml.safe_load("\n".join(line for _, line in read_lines(path)))
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # also bad numbers and dates
        raise DataError(path, "YAML", str(error).splitlines()[0], _REMAKE) from error
    if not isinstance(found, dict):
        raise DataError(path, "names and values", repr(found)[:60], _REMAKE)
    return found


def parse_record(line: str, place: str, *, way_out: str = _REMAKE) -> dict[str, Any]:
    """The JSON object of one line.

    Raises:
        DataError: as :func:`parse_json`; another value than an object.
    """
    expected = "one JSON object"
    record = parse_json(line, place, expected=expected, way_out=way_out)
    if not isinstance(record, dict):
        raise DataError(place, expected, f"a {type(record).__name__}", way_out)
    return record


def read_jsonl(path: str | Path) -> Iterator[dict[str, Any]]:
    """The records of a JSON Lines file; blank lines are skipped."""
    for number, line in read_lines(path):
        if line.strip():
            yield parse_record(line, f"{path}:{number}")


def write_jsonl(path: str | Path, records: Iterable[dict[str, Any]]) -> None:
    """Write records as JSON Lines, atomically."""
    with atomic_path(path) as temporary, open_text(temporary, "w") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
