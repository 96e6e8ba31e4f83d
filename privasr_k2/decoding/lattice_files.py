"""Files of compact lattices: one safetensors file a job, its utterances concatenated."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from privasr_k2.decoding.lattices import END, Lattice
from privasr_k2.errors import DataError
from privasr_k2.fileio import atomic_path, disk_errors, read_arrays
from privasr_k2.scoring.hypotheses import Weights

_FORMAT = "privasr_k2 lattices 1"
_AGAIN = "decode again with --out-lattices"
_FACTS = ("id", "part", "speaker", "ref", "beam")
_OF_STATES = {"seconds": np.float64}
_OF_ARCS = dict.fromkeys(("sources", "targets", "words"), np.int32)
_OF_ARCS |= dict.fromkeys(("am_scores", "lm_scores"), np.float64)


@dataclass(frozen=True, eq=False)
class Lattices:
    """The lattices of one role.

    Attributes:
        place: the folder.
        lattices: of all jobs, sorted by id.
        words: of the graph, by their numbers.
        weights: of the first pass.
    """

    place: Path
    lattices: tuple[Lattice, ...]
    words: tuple[str, ...]
    weights: Weights


def write_lattices(
    path: Path, lattices: Iterable[Lattice], words: Sequence[str], weights: Weights
) -> None:
    """Write the lattices of one job, whole or not at all."""
    written = list(lattices)
    arrays = {}
    for name, kind in (_OF_STATES | _OF_ARCS).items():
        parts = [np.zeros(0, kind), *(getattr(lattice, name) for lattice in written)]
        arrays[name] = np.concatenate(parts).astype(kind)
    sizes = np.array([(lattice.num_states, len(lattice.words)) for lattice in written])
    for n, name in enumerate(("state_splits", "arc_splits")):
        arrays[name] = np.cumsum([0, *sizes.reshape(-1, 2)[:, n]], dtype=np.int64)
    header = {
        "format": _FORMAT,
        "weights": weights._asdict(),
        "words": list(words),
        "utterances": [{name: getattr(lattice, name) for name in _FACTS} for lattice in written],
    }
    with atomic_path(path) as temporary, disk_errors(path):
        save_file(arrays, str(temporary), {"json": json.dumps(header, ensure_ascii=False)})


def read_lattices(folder: Path) -> Lattices:
    """Read and check the lattices of all jobs.

    Raises:
        DataError: no file, a damaged or foreign one, other words or weights than in another file,
            an utterance twice, or arrays that are no :class:`Lattice`.
    """
    by_id: dict[str, Lattice] = {}
    places: dict[str, Path] = {}
    common: tuple[tuple[str, ...], Weights] | None = None
    for path in sorted(folder.glob("*.safetensors")):
        lattices, words, weights = _read(path)
        if common is not None and common != (words, weights):
            differing = "words" if common[0] != words else f"weights, {tuple(weights)}"
            expected = f"the words and weights of the other files of {folder}"
            raise DataError(path, expected, f"other {differing}", _AGAIN)
        common = words, weights
        for lattice in lattices:
            if lattice.id in by_id:
                found = f"{lattice.id} again, which {places[lattice.id]} has"
                raise DataError(path, "every utterance once", found, _AGAIN)
            by_id[lattice.id], places[lattice.id] = lattice, path
    if common is None or not by_id:
        expected = "*.safetensors files with lattices"
        raise DataError(folder, expected, "none", "run decode --out-lattices")
    return Lattices(folder, tuple(by_id[name] for name in sorted(by_id)), *common)


def _read(path: Path) -> tuple[list[Lattice], tuple[str, ...], Weights]:
    expected = "lattices of decode --out-lattices"
    header, arrays = read_arrays(path, expected=expected, way_out=_AGAIN)
    try:
        if header.get("format") != _FORMAT:
            raise ValueError(f"the format {header.get('format')!r}")
        weights = Weights(*(float(header["weights"][name]) for name in Weights._fields))
        words = tuple(map(str, header["words"]))
        states, arcs = arrays["state_splits"].tolist(), arrays["arc_splits"].tolist()
        lattices = []
        for n, record in enumerate(header["utterances"]):
            parts = {name: arrays[name][states[n] : states[n + 1]] for name in _OF_STATES}
            parts |= {name: arrays[name][arcs[n] : arcs[n + 1]] for name in _OF_ARCS}
            lattice = Lattice(**{name: record[name] for name in _FACTS}, **parts)
            if len(lattice.words) and lattice.words.max() >= len(words):
                raise ValueError(f"{lattice.id}: the word {lattice.words.max()} of {len(words)}")
            lattices.append(lattice)
    except (ValueError, LookupError, TypeError, OverflowError, AttributeError) as error:
        raise DataError(path, expected, str(error), _AGAIN) from error
    return lattices, words, weights


def kaldi_text(lattice: Lattice) -> str:
    """The lattice as text of Kaldi's ``lattice-copy``, with word numbers, without transition ids.

    Costs are negated, unscaled scores, the graph's first; END arcs become final costs.

    >>> lattice = Lattice("u1", "", "", "", 1.0, np.zeros(3), np.array([0, 1]), np.array([1, 2]),
    ...     np.array([7, 0]), np.array([-1.5, -0.5]), np.array([-2.0, -0.25]))
    >>> print(kaldi_text(lattice), end="")
    u1
    0 1 7 2.0,1.5,
    1 0.25,0.5,
    <BLANKLINE>
    """
    rows: list[Any] = [lattice.id]
    labels = (values.tolist() for values in (lattice.sources, lattice.targets, lattice.words))
    costs = (0.0 - lattice.lm_scores).tolist(), (0.0 - lattice.am_scores).tolist()
    columns = zip(*labels, *costs)
    for source, target, word, graph, acoustic in columns:
        arc = f"{source}" if word == END else f"{source} {target} {word}"
        rows.append(f"{arc} {graph},{acoustic},")
    return "\n".join(rows) + "\n\n"
