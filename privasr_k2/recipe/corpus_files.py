"""The files of a corpus in fingerprints: text and lists by content, audio by size and time.

Reading a corpus's audio again at each run would take hours. Its text is small, and what people
edit. A file is text or a list unless its name says audio, arrays or an archive, or it is large.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

#: What follows the path of a corpus in the inputs of a stamp.
METADATA, MEDIA = " (text and lists)", " (sizes and times of audio)"
MOST_BYTES, MOST_FILES = 64 << 20, 20_000
"""Larger files, and those beyond so many, count by size and time."""
_AUDIO = "wav flac mp3 ogg oga opus m4a aac wma sph aif aiff au amr shn mp4 mkv webm raw pcm"
_ARRAYS = "ark h5 hdf5 npy npz lca llc pt bin safetensors zip tar tgz bz2 xz"
_OF_MEDIA = frozenset(f".{name}" for name in f"{_AUDIO} {_ARRAYS}".split())


@dataclass(frozen=True)
class Listing:
    """Plain hashes of the names and contents of metadata, and of the names and states of media."""

    metadata: str
    media: str

    def entries(self, path: str) -> tuple[tuple[str, str], tuple[str, str]]:
        """As inputs of a fingerprint; ``path`` is how it names the corpus."""
        return (f"{path}{METADATA}", self.metadata), (f"{path}{MEDIA}", self.media)


def listing(
    folder: str, digest: Callable[[str, os.stat_result], str], *, without: str = ""
) -> Listing:
    """The files below a folder; names that start with a dot do not count.

    Args:
        digest: the content hash of a file, by its path below ``folder`` and its state.
        without: a folder that does not count, though it may be inside: the work folder.
    """
    metadata, media, read = hashlib.sha256(), hashlib.sha256(), 0
    for name, path, stat in _files(folder, "", (), without):
        if stat is None:
            metadata.update(f"{name}\0cannot be read\n".encode(errors="surrogateescape"))
        elif read < MOST_FILES and is_metadata(name, stat.st_size):
            read += 1
            line = f"{name}\0{digest(path, stat)}\n"
            metadata.update(line.encode(errors="surrogateescape"))
        else:
            line = f"{name}\0{stat.st_size}\0{stat.st_mtime_ns}\n"
            media.update(line.encode(errors="surrogateescape"))
    return Listing(metadata.hexdigest(), media.hexdigest())


def is_metadata(name: str, size: int) -> bool:
    """Whether a file counts by its content; ``size`` is in bytes.

    >>> is_metadata("train/text", 9), is_metadata("a/b.FLAC", 9), is_metadata("x.txt", 1 << 30)
    (True, False, False)
    """
    return size <= MOST_BYTES and os.path.splitext(name)[1].lower() not in _OF_MEDIA


def recorded(before: Iterable[Sequence[str]], now: Iterable[Sequence[str]]) -> list[Any]:
    """The inputs of ``now`` without listings that an earlier version did not record ``before``."""
    known = {path for path, _ in before}
    return [
        [path, digest]
        for path, digest in now
        if path in known or not path.endswith((METADATA, MEDIA))
    ]


def _files(
    folder: str, name: str, above: tuple[tuple[int, int], ...], without: str
) -> Iterator[tuple[str, str, os.stat_result | None]]:
    """Names below the corpus, paths, and states of all files; None where one cannot be read."""
    full = os.path.join(folder, name)
    try:
        stat = os.stat(full)
        here = (stat.st_dev, stat.st_ino)
        if here in above or os.path.realpath(full) == without:
            return  # a link to a folder above would never end
        with os.scandir(full) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        yield name, full, None
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        below = f"{name}/{entry.name}" if name else entry.name
        if entry.is_dir():
            yield from _files(folder, below, (*above, here), without)
            continue
        try:
            yield below, entry.path, entry.stat()
        except OSError:  # a link to nothing
            yield below, entry.path, None
