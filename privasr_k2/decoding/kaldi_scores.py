"""Decoding log-likelihoods that Kaldi computed: ``nnet3-compute`` and a graph, by kaldi-decoder.

The search is Kaldi's ``LatticeSimpleDecoder``; its lattices go the way of those that Kaldi wrote
(:mod:`privasr_k2.decoding.kaldi_lattices`). In the graph each input label is made the number of a
column + 1: of ``HCLG.fst`` through the transition model, of a graph of our own it is one already.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2.constraints import Count, Finite
from privasr_k2.decoding.kaldi_archives import KaldiLattice, from_file
from privasr_k2.decoding.kaldi_lattices import KaldiLatticeConfig, WordTable
from privasr_k2.decoding.kaldi_models import read_pdfs
from privasr_k2.errors import DataError, GraphError
from privasr_k2.graph.kaldi_files import read_fst, read_table
from privasr_k2.graph.openfst import Fst
from privasr_k2.graph.tlg import load_tlg

_AGAIN = "compute them again, or copy the archive again"
_EXPECTED = "a Kaldi archive of float matrices (.ark), or its .scp"


@dataclass(frozen=True)
class ScoresConfig(KaldiLatticeConfig):
    """The search and its lattices; section ``kaldi_scores`` upon ``kaldi_lattices``.

    Args:
        acoustic_scale: of log-likelihoods, before the search.
        search_beam: natural log, of paths against the best one of a frame.
        lattice_beam: natural log, of arcs of the lattice against the best path.
        prune_interval: frames.
    """

    search_beam: Finite
    lattice_beam: Finite
    prune_interval: Count

    def searched(self) -> ScoresConfig:
        """How lattices of the search are read: it has scaled the scores already."""
        return dataclasses.replace(self, acoustic_scale=1.0)


def read_scores(paths: Iterable[Path]) -> Iterator[tuple[str, np.ndarray]]:
    """Utterances and their (T, P) float32 matrices of archives or ``.scp`` files, one by one.

    Raises:
        DataError: no archive of matrices, one that is cut short, or an utterance twice.
    """
    seen: dict[str, Path] = {}
    for path in paths:
        if not path.is_file() or not path.stat().st_size:
            raise DataError(path, _EXPECTED, "nothing", _AGAIN)
        is_list = path.suffix == ".scp"
        told, form = 0, None
        try:
            with _opened(f"{'scp' if is_list else 'ark'}:{path}") as reader:
                form = None if is_list else _form(path)
                for name, value in reader:
                    if name in seen:
                        found = f"{name} again, which {seen[name]} has"
                        raise DataError(path, "every utterance once", found, "leave one out")
                    seen[name] = path
                    scores = np.array(value, dtype=np.float32)
                    told += len(name.encode()) + 1 + (_size(form, scores) if form else 0)
                    yield name, scores
        except RuntimeError as error:
            found = "another table, or one that cannot be read"
            raise DataError(path, _EXPECTED, found, _AGAIN) from error
        if not is_list:
            _check_whole(path, told, form)


def _opened(rspecifier: str) -> Any:
    """A reader of matrices; one that cannot be opened is no second error when it is deleted."""
    import kaldi_native_io

    class Reader(kaldi_native_io.SequentialFloatMatrixReader):  # type: ignore[misc, name-defined]
        @property
        def is_open(self) -> bool:
            return self._impl is not None and self._impl.is_open

    return Reader(rspecifier)


#: Bytes of the header of a binary matrix, of a column's header, of a number.
_Form = tuple[int, int, int]
#: Kaldi's binary forms of matrices.
_FORMS: dict[bytes, _Form] = {
    b"FM ": (15, 0, 4),
    b"DM ": (15, 0, 8),
    b"CM ": (21, 8, 1),
    b"CM2": (22, 0, 2),
    b"CM3": (22, 0, 1),
}


def _form(path: Path) -> _Form | None:
    """That of an archive's first matrix; ``None`` of text."""
    with path.open("rb") as file:
        head = file.read(2000)
    start = head.find(b" \0B")
    return None if start < 0 else _FORMS.get(head[start + 3 : start + 6])


def _size(form: _Form, scores: np.ndarray) -> int:
    """Bytes of a matrix in a binary archive."""
    header, of_column, of_number = form
    return header + of_column * scores.shape[1] + of_number * scores.size


def _check_whole(path: Path, told: int, form: _Form | None) -> None:
    """Refuse an archive whose end was not read, which kaldi_native_io does not tell.

    Args:
        told: bytes of what was read, where it is binary.
    """
    whole = path.stat().st_size
    if form is None:
        with path.open("rb") as file:
            file.seek(max(0, whole - 100))
            missing = not file.read().rstrip().endswith(b"]")
    else:
        missing = told != whole
    if missing:
        raise DataError(path, "a whole archive", "one that is cut short or damaged", _AGAIN)


