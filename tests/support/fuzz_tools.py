"""Damage to valid files, of which every reader gives a value or an error of ours.

``PRIVASR_FUZZ_EXAMPLES=N`` takes N new examples for each format; without it they are few and fixed.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from privasr_k2.errors import PrivasrError

Files = Mapping[str, bytes]
"""The files of a folder by their names in it."""

_ASKED = os.environ.get("PRIVASR_FUZZ_EXAMPLES")
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORDS = """-1 0 -0 1 2 7 1e999 -1e999 nan NaN inf -Infinity 1e308 1e-320 99999999999999999999
-9223372036854775809 2147483648 0x10 1_0 1.5 ² ٣ true null one 1e5 00"""
_NUMBERS = tuple(text.encode() for text in (*_WORDS.split(), "9" * 5000, "", " ", "1 2"))
_CODES = (b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\x1a", rb"\ud800")
_BLANKS = (b"\r", b"\n", b"\n\n", b"\t", b" ", *map(str.encode, "\u2028\u0085\u00a0\u3000"))
_MARKS = tuple(b'" { } [ ] : , \\ | # ; % ( ) - <PER> ${x}'.split())
_LONG = (b"&a *a", b"!!python/none x", "e\u0301".encode(), b"[" * 100_000, b'{"a":' * 100_000)
_PIECES = (*_CODES, *_BLANKS, *_MARKS, *_LONG)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**63, 10**400, 0.5, -1.5, 1e308, float("nan"), float("inf")),
    *("", " ", "a b", "\ud800", "²", "1", "nan", "x" * 300),
    *([], [[]], {}, {"": None}, [None], [1, 2], {"a": []}),
)

DAMAGE = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 2**24), st.integers(0, 2**24)),
    min_size=1,
    max_size=3,
)
"""Kind, place and strength of one to three damages."""


def few(number: int = 200) -> settings:
    """Settings: the same ``number`` of examples each time, or as many new ones as are asked for."""
    return settings(
        max_examples=int(_ASKED) if _ASKED else number,
        derandomize=_ASKED is None,
        database=None,
        deadline=timedelta(seconds=20),  # a hang; reading takes milliseconds
        suppress_health_check=list(HealthCheck),
    )


def damaged(content: bytes, damages: Sequence[tuple[int, int, int]]) -> bytes:
    """``content`` after all ``damages``: bytes, lines, numbers, JSON values and encodings."""
    for kind, where, how in damages:
        content = _KINDS[kind % len(_KINDS)](content, where, how)
    return content


def damaged_files(files: Files, damages: Sequence[tuple[int, int, int]]) -> dict[str, bytes]:
    """The files with one of them damaged, which the first damage chooses."""
    if not damages:
        return dict(files)
    name = sorted(files)[damages[0][2] % len(files)]
    scaled = [(kind, where, how // len(files)) for kind, where, how in damages]
    return {**files, name: damaged(files[name], scaled)}


@contextmanager
def folder_of(files: Files) -> Iterator[Path]:
    """A folder with these files, which the block must not change."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        yield folder
        paths = (path for path in folder.rglob("*") if path.is_file())
        there = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
        assert there == dict(files), "a reader has written"


def outcome(read: Callable[[], Any]) -> Any:
    """What ``read`` gives, or the error of ours that it raises, which tells all four parts."""
    try:
        return read()
    except PrivasrError as error:
        parts = (error.place, error.expected, error.found, error.way_out)
        assert all(isinstance(part, str) and part.strip() for part in parts), parts
        return error


def check(
    files: Files, damages: Sequence[tuple[int, int, int]], read: Callable[[Path], Any]
) -> Any:
    """Read damaged files: a value, or an error of ours; nothing is written."""
    with folder_of(damaged_files(files, damages)) as folder:
        return outcome(lambda: read(folder))


def is_refused(result: Any) -> bool:
    """Whether :func:`outcome` was an error."""
    return isinstance(result, PrivasrError)


def jsonl(*records: Any) -> bytes:
    """Records as JSON Lines."""
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def _flip(content: bytes, where: int, how: int) -> bytes:
    at = where % max(len(content), 1)
    return (
        content[:at] + bytes(c ^ (1 << how % 8) for c in content[at : at + 1]) + content[at + 1 :]
    )


def _replace(content: bytes, where: int, how: int) -> bytes:
    at = where % max(len(content), 1)
    return content[:at] + bytes([how % 256])[: len(content)] + content[at + 1 :]


def _cut(content: bytes, where: int, how: int) -> bytes:
    return content[: where % (len(content) + 1)]


def _take_out(content: bytes, where: int, how: int) -> bytes:
    at = where % (len(content) + 1)
    return content[:at] + content[at + 1 + how % 20 :]


def _insert(content: bytes, where: int, how: int) -> bytes:
    at = where % (len(content) + 1)
    return content[:at] + _PIECES[how % len(_PIECES)] + content[at:]


def _double_line(content: bytes, where: int, how: int) -> bytes:
    lines = content.splitlines(keepends=True)
    if lines:
        lines.insert(how % (len(lines) + 1), lines[where % len(lines)])
    return b"".join(lines)


def _remove_line(content: bytes, where: int, how: int) -> bytes:
    lines = content.splitlines(keepends=True)
    at = where % (len(lines) + 1)
    return b"".join([*lines[:at], *lines[at + 1 :]])


def _swap_lines(content: bytes, where: int, how: int) -> bytes:
    return _swapped(content.splitlines(keepends=True), where, how)


def _swap_words(content: bytes, where: int, how: int) -> bytes:
    return _swapped(re.split(rb"(\s+)", content), where, how)


def _swapped(pieces: list[bytes], where: int, how: int) -> bytes:
    if pieces:
        first, second = where % len(pieces), how % len(pieces)
        pieces[first], pieces[second] = pieces[second], pieces[first]
    return b"".join(pieces)


def _number(content: bytes, where: int, how: int) -> bytes:
    found = list(_NUMBER.finditer(content))
    if not found:
        return content
    match = found[where % len(found)]
    return content[: match.start()] + _NUMBERS[how % len(_NUMBERS)] + content[match.end() :]


def _encoding(content: bytes, where: int, how: int) -> bytes:
    text = content.decode("utf-8", errors="replace")
    name = ("utf-16", "latin-1", "utf-8-sig", "cp500", "utf-32")[how % 5]
    return text.encode(name, errors="replace")


def _json_value(content: bytes, where: int, how: int) -> bytes:
    """Change or delete one node of a JSON document or of one JSON line."""
    lines = content.split(b"\n")
    filled = [number for number, line in enumerate(lines) if line.strip()]
    try:
        document = json.loads(content)
        written = [document]
        lines, at = [b""], 0
    except (ValueError, RecursionError):
        if not filled:
            return content
        at = filled[where % len(filled)]
        try:
            written = [json.loads(lines[at])]
        except (ValueError, RecursionError):
            return content
    nodes = list(_nodes(written))
    holder, key = nodes[where // 7 % len(nodes)]
    if how % 5 == 0 and holder is not written:
        del holder[key]
    else:
        holder[key] = _VALUES[how // 5 % len(_VALUES)]
    lines[at] = json.dumps(written[0]).encode()
    return b"\n".join(lines)


def _nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every value below ``value``, as its holder and key."""
    keys = (
        range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()
    )
    for key in list(keys):
        yield value, key
        yield from _nodes(value[key])


_KINDS: tuple[Callable[[bytes, int, int], bytes], ...] = (
    *(_flip, _replace, _cut, _take_out, _insert, _number, _encoding, _json_value),
    *(_double_line, _remove_line, _swap_lines, _swap_words),
)
