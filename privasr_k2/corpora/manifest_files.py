"""lhotse's manifests of cuts, or of recordings and supervisions, as the cuts of a corpus.

Every line is read with its number, so that errors name it. Relative paths count from the folder of
the manifest, from those above it, or from the working directory: icefall's start where its recipe
was run. Given features are referenced where they are.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privasr_k2.corpora.lhotse_checks import Checks
from privasr_k2.errors import DataError
from privasr_k2.fileio import parse_record, read_lines

if TYPE_CHECKING:
    from lhotse import CutSet
    from lhotse.cut import Cut

_FILES = ("lilcom_chunky", "lilcom_files", "lilcom_hdf5", "numpy_files", "numpy_hdf5")
_KALDI = "kaldiio"
_UP = 4
"""How many folders a relative path may count from: the manifest's, and those above it."""


def read_manifests(files: Sequence[Path], part: str, checks: Checks) -> CutSet:
    """One cut for each supervision, named by its id.

    Args:
        files: manifests of cuts, of recordings and of supervisions, ``.jsonl`` or ``.jsonl.gz``.
        part: for ``custom["part"]``, where a cut has none.
        checks: collects what is wrong with recordings and supervisions.

    Raises:
        DataError: a line that is no item of lhotse, or no supervision at all.
    """
    from lhotse import CutSet, Recording, SupervisionSegment
    from lhotse.cut import MonoCut

    cuts: list[Cut] = []
    recordings, supervisions = [], []
    for path in files:
        for place, item in _items(path):
            if isinstance(item, MonoCut):
                cuts += checks.trimmed(_with_paths(item, path.parent), part, place)
            elif isinstance(item, Recording):
                recordings.append(_found(item, path.parent))
            elif isinstance(item, SupervisionSegment):
                supervisions.append((place, item))
            else:
                expected = "a cut of one channel, a recording or a supervision"
                way_out = "store cuts without mixing, padding or further channels"
                raise DataError(place, expected, f"a {type(item).__name__}", way_out)
    paired = checks.paired(recordings, supervisions)
    cuts += (cut for whole, place in paired for cut in checks.trimmed(whole, part, place))
    if not cuts and not checks.problems:
        place, found = ", ".join(map(str, files)), "none"
        way_out = "give cuts with their supervisions, or recordings and supervisions"
        raise DataError(place, "cuts with supervisions", found, way_out)
    return CutSet.from_cuts(cuts)


def _items(path: Path) -> Iterator[tuple[str, Any]]:
    """The place and the object of each line."""
    from lhotse.serialization import deserialize_item

    expected = "lhotse's cuts, or recordings and supervisions, as .jsonl.gz"
    if not path.is_file() or not path.name.endswith((".jsonl", ".jsonl.gz")):
        found = f"a file named {path.name}" if path.is_file() else "no such file"
        raise DataError(path, f"{expected}; or a Kaldi data directory", found, "correct the path")
    for number, line in read_lines(path):
        place = f"{path}:{number}"
        if not line.strip():
            continue
        record = parse_record(line, place)
        try:
            yield place, deserialize_item(record)
        except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
            found = f"something else ({type(error).__name__}: {error})"
            way_out = "write it with lhotse: cuts.to_file(...)"
            raise DataError(place, expected, found, way_out) from error


def _with_paths(cut: Cut, folder: Path) -> Cut:
    """With absolute paths; without a recording that is not there where features are."""
    from lhotse.utils import fastcopy

    if cut.has_features:
        cut = fastcopy(cut, features=_stored(cut, folder))
    if cut.has_recording:
        recording = _found(cut.recording, folder)
        files = (source.source for source in recording.sources if source.type == "file")
        needed = not cut.has_features or all(map(os.path.exists, files))
        cut = fastcopy(cut, recording=recording if needed else None)
    return cut


def _found(recording: Any, folder: Path) -> Any:
    from lhotse.utils import fastcopy

    sources = [
        fastcopy(source, source=_resolve(str(source.source), folder))
        if source.type == "file"
        else source
        for source in recording.sources
    ]
    return fastcopy(recording, sources=sources)


def _stored(cut: Cut, folder: Path) -> Any:
    """The features of a cut, at their absolute path.

    Raises:
        DataError: storage that could hold pickles or run commands, or that is not there.
    """
    from lhotse.utils import fastcopy

    features, place = cut.features, f"features of {cut.id}"
    way_out = "store them again: cuts.copy_feats(LilcomChunkyWriter(...))"
    if features.storage_type not in (*_FILES, _KALDI):
        found = f"{features.storage_type}, which may hold pickles"
        raise DataError(place, f"storage as {', '.join((*_FILES, _KALDI))}", found, way_out)
    name, offset = str(features.storage_path), ""
    if features.storage_type == _KALDI:
        name, _, offset = (
            name.rpartition(":") if name.rpartition(":")[2].isdigit() else (name, "", "")
        )
    path = _resolve(name, folder)
    if not os.path.exists(path):
        raise DataError(
            place, "their file", f"nothing at {path}", "copy it there, or leave the cuts out"
        )
    if path.endswith(".scp") and _runs_commands(path):
        raise DataError(path, "archives", "commands, which are not run", way_out)
    return fastcopy(features, storage_path=f"{path}:{offset}" if offset else path)


@functools.lru_cache(maxsize=1024)
def _runs_commands(path: str) -> bool:
    return any(line.rstrip().endswith("|") for _, line in read_lines(path))


def _resolve(name: str, folder: Path) -> str:
    """An absolute path; of several places that a relative name may count from, the first."""
    if os.path.isabs(name):
        return name
    above = folder.absolute()
    places = [above, *list(above.parents)[: _UP - 1], Path.cwd()]
    candidates = [os.path.normpath(place / name) for place in places]
    return next((path for path in candidates if os.path.exists(path)), candidates[0])
