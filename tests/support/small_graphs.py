"""Language folders and decoding graphs of a few words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privasr_k2.fileio import file_hash
from privasr_k2.graph.class_pieces import compile_class_graph
from privasr_k2.graph.hlg import GraphConfig, compile_graph, save_graph
from privasr_k2.graph.lang import Lang, load_lang, symbols_text
from privasr_k2.graph.nonterminals import ClassGraphConfig
from privasr_k2.lm.arpa import Arpa
from privasr_k2.lm.classes import ClassLm


def make_lang(folder: Path, lexicon: str, tokens: Sequence[str] = ()) -> Lang:
    """The words of a lexicon in its order, and its tokens, sorted where none are given."""
    entries = [line.split() for line in lexicon.splitlines()]
    tokens = tokens or sorted({token for _, *spelled in entries for token in spelled})
    words = dict.fromkeys(word for word, *_ in entries)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokens.txt").write_text(symbols_text(["<blk>", *tokens]))
    (folder / "words.txt").write_text(symbols_text(["<eps>", *words, "#0"]))
    (folder / "lexicon.txt").write_text(lexicon)
    return load_lang(folder)


def make_graph(folder: Path, lang: Lang, model: Arpa, topology: str = "standard") -> Path:
    """The graph of an n-gram model."""
    config = GraphConfig(topology, 100_000)
    graphs, info = compile_graph(lang, model, config, model_path=Path("a.arpa"))
    save_graph(graphs, lang, info, folder)
    return folder


def make_class_graph(folder: Path, lang: Lang, lm: ClassLm, config: ClassGraphConfig) -> Path:
    """The graph of a class LM, whose names can be replaced."""
    graphs, info = compile_class_graph(lang, lm, config, place="lm")
    hashes = {"sha256": {"lexicon.txt": file_hash(lang.folder / "lexicon.txt")}}
    save_graph(graphs, lang, {**info, **hashes}, folder)
    return folder


def heard(search: Any, num_tokens: int, tokens: Sequence[int], low: float = -12.0) -> Any:
    """The result of a search where scores all but tell the tokens, each with a blank behind it."""
    import torch

    log_probs = np.full((2 * len(tokens) + 2, num_tokens), low, dtype=np.float32)
    log_probs[:, 0] = -1e-4
    log_probs[1:-1:2, 0] = low
    log_probs[1 + 2 * np.arange(len(tokens)), tokens] = -1e-4
    [result] = search.decode(torch.from_numpy(log_probs)[None], torch.tensor([len(log_probs)]))
    return result
