"""Graph folders of both kinds of decoding graphs: symbols, ``graph.yaml``, and their checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from privasr_k2.errors import GraphError
from privasr_k2.fileio import read_yaml
from privasr_k2.graph.class_delimiters import ClassDelimiters
from privasr_k2.graph.lang import check_same_tokens, read_symbols

TOPOLOGIES = ("standard", "modified")
INFO = "graph.yaml"
_AGAIN = "compile the graph again"


@dataclass(frozen=True, eq=False)
class GraphFolder:
    """The symbols of a graph folder; the base of decoding graphs.

    Args:
        tokens: the C outputs that an acoustic model must have.
        words: by their numbers, delimiters included.
        info: content of ``graph.yaml``.
    """

    folder: Path
    tokens: tuple[str, ...]
    words: tuple[str, ...]
    info: dict[str, Any]

    @cached_property
    def delimiters(self) -> ClassDelimiters:
        """Words that are delimiters."""
        return ClassDelimiters.of_graph(self.words, self.info, self.folder)


def read_folder(folder: Path) -> GraphFolder:
    """The symbols and ``graph.yaml`` of a graph folder.

    Raises:
        GraphError: an unknown topology, or another number of tokens than ``tokens.txt``.
    """
    path = folder / INFO
    info = read_yaml(path)
    tokens, words = read_symbols(folder / "tokens.txt"), read_symbols(folder / "words.txt")
    if info.get("ctc_topology") not in TOPOLOGIES:
        raise GraphError(path, "a ctc_topology", repr(info)[:60], _AGAIN)
    if info.get("num_tokens") != len(tokens):
        expected = f"num_tokens: {len(tokens)}, as in tokens.txt"
        raise GraphError(path, expected, repr(info.get("num_tokens")), _AGAIN)
    return GraphFolder(folder, tokens, words, info)


def check_size(path: Path, info: dict[str, Any], *, num_states: int, num_arcs: int) -> None:
    """Refuse a graph of another compilation than ``graph.yaml``: its CTC topology is unknown.

    Raises:
        GraphError: other numbers of states or arcs.
    """
    name = path.stem
    noted = [info.get(key, {}).get(name) for key in ("num_states", "num_arcs")]
    if noted != [num_states, num_arcs]:
        expected = f"the {name} of {INFO}, with {noted[0]} states and {noted[1]} arcs"
        found = f"{num_states} and {num_arcs}: another compilation, or another CTC topology"
        raise GraphError(path, expected, found, _AGAIN)


def check_labels(
    path: Path, *, largest_token: int, num_tokens: int, largest_word: int, num_words: int
) -> None:
    """Refuse labels beyond tokens or words, for which k2 would read foreign memory.

    Raises:
        GraphError: the largest label is too large.
    """
    if largest_token >= num_tokens:
        raise GraphError(path, f"labels below {num_tokens}", f"label {largest_token}", _AGAIN)
    if largest_word >= num_words:
        raise GraphError(path, f"word numbers below {num_words}", str(largest_word), _AGAIN)


def check_outputs(
    graph: GraphFolder,
    num_tokens: int,
    tokens: Sequence[str] | None,
    topology: str | None,
    model: Path,
) -> None:
    """Refuse an acoustic model that the graph was not made for; ``None`` stands for unknown.

    Raises:
        GraphError: another number of outputs, other tokens, or another CTC topology.
    """
    if num_tokens != len(graph.tokens):
        expected = f"{len(graph.tokens)} outputs, as many as the graph has tokens"
        way_out = "train the model and compile the graph with the same lang folder"
        raise GraphError(f"{model} and {graph.folder}", expected, str(num_tokens), way_out)
    check_same_tokens(tokens, graph.tokens, model=model, graph=graph.folder)
    if topology not in (None, graph.info["ctc_topology"]):
        expected = f"a graph of the {topology} CTC topology, which the model was trained with"
        found = f"ctc_topology: {graph.info['ctc_topology']} in {INFO}"
        way_out = f"compile the graph with ctc_topology={topology}"
        raise GraphError(f"{model} and {graph.folder}", expected, found, way_out)