def with_pdfs(graph: Fst, pdfs: np.ndarray, place: str | Path) -> Fst:
    """``HCLG.fst`` with pdf + 1 in place of each transition id.

    Args:
        pdfs: (I + 1,) of :func:`privasr_k2.decoding.kaldi_models.read_pdfs`.

    Raises:
        GraphError: an input label beyond them: a graph of another model, or with nonterminals.
    """
    largest = int(graph.ilabels.max(initial=0))
    if largest >= len(pdfs):
        expected = f"transition ids up to {len(pdfs) - 1}, those of the model"
        way_out = "give final.mdl of the graph; make-grammar-fst --write-as-grammar=false expands"
        raise GraphError(place, expected, f"{largest}", f"{way_out} nonterminals")
    labels = np.where(graph.ilabels > 0, pdfs[graph.ilabels] + 1, 0)
    return dataclasses.replace(graph, ilabels=labels.astype(np.int32))


def foreign_graph(
    graph: Path, words: Path, transitions: Path | None, config: ScoresConfig
) -> tuple[Fst, WordTable]:
    """``HCLG.fst`` with columns + 1 as input labels, and its words.

    Args:
        transitions: ``final.mdl``; ``None``: the labels are columns + 1 already.

    Raises:
        DataError: another kind of file, or a graph with words that ``words`` lacks.
        GraphError: as of :func:`with_pdfs`, or no graph.
    """
    table = WordTable.of(words, read_table(words), config)
    found = Fst.from_kaldifst(read_fst(graph))
    table.check(found.olabels, graph)
    if transitions is not None:
        found = with_pdfs(found, read_pdfs(transitions), graph)
    return found, table


def own_graph(folder: Path, config: ScoresConfig) -> tuple[Fst, WordTable]:
    """TLG of a graph folder: its input labels are tokens + 1, delimiters of classes are silent."""
    graph = load_tlg(folder)
    silent = [*config.silent_words, *graph.delimiters.symbols]
    config = dataclasses.replace(config, silent_words=silent)
    return graph.TLG, WordTable.of(folder, graph.words, config)


class ScoreSearch:
    """Searches a graph whose input labels are numbers of columns + 1."""

    def __init__(self, graph: Fst, config: ScoresConfig, place: str | Path) -> None:
        import kaldi_decoder

        self.place, self._columns = place, int(graph.ilabels.max(initial=0))
        self._scale = config.acoustic_scale
        settings = {"beam": config.search_beam, "lattice_beam": config.lattice_beam}
        options = kaldi_decoder.LatticeSimpleDecoderConfig(
            **settings, prune_interval=config.prune_interval
        )
        # Kept beside its search, which only points to it.
        self._fst = graph.to_kaldifst()
        self._search = kaldi_decoder.LatticeSimpleDecoder(self._fst, options)

    def lattices(self, scores: Iterable[tuple[str, np.ndarray]]) -> Iterator[KaldiLattice]:
        """The lattice of each utterance; without a final state at the end it has no path.

        Raises:
            GraphError: matrices with fewer columns than the graph asks for.
            DataError: a value that is no number, or an utterance without frames.
        """
        import kaldi_decoder

        for name, matrix in scores:
            frames, columns = matrix.shape
            if columns < self._columns:
                expected = f"{self._columns} columns or more, as {self.place} has"
                way_out = "give the archive and the graph of one model"
                raise GraphError(f"the scores of {name}", expected, f"{columns}", way_out)
            if not frames or np.isnan(matrix).any() or np.isposinf(matrix).any():
                found = "no frames" if not frames else "others"
                raise DataError(f"the scores of {name}", "numbers", found, _AGAIN)
            scaled = np.ascontiguousarray(self._scale * matrix, dtype=np.float32)
            ended = self._search.decode(kaldi_decoder.DecodableCtc(scaled))
            # Without a final state the lattice would hold paths that stop inside a word.
            if ended and np.isfinite(self._search.final_relative_cost()):
                yield self._lattice(name)
            else:
                none = np.zeros(0, dtype=np.int64)
                yield KaldiLattice(name, name, 1, none, none, none, np.zeros((0, 2)), none)

    def _lattice(self, name: str) -> KaldiLattice:
        _, lattice = self._search.get_raw_lattice()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "lattice"
            if not lattice.write(str(path)):
                raise OSError(f"{path} could not be written")
            return from_file(path, name, f"the lattice of {name}")
